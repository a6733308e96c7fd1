-- Whether operators answer calls about payouts, from disbursements.calls: an operator may collect and not pay.

-- +goose Up
ALTER TABLE operator_answers ADD COLUMN payouts boolean NOT NULL DEFAULT false;
ALTER TABLE operator_answers DROP CONSTRAINT operator_answers_pkey;
ALTER TABLE operator_answers ADD PRIMARY KEY (operator, live, payouts);

-- +goose Down
DELETE FROM operator_answers WHERE payouts;
ALTER TABLE operator_answers DROP CONSTRAINT operator_answers_pkey;
ALTER TABLE operator_answers DROP COLUMN payouts;
ALTER TABLE operator_answers ADD PRIMARY KEY (operator, live);
