// The protocol of docs/drivers.md for Node: each instance has a client object, each call an AbortSignal.
import {createInterface} from 'node:readline';
import {readFileSync} from 'node:fs';

const kinds = [
	[/^(ECONNRESET|EPIPE)$/, 'reset'], [/^ECONNREFUSED$/, 'refused'], [/^(ENOTFOUND|EAI_AGAIN)$/, 'dns'],
	[/CERT|SELF_SIGNED|ALTNAME/, 'certificate'], [/^(EPROTO$|ERR_SSL)/, 'tls'], [/TIMEOUT|ETIMEDOUT|ESOCKETTIMEDOUT/, 'timeout'],
	[/^UND_ERR_SOCKET$/, 'eof'], [/^(AbortError|ERR_CANCELED)$/, 'canceled'], [/^TimeoutError$/, 'timeout'],
];

// What an application can find out about an error, or about what is behind it.
function kind(error) {
	for (let e = error, depth = 0; e && depth < 8; e = e.cause, depth++) {
		for (const [pattern, name] of kinds) {
			if (pattern.test(e.code ?? '') || pattern.test(e.name ?? '')) return name;
		}
	}
}

export const headers = call => ({...call.headers, ...(call.key && {'Idempotency-Key': call.key})});
export const body = call => call.body_base64 ? Buffer.from(call.body_base64, 'base64') : call.body;
export const ca = call => call.cacert && readFileSync(call.cacert);
export const version = name => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;

// make(call) makes a client object; perform(client, call, signal) resolves to an outcome, or rejects with what the client does.
export function run(hello, make, perform) {
	const clients = new Map(), calls = new Map();
	const write = process.stdout.write.bind(process.stdout);
	console.log = console.info = console.error; // what a library prints is no outcome
	const say = message => write(JSON.stringify(message) + '\n');

	async function work(call) {
		const controller = new AbortController();
		const end = call.deadline_ms && setTimeout(() => controller.abort(new DOMException('deadline', 'TimeoutError')), call.deadline_ms);
		calls.set(call.id, controller);
		let outcome;
		try {
			if (!clients.has(call.instance)) clients.set(call.instance, make(call));
			outcome = await perform(clients.get(call.instance), call, controller.signal);
		} catch (e) {
			const k = controller.signal.aborted ? (controller.signal.reason.name === 'TimeoutError' ? 'deadline' : 'canceled') : kind(e);
			outcome = {ok: false, status: e.response?.status ?? e.response?.statusCode ?? e.statusCode, error: `${e.name}: ${e.message}`, kind: k};
		}
		clearTimeout(end);
		calls.delete(call.id);
		say({id: call.id, ...outcome});
	}

	say({protocol: 'retrychaos.driver/v1', cancels: true, ...hello});
	createInterface({input: process.stdin}).on('line', line => {
		const m = JSON.parse(line);
		if ('id' in m) work(m);
		else if ('cancel' in m) calls.get(m.cancel)?.abort();
		else if ('close' in m) clients.delete(m.close);
		else if ('ping' in m) say({pong: m.ping});
	}).on('close', () => process.exit(0));
}
