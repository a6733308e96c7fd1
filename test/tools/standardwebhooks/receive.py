"""A webhook receiver made with the Standard Webhooks library for Python.

    python receive.py SECRET...

prints the port of 127.0.0.1 on which it listens and serves until its standard
input ends. A POST to /N is verified with the Nth secret, from 0: 204 if the
library accepts it, 401 if not.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhooks = [Webhook(secret) for secret in sys.argv[1:]]


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            webhooks[int(self.path[1:])].verify(body, dict(self.headers.items()))
            self.send_response(204)
        except WebhookVerificationError:
            self.send_response(401)
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
