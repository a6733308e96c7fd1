-- Accounts by day: expected, found, open.
CREATE OR REPLACE VIEW reconciliation_days
(
    day                     Date COMMENT 'Day',
    tenant_id               LowCardinality(String) COMMENT 'Agency',
    agency                  String COMMENT 'Present name of the agency',
    livemode                Bool COMMENT 'false for test accounts',
    account                 LowCardinality(String) COMMENT 'Code of the account in the registry',
    currency                LowCardinality(String) COMMENT 'ISO 4217. Never add different currencies',
    expected                Int64 COMMENT 'Payments and sums given back; of a bank account, lines that settle to it',
    expected_amount         Int64 COMMENT 'Their sum, minor units',
    found                   Int64 COMMENT 'Lines of statements, payouts apart',
    found_amount            Int64 COMMENT 'Their sum, minor units: gross, on a bank account less its charges',
    fee_amount              Int64 COMMENT 'What the operator kept of it, minor units',
    matched                 Int64 COMMENT 'Expected with a match',
    matched_amount          Int64 COMMENT 'Their sum, minor units',
    open_expected           Int64 COMMENT 'Expected without a match: a line may still come, or it is in open_breaks',
    open_expected_amount    Int64 COMMENT 'Their sum, minor units',
    open_found              Int64 COMMENT 'Lines without a match: they are in open_breaks',
    open_found_amount       Int64 COMMENT 'Their sum, minor units: gross, on a bank account less its charges',
    computed_at             DateTime64(3, 'UTC') COMMENT 'When the run of the matcher computed it, UTC'
)
SQL SECURITY INVOKER
AS
WITH
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'agency') AS agencies
SELECT
    t.day AS day,
    t.tenant_id AS tenant_id,
    transform(toString(t.tenant_id), agencies.1, agencies.2, '') AS agency,
    t.livemode AS livemode,
    t.account AS account,
    t.currency AS currency,
    t.sources AS expected,
    t.sources_amount AS expected_amount,
    t.lines AS found,
    t.lines_amount AS found_amount,
    t.lines_fee AS fee_amount,
    t.sources - t.open_sources AS matched,
    t.sources_amount - t.open_sources_amount AS matched_amount,
    t.open_sources AS open_expected,
    t.open_sources_amount AS open_expected_amount,
    t.open_lines AS open_found,
    t.open_lines_amount AS open_found_amount,
    t.at AS computed_at
FROM day_totals AS t FINAL
COMMENT 'Accounts by day: expected, found, fees, matched, open'
