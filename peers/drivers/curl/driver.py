"""curl, one process a call, with --retry 3 (it is off) and else its defaults. The application kills it at the deadline
and when it cancels."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, "../lib")
from driver import headers, run, seconds  # noqa: E402

RETRIES = 3


def perform(_, call):
    with tempfile.TemporaryDirectory() as folder:
        reply = os.path.join(folder, "reply")
        words = ["curl", "-sS", "--fail", "--retry", str(RETRIES), "-X", call["method"], "-o", reply, "-w", "%{http_code}"]
        if call["method"] == "HEAD":
            words += ["--head"]
        for name, value in headers(call).items():
            words += ["-H", f"{name}: {value}"]
        words += ["--data-binary", "@-"] if "body" in call else []
        words += ["--cacert", call["cacert"]] if "cacert" in call else []
        p = call["process"] = subprocess.Popen(words + [call["url"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if "cancelled" in call:  # before there was a process to kill
            p.kill()
        try:
            out, err = p.communicate(call.get("body", "").encode(), timeout=seconds(call))
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            return {"ok": False, "error": "killed at the deadline", "kind": "deadline"}
        if p.returncode < 0:
            return {"ok": False, "error": "killed", "kind": "canceled"}
        if p.returncode:
            return {"ok": False, "status": int(out or 0), "error": f"exit status {p.returncode}: {err.decode(errors='replace').strip()}"}
        body = open(reply, encoding="utf-8", errors="replace").read() if os.path.exists(reply) else ""
        return {"ok": True, "status": int(out), "body": body}


said = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout.split()
run({"client": "curl", "version": said[1], "cancels": True, "tls": True, "policy": f"--retry {RETRIES}",
     "declared": {"process": True, "max_attempts": RETRIES + 1, "jitter": "none", "base_delay_ms": 1000, "multiplier": 2, "max_delay_ms": 600000}},
    lambda cacert: None, perform, lambda call: call["process"].kill() if "process" in call else None)
