"""A program with the client that openapi-python-client makes; see clients_test.go. The
package of the client is named client."""

import json
import os
import uuid

from client import AuthenticatedClient, models
from client.api.sessions import create_session, get_session

MODELS = {
    "checkout.completed": models.CompletedEvent,
    "checkout.failed": models.FailedEvent,
    "checkout.cancelled": models.CancelledEvent,
    "checkout.expired": models.ExpiredEvent,
    "checkout.late_payment": models.LatePaymentEvent,
    "checkout.reversed": models.ReversedEvent,
}


def detail(event):
    if isinstance(event, (models.CompletedEvent, models.LatePaymentEvent)):
        return event.total_amount
    if isinstance(event, models.FailedEvent):
        return event.failure_code.value
    if isinstance(event, models.ReversedEvent):
        return event.items[0].amount
    return event.status.value


with AuthenticatedClient(base_url=os.environ["QUITTANCE_URL"], token=os.environ["QUITTANCE_KEY"]) as client:
    body = models.SessionCreate(order_id=os.environ["QUITTANCE_ORDER"], amount=5_000_000_000)
    created = create_session.sync(client=client, body=body, idempotency_key=str(uuid.uuid4()))
    read = get_session.sync(created.id, client=client)
    print(read.id, read.status.value, read.amount, read.mode.value)
    refused = create_session.sync_detailed(client=client, body=body, idempotency_key=str(uuid.uuid4()))
    print(refused.status_code.value, refused.parsed.code.value)

for line in os.environ["QUITTANCE_EVENTS"].splitlines():
    raw = json.loads(line)
    event = MODELS[raw["event"]].from_dict(raw)
    print(event.event.value, event.session_id, event.amount, detail(event))
