// The matrix and the list of findings. Only what can be seen is made: families first, the scenarios of a family when
// it is open, and never more than PAGE rows of scenarios at once.
const PAGE = 150;
const AUTO = 40; // so few rows are shown without opening anything
const families = [];
index.scenarios.forEach((x, s) => {
  const name = family(s);
  if (!families.length || families[families.length - 1].name !== name) families.push({ name, from: s, to: s });
  families[families.length - 1].to = s + 1;
});
const shownClients = () => index.clients.map((_, c) => c).filter((c) => !state.clients || state.clients.has(c));

const broken = new Map(); // scenario → ids of the rules that it breaks somewhere, for the search
function brokenBy(s) {
  if (!broken.has(s)) {
    const ids = index.rules.filter((_, r) => index.clients.some((_, c) => 'fu'.includes(column(r + ',' + c, index.byRule[r][c])[s])));
    broken.set(s, ids.map((r) => r.id).join(' '));
  }
  return broken.get(s);
}

function matches(s, clients, words) {
  const x = index.scenarios[s];
  if (words.length) {
    const text = (x.n + ' ' + (x.s || '') + ' ' + brokenBy(s)).toLowerCase();
    if (!words.every((w) => text.includes(w))) return false;
  }
  const any = clients.some((c) => { const l = statusAt(state, c, s); return l !== '-' && state.status.has(l); });
  return any || state.status.size === 4 && state.rule < 0 && !state.clients;
}

function filtered() {
  const clients = shownClients();
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const out = [];
  for (const f of families) {
    if (state.family && f.name !== state.family) continue;
    const rows = [];
    for (let s = f.from; s < f.to; s++) if (matches(s, clients, words)) rows.push(s);
    if (rows.length) out.push({ name: f.name, rows });
  }
  return { clients, list: out, total: out.reduce((n, f) => n + f.rows.length, 0) };
}

function drawHead(clients, words) {
  const many = clients.length > 5;
  byId('matrix-table').className = !words ? 'all' : many ? 'some' : 'few';
  const tr = el('tr', {}, el('th', { scope: 'col' }, 'family / scenario'));
  for (const c of clients) {
    const x = index.clients[c];
    tr.append(el('th', { scope: 'col', class: many ? 'many' : '', title: (x.name + ' ' + (x.version || '')).trim() }, el('span', {}, x.name)));
  }
  document.querySelector('#matrix-table thead').replaceChildren(tr);
}

function familyCell(f, c, words) {
  const n = { p: 0, f: 0, u: 0, s: 0, '-': 0 };
  for (const s of f.rows) n[statusAt(state, c, s)]++;
  const worst = n.f ? 'f' : n.u ? 'u' : n.p ? 'p' : n.s ? 's' : '';
  if (!worst) return el('td', {}, el('span', { class: 'sr' }, 'no result'));
  const number = worst === 'f' || worst === 'u' ? ' ' + n[worst] : '';
  const text = [n.p && n.p + ' pass', n.f && n.f + ' fail', n.u && n.u + ' unknown', n.s && n.s + ' skipped'].filter(Boolean).join(', ');
  return el('td', { class: WORDS[worst], title: text }, el('span', { 'aria-hidden': 'true', class: 'fc' }, GLYPHS[worst] + number, words ? el('span', { class: 'w' }, ' ' + WORDS[worst]) : ''), el('span', { class: 'sr' }, text));
}

function scenarioCell(s, c, words) {
  const l = statusAt(state, c, s);
  if (l === '-') return el('td', {}, el('span', { class: 'sr' }, 'no result'));
  const word = WORDS[l];
  const b = el('button', { type: 'button', class: 'cell', tabindex: '-1', 'data-c': c, 'data-s': s, 'aria-label': word, title: index.clients[c].name + ': ' + word },
    GLYPHS[l], words ? el('span', { class: 'w' }, ' ' + word) : '');
  return el('td', { class: word }, b);
}

function draw() {
  const view = filtered();
  const words = view.clients.length <= 10; // with more there is no room for them; readers aloud get them all the same
  drawHead(view.clients, words);
  const body = document.createDocumentFragment();
  let room = PAGE + state.more;
  let hidden = 0;
  const counts = { p: 0, f: 0, u: 0, s: 0, '-': 0 };
  for (const f of view.list) {
    for (const s of f.rows) for (const c of view.clients) counts[statusAt(state, c, s)]++;
    const open = state.open.has(f.name) ? state.open.get(f.name) : view.total <= AUTO;
    const toggle = el('button', { type: 'button', class: 'toggle', 'aria-expanded': String(open), 'data-family': f.name }, f.name);
    const tr = el('tr', { class: 'family' }, el('th', { scope: 'row' }, toggle, el('span', { class: 'count' }, ' ' + f.rows.length)));
    for (const c of view.clients) tr.append(familyCell(f, c, words));
    body.append(tr);
    if (!open) continue;
    const rows = f.rows.slice(0, Math.max(0, room));
    room -= rows.length;
    hidden += f.rows.length - rows.length;
    for (const s of rows) {
      const x = index.scenarios[s];
      const row = el('tr', { class: 'scenario' }, el('th', { scope: 'row', title: x.s }, x.n.slice(f.name.length + 1) || x.n));
      for (const c of view.clients) row.append(scenarioCell(s, c, words));
      const first = row.querySelector('td.fail .cell, td.unknown .cell') || row.querySelector('.cell');
      if (first) first.tabIndex = 0;
      body.append(row);
    }
  }
  if (hidden) {
    const b = el('button', { type: 'button', id: 'rows-more' }, 'Show ' + Math.min(hidden, PAGE) + ' of ' + count(hidden, 'more scenario'));
    body.append(el('tr', {}, el('th', { scope: 'row' }, b)));
  }
  if (!view.total) body.append(el('tr', {}, el('th', { scope: 'row' }, index.scenarios.length ? 'No scenario matches these filters.' : 'No scenario was run.')));
  const focus = document.activeElement && document.activeElement.dataset ? { ...document.activeElement.dataset } : {};
  document.querySelector('#matrix-table tbody').replaceChildren(body);
  if (focus.family !== undefined) [...document.querySelectorAll('.toggle')].find((t) => t.dataset.family === focus.family)?.focus();
  byId('matrix-count').textContent = 'Showing ' + view.total + ' of ' + count(index.scenarios.length, 'scenario') + ' and ' +
    view.clients.length + ' of ' + count(index.clients.length, 'client') + ': ' +
    ['f', 'u', 'p', 's'].map((l) => counts[l] + ' ' + WORDS[l]).join(', ') +
    (state.rule >= 0 ? ', by the verdicts of ' + index.rules[state.rule].id + ' alone' : ', by rules of level ' + state.level + (state.level === 'MUST' ? '' : ' and above')) + '.';
}

// form puts the state into the controls.
function form() {
  byId('f-q').value = state.q;
  byId('f-family').value = state.family;
  byId('f-rule').value = state.rule >= 0 ? String(state.rule) : '';
  byId('f-level').value = state.level;
  for (const b of document.querySelectorAll('[name=status]')) b.checked = state.status.has(LETTERS[b.value]);
  for (const b of document.querySelectorAll('[name=client]')) b.checked = !state.clients || state.clients.has(+b.value);
  byId('f-clients-n').textContent = state.clients ? state.clients.size + ' of ' + index.clients.length : 'all ' + index.clients.length;
}

function changed() {
  state.q = byId('f-q').value;
  state.family = byId('f-family').value;
  state.rule = byId('f-rule').value === '' ? -1 : +byId('f-rule').value;
  state.level = byId('f-level').value;
  state.status = new Set([...document.querySelectorAll('[name=status]:checked')].map((b) => LETTERS[b.value]));
  const chosen = [...document.querySelectorAll('[name=client]:checked')].map((b) => +b.value);
  state.clients = chosen.length === index.clients.length ? null : new Set(chosen);
  state.more = 0;
  form();
  draw();
  keep();
}

function setUp() {
  for (const f of families) byId('f-family').append(el('option', { value: f.name }, f.name));
  index.rules.forEach((r, i) => byId('f-rule').append(el('option', { value: i }, r.id)));
  index.clients.forEach((c, i) => {
    byId('f-clients-list').append(el('label', {}, el('input', { type: 'checkbox', name: 'client', value: i }), ' ' + c.name));
  });
  if (index.clients.length > 2) {
    const none = el('button', { type: 'button' }, 'None');
    none.addEventListener('click', () => { for (const b of document.querySelectorAll('[name=client]')) b.checked = false; changed(); });
    byId('f-clients-list').append(none);
  }
  const f = byId('filters');
  f.addEventListener('input', changed);
  f.addEventListener('submit', (e) => e.preventDefault());
  f.addEventListener('reset', (e) => {
    e.preventDefault();
    Object.assign(state, { q: '', family: '', rule: -1, level: index.level, status: new Set('pfus'), clients: null, open: new Map(), more: 0 });
    form(); draw(); keep();
  });
  const table = byId('matrix-table');
  table.addEventListener('click', (e) => {
    const b = e.target.closest('button');
    if (!b) return;
    if (b.dataset.family !== undefined) {
      state.open.set(b.dataset.family, b.getAttribute('aria-expanded') !== 'true');
      draw(); keep();
    } else if (b.id === 'rows-more') {
      const n = document.querySelectorAll('#matrix-table tr.scenario').length;
      state.more += PAGE;
      draw();
      document.querySelectorAll('#matrix-table tr.scenario')[n]?.querySelector('.cell')?.focus();
    } else if (b.dataset.c !== undefined) openCell(+b.dataset.c, +b.dataset.s, true);
  });
  table.addEventListener('keydown', move);
  findings(8);
}

// move takes the focus from cell to cell.
function move(e) {
  const b = e.target.closest('.cell, .toggle');
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
  if (!b || !step || e.ctrlKey || e.altKey || e.metaKey) return;
  e.preventDefault();
  const at = b.closest('td, th');
  let to = null;
  if (step[1]) {
    for (let t = at; (t = step[1] > 0 ? t.nextElementSibling : t.previousElementSibling) && !to;) to = t.querySelector('.cell, .toggle');
  } else {
    const i = [...at.parentNode.children].indexOf(at);
    for (let row = at.parentNode; (row = step[0] > 0 ? row.nextElementSibling : row.previousElementSibling) && !to;) {
      to = row.children[i]?.querySelector('.cell, .toggle') || row.querySelector('.toggle');
    }
  }
  if (!to) return;
  if (to.classList.contains('cell')) {
    for (const x of to.closest('tr').querySelectorAll('.cell')) x.tabIndex = x === to ? 0 : -1;
  }
  to.focus();
}

// findings lists what is wrong, the first n.
function findings(n) {
  const list = index.findings.slice(0, n).map((f) => {
    const s = index.scenarios[f.s];
    const several = index.clients.length > 1;
    const li = el('li', { class: f.st === 'fail' ? '' : 'undecided' },
      el('h3', {}, el('span', { class: f.st }, (f.st === 'fail' ? '✗ ' : '? ') + f.st), ' ' + f.check + ' ', f.level ? el('span', { class: 'level' }, f.level) : '',
        el('span', { class: 'where' }, ' ' + (several ? index.clients[f.c].name + ' · ' : '') + (f.n === 1 ? s.n : f.n + ' scenarios of ' + f.family))),
      el('p', {}, f.reason));
    const open = el('button', { type: 'button', class: 'link' }, f.n === 1 ? 'What happened' : 'What happened in ' + s.n);
    open.addEventListener('click', () => openCell(f.c, f.s, true));
    li.append(open);
    if (f.n > 1 && f.rule >= 0) {
      const all = el('button', { type: 'button', class: 'link' }, 'All ' + f.n + ' in the matrix');
      all.addEventListener('click', () => {
        Object.assign(state, { q: '', family: f.family, rule: f.rule, status: new Set(LETTERS[f.st]), clients: several ? new Set([f.c]) : null, open: new Map([[f.family, true]]), more: 0 });
        form(); draw(); keep(true);
        byId('matrix').focus();
        byId('matrix').scrollIntoView();
      });
      li.append(all);
    }
    return li;
  });
  byId('findings-list').replaceChildren(...list);
  byId('findings-none').hidden = index.findings.length > 0;
  const left = index.findings.length - list.length;
  const more = byId('findings-more');
  more.hidden = left === 0;
  more.textContent = 'Show ' + Math.min(left, 50) + ' of ' + count(left, 'more finding');
  more.onclick = () => {
    findings(n + 50);
    byId('findings-list').children[n]?.querySelector('button')?.focus();
  };
}
