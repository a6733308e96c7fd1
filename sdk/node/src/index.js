import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

// Answers after which the same request is sent again.
const repeated = new Set([429, 502, 503, 504]);
// How far the time of a webhook may be from now, in seconds.
const tolerance = 300;
// The type of a paper.
const typePDF = 'application/pdf';
// The fewest bytes of a webhook secret, as Standard Webhooks has it. Whoever guesses a short
// one can sign webhooks.
const shortestSecret = 24;

export class QuittanceError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

export class ProblemError extends QuittanceError {
  constructor(status, problem) {
    const faults = problem.errors.map((fault) => fault.message).filter((message) => message !== problem.detail);
    const request = problem.request_id ? ` (request ${problem.request_id})` : '';
    super([`${status} ${problem.code || problem.title}: ${problem.detail}`, ...faults].join(' ') + request);
    this.status = status;
    this.code = problem.code;
    this.problem = problem;
  }
}

export class SignatureError extends QuittanceError {}

export class Quittance {
  #base;
  #key;
  #fetch;
  #attempts;
  #budget;
  #longestWait;
  #timeout;

  constructor({ url, key, fetch = globalThis.fetch, attempts = 4, budget = 10_000, longestWait = budget, timeout = 30_000 } = {}) {
    const base = URL.canParse(url) ? new URL(url) : undefined;
    if (!base?.host || base.username || base.password || base.search || base.hash) {
      throw new QuittanceError('url must be an address such as https://pay.example');
    }
    if (base.pathname !== '/') throw new QuittanceError('url must have no path: the client adds /api/v1');
    if (base.protocol !== 'https:' && !(base.protocol === 'http:' && loopback(base.hostname))) {
      throw new QuittanceError('url must use https: the key is a secret');
    }
    if (!/^sk_(test|live)_[!-~]+$/.test(key)) {
      throw new QuittanceError('key must begin with sk_test_ or sk_live_ and have no white space');
    }
    if (!(Number.isInteger(attempts) && attempts > 0)) throw new QuittanceError('attempts must be an integer above 0');
    if (!(budget > 0)) throw new QuittanceError('budget must be above 0');
    this.#base = `${base.origin}/api/v1/checkout/sessions`;
    this.#key = key;
    this.#fetch = fetch;
    this.#attempts = attempts;
    this.#budget = budget;
    this.#longestWait = longestWait;
    this.#timeout = timeout;
  }

  async createSession(session, { idempotencyKey = randomUUID(), signal } = {}) {
    return (await this.#call('POST', '', { body: session, headers: { 'Idempotency-Key': idempotencyKey }, signal, quota: true })).data;
  }

  async getSession(id, { signal } = {}) {
    return (await this.#call('GET', `/${encodeURIComponent(id)}`, { signal })).data;
  }

  async listSessions(filter = {}, { signal } = {}) {
    const given = Object.entries(filter).filter(([, value]) => value !== undefined && value !== null);
    const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    return (await this.#call('GET', query && `?${query}`, { signal })).data;
  }

  async *allSessions(filter = {}, { signal } = {}) {
    const size = filter.page_size ?? 100;
    let last;
    for (let page = filter.page ?? 1; ; page++) {
      const { items } = await this.listSessions({ ...filter, page, page_size: size }, { signal });
      for (const session of items) {
        if (last !== undefined && session.id >= last) continue; // newer sessions have moved it to this page
        last = session.id;
        yield session;
      }
      if (items.length < size) return;
    }
  }

  async listEvents(id, { signal } = {}) {
    return (await this.#call('GET', `/${encodeURIComponent(id)}/events`, { signal })).data;
  }

  async redeliver(id, eventId, { signal } = {}) {
    return (await this.#call('POST', `/${encodeURIComponent(id)}/events/${encodeURIComponent(eventId)}/redeliver`, { signal })).data;
  }

  async cancelSession(id, { signal } = {}) {
    const answer = await this.#call('POST', `/${encodeURIComponent(id)}/cancel`, { signal, caught: true });
    if (!answer.error) return answer.data;
    if (answer.attempts > 1 && answer.error.code === 'checkout.session_ended') {
      // The answer of an earlier attempt may be lost.
      const now = await this.getSession(id, { signal }).catch(() => undefined);
      if (now?.status === 'cancelled') return now;
    }
    throw answer.error;
  }

  async verifyCompletion(verification, { signal } = {}) {
    return (await this.#call('POST', '/verify-completion', { body: verification, signal })).data;
  }

  async getNotice(id, { lang, signal } = {}) {
    return this.#paper(id, 'notice', { lang }, signal);
  }

  async getReceipts(id, { signal } = {}) {
    return (await this.#call('GET', `/${encodeURIComponent(id)}/receipt`, { signal })).data;
  }

  async getReceiptPDF(id, { transactionId, lang, signal } = {}) {
    return this.#paper(id, 'receipt', { lang, transaction_id: transactionId }, signal);
  }

  async #paper(id, name, asked, signal) {
    const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value)).toString();
    return (await this.#call('GET', `/${encodeURIComponent(id)}/${name}${query && `?${query}`}`, { signal, file: true })).data;
  }

  // Sends a request until it is answered. With caught it returns the error. With file the answer
  // is the bytes of a PDF. With quota 429 is told at once: the next minute may be far away.
  async #call(method, path, { body, headers, signal, caught = false, file = false, quota = false }) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const end = performance.now() + this.#budget;
    for (let attempts = 1; ; attempts++) {
      const { data, error, wait } = await this.#attempt(method, path, text, headers, signal, file, Math.max(1, end - performance.now()));
      if (!error) return { data, attempts };
      const pause = wait || Math.min(250 * 2 ** Math.min(attempts, 10), this.#longestWait) * (0.5 + Math.random() / 2);
      const last = wait === undefined || attempts >= this.#attempts || (quota && error.status === 429);
      if (last || pause > this.#longestWait || performance.now() + pause >= end) {
        if (caught) return { error, attempts };
        throw error;
      }
      await sleep(pause, undefined, { signal });
    }
  }

  // Sends a request once. wait is undefined if there must be no other attempt, and 0 if the
  // answer names none. left is how many milliseconds of the budget are left.
  async #attempt(method, path, body, headers, signal, file, left) {
    let answer, bytes;
    try {
      const limit = AbortSignal.timeout(Math.ceil(Math.min(this.#timeout, left)));
      answer = await this.#fetch(this.#base + path, {
        method,
        body,
        headers: {
          ...headers,
          Authorization: `Bearer ${this.#key}`,
          Accept: `${file ? typePDF : 'application/json'}, application/problem+json`,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        // The API never redirects: a redirect would take the key to another address.
        redirect: 'manual',
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      bytes = new Uint8Array(await answer.arrayBuffer());
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      return { error: new QuittanceError(`no answer from ${new URL(this.#base).host}`, { cause }), wait: 0 };
    }
    if (answer.ok && file && answer.headers.get('content-type') === typePDF) return { data: bytes };
    const data = file && answer.ok ? undefined : parsed(new TextDecoder().decode(bytes));
    if (answer.ok) {
      if (data) return { data };
      return { error: new QuittanceError(`the answer ${answer.status} is not of this API`) };
    }
    const foreign = { title: answer.statusText || 'Error', detail: 'the answer is not of this API', errors: [] }; // of a proxy
    const error = new ProblemError(answer.status, data?.code && Array.isArray(data.errors) ? data : foreign);
    if (!repeated.has(answer.status)) return { error };
    const seconds = Number.parseInt(answer.headers.get('retry-after') ?? '', 10);
    return { error, wait: seconds > 0 ? seconds * 1000 : 0 };
  }
}

function loopback(host) {
  return host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

function parsed(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

export class Receiver {
  #keys;

  constructor(...secrets) {
    if (secrets.length === 0) throw new QuittanceError("a receiver needs the endpoint's secret, whsec_…");
    this.#keys = secrets.map((secret, i) => {
      const match = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret ?? '');
      if (!match) throw new QuittanceError(`secret ${i + 1} must be whsec_ and base64, as it was shown`);
      const key = Buffer.from(match[1], 'base64');
      if (key.length < shortestSecret) {
        throw new QuittanceError(`secret ${i + 1} is too short: it must have at least ${shortestSecret} bytes; copy all of it, as it was shown`);
      }
      return key;
    });
  }

  verify(headers, body) {
    const header = (name) => (typeof headers.get === 'function' ? headers.get(name) : [headers[name] ?? ''].flat().join(' ')) ?? '';
    const id = header('webhook-id');
    const timestamp = header('webhook-timestamp');
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    if (!(bytes instanceof Uint8Array)) {
      throw new QuittanceError('body must be the bytes or the text of the request, not an object made of them');
    }
    if (!id || !/^\d{1,12}$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > tolerance) {
      throw new SignatureError('the webhook names no id, or no time near to now');
    }
    const signatures = header('webhook-signature').split(/,?\s+/).map((signature) => Buffer.from(signature));
    const signed = this.#keys.map((key) => {
      const want = Buffer.from(`v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(bytes).digest('base64')}`);
      return signatures.map((signature) => signature.length === want.length && timingSafeEqual(signature, want));
    });
    if (!signed.flat().includes(true)) throw new SignatureError('the webhook is not signed with this secret');
    const event = parsed(Buffer.from(bytes).toString('utf8'));
    if (typeof event?.event !== 'string') throw new QuittanceError('the webhook is signed and is no event');
    return event;
  }
}
