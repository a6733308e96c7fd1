// Search and copy buttons. The pages are whole without this script.
'use strict';
(() => {
  const french = document.documentElement.lang === 'fr';
  const say = (en, fr) => (french ? fr : en);
  const add = (parent, name, attributes = {}, text = '') => {
    const element = parent.appendChild(document.createElement(name));
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };

  for (const pre of navigator.clipboard ? document.querySelectorAll('main pre') : []) {
    const box = document.createElement('div');
    box.className = 'sample';
    pre.replaceWith(box);
    box.append(pre);
    const button = add(box, 'button', { type: 'button' }, say('Copy', 'Copier'));
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(pre.innerText);
      button.textContent = say('Copied', 'Copié');
      setTimeout(() => { button.textContent = say('Copy', 'Copier'); }, 2000);
    });
  }

  // Small letters without accents, as people type them.
  const plain = (text) => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
  let index;
  const load = () => {
    index ??= fetch(say('/docs/search.json', '/docs/fr/search.json')).then((answer) => answer.json())
      .then((all) => all.map((e) => ({ ...e, title: plain(`${e.page} ${e.section}`), words: plain(`${e.page} ${e.section} ${e.text}`) })));
    index.catch(() => { index = undefined; });
    return index;
  };
  const form = document.createElement('form');
  form.setAttribute('role', 'search');
  document.querySelector('nav').before(form);
  add(form, 'label', { for: 'search' }, say('Search', 'Rechercher'));
  const input = add(form, 'input', { id: 'search', type: 'search', autocomplete: 'off' });
  const count = add(form, 'p', { role: 'status' });
  const list = add(form, 'ul');
  const show = async () => {
    const asked = plain(input.value).split(/\s+/).filter(Boolean);
    list.replaceChildren();
    count.textContent = '';
    if (asked.length === 0) return;
    const all = await load();
    if (plain(input.value).split(/\s+/).filter(Boolean).join() !== asked.join()) return; // typed on
    const has = (text) => asked.every((word) => text.includes(word));
    const found = all.filter((e) => has(e.words)).sort((a, b) => has(b.title) - has(a.title));
    count.textContent = found.length > 0 ? say(`${found.length} sections`, `${found.length} sections`) : say('Nothing found', 'Rien trouvé');
    for (const e of found.slice(0, 12)) {
      add(add(list, 'li'), 'a', { href: e.href }, e.section && e.section !== e.page ? `${e.page}: ${e.section}` : e.page);
    }
  };
  input.addEventListener('focus', load, { once: true });
  input.addEventListener('input', show);
  form.addEventListener('submit', (event) => { event.preventDefault(); show(); });
})();
