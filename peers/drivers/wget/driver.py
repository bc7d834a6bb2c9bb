"""wget, one process a call, with its defaults: 20 tries after failures of the connection, waits that grow by a second to
ten. The application kills it at the deadline and when it cancels."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, "../lib")
from driver import headers, run, seconds  # noqa: E402


def perform(_, call):
    with tempfile.TemporaryDirectory() as folder:
        reply, sent = os.path.join(folder, "reply"), os.path.join(folder, "sent")
        words = ["wget", "--no-config", "--no-verbose", "--server-response", "--method", call["method"], "-O", reply]
        for name, value in headers(call).items():
            words += ["--header", f"{name}: {value}"]
        if "body" in call:
            with open(sent, "w", encoding="utf-8", newline="") as f:
                f.write(call["body"])
            words += ["--body-file", sent]
        words += ["--ca-certificate", call["cacert"]] if "cacert" in call else []
        p = call["process"] = subprocess.Popen(words + [call["url"]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if "cancelled" in call:  # before there was a process to kill
            p.kill()
        try:
            err = p.communicate(timeout=seconds(call))[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            return {"ok": False, "error": "killed at the deadline", "kind": "deadline"}
        if p.returncode < 0:
            return {"ok": False, "error": "killed", "kind": "canceled"}
        status = int((re.findall(r"^\s+HTTP/\S+ (\d{3})", err, re.M) or ["0"])[-1])
        if p.returncode:
            return {"ok": False, "status": status, "error": f"exit status {p.returncode}: {err.strip()[-200:]}"}
        return {"ok": True, "status": status, "body": open(reply, encoding="utf-8", errors="replace").read()}


said = subprocess.run(["wget", "--version"], capture_output=True, text=True, check=True).stdout.split()
run({"client": "wget", "version": said[2], "cancels": True, "tls": True, "policy": "--tries 20 --waitretry 10, its defaults",
     "declared": {"process": True, "max_attempts": 20, "jitter": "none", "base_delay_ms": 1000, "multiplier": 1, "max_delay_ms": 10000}},
    lambda cacert: None, perform, lambda call: call["process"].kill() if "process" in call else None)
