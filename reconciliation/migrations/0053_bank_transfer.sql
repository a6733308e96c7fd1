-- Citizens can also transfer money to the agency's bank account, and a statement shows it.
ALTER TABLE journal
    COMMENT COLUMN channel 'MOBILE_MONEY, CARD, CASH, BANK_TRANSFER',
    COMMENT COLUMN offer_id 'momo, momo_b, card, cash_agency, bank_transfer'
