// The client under test: it charges a card, and repeats what failed.

const PASSING = [429, 502, 503, 504];
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export class Failed extends Error {
  constructor(status, cause) {
    super(status ? `status ${status}` : `no answer: ${cause?.cause?.code ?? cause}`, { cause });
    this.status = status;
  }
}

// Charges once, whatever it takes, and gives the number of attempts. Without a key it is repeated all the same, which is wrong.
export async function charge(url, body, key, { attempts = 3, base = 200 } = {}) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers["Idempotency-Key"] = key;
  for (let attempt = 1; ; attempt++) {
    let wait = Math.random() * base * 2 ** attempt;
    let failure;
    try {
      const response = await fetch(url, { method: "POST", headers, body, signal: AbortSignal.timeout(5000) });
      await response.text();
      if (response.ok) return attempt;
      failure = new Failed(response.status);
      wait += 1000 * Number(response.headers.get("Retry-After") ?? 0);
    } catch (cause) {
      failure = new Failed(undefined, cause);
    }
    const permanent = failure.status && !PASSING.includes(failure.status);
    if (permanent || attempt === attempts) throw failure;
    await sleep(wait);
  }
}
