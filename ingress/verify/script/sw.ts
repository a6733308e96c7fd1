// Keeps the page that checks receipts for use without network. The page keeps the keys and the
// lists of reversals itself (check.ts).
declare const self: ServiceWorkerGlobalScope & { FILES: string[]; NAME: string };

const patience = 8000;

self.addEventListener('install', (e) => e.waitUntil((async () => {
  const cache = await caches.open(self.NAME);
  await cache.addAll(self.FILES);
  await self.skipWaiting();
})()));

self.addEventListener('activate', (e) => e.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith('q-page-') && name !== self.NAME) await caches.delete(name);
  await self.clients.claim();
})()));

// page answers with the page of the network, or with the kept one in the reader's language.
async function page(url: URL, request: Request): Promise<Response> {
  const end = new AbortController();
  const timer = setTimeout(() => end.abort(), patience);
  try {
    const answer = await fetch(request, { signal: end.signal });
    if (answer.status < 500) return answer;
  } catch { /* no network */ } finally {
    clearTimeout(timer);
  }
  const lang = url.searchParams.get('lang') ?? (navigator.languages ?? [navigator.language]).map((l) => l.slice(0, 2)).find((l) => l === 'en' || l === 'fr') ?? 'fr';
  return await caches.match(`/q?lang=${lang === 'en' ? 'en' : 'fr'}`, { ignoreVary: true }) ?? Response.error();
}

self.addEventListener('fetch', (e) => {
  const url = new URL(e.request.url);
  if (e.request.method !== 'GET' || url.origin !== location.origin) return;
  if (url.pathname === '/q') e.respondWith(page(url, e.request));
  else if (url.pathname.startsWith('/q/assets/')) e.respondWith(caches.match(e.request, { ignoreVary: true }).then((kept) => kept ?? fetch(e.request)));
});
export {};
