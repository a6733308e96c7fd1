// Receives webhooks. It answers 2xx only after the case is stored: what is answered 2xx never comes again.
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { Receiver, SignatureError } from '@quittance/node'

const live = process.env.QUITTANCE_KEY.startsWith('sk_live_')
const receiver = new Receiver(process.env.QUITTANCE_WEBHOOK_SECRET)

// Keeps what an event says about a case: in your program one transaction of its database. Here a case
// is a file. sdk_create.mjs wrote its first line, the due, before it created the session; each other line
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
    await store(receiver.verify(request.headers, await read(request))) // without await the answer would come before it is stored
    response.writeHead(204).end()
  } catch (error) {
    console.error(error)
    response.writeHead(error instanceof SignatureError ? 400 : 500).end() // after 500 the event comes again
  }
}).listen(Number(process.env.PORT), '127.0.0.1')
