// ky with its defaults over Node's fetch: two retries of idempotent methods, 300 ms doubled, no jitter, a time-out of 10 s
// for all; Retry-After is obeyed. Node's fetch cannot be told of a certificate authority.
import ky from 'ky';
import {body, headers, run, version} from '../lib/driver.mjs';

run({
	client: 'ky', version: version('ky'), policy: 'retry: {limit: 2}, timeout: 10000, its defaults',
	declared: {max_attempts: 3, jitter: 'none', base_delay_ms: 300, multiplier: 2},
}, () => ky.create(), async (client, call, signal) => {
	const response = await client(call.url, {method: call.method, headers: headers(call), body: body(call), signal});
	return {ok: response.status < 300, status: response.status, body: await response.text()};
});
