"""Receives webhooks.

It answers 2xx only after the case is stored: what is answered 2xx never comes again.
"""
import base64
import hashlib
import hmac
import json
import os
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

LIVE = os.environ["QUITTANCE_KEY"].startswith("sk_live_")
LOCK = threading.Lock()
KEY = base64.b64decode(os.environ["QUITTANCE_WEBHOOK_SECRET"].removeprefix("whsec_"))


def signed(headers, body):
    id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > 300:
        return False
    want = hmac.digest(KEY, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
    want = b"v1," + base64.b64encode(want)
    return any(hmac.compare_digest(want, got.encode()) for got in headers.get("webhook-signature", "").split())


def store(event):
    """Keeps what an event says about a case: in your program one transaction of its database.

    Here a case is a file. create.py wrote its first line, the due, before it created the session; each other
    line is the last word about the money of a session. A case is unlocked while one of them ends in paid.
    """
    if event["livemode"] != LIVE:
        return  # test money unlocks nothing
    given_back = event["event"] == "checkout.reversed" and event["was_completed"]
    if event["event"] != "checkout.completed" and not given_back:
        return
    path = f"cases/{quote(event['order_id'], safe='')}.txt"
    with LOCK:
        try:
            with open(path, encoding="utf-8") as file:
                due, *lines = file.read().splitlines()
        except FileNotFoundError:
            os.stat("cases")  # fails if there is no store
            return  # the order of another system that shares the endpoint
        kept = [due]
        for line in lines:
            session, sequence, _ = line.split()
            if session != event["session_id"]:
                kept.append(line)
            elif int(sequence) >= event["sequence"]:
                return  # this event was stored before, or a later one
        state = "reversed" if given_back else "paid"
        if state == "paid" and due != f"{event['amount']} {event['currency']}":
            state = "differs"  # a person must look at it
        kept.append(f"{event['session_id']} {event['sequence']} {state}")
        with open(path + ".new", "w", encoding="utf-8") as file:  # on the disk as a whole, then in its place
            file.write("\n".join(kept) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)
    print(event["order_id"], state, flush=True)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        status = 400
        try:
            body = self.rfile.read(max(0, min(int(self.headers.get("Content-Length", 0)), 1 << 20)))
            if signed(self.headers, body):
                store(json.loads(body))
                status = 204
        except Exception:
            traceback.print_exc()
            status = 500  # the event comes again
        self.send_response(status)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
