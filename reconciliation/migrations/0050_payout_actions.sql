ALTER TABLE matches
    COMMENT COLUMN action 'What it asks of a person: match, decide_approved, refund_request, explain; payout_paid and payout_returned ask the people of a batch'
