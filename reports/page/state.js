// The data of the page, and the state that its address holds.
const index = load('data-index');
const WORDS = { p: 'pass', f: 'fail', u: 'unknown', s: 'skipped' };
const GLYPHS = { p: '✓', f: '✗', u: '?', s: '–' };
const LETTERS = { pass: 'p', fail: 'f', unknown: 'u', skipped: 's' };

const family = (s) => index.scenarios[s].n.split('/')[0];

// unrun turns "2p1f" into "ppf".
const unrun = (s) => s.replace(/(\d+)(.)/g, (_, n, c) => c.repeat(+n));
const cache = new Map();
function column(key, runs) {
  if (!cache.has(key)) cache.set(key, unrun(runs));
  return cache.get(key);
}
// statusAt is the letter of a cell: of one rule alone where one is chosen, else at the level.
let shown = { key: null, columns: [] };
function statusAt(st, c, s) {
  const key = st.rule >= 0 ? st.rule : st.level;
  if (shown.key !== key) {
    const runs = st.rule >= 0 ? index.byRule[st.rule] : index.status[st.level];
    shown = { key, columns: index.clients.map((_, i) => column(key + ',' + i, runs[i])) };
  }
  return shown.columns[c][s];
}

const state = { q: '', family: '', rule: -1, level: index.level, status: new Set('pfus'), clients: null, open: new Map(), cell: null, more: 0 };

function readHash() {
  const p = new URLSearchParams(location.hash.slice(1));
  state.q = p.get('q') || '';
  state.family = p.get('family') || '';
  state.rule = index.rules.findIndex((r) => r.id === p.get('rule'));
  state.level = index.status[p.get('level')] ? p.get('level') : index.level;
  state.status = new Set('pfus');
  if (p.has('status')) state.status = new Set(p.get('status').split(',').map((w) => LETTERS[w]).filter(Boolean));
  state.clients = null;
  if (p.has('client')) {
    const found = p.getAll('client').map((n) => index.clients.findIndex((c) => c.name === n)).filter((i) => i >= 0);
    if (found.length) state.clients = new Set(found);
  }
  state.open = new Map(p.getAll('open').map((f) => [f, true]).concat(p.getAll('shut').map((f) => [f, false])));
  state.cell = null;
  if (p.has('cell')) {
    const c = index.clients.findIndex((x) => x.name === p.get('of'));
    const s = index.scenarios.findIndex((x) => x.n === p.get('cell'));
    if (c >= 0 && s >= 0) state.cell = [c, s];
  }
}

function hash() {
  const p = new URLSearchParams();
  if (state.q) p.set('q', state.q);
  if (state.family) p.set('family', state.family);
  if (state.rule >= 0) p.set('rule', index.rules[state.rule].id);
  if (state.level !== index.level) p.set('level', state.level);
  if (state.status.size < 4) p.set('status', [...state.status].map((c) => WORDS[c]).join(','));
  if (state.clients) for (const c of state.clients) p.append('client', index.clients[c].name);
  for (const [f, open] of state.open) p.append(open ? 'open' : 'shut', f);
  if (state.cell) {
    p.set('cell', index.scenarios[state.cell[1]].n);
    p.set('of', index.clients[state.cell[0]].name);
  }
  const text = p.toString();
  return text ? '#' + text : location.pathname.split('/').pop() || '.';
}

// keep writes the state into the address: as a new entry of the browser's history where going back should undo it.
function keep(entry) {
  const to = hash();
  if (entry) history.pushState(null, '', to);
  else history.replaceState(null, '', to);
}
