-- Payers pay over the regional switch, too, and people are paid over it.
ALTER TABLE receipt_rows
    COMMENT COLUMN channel 'MOBILE_MONEY, CARD, CASH, SWITCH; empty if the report of an orphan does not tell',
    COMMENT COLUMN offer_id 'momo, momo_b, card, cash_agency, switch; empty as channel';
