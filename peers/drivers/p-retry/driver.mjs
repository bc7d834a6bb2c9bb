// p-retry around Node's fetch with five retries, as its documentation has it, and else its defaults: 1 s doubled, no
// jitter. Glue: a status of 429 or 500 and above is an error. Results are of the library and this glue together.
import pRetry from 'p-retry';
import {body, headers, run, version} from '../lib/driver.mjs';

const retries = 5;

run({
	client: 'p-retry', version: version('p-retry'), policy: `pRetry(run, {retries: ${retries}}) around fetch`,
	declared: {max_attempts: retries + 1, jitter: 'none', base_delay_ms: 1000, multiplier: 2},
}, () => undefined, async (_, call, signal) => {
	let attempts = 0;
	return pRetry(async () => {
		attempts++;
		const response = await fetch(call.url, {method: call.method, headers: headers(call), body: body(call), signal});
		const text = await response.text();
		if (response.status === 429 || response.status >= 500) throw Object.assign(new Error(`status ${response.status}`), {response});
		return {ok: response.status < 300, status: response.status, body: text, attempts};
	}, {retries, signal});
});
