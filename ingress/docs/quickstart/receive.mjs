// Receives webhooks and believes only those that are signed.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'

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

createServer((request, response) => {
  // The bytes as they came: parsed and written again they would differ.
  buffer(request).then((body) => {
    if (!signed(request.headers, body)) return response.writeHead(400).end()
    const event = JSON.parse(body)
    // Here unlock the case, before the answer, and answer 500 if that fails: the event comes again.
    // Only for checkout.completed with the livemode that you expect, and with the order, amount and
    // currency of the case; once for each order_id, since an event may come twice.
    console.log(event.event, event.order_id)
    response.writeHead(204).end()
  }).catch(() => response.destroy())
}).listen(Number(process.env.PORT), '127.0.0.1')
