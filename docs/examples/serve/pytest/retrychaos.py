"""The fault server, for tests: start it with `retrychaos serve`, and name it in RETRYCHAOS_URL."""

import json
import os
import urllib.request

URL = os.environ.get("RETRYCHAOS_URL", "http://127.0.0.1:8474")


def _ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.loads(response.read() or "null")


class Run:
    """One scenario's server. Use it as a context manager: its port is closed at the end."""

    def __init__(self, **order):
        self.info = _ask("POST", "/runs", order)
        self.path = "/runs/" + self.info["id"]
        self.calls = self.info["calls"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _ask("DELETE", self.path)

    def report(self, call, ok, **facts):
        _ask("POST", self.path + "/outcomes", {"call": call["id"], "ok": ok, **facts})

    def verdict(self):
        return _ask("GET", self.path + "/verdict")
