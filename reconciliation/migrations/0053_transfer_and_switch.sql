-- Citizens can also transfer money to the agency's bank account, and pay over the regional switch, over which people are paid, too.
ALTER TABLE journal
    COMMENT COLUMN channel 'MOBILE_MONEY, CARD, CASH, BANK_TRANSFER, SWITCH',
    COMMENT COLUMN offer_id 'momo, momo_b, card, cash_agency, bank_transfer, switch'
