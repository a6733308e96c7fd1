ALTER TABLE journal
    MODIFY COMMENT 'Everything that happened: events of sessions, outcomes of deliveries and calls to operators. For money read the view receipts',
    COMMENT COLUMN entry_type 'event, delivery, call (to an operator), statement',
    COMMENT COLUMN event 'checkout.completed and the like; of a delivery: what it tells of; of a call: call.collect, call.enquire',
    COMMENT COLUMN total_amount 'What the citizen pays: amount and fee',
    COMMENT COLUMN detail 'What an event adds to the session; of a call: operator, and fault if there was no answer',
    COMMENT COLUMN delivery_id 'Delivery; empty for events and calls',
    COMMENT COLUMN attempt 'Number of the attempt, from 1; of a call, number of the enquiry, 0 for the request for money',
    COMMENT COLUMN outcome 'Of a delivery: delivered, failed, deferred, needs_operator, exhausted. Of a call: approved, refused, pending, ambiguous, unknown; without an answer network, timeout, server, busy, credentials, malformed',
    COMMENT COLUMN reason 'Why the delivery was not accepted; of a call, the operator''s code'
