ALTER TABLE statement_lines
    COMMENT COLUMN kind 'payment, refund, reversal, payout (to the bank account), charge, entry (of a bank), transfer (to a payee of a batch), return (of a transfer)'
