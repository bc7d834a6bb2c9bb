// The inside of a cell, in a dialog. Its markup was made and escaped when the page was written; it is read only when
// the first cell is opened.
let words = null;
let pictures = null;
const dialog = byId('cell');

function openCell(c, s, entry) {
  words = words || load('data-words');
  pictures = pictures || load('data-pictures');
  state.cell = [c, s];
  if (entry) keep(true);
  fill(c, s);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  byId('cell-h').focus();
}

function fill(c, s) {
  const x = index.scenarios[s];
  const client = index.clients[c];
  const key = c + ',' + s;
  const l = column(index.level + ',' + c, index.status[index.level][c])[s];
  byId('cell-h').replaceChildren(el('span', { class: WORDS[l] || '' }, (GLYPHS[l] || '') + ' ' + (WORDS[l] || 'no result')), ' ' + x.n,
    el('span', { class: 'where' }, ' · ' + (client.name + ' ' + (client.version || '')).trim()));
  const body = byId('cell-body');
  body.replaceChildren();
  if (x.s) body.append(el('p', {}, x.s));
  if (l === 's' && index.why && index.why[key] !== undefined) body.append(el('p', { class: 'saw' }, 'Skipped: ' + index.reasons[index.why[key]]));
  if (words[key]) body.append(markup(words[key]));
  else {
    if ('fu'.includes(l)) body.append(el('p', { class: 'notice' }, 'The words of this finding are left out to keep the page small: see ' + index.json + '.'));
    const command = client.repro + ' --scenario ' + (x.q || x.n) + ' ' + (index.other && index.other[key] || '--seed ' + index.seed + ' --world ' + index.world);
    body.append(el('div', { class: 'repro' }, el('code', {}, command), el('button', { type: 'button', class: 'copy' }, 'Copy')));
  }
  if (pictures[key]) {
    body.append(markup(pictures[key]));
    if (body.querySelector('.timeline')) body.append(legend());
  } else if ('fu'.includes(l)) body.append(el('p', { class: 'dim' }, 'No timeline here: the finding is of no one call, or it was left out to keep the page small; ' + index.json + ' has the whole history.'));
  whole(body);
  const rules = index.rules.map((r, i) => [r, column(i + ',' + c, index.byRule[i][c])[s]]).filter((p) => p[1] !== '-');
  if (rules.length) {
    const list = el('ul');
    for (const [r, letter] of rules) {
      list.append(el('li', {}, el('span', { class: WORDS[letter] }, GLYPHS[letter] + ' ' + WORDS[letter]), ' ' + r.id + (r.holds ? ': ' + r.holds : '') + (r.source ? ' (' + r.source + ')' : '')));
    }
    body.append(el('details', { open: l === 'p' }, el('summary', {}, 'All ' + rules.length + ' rules in this cell'), list));
  }
  const order = cellsWithFindings();
  const i = order.indexOf(key);
  byId('cell-prev').disabled = i === 0 || !order.length;
  byId('cell-next').disabled = i === order.length - 1 || !order.length;
}

// cellsWithFindings are the failing and undecided cells of the filtered matrix, row by row.
function cellsWithFindings() {
  const out = [];
  const view = filtered();
  for (const f of view.list) for (const s of f.rows) for (const c of view.clients) if ('fu'.includes(statusAt(state, c, s))) out.push(c + ',' + s);
  return out;
}

function go(by) {
  const order = cellsWithFindings();
  const i = order.indexOf(state.cell.join(','));
  const next = order[i < 0 ? 0 : i + by];
  if (!next) return;
  const [c, s] = next.split(',').map(Number);
  state.cell = [c, s];
  keep();
  fill(c, s);
  dialog.scrollTop = 0;
  byId('cell-h').focus();
}
byId('cell-prev').addEventListener('click', () => go(-1));
byId('cell-next').addEventListener('click', () => go(1));
byId('cell-close').addEventListener('click', () => dialog.close());
dialog.addEventListener('click', (e) => { if (e.target === dialog) dialog.close(); });
dialog.addEventListener('close', () => {
  if (state.cell) {
    state.cell = null;
    keep();
  }
});

function show() {
  readHash();
  form();
  draw();
  if (state.cell) openCell(state.cell[0], state.cell[1], false);
  else if (dialog.open) dialog.close();
}
const section = () => /^#(findings|matrix|clients|rules|rest)$/.test(location.hash);
window.addEventListener('popstate', () => { if (!section()) show(); });
window.addEventListener('hashchange', () => { if (!section()) show(); });
setUp();
show();
if (location.hash && !section() && !state.cell) byId('matrix').scrollIntoView();
if (section()) document.querySelector(location.hash).scrollIntoView(); // the matrix was not there when the browser went to it
