// Checks a receipt in the browser, so that checking it tells nobody what the receipt says. The
// service is asked for the keys, for the list of reversals, whether the payment stands, and by a
// digest whether it is the payment of the receipt; the claims leave the browser only when nobody but the service can tell (a revoked key), or when the
// browser has no Ed25519; the page then says that the service checked the signature. The clock of
// the device is not used.

interface Key { kid: string; x: string; mode: string; nbf: number; exp?: number }
interface Claims { [name: string]: string | number | undefined; v: number; iss: string; jti: string; iat: number; pd: number; a: number; c: string }
interface List { iss: string; iat: number; n: number; reversed: Record<string, number> }
// Paper is what the code of a certificate or a payment advice of a batch says.
interface Paper { [name: string]: string | number | undefined; v: number; k: string; iss: string; iat: number; t: string; a: number; c: string; rd?: number }
interface Result { verdict: string; at?: number; claims?: Claims; paper?: Paper; served?: boolean; order?: string }
interface Words {
  issuer: string; lang: string; served: string; unable: string;
  verdicts: Record<string, string>; more: Record<string, string>;
  channels: Record<string, string>; partial: string; noList: string; orders: Record<string, string>; unproven: string; testReversed: string;
  currencies: Record<string, [number, string]>;
  papers: { verdicts: Record<string, string>; more: Record<string, string>; states: Record<string, string>; held: string };
}

const keysURL = '/.well-known/jwks.json';
const paperKeysURL = '/.well-known/batches-jwks.json';
const agenciesURL = '/q/agencies.json';
const patience = 8000;
const box = document.getElementById('result')!;
const words: Words = JSON.parse(box.dataset.words!);

// bytes reads base64url that has one spelling (RFC 7515): no padding, no unused bits.
function bytes(text: string): Uint8Array {
  const plain = atob(text.replace(/-/g, '+').replace(/_/g, '/'));
  const out = Uint8Array.from(plain, (c) => c.charCodeAt(0));
  if (base64url(out) !== text) throw new Error('encoding');
  return out;
}

const base64url = (b: Uint8Array): string => btoa(String.fromCharCode(...b)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');

const utf8 = (b: Uint8Array): string => new TextDecoder('utf-8', { fatal: true }).decode(b);
const header = (kid: string, typ: string): string => `{"alg":"EdDSA","kid":"${kid}","typ":"${typ}"}`;

// verified reports whether a key signed. Its kid chose it, never an algorithm that a token names.
async function verified(key: Key, signed: string, signature: string): Promise<boolean> {
  const own = await imported(key);
  return !!own && crypto.subtle.verify('Ed25519', own, bytes(signature) as BufferSource, new TextEncoder().encode(signed));
}

// imported returns a key for WebCrypto, or nothing where WebCrypto has no Ed25519 or the key is
// not readable. The service decides then.
async function imported(key: Key): Promise<CryptoKey | undefined> {
  try {
    return await crypto.subtle.importKey('raw', bytes(key.x) as BufferSource, 'Ed25519', false, ['verify']);
  } catch {
    return undefined;
  }
}

// ask fetches something, with a limit of time. It fails without network.
async function ask(url: string, init: RequestInit = {}): Promise<Response> {
  const end = new AbortController();
  const timer = setTimeout(() => end.abort(), patience);
  try {
    return await fetch(url, { cache: 'no-cache', credentials: 'omit', ...init, signal: end.signal });
  } finally {
    clearTimeout(timer);
  }
}

// kept is what was fetched before; the service worker keeps the page beside it.
async function kept(url: string): Promise<string | undefined> {
  try {
    return await (await (await caches.open('q-data')).match(url))?.text();
  } catch {
    return undefined;
  }
}

async function keep(url: string, text: string): Promise<void> {
  try {
    await (await caches.open('q-data')).put(url, new Response(text));
  } catch { /* a private window keeps nothing */ }
}

// latest returns what an address says now, or what it said last when there is no network.
async function latest(url: string): Promise<string | undefined> {
  try {
    const answer = await ask(url);
    if (answer.ok) {
      const text = await answer.text();
      await keep(url, text);
      return text;
    }
  } catch { /* no network */ }
  return kept(url);
}

async function keys(url = keysURL): Promise<Key[]> {
  const text = await latest(url);
  return text ? JSON.parse(text).keys : [];
}

// agency returns the full name of an agency, or its slug where it is not known.
async function agency(slug: string): Promise<string> {
  try {
    const names: Record<string, string> = JSON.parse(await latest(agenciesURL) ?? '{}');
    return Object.prototype.hasOwnProperty.call(names, slug) ? names[slug] : slug;
  } catch {
    return slug;
  }
}

const order = document.getElementById('order') as HTMLInputElement;

// ordered compares the dossier number that somebody typed with the claims, as the service does.
async function ordered(claims: Claims): Promise<string> {
  const typed = order.value.trim();
  if (!claims.o) return 'unproven';
  if (!typed) return 'untyped';
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`${claims.jti}.${typed}`)));
  return base64url(sum.slice(0, 8)) === claims.o ? 'matches' : 'differs';
}

// digest is that of the payment in the claims, as receipts.Claims.PaymentDigest makes it: the service
// that has the record learns from it whether the receipt agrees, and no more.
async function digest(c: Claims): Promise<string> {
  const parts = [c.v, c.jti, c.a, c.c, c.pr ?? '', c.n ?? ''];
  if (c.v > 1) parts.push(c.f ?? 0);
  const encoder = new TextEncoder();
  const text = parts.map((part) => `${encoder.encode(String(part)).length}:${part},`).join('');
  return base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text))));
}

async function listOf(key: Key, text: string | undefined): Promise<List | undefined> {
  try {
    const { payload, protected: head, signature } = JSON.parse(text!);
    if (utf8(bytes(head)) !== header(key.kid, 'quittance-reversals+jwt') || !await verified(key, `${head}.${payload}`, signature)) return undefined;
    const list: List = JSON.parse(utf8(bytes(payload)));
    return list.iss === words.issuer ? list : undefined;
  } catch {
    return undefined;
  }
}

// reversals returns the newest list of a key: that with the larger count, because a reversal is
// never undone.
async function reversals(key: Key): Promise<List | undefined> {
  const url = `/q/reversed/${key.kid}.json`;
  const before = await listOf(key, await kept(url));
  try {
    const answer = await ask(url);
    if (answer.ok) {
      const text = await answer.text();
      const list = await listOf(key, text);
      if (list && (!before || list.n > before.n || list.n === before.n && list.iat >= before.iat)) {
        await keep(url, text);
        return list;
      }
    }
  } catch { /* no network */ }
  return before;
}

// record has the service compare a receipt with its record.
async function record(token: string): Promise<Result> {
  try {
    const answer = await ask('/q', { method: 'POST', headers: { Accept: 'application/json' }, body: new URLSearchParams({ receipt: token, order: order.value }) });
    if (answer.ok) return await answer.json();
  } catch { /* no network */ }
  return { verdict: 'unknown_key' };
}

// served has the service check a receipt whose signature this browser cannot check.
async function served(token: string): Promise<Result> {
  const result = await record(token);
  return result.verdict === 'unknown_key' ? { verdict: 'unable' } : { ...result, served: true };
}

// paperOf checks the code of a certificate or a payment advice of a batch: its signature alone. The service that answers here knows
// no batches.
async function paperOf(token: string, kid: string): Promise<Result> {
  if (!window.isSecureContext) return served(token);
  const [head, body, signature] = token.split('.');
  const key = (await keys(paperKeysURL)).find((k) => k.kid === kid);
  if (!key) return record(token);
  if (!await imported(key)) return served(token);
  let paper: Paper;
  try {
    if (!await verified(key, `${head}.${body}`, signature)) return { verdict: 'none' };
    paper = JSON.parse(utf8(bytes(body)));
  } catch {
    return { verdict: 'none' };
  }
  if (paper.v !== 1 || paper.k !== 'certificate' && paper.k !== 'advice') return record(token);
  if (paper.iss !== words.issuer) return { verdict: 'none' };
  if (key.mode !== 'live') return { verdict: 'paper_test', paper };
  if (paper.k === 'advice' && paper.rd) return { verdict: 'advice_returned', at: paper.rd, paper };
  return { verdict: paper.k, at: paper.iat, paper };
}

async function check(typed: string): Promise<Result> {
  const none = { verdict: 'none' };
  const token = typed.trim().split('#').pop()!;
  const parts = token.split('.');
  if (parts.length !== 3 || token.length > 4096) return none;
  let kid, claims: Claims;
  try {
    const head = utf8(bytes(parts[0]));
    ({ kid } = JSON.parse(head));
    if (head === header(kid, 'quittance-batch+jwt')) return paperOf(token, kid);
    if (head !== header(kid, 'quittance+jwt')) return none;
  } catch {
    return none;
  }
  if (!window.isSecureContext) return served(token); // no WebCrypto here
  const key = (await keys()).find((k) => k.kid === kid);
  if (!key) return record(token);
  if (!await imported(key)) return served(token);
  try {
    if (!await verified(key, `${parts[0]}.${parts[1]}`, parts[2])) return none;
    claims = JSON.parse(utf8(bytes(parts[1])));
  } catch {
    return none;
  }
  if (claims.v !== 1 && claims.v !== 2) return record(token);
  const dated = claims.v === 1 ? claims.iat === claims.pd : claims.pd <= claims.iat + 86400;
  if (claims.iss !== words.issuer || !dated || claims.iat < key.nbf || key.exp && claims.iat >= key.exp) return none;
  const test = key.mode !== 'live';
  const list = reversals(key);
  try {
    const answer = await ask(`/q/status/${claims.jti}?payment=${await digest(claims)}`);
    const { status, at, reversed_at: reversed, agrees } = await answer.json();
    if (test && typeof status === 'string') return { verdict: 'test', at: reversed, claims };
    if (agrees === false) return { verdict: 'differs' }; // somebody else has the key
    if (status !== 'unknown' && typeof status === 'string' && !agrees) return record(token); // an instance of the release before
    if (status === 'paid') return { verdict: 'authentic', at, claims };
    if (status === 'reversed') return { verdict: 'reversed', at: reversed, claims };
    if (status === 'unknown') return none; // somebody else has the key
  } catch { /* no network */ }
  const known = await list;
  const at = known?.reversed[claims.jti];
  if (test) return { verdict: 'test', at, claims };
  return at ? { verdict: 'reversed', at, claims } : { verdict: 'unconfirmed', at: known?.iat, claims };
}

function day(seconds: number): string {
  const text = new Intl.DateTimeFormat(words.lang === 'en' ? 'en-GB' : 'fr', { dateStyle: 'long', timeZone: 'Africa/Brazzaville' }).format(seconds * 1000);
  return words.lang === 'en' ? text : text.replace(/^1 /, '1er ');
}

function clock(seconds: number): string {
  return new Intl.DateTimeFormat('fr', { hour: '2-digit', minute: '2-digit', timeZone: 'Africa/Brazzaville' }).format(seconds * 1000);
}

function money(amount: number, code: string): string {
  const [decimals, symbol] = words.currencies[code] ?? [0, code];
  const digits = String(amount).padStart(decimals + 1, '0');
  const cut = digits.length - decimals;
  const grouped = (by: string): string => digits.slice(0, cut).replace(/\B(?=(\d{3})+$)/g, by);
  if (words.lang === 'en') return symbol + (/[a-z]$/i.test(symbol) ? '\u00a0' : '') + grouped(',') + (decimals ? '.' + digits.slice(cut) : '');
  return grouped('\u202f') + (decimals ? ',' + digits.slice(cut) : '') + '\u202f' + symbol;
}

const shown: Record<string, (c: Claims) => string> = {
  a: (c) => money(c.a, c.c),
  f: (c) => c.v > 1 ? money(Number(c.f ?? 0), c.c) : '',
  total: (c) => c.v > 1 ? money(c.a + Number(c.f ?? 0), c.c) : '',
  payer: () => words.unproven,
  pd: (c) => `${day(c.pd)}, ${clock(c.pd)}`,
  ch: (c) => words.channels[String(c.ch)] ?? String(c.ch),
  pr: (c) => String(c.pr).replace(/(.{4})(?=.)/g, '$1\u00a0'),
  sr: (c) => c.sr ? `…${c.sr}` : '',
  pt: (c) => c.pt ? words.partial : '',
};

const time = (seconds: number | undefined): string => seconds ? `${day(seconds)}, ${clock(seconds)}` : '';

// hexadecimal writes a digest as papers do.
const hexadecimal = (digest: string): string =>
  Array.from(bytes(digest), (b) => b.toString(16).padStart(2, '0')).join('').replace(/(.{8})(?=.)/g, '$1 ');

const printed: Record<string, (p: Paper) => string> = {
  b_a: (p) => money(p.a, p.c),
  b_st: (p) => (words.papers.states[String(p.st)] ?? '') + (p.h ? `, ${words.papers.held}` : ''),
  b_pd: (p) => time(Number(p.pd ?? 0)),
  b_rd: (p) => time(p.rd),
  b_iat: (p) => time(p.iat),
  b_d: (p) => p.d ? hexadecimal(String(p.d)) : '',
};

// value returns what a row says: a claim of the paper of a batch in the rows b_…, otherwise one of the receipt.
function value(claim: string, { claims, paper, order: compared }: Result, name: string): string {
  if (claim.startsWith('b_')) {
    if (!paper) return '';
    return claim === 'b_t' ? name : printed[claim]?.(paper) ?? String(paper[claim.slice(2)] ?? '');
  }
  if (!claims) return '';
  const told: Record<string, string> = { t: name, o: words.orders[compared!] };
  return told[claim] ?? shown[claim]?.(claims) ?? String(claims[claim] ?? '');
}

function show(result: Result, name: string): void {
  const { verdict, at, claims, paper, served: asked, order: compared } = result;
  const sentence = words.papers.verdicts[verdict] ?? (verdict === 'test' && at ? words.testReversed : words.verdicts[verdict]) ?? words.unable;
  const text = at ? sentence.replace('{day}', day(at)).replace('{clock}', clock(at)) : sentence.replace(/\([^)]*\{.*\)/, words.noList);
  const said = document.getElementById('verdict')!;
  said.className = ['authentic', 'unconfirmed', 'certificate', 'advice'].includes(verdict) && compared !== 'differs' ? 'notice' : 'warn';
  said.textContent = text;
  said.dataset.verdict = verdict;
  document.getElementById('more')!.textContent = [words.papers.more[verdict] ?? words.more[verdict], asked && words.served].filter(Boolean).join(' ');
  const facts = document.getElementById('facts')!;
  facts.hidden = !claims && !paper;
  for (const row of facts.querySelectorAll<HTMLElement>('[data-claim]')) {
    const text = value(row.dataset.claim!, result, name);
    row.querySelector('dd')!.textContent = text;
    row.hidden = !text;
  }
}

let last = 0;
async function run(typed: string): Promise<void> {
  const turn = ++last;
  box.setAttribute('aria-busy', 'true');
  const result = await check(typed);
  if (result.claims) result.order ??= await ordered(result.claims);
  const slug = result.claims?.t ?? result.paper?.t;
  const name = slug ? await agency(String(slug)) : '';
  if (turn !== last) return; // another receipt was shown meanwhile
  box.removeAttribute('aria-busy');
  show(result, name);
}

const scanned = (): void => {
  const other = document.querySelector<HTMLAnchorElement>('a[hreflang]')!;
  other.hash = location.hash; // the other language keeps the receipt
  if (location.hash.length > 1) void run(location.hash);
};

document.querySelector('form')!.addEventListener('submit', (e) => {
  e.preventDefault();
  void run((document.getElementById('receipt') as HTMLInputElement).value);
});
window.addEventListener('hashchange', scanned);
scanned();

// Whatever is needed without network is fetched after the page is shown.
window.addEventListener('load', async () => {
  await navigator.serviceWorker?.register('/q/sw.js', { scope: '/q' }).catch(() => {});
  if (!window.isSecureContext) return;
  const known = await keys();
  await Promise.all([latest(agenciesURL), latest(paperKeysURL), ...known.map(reversals)]);
  await navigator.serviceWorker?.ready;
  box.dataset.ready = 'true';
});
