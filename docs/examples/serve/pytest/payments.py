"""The client under test: it charges a card, and repeats what failed."""

import http.client
import random
import time
import urllib.error
import urllib.request


class Gone(Exception):
    """The charge failed. status is that of the last answer, or None."""

    def __init__(self, status, cause):
        super().__init__(f"status {status}" if status else f"no answer: {cause!r}")
        self.status = status
        self.cause = cause


def charge(url, body, key=None, attempts=3, base=0.2):
    """Charges once, whatever it takes. Returns the number of attempts."""
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Idempotency-Key"] = key
    for attempt in range(1, attempts + 1):
        wait = random.uniform(0, base * 2**attempt)
        try:
            request = urllib.request.Request(url, body.encode(), headers, method="POST")
            with urllib.request.urlopen(request, timeout=5) as response:
                response.read()
                return attempt
        except urllib.error.HTTPError as error:
            failure = Gone(error.code, error)
            if error.code not in (429, 502, 503, 504):
                raise failure
            wait += float(error.headers.get("Retry-After") or 0)
        except (OSError, http.client.HTTPException) as error:
            failure = Gone(None, error)
        if attempt < attempts:
            time.sleep(wait)
    raise failure
