// The fault server, for tests: start it with `retrychaos serve`, and name it in RETRYCHAOS_URL.

const URL_ = process.env.RETRYCHAOS_URL ?? "http://127.0.0.1:8474";

async function ask(method, path, body) {
  const response = await fetch(URL_ + path, {
    method,
    headers: { "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

// Opens one scenario's server, hands it to the test, and closes its port afterwards.
export async function withRun(order, test) {
  const info = await ask("POST", "/runs", order);
  const path = "/runs/" + info.id;
  try {
    return await test({
      calls: info.calls,
      report: (call, outcome) => ask("POST", path + "/outcomes", { call: call.id, ...outcome }),
      verdict: () => ask("GET", path + "/verdict"),
    });
  } finally {
    await ask("DELETE", path);
  }
}
