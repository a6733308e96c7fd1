"""Receives webhooks and believes only those that are signed."""
import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = base64.b64decode(os.environ["QUITTANCE_WEBHOOK_SECRET"].removeprefix("whsec_"))


def signed(headers, body):
    id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > 300:
        return False
    want = hmac.digest(KEY, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
    want = b"v1," + base64.b64encode(want)
    return any(hmac.compare_digest(want, got.encode()) for got in headers.get("webhook-signature", "").split())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if signed(self.headers, body):
            event = json.loads(body)
            # Here unlock the case, before the answer, and answer 500 if that fails: the event comes again.
            # Only for checkout.completed with the livemode that you expect, and with the order, amount and
            # currency of the case; once for each order_id, since an event may come twice.
            print(event["event"], event["order_id"], flush=True)
            self.send_response(204)
        else:
            self.send_response(400)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
