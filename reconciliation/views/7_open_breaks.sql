-- What people must clear up or confirm on the accounts.
CREATE OR REPLACE VIEW open_breaks
(
    tenant_id  LowCardinality(String) COMMENT 'Agency',
    agency     String COMMENT 'Present name of the agency',
    livemode   Bool COMMENT 'false for test accounts',
    account    LowCardinality(String) COMMENT 'Code of the account in the registry',
    type       LowCardinality(String) COMMENT 'break (find out), proposal (confirm)',
    kind       LowCardinality(String) COMMENT 'Of a break: unmatched_line, missing_line, amount, fee, duplicate_line, reversed_line',
    reason     LowCardinality(String) COMMENT 'Of a break, in a few words',
    action     LowCardinality(String) COMMENT 'What it asks of a person: match, decide_approved, refund_request, explain; payout_paid and payout_returned ask the people of a batch',
    day        Date COMMENT 'Local day of the account: of a break the earliest of its rows, of a proposal the latest',
    age        LowCardinality(String) COMMENT 'Days since: 0-1, 2-3, 4-7, 8-30, 31+',
    currency   LowCardinality(String) COMMENT 'ISO 4217. Never add different currencies',
    amount     Int64 COMMENT 'Minor units; of a break, the lines less the money that is expected',
    sources    Array(String) COMMENT 'Expected money, DAY/entry_id of expected_money; of a bank account, lines of other accounts',
    lines      Array(String) COMMENT 'Lines, DAY/line_id#content of statement_lines',
    not_taken  Array(String) COMMENT 'Rows with the same reference that were no candidates',
    opened_at  DateTime64(3, 'UTC') COMMENT 'When the run of the matcher found it, UTC',
    case_id    String COMMENT 'Operator case in which people clear it up; empty for decide_approved, which has the case of its session',
    finding_id String COMMENT 'Id of the finding'
)
SQL SECURITY INVOKER
AS
WITH
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'agency') AS agencies
SELECT
    b.tenant_id AS tenant_id,
    transform(toString(b.tenant_id), agencies.1, agencies.2, '') AS agency,
    b.livemode AS livemode,
    b.account AS account,
    any(b.type) AS type,
    any(b.kind) AS kind,
    argMax(b.reason, b.source_offset) AS reason,
    any(b.action) AS action,
    any(b.day) AS day,
    multiIf(toDate(now('Africa/Brazzaville')) - day <= 1, '0-1', toDate(now('Africa/Brazzaville')) - day <= 3, '2-3', toDate(now('Africa/Brazzaville')) - day <= 7, '4-7', toDate(now('Africa/Brazzaville')) - day <= 30, '8-30', '31+') AS age,
    any(b.currency) AS currency,
    any(b.amount) AS amount,
    arraySort(groupUniqArrayArray(b.sources)) AS sources,
    arraySort(groupUniqArrayArray(b.lines)) AS lines,
    arraySort(groupUniqArrayArray(b.not_taken)) AS not_taken,
    max(b.at) AS opened_at,
    argMax(b.case_id, b.source_offset) AS case_id,
    b.finding_id AS finding_id
FROM breaks AS b FINAL
GROUP BY b.tenant_id, b.livemode, b.account, b.finding_id
HAVING argMax(b.state, b.source_offset) = 'open'
COMMENT 'Breaks and proposals in force: what people must clear up or confirm'
