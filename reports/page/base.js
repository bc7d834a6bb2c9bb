// Small helpers of every page. Text is only ever set as text.
const byId = (id) => document.getElementById(id);
const load = (id) => JSON.parse(byId(id).textContent);
function el(tag, attrs, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (v === true) e.setAttribute(k, '');
    else if (v !== false && v !== undefined) e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
}
const count = (n, noun) => n + ' ' + noun + (n === 1 ? '' : 's');
const say = (text) => { byId('say').textContent = text; };

// markup is what html/template made and escaped when the page was written.
function markup(html) {
  const t = document.createElement('template');
  t.innerHTML = html;
  return t.content;
}

// whole has commands break between words only, so that no option is torn; the text stays the same.
function whole(node) {
  for (const code of node.querySelectorAll('.repro code')) {
    code.replaceChildren(...code.textContent.split(' ').flatMap((w, i) => i ? [' ', el('span', {}, w)] : [el('span', {}, w)]));
  }
}

const legend = () => el('p', { class: 'key' }, 'Bar: an attempt, from its arrival to its end. Dotted line: the wait before it. Band: the wait that Retry-After asked for. ' +
  '○ fresh and ● reused connection. ◆ effect. ↻ resent by net/http.');

document.addEventListener('click', async (e) => {
  const b = e.target.closest('.copy');
  if (!b) return;
  const code = b.parentNode.querySelector('code');
  let done = false;
  try {
    await navigator.clipboard.writeText(code.textContent);
    done = true;
  } catch {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    done = document.execCommand('copy');
  }
  b.textContent = done ? 'Copied' : 'Press Ctrl+C';
  say(done ? 'The command is copied.' : 'The command is selected: press Ctrl+C.');
  setTimeout(() => { b.textContent = 'Copy'; }, 2000);
});
