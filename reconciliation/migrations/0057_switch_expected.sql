-- Payers pay over the regional switch, too, and people are paid over it.
ALTER TABLE expected_money
    COMMENT COLUMN channel 'MOBILE_MONEY, CARD, CASH, SWITCH; empty for a payout, and if the report of an orphan does not tell',
    COMMENT COLUMN offer_id 'momo, momo_b, card, cash_agency, switch; empty if the report of an orphan does not tell. Of a payout the payout account: mtn_payout, airtel_payout, switch_payout';
