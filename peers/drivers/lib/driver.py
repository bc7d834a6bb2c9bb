"""The protocol of docs/drivers.md for Python: each call has a thread, each instance a client object."""
import http.client, json, os, socket, ssl, sys, threading  # noqa: E401

KINDS = [(ssl.SSLCertVerificationError, "certificate"), (ssl.SSLError, "tls"), (socket.gaierror, "dns"),
         (http.client.RemoteDisconnected, "eof"), (http.client.IncompleteRead, "unexpected_eof"),
         ((ConnectionResetError, BrokenPipeError), "reset"), (ConnectionRefusedError, "refused"), (TimeoutError, "timeout")]


def kind(error, depth=0):
    """What an application can find out about an error, or about what is behind it."""
    for cls, name in KINDS:
        if isinstance(error, cls):
            return name
    behind = [getattr(error, "reason", None), error.__cause__, error.__context__, *error.args] if depth < 8 else []
    found = [kind(e, depth + 1) for e in behind if isinstance(e, BaseException)]
    return next((k for k in found if k), "timeout" if "Timeout" in type(error).__name__ else "")


def headers(call):
    return call["headers"] | ({"Idempotency-Key": call["key"]} if "key" in call else {})


def seconds(call):
    return call["deadline_ms"] / 1000 if "deadline_ms" in call else None


def run(hello, make, perform, cancel=lambda call: None):
    """make(cacert) makes a client object; perform(client, call) returns an outcome, or raises what the client does."""
    out, lock, clients, calls = os.fdopen(os.dup(1), "w", encoding="utf-8"), threading.Lock(), {}, {}
    os.dup2(2, 1)  # what a library prints is no outcome

    def say(message):
        with lock:
            print(json.dumps(message), file=out, flush=True)

    def work(call):
        try:
            with lock:
                if call["instance"] not in clients:
                    clients[call["instance"]] = make(call.get("cacert"))
                client = clients[call["instance"]]
            outcome = perform(client, call)
        except Exception as e:  # whatever it is: it is reported
            outcome = {"ok": False, "error": f"{type(e).__name__}: {e}", "kind": kind(e)}
        calls.pop(call["id"], None)
        say({"id": call["id"], **outcome})

    say({"protocol": "retrychaos.driver/v1", **hello})
    for message in map(json.loads, sys.stdin):
        if "id" in message:
            calls[message["id"]] = message
            threading.Thread(target=work, args=(message,), daemon=True).start()
        elif call := calls.get(message.get("cancel")):
            call["cancelled"] = True
            cancel(call)
        elif "close" in message:
            clients.pop(message["close"], None)
        elif "ping" in message:
            say({"pong": message["ping"]})
    os._exit(0)
