"""tenacity around httpx, as its documentation composes it: wait_random_exponential(multiplier=1, max=60) and
stop_after_attempt(7), for every exception; raise_for_status makes an exception of a bad status. Results are of the
library and this glue together."""
import sys

sys.path.insert(0, "../lib")
from driver import headers, kind, run, seconds  # noqa: E402
import httpx  # noqa: E402
from importlib.metadata import version  # noqa: E402
from tenacity import RetryError, retry, stop_after_attempt, wait_random_exponential  # noqa: E402

ATTEMPTS = 7


@retry(wait=wait_random_exponential(multiplier=1, max=60), stop=stop_after_attempt(ATTEMPTS))
def once(client, call):
    r = client.request(call["method"], call["url"], content=call.get("body"), headers=headers(call), timeout=seconds(call))
    r.raise_for_status()
    return r


def perform(client, call):
    try:
        r = once(client, call)
    except RetryError as e:
        last = e.last_attempt.exception()
        status = {"status": last.response.status_code} if isinstance(last, httpx.HTTPStatusError) else {}
        return {"ok": False, "error": f"RetryError: {last}", "kind": kind(last), "attempts": e.last_attempt.attempt_number, **status}
    return {"ok": r.status_code < 300, "status": r.status_code, "body": r.text}


run({"client": "tenacity", "version": version("tenacity"), "tls": True,
     "policy": f"retry(wait=wait_random_exponential(multiplier=1, max=60), stop=stop_after_attempt({ATTEMPTS})) around httpx",
     "declared": {"max_attempts": ATTEMPTS, "jitter": "full", "base_delay_ms": 1000, "multiplier": 2, "max_delay_ms": 60000}},
    lambda cacert: httpx.Client(verify=cacert or True, trust_env=False), perform)
