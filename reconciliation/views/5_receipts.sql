-- Money, each movement once. Reports are built on it.
CREATE OR REPLACE VIEW receipts
(
    local_date     Date COMMENT 'Day of the movement in Africa/Brazzaville. Reports by day and month use it',
    occurred_at    DateTime64(3, 'UTC') COMMENT 'When the service recorded the movement, UTC',
    approved_on    Date COMMENT 'Local day on which the operator approved the payment; of a reversal, of the money given back. Statements use it',
    movement       LowCardinality(String) COMMENT 'completed (paid in time), late (arrived after the session ended, honoured or not), reversal (given back, negative), orphan (belongs to no payment), mismatch (another amount or currency)',
    livemode       Bool COMMENT 'false for test payments, which are no money',
    tenant_id      LowCardinality(String) COMMENT 'Agency; empty for an orphan of no known session',
    agency         String COMMENT 'Present name of the agency',
    application_id LowCardinality(String) COMMENT 'Application that created the session',
    application    String COMMENT 'Present name of the application',
    service_code   LowCardinality(String) COMMENT 'Service in the agency''s catalogue; empty for none',
    service        LowCardinality(String) COMMENT 'Name of the service when the session was created',
    mode           LowCardinality(String) COMMENT 'hosted, embedded',
    channel        LowCardinality(String) COMMENT 'MOBILE_MONEY, CARD, CASH, BANK_TRANSFER, SWITCH; empty if unknown',
    offer_id       LowCardinality(String) COMMENT 'momo, momo_b, card, cash_agency, bank_transfer, switch; empty if unknown',
    account        LowCardinality(String) COMMENT 'Fingerprint of the merchant account that has the money; of cash, the counter; of a bank transfer, the code of the statement account',
    currency       LowCardinality(String) COMMENT 'ISO 4217. Never add different currencies',
    amount         Int64 COMMENT 'Due without fee, minor units (XAF has no decimals, EUR two); of orphan and mismatch, what was reported',
    fee_amount     Int64 COMMENT 'Fee, minor units; 0 for orphan and mismatch',
    total_amount   Int64 COMMENT 'amount and fee_amount: what was paid',
    order_id       String COMMENT 'Order of the integrator',
    payment_ref    String COMMENT 'Payment reference, 16 digits',
    session_id     String COMMENT 'Session (chs_)',
    session_key    String COMMENT 'Key of the session, the same in all views; empty for an orphan of no known session',
    collection_id  String COMMENT 'The reference that the operator was told',
    operator_ref   String COMMENT 'The operator''s own reference; of cash, the number of the receipt',
    item           UInt16 COMMENT 'Position of the due in its session, from 1; 0 for orphan and mismatch',
    erp_due_ref    String COMMENT 'Due of the agency''s ERP; empty for none',
    transaction_id String COMMENT 'Transaction of the due; empty for orphan and mismatch',
    notice_ref     String COMMENT 'Reference of the notice; empty for orphan and mismatch',
    reason         LowCardinality(String) COMMENT 'Of a reversal: cash_returned, refunded, superseded (the operator replaced its report). Of a mismatch: amount, currency',
    reference      String COMMENT 'Reference of a refund',
    case_id        String COMMENT 'Operator case of the money, in the view cases; empty for none',
    recorded_by    LowCardinality(String) COMMENT 'Clerk who took or gave back cash, or staff who resolved the case',
    row_id         UUID COMMENT 'Id of the row'
)
SQL SECURITY INVOKER
AS
WITH
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'agency') AS agencies,
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'application') AS applications
SELECT
    r.local_date AS local_date,
    r.occurred_at AS occurred_at,
    r.approved_on AS approved_on,
    r.movement AS movement,
    r.livemode AS livemode,
    r.tenant_id AS tenant_id,
    transform(r.tenant_id, agencies.1, agencies.2, '') AS agency,
    r.application_id AS application_id,
    transform(r.application_id, applications.1, applications.2, '') AS application,
    r.service_code AS service_code,
    r.service_label AS service,
    r.mode AS mode,
    r.channel AS channel,
    r.offer_id AS offer_id,
    r.account AS account,
    r.currency AS currency,
    r.amount AS amount,
    r.fee_amount AS fee_amount,
    r.total_amount AS total_amount,
    r.order_id AS order_id,
    r.payment_ref AS payment_ref,
    r.session_id AS session_id,
    if(empty(r.session_id), '', substring(lower(hex(SHA256(r.session_id))), 1, 32)) AS session_key,
    r.collection_id AS collection_id,
    r.operator_ref AS operator_ref,
    r.item AS item,
    r.erp_due_ref AS erp_due_ref,
    r.transaction_id AS transaction_id,
    r.notice_ref AS notice_ref,
    r.reason AS reason,
    r.reference AS reference,
    r.case_id AS case_id,
    r.recorded_by AS recorded_by,
    r.row_id AS row_id
FROM receipt_rows AS r FINAL
-- The date of a row is part of its key, so the same row is never in two partitions. A row
-- that is written twice has the same references, so an index that skips one skips both.
SETTINGS do_not_merge_across_partitions_select_final = 1, use_skip_indexes_if_final = 1, use_skip_indexes_if_final_exact_mode = 0
COMMENT 'Money by movement: completed, late, orphan, mismatch, and reversals as negative amounts. Build reports on this view. Filter by livemode, tenant_id and local_date; group by currency'
