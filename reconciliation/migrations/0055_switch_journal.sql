-- Payers pay over the regional switch, too, and people are paid over it.
ALTER TABLE journal
    COMMENT COLUMN channel 'MOBILE_MONEY, CARD, CASH, SWITCH',
    COMMENT COLUMN offer_id 'momo, momo_b, card, cash_agency, switch';
