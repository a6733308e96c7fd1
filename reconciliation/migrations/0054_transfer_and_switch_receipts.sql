ALTER TABLE receipt_rows
    COMMENT COLUMN channel 'MOBILE_MONEY, CARD, CASH, BANK_TRANSFER, SWITCH; empty if the report of an orphan does not tell',
    COMMENT COLUMN offer_id 'momo, momo_b, card, cash_agency, bank_transfer, switch; empty as channel',
    COMMENT COLUMN account 'Fingerprint of the merchant account that has the money; of cash, the counter; of a bank transfer, the code of the statement account'
