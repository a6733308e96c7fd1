// Receives webhooks and believes only those that are signed.
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { Receiver, SignatureError } from '@quittance/node'

const receiver = new Receiver(process.env.QUITTANCE_WEBHOOK_SECRET)

createServer(async (request, response) => {
  try {
    // The bytes as they came: parsed and written again they would differ.
    const event = receiver.verify(request.headers, await buffer(request))
    if (event.event === 'checkout.completed' && event.livemode) {
      // Here unlock the case, once for each event.order_id: an event may come twice.
    }
    console.log(event.event, event.order_id)
    response.writeHead(204).end()
  } catch (err) {
    response.writeHead(err instanceof SignatureError ? 400 : 500).end()
  }
}).listen(Number(process.env.PORT), '127.0.0.1')
