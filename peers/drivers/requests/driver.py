"""requests with retries as its documentation switches them on (they are off): an HTTPAdapter with urllib3's Retry, three
times, back-off factor 0.1, on 502, 503 and 504; methods are Retry's own. The deadline is its time-out, an attempt."""
import sys

sys.path.insert(0, "../lib")
from driver import headers, run, seconds  # noqa: E402
import requests  # noqa: E402
from requests.adapters import HTTPAdapter  # noqa: E402
from urllib3.util import Retry  # noqa: E402

POLICY = Retry(total=3, backoff_factor=0.1, status_forcelist=[502, 503, 504])


def make(cacert):
    s = requests.Session()
    s.trust_env, s.verify = False, cacert or True
    for scheme in ("http://", "https://"):
        s.mount(scheme, HTTPAdapter(max_retries=POLICY))
    return s


def perform(session, call):
    body = call["body"].encode() if "body" in call else None
    r = session.request(call["method"], call["url"], data=body, headers=headers(call), timeout=seconds(call))
    return {"ok": r.status_code < 300, "status": r.status_code, "body": r.text}


run({"client": "requests", "version": requests.__version__, "tls": True, "policy": repr(POLICY),
     "declared": {"max_attempts": 4, "jitter": "none"}}, make, perform)
