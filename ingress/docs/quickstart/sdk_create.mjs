// Creates a session, prints where the citizen pays, and waits for the end.
import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { ProblemError, Quittance } from '@quittance/node'

try {
  const client = new Quittance({ url: process.env.QUITTANCE_URL, key: process.env.QUITTANCE_KEY })
  // Keep order, due and key before you call, in your program in its database: a webhook is
  // compared with the due, and a second call with the key makes nothing twice.
  const order = `DOSSIER-${randomUUID()}`, key = randomUUID()
  mkdirSync('cases', { recursive: true })
  writeFileSync(`cases/${order}.txt`, '5000 XAF\n')
  let session = await client.createSession({ order_id: order, amount: 5000, currency: 'XAF' }, { idempotencyKey: key })
  console.log(`order_id: ${order}\ncheckout_url: ${session.checkout_url}`)

  // A service waits for the webhook; asking is the fallback.
  while (session.status === 'open') {
    await setTimeout(2000)
    session = await client.getSession(session.id)
  }
  console.log(`status: ${session.status}, paid: ${session.paid}`)
} catch (err) {
  if (!(err instanceof ProblemError)) throw err
  console.error(err.message, err.problem.type) // a page that says what to do
  process.exitCode = 1
}
