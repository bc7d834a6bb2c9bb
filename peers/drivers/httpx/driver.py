"""httpx with HTTPTransport(retries=3), its only retries: of connections that cannot be made. The deadline is its
time-out, for each step of an attempt."""
import sys

sys.path.insert(0, "../lib")
from driver import headers, run, seconds  # noqa: E402
import httpx  # noqa: E402

RETRIES = 3


def make(cacert):
    return httpx.Client(transport=httpx.HTTPTransport(verify=cacert or True, retries=RETRIES), trust_env=False)


def perform(client, call):
    r = client.request(call["method"], call["url"], content=call.get("body"), headers=headers(call), timeout=seconds(call))
    return {"ok": r.status_code < 300, "status": r.status_code, "body": r.text}


run({"client": "httpx", "version": httpx.__version__, "tls": True, "policy": f"HTTPTransport(retries={RETRIES}): connections only",
     "declared": {"max_attempts": RETRIES + 1}}, make, perform)
