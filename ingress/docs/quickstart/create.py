"""Creates a session, prints where the citizen pays, and waits for the end."""
import json
import os
import time
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from uuid import uuid4

API = os.environ["QUITTANCE_URL"] + "/api/v1/checkout/sessions"


def call(url, body=None, headers=None):
    auth = {"Authorization": "Bearer " + os.environ["QUITTANCE_KEY"]}
    try:
        with urlopen(Request(url, body, auth | (headers or {})), timeout=20) as answer:
            return json.load(answer)
    except HTTPError as error:
        raise SystemExit(error.read().decode())  # a problem's "type" leads to the mend


# Keep order, due and key before you call, in your program in its database: a webhook is
# compared with the due. After no answer or a 503 send the same again: it happens once.
order = f"DOSSIER-{uuid4()}"
os.makedirs("cases", exist_ok=True)
with open(f"cases/{order}.txt", "w", encoding="utf-8") as file:
    file.write("5000 XAF\n")
session = call(
    API,
    json.dumps({"order_id": order, "amount": 5000, "currency": "XAF", "description": "Patente 2026"}).encode(),
    {"Content-Type": "application/json", "Idempotency-Key": str(uuid4())},
)
print(f"order_id: {order}\ncheckout_url: {session['checkout_url']}", flush=True)

# A service waits for the webhook; asking by order_id is the fallback.
while session["status"] == "open":
    time.sleep(2)
    session = call(f"{API}?{urlencode({'order_id': order})}")["items"][0]
print(f"status: {session['status']}, paid: {json.dumps(session['paid'])}")
