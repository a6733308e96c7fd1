-- Expected money: one entry for each collection whose money was received, for each sum that
-- was given back, and for each collection that its operator has not decided. Lines of
-- statements prove it. Nothing is netted: what was given back is an entry of its own.
--
-- The sink journal writes it from events, never a materialized view. Every column is derived
-- from the event and its position, so a row that is written twice is the same row, in the same
-- partition. Entries never change. One that does not count any more gets a second row, with
-- withdrawn and the negative amounts: what a reader below an offset sees does not depend on
-- what was written later.
CREATE TABLE IF NOT EXISTS expected_money
(
    entry_id         UUID COMMENT 'Derived from the collection or the case; the same whenever the entry is written',
    withdrawn        Bool COMMENT 'true: the entry with this id, if there is one, does not count any more; the amounts are its negatives',
    kind             LowCardinality(String) COMMENT 'received, given_back (negative), undecided (its operator has not said whether it has the money)',
    state            LowCardinality(String) COMMENT 'How the money came: completed, late, mismatch, orphan; of given_back: reversed; of undecided: undecided',
    approved_at      DateTime64(3, 'UTC') COMMENT 'When the operator approved it, by the operator''s own clock, or when its approval became known if the operator tells no time; of given_back, when that was recorded; of undecided, when the money was asked for. UTC' CODEC(Delta, ZSTD),
    local_date       Date COMMENT 'Day of approved_at in Africa/Brazzaville',
    occurred_at      DateTime64(3, 'UTC') COMMENT 'When the service recorded it, UTC' CODEC(Delta, ZSTD),

    tenant_id        LowCardinality(String) COMMENT 'Agency; empty for an orphan of no known session',
    application_id   LowCardinality(String) COMMENT 'Application that created the session',
    livemode         Bool COMMENT 'false for test payments',
    channel          LowCardinality(String) COMMENT 'MOBILE_MONEY, CARD, CASH; empty if the report of an orphan does not tell',
    offer_id         LowCardinality(String) COMMENT 'momo, momo_b, card, cash_agency; empty as channel',
    account          LowCardinality(String) COMMENT 'Fingerprint of the merchant account that has the money; of cash, the counter',

    session_id       String COMMENT 'Session; empty as tenant_id' CODEC(ZSTD),
    order_id         String COMMENT 'Order of the integrator' CODEC(ZSTD),
    collection_id    String COMMENT 'The reference that the operator was told' CODEC(ZSTD),
    operator_ref     String COMMENT 'The operator''s own reference of the payment; of cash, the number of the receipt. Of given_back, that of the money given back' CODEC(ZSTD),
    payment_ref      String COMMENT 'Payment reference, 16 digits' CODEC(ZSTD),
    notice_refs      Array(String) COMMENT 'References of the notices that the session pays' CODEC(ZSTD),
    reference        String COMMENT 'Of given_back: reference of the refund; empty for none' CODEC(ZSTD),
    reason           LowCardinality(String) COMMENT 'Of given_back: cash_returned, refunded. Of a mismatch: amount, currency. Of a withdrawn row: superseded, decided',
    case_id          String COMMENT 'Operator case that tells of the money; see the view cases' CODEC(ZSTD),

    currency         LowCardinality(String) COMMENT 'ISO 4217',
    gross            Int64 COMMENT 'What the citizen paid, minor units: the items and the fee, or what was reported. Negative in given_back; opposite in a withdrawn row' CODEC(ZSTD),
    fee              Int64 COMMENT 'The part of gross that is our fee, minor units; 0 for mismatch and orphan' CODEC(ZSTD),

    source_topic     LowCardinality(String) COMMENT 'Topic of the event: checkout.events; cases.events for an orphan of no known session',
    source_partition Int32 COMMENT 'Partition of the event',
    source_offset    Int64 COMMENT 'Offset of the event. A run of the matcher reads the rows below its watermark' CODEC(Delta, ZSTD),
    version          UInt64 COMMENT 'Higher for a lower offset: of an event that was written twice the first counts' CODEC(Delta, ZSTD),

    INDEX by_session session_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_payment_ref payment_ref TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_operator_ref operator_ref TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(local_date)
ORDER BY (tenant_id, local_date, account, collection_id, entry_id, withdrawn)
COMMENT 'Money that statements must show, once for each collection. Add up gross of the kinds received and given_back, FINAL; for single entries leave out those that have a withdrawn row'
