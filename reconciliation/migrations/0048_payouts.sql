-- Money that was paid to people for lines of batches is expected money, too, and has lines of its own on statements.
ALTER TABLE expected_money
    COMMENT COLUMN entry_id 'Derived from the collection, the case or the attempt to pay a line; the same whenever the entry is written',
    COMMENT COLUMN kind 'received, given_back (negative), undecided (its operator has not said whether it has the money, or has paid it), paid_out (to a payee of a batch, negative), returned (of a payout), refused (a payout that paid nobody: no money)',
    COMMENT COLUMN state 'How the money came: completed, late, mismatch, orphan; of given_back and returned: reversed; of undecided: undecided, of a payout sent or unproven; of paid_out: paid; of refused: refused',
    COMMENT COLUMN approved_at 'When the operator approved it, by the operator\'s own clock, or when its approval became known if the operator tells no time; of given_back, paid_out, returned and refused, when that was recorded; of undecided, when the money was asked for or the payout sent. UTC',
    COMMENT COLUMN application_id 'Application that created the session; empty for a payout',
    COMMENT COLUMN channel 'MOBILE_MONEY, CARD, CASH; empty for a payout, and if the report of an orphan does not tell',
    COMMENT COLUMN offer_id 'momo, momo_b, card, cash_agency; empty if the report of an orphan does not tell. Of a payout the payout account: mtn_payout, airtel_payout',
    COMMENT COLUMN account 'Fingerprint of the merchant account that has the money, or of the payout account; of cash, the counter',
    COMMENT COLUMN session_id 'Session; of a payout the batch (dsb_); empty as tenant_id',
    COMMENT COLUMN order_id 'Order of the integrator; empty for a payout',
    COMMENT COLUMN collection_id 'The reference that the operator was told; of a payout batch, position of the line and attempt',
    COMMENT COLUMN payment_ref 'Payment reference, 16 digits; of a payout its payout_ref',
    COMMENT COLUMN source_topic 'Topic of the event: checkout.events; cases.events for an orphan of no known session; disbursement.events for a payout'
