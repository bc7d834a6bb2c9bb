// axios-retry with its defaults: three retries, of network errors whatever the method and of 5xx where it is idempotent,
// without a wait; Retry-After is obeyed.
import http from 'node:http';
import https from 'node:https';
import axios from 'axios';
import retry from 'axios-retry';
import {body, ca, headers, run, version} from '../lib/driver.mjs';

// axios makes JSON of a string; bytes it leaves alone.
const bytes = call => call.body === undefined ? body(call) : Buffer.from(call.body);
const axiosRetry = retry.default ?? retry;

run({
	client: 'axios-retry', version: `${version('axios-retry')} with axios ${version('axios')}`, tls: true, policy: 'axiosRetry(axios): retries 3, no delay, its defaults',
	declared: {max_attempts: 4, jitter: 'none'},
}, call => {
	const client = axios.create({httpAgent: new http.Agent({keepAlive: true}), httpsAgent: new https.Agent({keepAlive: true, ca: ca(call)})});
	axiosRetry(client);
	return client;
}, async (client, call, signal) => {
	const response = await client.request({
		url: call.url, method: call.method, headers: headers(call), data: bytes(call), signal, responseType: 'text', transformResponse: [text => text],
	});
	return {ok: response.status < 300, status: response.status, body: response.data};
});
