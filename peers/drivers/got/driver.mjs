// got with its defaults: two retries of idempotent methods, 1 s doubled plus up to 100 ms; Retry-After is obeyed.
import http from 'node:http';
import https from 'node:https';
import got from 'got';
import {body, ca, headers, run, version} from '../lib/driver.mjs';

const {limit, noise} = got.defaults.options.retry;

run({
	client: 'got', version: version('got'), tls: true, policy: `retry ${JSON.stringify(got.defaults.options.retry)}`,
	declared: {max_attempts: limit + 1, jitter: 'additive', jitter_width_ms: noise, base_delay_ms: 1000, multiplier: 2},
}, call => got.extend({
	agent: {http: new http.Agent({keepAlive: true}), https: new https.Agent({keepAlive: true})}, https: {certificateAuthority: ca(call)},
}), async (client, call, signal) => {
	const response = await client(call.url, {method: call.method, headers: headers(call), body: body(call), signal, allowGetBody: true});
	return {ok: response.statusCode < 300, status: response.statusCode, body: response.body, attempts: response.retryCount + 1};
});
