// undici's fetch through a RetryAgent with its defaults: five retries of idempotent methods, 500 ms doubled up to 30 s,
// no jitter; Retry-After is obeyed.
import {Agent, RetryAgent, fetch} from 'undici';
import {body, ca, headers, run, version} from '../lib/driver.mjs';

run({
	client: 'undici', version: version('undici'), tls: true, policy: 'new RetryAgent(new Agent()): maxRetries 5, 500 ms ×2 up to 30 s',
	declared: {max_attempts: 6, jitter: 'none', base_delay_ms: 500, multiplier: 2, max_delay_ms: 30000, max_retry_after_ms: 30000, caps_retry_after: true},
}, call => new RetryAgent(new Agent({connect: {ca: ca(call)}})), async (dispatcher, call, signal) => {
	const response = await fetch(call.url, {method: call.method, headers: headers(call), body: body(call), signal, dispatcher});
	return {ok: response.status < 300, status: response.status, body: await response.text()};
});
