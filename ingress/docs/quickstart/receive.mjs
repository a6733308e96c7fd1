// Receives webhooks. It answers 2xx only after the case is stored: what is answered 2xx never comes again.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'

const live = process.env.QUITTANCE_KEY.startsWith('sk_live_')
const key = Buffer.from(process.env.QUITTANCE_WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64')

function signed(headers, body) {
  const id = headers['webhook-id'], timestamp = headers['webhook-timestamp']
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) return false
  const want = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
  return (headers['webhook-signature'] ?? '').split(' ').some((signature) => {
    const got = Buffer.from(signature.replace(/^v1,/, ''), 'base64')
    return got.length === want.length && timingSafeEqual(got, want)
  })
}

// Keeps what an event says about a case: in your program one transaction of its database. Here a case
// is a file. create.mjs wrote its first line, the due, before it created the session; each other line
// is the last word about the money of a session. A case is unlocked while one of them ends in paid.
async function store(event) {
  if (event.livemode !== live) return // test money unlocks nothing
  const reversed = event.event === 'checkout.reversed' && event.was_completed // the money was given back
  if (event.event !== 'checkout.completed' && !reversed) return
  const name = `${encodeURIComponent(event.order_id)}.txt`, file = `cases/${name}`
  if (!readdirSync('cases').includes(name)) return // the order of another system that shares the endpoint
  const [due, ...lines] = readFileSync(file, 'utf8').trim().split('\n')
  const before = lines.find((line) => line.startsWith(`${event.session_id} `))
  if (before && Number(before.split(' ')[1]) >= event.sequence) return // this event was stored before, or a later one
  let state = reversed ? 'reversed' : 'paid'
  if (state === 'paid' && due !== `${event.amount} ${event.currency}`) state = 'differs' // a person must look at it
  const kept = [due, ...lines.filter((line) => line !== before), `${event.session_id} ${event.sequence} ${state}`]
  writeFileSync(`${file}.new`, kept.join('\n') + '\n', { flush: true }) // on the disk as a whole, then in its place
  renameSync(`${file}.new`, file)
  console.log(event.order_id, state)
}

// Reads the bytes as they came: parsed and written again they would differ.
async function read(request) {
  const chunks = []
  let size = 0
  for await (const chunk of request) {
    if ((size += chunk.length) > 1 << 20) throw new Error('the body is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

createServer(async (request, response) => {
  try {
    const body = await read(request)
    if (!signed(request.headers, body)) return response.writeHead(400).end()
    await store(JSON.parse(body)) // without await the answer would come before it is stored
    response.writeHead(204).end()
  } catch (error) {
    console.error(error)
    response.writeHead(500).end() // the event comes again
  }
}).listen(Number(process.env.PORT), '127.0.0.1')
