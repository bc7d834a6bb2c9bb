// A comparison: a filter over the changes, and their timelines, which are made when a change is opened.
let pictures = null;

function drawSides(details) {
  const key = details.dataset.key;
  if (key === undefined || details.dataset.drawn) return;
  details.dataset.drawn = 'yes';
  pictures = pictures || load('data-pictures');
  if (!pictures[key]) return;
  details.querySelector('summary').after(markup(pictures[key]), legend());
}

function filter() {
  const words = byId('f-q').value.toLowerCase().split(/\s+/).filter(Boolean);
  let all = 0;
  let shown = 0;
  for (const a of document.querySelectorAll('.change')) {
    const text = (a.closest('section').id + ' ' + a.textContent).toLowerCase();
    a.hidden = !words.every((w) => text.includes(w));
    all++;
    shown += !a.hidden;
  }
  byId('changes-count').textContent = 'Showing ' + shown + ' of ' + count(all, 'different change') + '.';
}

byId('f-q').value = new URLSearchParams(location.hash.slice(1)).get('q') || '';
byId('f-q').addEventListener('input', () => {
  filter();
  const q = byId('f-q').value;
  history.replaceState(null, '', q ? '#' + new URLSearchParams({ q }) : location.pathname.split('/').pop() || '.');
});
byId('filters').addEventListener('submit', (e) => e.preventDefault());
byId('open-all').addEventListener('click', () => {
  const list = [...document.querySelectorAll('.change:not([hidden]) .sides:not([open])')].slice(0, 100);
  for (const d of list) d.open = true;
  say(count(list.length, 'change') + ' opened.');
});
document.addEventListener('toggle', (e) => { if (e.target.matches('.sides') && e.target.open) drawSides(e.target); }, true);
whole(document);
filter();
if (/^#[a-z_]+$/.test(location.hash)) byId(location.hash.slice(1))?.scrollIntoView();
