// Checks receipts at /q in the system's Chromium, with and without network. It prints
// {"passed": name} or {"fault": text} for each case.
//
//   node receipts.mjs '{"base": "http://…", "control": "http://…", "tokens": {…}, "papers": {…}, "only": …}'
//
// tokens are those of receipts by name, papers those of certificates and payment advices of batches. A POST to control/NAME changes what the service is:
// down and up, reverse, rotate (answers the token of the new key), revoke.
import { launch, runCases, task, watch } from './chromium.mjs';

const browser = await launch();

async function visitor({ script = true, lang = 'fr-CG', init } = {}) {
  const context = await browser.newContext({ locale: lang, javaScriptEnabled: script });
  context.setDefaultTimeout(30_000);
  if (init) await context.addInitScript(init);
  const tab = await context.newPage();
  const faults = [];
  // Without network the console says that requests fail.
  watch(tab, [task.base], (fault) => { if (!/ERR_|50\d/.test(fault)) faults.push(fault); });
  return { context, tab, faults };
}

async function control(what) {
  const answer = await fetch(`${task.control}/${what}`, { method: 'POST' });
  if (!answer.ok) throw new Error(`${what}: ${await answer.text()}`);
  return answer.text();
}

// offline runs without network: the browser is cut off, and the service answers nobody.
async function offline(context, run) {
  await control('down');
  await context.setOffline(true);
  try {
    await run();
  } finally {
    await context.setOffline(false);
    await control('up');
  }
}

// open opens the page anew, as a scan of a code does, and waits for the verdict.
async function scan(tab, token, path = '/q') {
  await tab.goto('about:blank');
  await tab.goto(`${task.base}${path}#${token}`);
  await tab.waitForSelector('#verdict[data-verdict]');
  return { verdict: await tab.getAttribute('#verdict', 'data-verdict'), text: await tab.innerText('main') };
}

async function says(tab, token, verdict, text = '', path = '/q') {
  const got = await scan(tab, token, path);
  const clean = got.text.replace(/\s+/gu, ' ');
  if (got.verdict !== verdict || !clean.includes(text)) throw new Error(`want ${verdict} and "${text}", the page says ${got.verdict}: ${clean}`);
  return clean;
}

// ready waits until the page can be used without network.
async function ready(tab) {
  await tab.waitForSelector('#result[data-ready]', { state: 'attached' });
}

const { tokens, papers } = task;
const withoutEd25519 = () => {
  const own = crypto.subtle.importKey.bind(crypto.subtle);
  crypto.subtle.importKey = (format, key, algorithm, ...rest) => (algorithm === 'Ed25519' || algorithm?.name === 'Ed25519' ? Promise.reject(new DOMException('no', 'NotSupportedError')) : own(format, key, algorithm, ...rest));
};

function forgeries() {
  return Object.keys(tokens).filter((name) => name.startsWith('forged'));
}

// differing are receipts that are signed, and whose payment is another one in the record.
function differing() {
  return Object.keys(tokens).filter((name) => name.startsWith('differs'));
}

// The cases change the service, so they run one after the other.
await runCases(1, {
  async 'with network'() {
    const { tab, faults } = await visitor();
    await says(tab, tokens.paid, 'authentic', `Authentique, vérifiée en ligne à ${task.clock} le ${task.day}`);
    const text = await says(tab, tokens.paid, 'authentic', '250 000 FCFA');
    for (const part of ['4821 9033 4455 6672', '…4711', 'Direction générale des impôts', '2 500 FCFA', '252 500 FCFA', 'non prouvé par le code', 'Mobile money', '23 novembre 2026, 10:30']) if (!text.includes(part)) throw new Error(`${part} is missing: ${text}`);
    await says(tab, tokens.paid, 'authentic', 'Authentic, checked online at', '/q?lang=en');
    await says(tab, tokens.before, 'reversed', 'Paiement annulé le 24 novembre 2026 à 10:30');
    await says(tab, tokens.test, 'test', 'Reçu de TEST, sans valeur');
    for (const name of forgeries()) await says(tab, tokens[name], 'none', 'Ce n’est pas un reçu de ce service');
    await says(tab, tokens.stolen, 'none');
    for (const name of differing()) {
      await says(tab, tokens[name], 'differs', 'Ce reçu ne correspond pas au paiement enregistré');
      await says(tab, tokens[name], 'differs', 'This receipt does not agree with the recorded payment', '/q?lang=en');
      if (await tab.isVisible('#facts')) throw new Error(`${name}: the page shows what the receipt says`);
    }
    // The smallest and the largest amount, and a service whose name is no markup.
    await says(tab, tokens.cent, 'authentic', ' 0,01 €');
    await says(tab, tokens.cent, 'authentic', '€0.01', '/q?lang=en');
    const largest = await says(tab, tokens.largest, 'authentic', '9 007 199 254 740 991 FCFA');
    if (!largest.includes('<img src=x onerror=alert(1)> ') || !largest.includes('محمد 🎉')) throw new Error(`the service is shown as ${largest}`);
    if (await tab.$('main img')) throw new Error('the name of a service became a picture');
    // A dossier number is compared in the browser, without asking the service.
    for (const [typed, said] of [['DOS-2026-17', 'conforme au code'], ['DOS-2026-18', 'le numéro saisi n’est pas celui de ce reçu'], ['', 'saisissez le numéro du papier']]) {
      await tab.goto(`${task.base}/q`);
      await tab.fill('#receipt', tokens.dossier);
      await tab.fill('#order', typed);
      await tab.click('form button');
      await tab.waitForSelector('#verdict[data-verdict=authentic]');
      const shown = await tab.innerText('main');
      if (!shown.includes(said) || (await tab.getAttribute('#verdict', 'class') === 'warn') !== (typed === 'DOS-2026-18')) throw new Error(`"${said}" is missing: ${shown}`);
    }
    await says(tab, tokens['test reversed'], 'test', 'Reçu de TEST, sans valeur ; paiement annulé le 24 novembre 2026 à 10:30');
    // The form, and a receipt after another on the same page.
    await tab.fill('#receipt', `${task.base}/q#${tokens.before}`);
    await tab.click('form button');
    await tab.waitForSelector('#verdict[data-verdict=reversed]');
    await tab.evaluate((token) => { location.hash = token; }, tokens.paid);
    await tab.waitForSelector('#verdict[data-verdict=authentic]');
    if (await tab.getAttribute('a[hreflang]', 'href').then((href) => !href.includes(tokens.paid))) throw new Error('the other language has lost the receipt');
    if (faults.length) throw new Error(faults.join('\n'));
    await tab.context().close();
  },

  async 'without network'() {
    const { context, tab, faults } = await visitor();
    await tab.goto(`${task.base}/q`);
    await ready(tab);
    await offline(context, async () => {
      await says(tab, tokens.paid, 'unconfirmed', `Signature valable ; annulation non vérifiée (liste du ${task.day} à`);
      await says(tab, tokens.paid, 'unconfirmed', 'Valid signature; cancellation not checked (list of', '/q?lang=en');
      await says(tab, tokens.before, 'reversed', 'Paiement annulé le 24 novembre 2026 à 10:30');
      await says(tab, tokens.later, 'unconfirmed');
      await says(tab, tokens.test, 'test');
      await says(tab, tokens['test reversed'], 'test', 'paiement annulé le 24 novembre 2026 à 10:30');
      await says(tab, tokens.paid, 'unconfirmed', 'Direction générale des impôts');
      await says(tab, tokens.unknown, 'unknown_key', 'Clé inconnue hors ligne : connectez-vous');
      await says(tab, tokens.cent, 'unconfirmed', ' 0,01 €');
      await says(tab, tokens.largest, 'unconfirmed', '9 007 199 254 740 991 FCFA');
      for (const name of forgeries()) await says(tab, tokens[name], 'none');
    });
    // The payment is reversed: with network at once, without network once the list came.
    await control('reverse');
    await offline(context, () => says(tab, tokens.later, 'unconfirmed'));
    await says(tab, tokens.later, 'reversed');
    await ready(tab);
    await offline(context, () => says(tab, tokens.later, 'reversed'));
    if (faults.length) throw new Error(faults.join('\n'));
    await context.close();
  },

  async 'a wrong clock'() {
    for (const years of [-1, 1]) {
      const { context, tab } = await visitor({ init: `{ const D = Date, off = ${years} * 365 * 864e5; Date = class extends D { constructor(...a) { a.length ? super(...a) : super(D.now() + off); } static now() { return D.now() + off; } }; }` });
      await says(tab, tokens.paid, 'authentic', `le ${task.day}`);
      await says(tab, tokens.before, 'reversed', 'Paiement annulé le 24 novembre 2026 à 10:30');
      await ready(tab);
      await offline(context, async () => {
        await says(tab, tokens.paid, 'unconfirmed', `liste du ${task.day}`);
        await says(tab, tokens.before, 'reversed', 'Paiement annulé le 24 novembre 2026 à 10:30');
      });
      await context.close();
    }
  },

  async 'a browser without Ed25519'() {
    const { context, tab } = await visitor({ init: withoutEd25519 });
    // The service checks the signature, and the page says so.
    await says(tab, tokens.paid, 'authentic', 'Ce navigateur ne peut pas contrôler la signature : le service l’a contrôlée.');
    await says(tab, tokens.before, 'reversed', 'Paiement annulé le 24 novembre 2026 à 10:30');
    await says(tab, tokens.test, 'test', 'Reçu de TEST, sans valeur');
    for (const name of forgeries()) await says(tab, tokens[name], 'none', 'Ce n’est pas un reçu de ce service');
    await says(tab, tokens.paid, 'authentic', 'This browser cannot check the signature: the service checked it.', '/q?lang=en');
    await tab.goto(`${task.base}/q`);
    await ready(tab);
    await offline(context, async () => {
      await says(tab, tokens.paid, 'unable', 'Vérification impossible hors ligne avec ce navigateur : connectez-vous');
      await says(tab, tokens['forged signature'], 'unable');
    });
    await context.close();
  },

  async 'a browser without scripts'() {
    const { context, tab } = await visitor({ script: false });
    for (const [token, text] of [
      [tokens.paid, 'Authentique, vérifiée en ligne'], [tokens.before, 'Paiement annulé le'], [tokens.test, 'Reçu de TEST, sans valeur'],
      [tokens.cent, '0,01 €'], [tokens.largest, '9 007 199 254 740 991 FCFA'], [tokens.largest, '<img src=x onerror=alert(1)>'],
      [tokens.stolen, 'Ce n’est pas un reçu de ce service'], ...differing().map((name) => [tokens[name], 'Ce reçu ne correspond pas au paiement enregistré']), ...forgeries().map((name) => [tokens[name], 'Ce n’est pas un reçu de ce service']), ['', 'À corriger'],
    ]) {
      await tab.goto(`${task.base}/q#${token}`);
      await tab.fill('#receipt', token && `${task.base}/q#${token}`);
      await Promise.all([tab.waitForNavigation(), tab.click('form button')]);
      const shown = (await tab.innerText('main')).replace(/\s+/gu, ' ');
      if (!shown.includes(text)) throw new Error(`${text} is missing: ${shown}`);
    }
    await context.close();
  },

  async 'papers of batches'() {
    const { context, tab, faults } = await visitor();
    const certificate = 'Certificat d’approbation authentique, état au 24 novembre 2026 à 10:30';
    const advice = 'Avis de versement authentique, état au 24 novembre 2026 à 10:30';
    const returned = 'Avis de versement authentique : la somme est revenue le 24 novembre 2026 à 10:30';
    const verified = async () => {
      const text = await says(tab, papers.certificate, 'certificate', certificate);
      for (const part of ['5 375 000 FCFA', 'Nombre de lignes 20', 'Direction générale des impôts', 'En paiement, suspendu', 'salaires<img src=x>', 'ab000000', '000000cd']) if (!text.includes(part)) throw new Error(`${part} is missing: ${text}`);
      const line = await says(tab, papers.advice, 'advice', advice);
      for (const part of ['250 000 FCFA', 'AGENT-001', 'QD1', 'OP-1', 'Payé le 23 novembre 2026, 10:30', 'ne sont pas prouvés par le code']) if (!line.includes(part)) throw new Error(`${part} is missing: ${line}`);
      if (line.includes('Montant réglé')) throw new Error(`rows of a receipt are shown: ${line}`);
      await says(tab, papers.returned, 'advice_returned', returned);
      await says(tab, papers.test, 'paper_test', 'Document de TEST, sans valeur');
      await says(tab, papers.advice, 'advice', 'Authentic payment advice, as of', '/q?lang=en');
      for (const name of Object.keys(papers).filter((name) => name.startsWith('forged'))) await says(tab, papers[name], 'none', 'Ce n’est pas un reçu de ce service');
    };
    await verified();
    if (await tab.$('main img')) throw new Error('a reference became a picture');
    await says(tab, papers.unknown, 'unknown_key');
    await says(tab, papers['called a receipt'], 'none');
    await says(tab, tokens.paid, 'authentic', 'Montant réglé'); // a receipt after a paper
    await ready(tab);
    await offline(context, verified);
    if (faults.length) throw new Error(faults.join('\n'));
    await context.close();

    const poor = await visitor({ init: withoutEd25519 });
    await says(poor.tab, papers.certificate, 'certificate', 'le service l’a contrôlée');
    await says(poor.tab, papers.returned, 'advice_returned', returned);
    await says(poor.tab, papers['forged: the signature of another'], 'none');
    await poor.context.close();

    const plain = await visitor({ script: false });
    for (const [token, text] of [[papers.certificate, certificate], [papers.certificate, '5 375 000 FCFA'], [papers.advice, advice], [papers.returned, returned], [papers.test, 'Document de TEST, sans valeur'], [papers['forged: of another service'], 'Ce n’est pas un reçu de ce service'], [papers.unknown, 'Clé inconnue']]) {
      await plain.tab.goto(`${task.base}/q`);
      await plain.tab.fill('#receipt', `${task.base}/q#${token}`);
      await Promise.all([plain.tab.waitForNavigation(), plain.tab.click('form button')]);
      const shown = (await plain.tab.innerText('main')).replace(/\s+/gu, ' ');
      if (!shown.includes(text)) throw new Error(`${text} is missing: ${shown}`);
    }
    await plain.context.close();
  },

  async 'keys change'() {
    const { context, tab } = await visitor();
    await tab.goto(`${task.base}/q`);
    await ready(tab);
    const next = await control('rotate');
    await offline(context, () => says(tab, next, 'unknown_key'));
    await says(tab, next, 'authentic');
    await ready(tab);
    await offline(context, () => says(tab, next, 'unconfirmed'));
    await control('revoke');
    // Receipts of the revoked key: the record proves the true one.
    await says(tab, tokens.paid, 'authentic');
    await says(tab, tokens.before, 'reversed');
    await says(tab, tokens.stolen, 'none');
    await offline(context, async () => {
      await says(tab, tokens.paid, 'unknown_key');
      await says(tab, next, 'unconfirmed');
    });
    await context.close();
  },
});
await browser.close();
