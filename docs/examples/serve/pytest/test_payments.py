import time

import payments
import pytest
import retrychaos

# A scenario of one's own, as a file of scenarios in YAML.
BUSY = """
family: payments
scenarios:
  - name: busy
    summary: The server is busy and says for how long; a good client waits that long and tries again.
    rule: timing.retry-after
    source: RFC 9110 §10.2.3
    calls: [{key: true}]
    faults: ["503 retry-after=1s", ok]
    expect: {ok: true, attempts: 2, effects: 1}
"""

CLIENT = {"name": "payments", "max_attempts": 3}


def traits(error):
    """What an application can find out of an error."""
    cause = getattr(error.cause, "reason", error.cause)
    kinds = [(ConnectionResetError, "reset"), (ConnectionRefusedError, "refused"), (TimeoutError, "timeout")]
    return [name for kind, name in kinds if isinstance(cause, kind)]


def make(run, call, key):
    """Lets the client make a call, and reports what it said."""
    began = time.monotonic()
    try:
        attempts = payments.charge(call["url"], call["body"], key)
        facts = {"ok": True, "attempts": attempts}
    except payments.Gone as error:
        facts = {"ok": False, "status": error.status, "error": str(error), "traits": traits(error)}
    run.report(call, took_ms=1000 * (time.monotonic() - began), **facts)


@pytest.mark.parametrize(
    "order",
    [
        {"library": "duplicates/post-keyed-honour-connection-reset-fresh"},
        {"library": "duplicates/post-keyed-honour-502-fresh"},
        {"library": "bodies/keyed-post-empty-response-fresh"},
        {"scenario": BUSY},
    ],
    ids=lambda order: order.get("library", "busy"),
)
def test_a_charge_is_made_once(order):
    with retrychaos.Run(client=CLIENT, **order) as run:
        for call in run.calls:
            make(run, call, call["key"])
        verdict = run.verdict()
        assert verdict["status"] == "pass", verdict["text"]


def test_a_charge_without_its_key_is_caught():
    with retrychaos.Run(library="duplicates/post-keyed-honour-connection-reset-fresh", client=CLIENT) as run:
        make(run, run.calls[0], key=None)
        verdict = run.verdict()
        failed = {v["check"] for v in verdict["verdicts"] if v["status"] == "fail"}
        assert verdict["status"] == "fail"
        assert {"effects.once", "key.stable"} <= failed, verdict["text"]
