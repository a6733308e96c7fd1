// Creates a session, prints where the citizen pays, and waits for the end.
import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const { QUITTANCE_URL, QUITTANCE_KEY } = process.env
const api = `${QUITTANCE_URL}/api/v1/checkout/sessions`

async function call(url, { headers, ...options } = {}) {
  const answer = await fetch(url, {
    signal: AbortSignal.timeout(20_000),
    headers: { Authorization: `Bearer ${QUITTANCE_KEY}`, ...headers },
    ...options,
  })
  if (!answer.ok) throw new Error(await answer.text()) // a problem's "type" leads to the mend
  return answer.json()
}

// Keep order, due and key before you call, in your program in its database: a webhook is
// compared with the due. After no answer or a 503 send the same again: it happens once.
const order = `DOSSIER-${randomUUID()}`
mkdirSync('cases', { recursive: true })
writeFileSync(`cases/${order}.txt`, '5000 XAF\n')
let session = await call(api, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() },
  body: JSON.stringify({ order_id: order, amount: 5000, currency: 'XAF', description: 'Patente 2026' }),
})
console.log(`order_id: ${order}\ncheckout_url: ${session.checkout_url}`)

// A service waits for the webhook; asking by order_id is the fallback.
while (session.status === 'open') {
  await sleep(2000)
  session = (await call(`${api}?${new URLSearchParams({ order_id: order })}`)).items[0]
}
console.log(`status: ${session.status}, paid: ${session.paid}`)
