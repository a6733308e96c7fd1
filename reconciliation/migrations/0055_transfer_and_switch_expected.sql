ALTER TABLE expected_money
    COMMENT COLUMN channel 'MOBILE_MONEY, CARD, CASH, BANK_TRANSFER, SWITCH; empty for a payout, and if the report of an orphan does not tell',
    COMMENT COLUMN offer_id 'momo, momo_b, card, cash_agency, bank_transfer, switch; empty if the report of an orphan does not tell. Of a payout the payout account: mtn_payout, airtel_payout, switch_payout',
    COMMENT COLUMN account 'Fingerprint of the merchant account that has the money, or of the payout account; of cash, the counter; of a bank transfer, the code of the statement account'
