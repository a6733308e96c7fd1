// A webhook receiver made with the Standard Webhooks library for JavaScript.
//
//   node receive.mjs MODULES SECRET…
//
// MODULES is the absolute path of the folder that contains node_modules. The receiver
// prints the port of 127.0.0.1 on which it listens, and serves until its standard input
// ends. A POST to /N is verified with the Nth secret, from 0: 204 if the library accepts
// it, 401 if not.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [modules, ...secrets] = process.argv.slice(2);
const { Webhook, WebhookVerificationError } = createRequire(join(modules, 'package.json'))('standardwebhooks');

const webhooks = secrets.map((secret) => new Webhook(secret));

const server = createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  try {
    webhooks[Number(req.url.slice(1))].verify(Buffer.concat(chunks), req.headers);
    res.writeHead(204).end();
  } catch (err) {
    res.writeHead(err instanceof WebhookVerificationError ? 401 : 500).end();
  }
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume().on('end', () => process.exit(0));
