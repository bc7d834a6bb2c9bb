"""urllib3 as it comes: PoolManager().request. Its default Retry(3) repeats idempotent methods after errors of the
connection, and obeys Retry-After of 413, 429 and 503; back-off is off. The deadline is its time-out, an attempt."""
import sys

sys.path.insert(0, "../lib")
from driver import headers, run, seconds  # noqa: E402
import urllib3  # noqa: E402

DEFAULT = urllib3.util.retry.Retry.DEFAULT


def perform(pool, call):
    body = call["body"].encode() if "body" in call else None
    r = pool.request(call["method"], call["url"], body=body, headers=headers(call), timeout=seconds(call))
    return {"ok": r.status < 300, "status": r.status, "body": r.data.decode("utf-8", "replace"),
            "attempts": len(r.retries.history) + 1 if r.retries else 1}


run({"client": "urllib3", "version": urllib3.__version__, "tls": True, "policy": repr(DEFAULT),
     "declared": {"max_attempts": DEFAULT.total + 1, "jitter": "none"}},
    lambda cacert: urllib3.PoolManager(ca_certs=cacert), perform)
