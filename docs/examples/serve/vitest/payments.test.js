import { expect, test } from "vitest";

import { charge } from "./payments.js";
import { withRun } from "./retrychaos.js";

const client = { name: "payments", max_attempts: 3 };

// A scenario of one's own, as a file of scenarios in YAML.
const busy = `
family: payments
scenarios:
  - name: busy
    summary: The server is busy and says for how long; a good client waits that long and tries again.
    rule: timing.retry-after
    source: RFC 9110 §10.2.3
    calls: [{key: true}]
    faults: ["503 retry-after=1s", ok]
    expect: {ok: true, attempts: 2, effects: 1}
`;

// What an application can find out of an error.
function traits(error) {
  const found = { ECONNRESET: "reset", ECONNREFUSED: "refused", UND_ERR_SOCKET: "eof" }[error.cause?.cause?.code];
  return error.cause?.name === "TimeoutError" ? ["timeout"] : found ? [found] : [];
}

// Lets the client make a call, and reports what it said.
async function make(run, call, key) {
  const began = performance.now();
  const took = () => performance.now() - began;
  try {
    const attempts = await charge(call.url, call.body, key);
    await run.report(call, { ok: true, attempts, took_ms: took() });
  } catch (error) {
    await run.report(call, { ok: false, status: error.status ?? null, error: error.message, traits: traits(error), took_ms: took() });
  }
}

test.each([
  [{ library: "duplicates/post-keyed-honour-connection-reset-fresh" }],
  [{ library: "duplicates/post-keyed-honour-502-fresh" }],
  [{ library: "bodies/keyed-post-empty-response-fresh" }],
  [{ scenario: busy }],
])("a charge is made once: %j", async (order) => {
  await withRun({ ...order, client }, async (run) => {
    for (const call of run.calls) await make(run, call, call.key);
    const verdict = await run.verdict();
    expect(verdict.status, verdict.text).toBe("pass");
  });
});

test("a charge without its key is caught", async () => {
  await withRun({ library: "duplicates/post-keyed-honour-connection-reset-fresh", client }, async (run) => {
    await make(run, run.calls[0]);
    const verdict = await run.verdict();
    expect(verdict.status).toBe("fail");
    const failed = verdict.verdicts.filter((v) => v.status === "fail").map((v) => v.check);
    expect(failed, verdict.text).toEqual(expect.arrayContaining(["effects.once", "key.stable"]));
  });
});
