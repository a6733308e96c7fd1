-- Money from the payment to the line of the bank. It has parameters, because a join of all months would need
-- memory for all of them: chain(from = '2026-11-01', until = '2026-11-30').
CREATE OR REPLACE VIEW chain
(
    local_date      Date COMMENT 'Day on which the operator approved it, in Africa/Brazzaville',
    approved_at     DateTime64(3, 'UTC') COMMENT 'When the operator approved it, UTC',
    tenant_id       LowCardinality(String) COMMENT 'Agency; empty for an orphan of no known session',
    agency          String COMMENT 'Present name of the agency',
    livemode        Bool COMMENT 'false for test payments, which are no money',
    kind            LowCardinality(String) COMMENT 'received, given_back (negative), undecided (its operator has not said whether it has the money, or has paid it), paid_out (to a payee of a batch, negative), returned (of a payout)',
    state           LowCardinality(String) COMMENT 'How the money came: completed, late, mismatch, orphan; of given_back and returned: reversed; of undecided: undecided, of a payout sent or unproven; of paid_out: paid',
    offer_id        LowCardinality(String) COMMENT 'momo, momo_b, card, cash_agency, bank_transfer, switch; empty if unknown. Of a payout the payout account',
    order_id        String COMMENT 'Order of the integrator; empty for a payout',
    payment_ref     String COMMENT 'Payment reference, 16 digits; of a payout its payout_ref',
    session_id      String COMMENT 'Session (chs_), of a payout the batch (dsb_)',
    session_key     String COMMENT 'Key of the session, the same in all views; empty for an orphan of no known session',
    operator_ref    String COMMENT 'The operator''s own reference; of cash, the number of the receipt',
    currency        LowCardinality(String) COMMENT 'ISO 4217. Never add different currencies',
    gross           Int64 COMMENT 'What the citizen paid, minor units; negative in given_back',
    fee_amount      Int64 COMMENT 'The part of gross that is our fee, minor units',
    dues            Array(String) COMMENT 'References of the dues in the ERP; an element is empty for a due of no ERP',
    transactions    Array(String) COMMENT 'Their transactions',
    amounts         Array(Int64) COMMENT 'Their amounts without fees, minor units',
    confirmed       Array(Bool) COMMENT 'Whether the ERP has accepted each',
    account         LowCardinality(String) COMMENT 'Account of the operator whose line proves it; empty while none does',
    line            String COMMENT 'That line, as findings name it; the first one of a match of several',
    match_id        String COMMENT 'Match of both',
    stage           LowCardinality(String) COMMENT 'Rule of the match: operator_ref, own_ref, amount_day, hand',
    closed_until    Date COMMENT 'Last day of the period with which the match was closed; 1970-01-01 while it is open',
    bank_account    LowCardinality(String) COMMENT 'Account of the bank whose line pays the operator''s line; empty while none does',
    bank_line       String COMMENT 'That line, as findings name it; the first one of a match of several',
    bank_match_id   String COMMENT 'Match of both',
    bank_key        String COMMENT 'Batch that both name; empty for a match by the cut-off window',
    bank_closed_until Date COMMENT 'Last day of the period with which that match was closed; 1970-01-01 while it is open',
    case_ids        Array(String) COMMENT 'Operator cases of open breaks and proposals that the payment, or the operator''s line, is in',
    row             String COMMENT 'Row of expected_money, as findings name it'
)
SQL SECURITY INVOKER
AS
WITH
    (SELECT (groupArray(n.id), groupArray(n.name)) FROM names AS n FINAL WHERE n.kind = 'agency') AS agencies,
    -- Payments of the days.
    payments AS
    (
        SELECT
            e.tenant_id AS tenant_id, e.livemode AS livemode, e.local_date AS local_date, concat(toString(e.local_date), '/', toString(e.entry_id)) AS row,
            any(e.approved_at) AS approved_at, any(e.kind) AS kind, any(e.state) AS state, any(e.offer_id) AS offer_id, any(e.order_id) AS order_id, any(e.payment_ref) AS payment_ref,
            any(e.session_id) AS session_id, any(e.operator_ref) AS operator_ref, any(e.currency) AS currency, any(e.gross) AS gross, any(e.fee) AS fee,
            any(e.due_refs) AS due_refs, any(e.transaction_ids) AS transaction_ids, any(e.amounts) AS amounts
        FROM expected_money AS e FINAL
        WHERE e.local_date >= {from:Date} AND e.local_date <= {until:Date} AND e.kind != 'refused'
        GROUP BY e.tenant_id, e.livemode, e.local_date, e.entry_id
        HAVING NOT max(e.withdrawn)
    ),
    -- Matches in force of these payments, a row for each payment. The row of a payment begins with its day.
    proved AS
    (
        SELECT p.1 AS tenant_id, p.2 AS livemode, p.3 AS account, p.4 AS match_id, stage, lines[1] AS line, day, offset, arrayJoin(sources) AS row
        FROM
        (
            SELECT
                (m.tenant_id, m.livemode, m.account, m.finding_id) AS p, any(m.stage) AS stage, any(m.day) AS day, max(m.source_offset) AS offset,
                arraySort(groupUniqArrayArray(m.lines)) AS lines, groupUniqArrayArray(m.sources) AS sources
            FROM matches AS m FINAL
            WHERE m.day >= {from:Date} AND m.finding_id IN
            (
                SELECT o.finding_id FROM matches AS o
                WHERE o.day >= {from:Date} AND o.hop = 'receipt' AND arrayExists(s -> left(s, 10) >= toString({from:Date}) AND left(s, 10) <= toString({until:Date}), o.sources)
            )
            GROUP BY p
            HAVING argMax(m.state, m.source_offset) = 'open'
        )
        WHERE left(row, 10) >= toString({from:Date}) AND left(row, 10) <= toString({until:Date})
    ),
    -- Matches in force of their lines with lines of the bank, a row for each line of an operator.
    paid AS
    (
        SELECT p.1 AS tenant_id, p.2 AS livemode, p.3 AS account, p.4 AS match_id, key, lines[1] AS line, day, offset, arrayJoin(sources) AS row
        FROM
        (
            SELECT
                (m.tenant_id, m.livemode, m.account, m.finding_id) AS p, any(m.key) AS key, any(m.day) AS day, max(m.source_offset) AS offset,
                arraySort(groupUniqArrayArray(m.lines)) AS lines, groupUniqArrayArray(m.sources) AS sources
            FROM matches AS m FINAL
            WHERE m.day >= {from:Date} AND m.finding_id IN
            (
                SELECT o.finding_id FROM (SELECT s.finding_id AS finding_id, arrayJoin(s.sources) AS source FROM matches AS s WHERE s.day >= {from:Date} AND s.hop = 'settlement') AS o
                WHERE o.source IN (SELECT line FROM proved)
            )
            GROUP BY p
            HAVING argMax(m.state, m.source_offset) = 'open'
        )
    ),
    -- Open breaks, a row for each row in them.
    disputed AS
    (
        SELECT tenant_id, livemode, row, groupUniqArray(case_id) AS case_ids
        FROM
        (
            SELECT b.tenant_id AS tenant_id, b.livemode AS livemode, argMax(b.case_id, b.source_offset) AS case_id, groupUniqArrayArray(arrayConcat(b.sources, b.lines)) AS rows
            FROM breaks AS b FINAL
            GROUP BY b.tenant_id, b.livemode, b.account, b.finding_id
            HAVING argMax(b.state, b.source_offset) = 'open' AND case_id != ''
        )
        ARRAY JOIN rows AS row
        GROUP BY tenant_id, livemode, row
    ),
    -- What ERPs have accepted of these payments.
    accepted AS
    (
        SELECT j.tenant_id AS tenant_id, j.session_id AS session_id, groupUniqArray(if(j.detail['transaction_id'] = '', j.transaction_id, j.detail['transaction_id'])) AS transactions
        FROM journal AS j
        WHERE j.event IN ('confirmation.accepted', 'confirmation.recorded') AND j.session_id IN (SELECT session_id FROM payments)
        GROUP BY j.tenant_id, j.session_id
    ),
    -- A match is closed with the first period that ends on its day or later and was closed after it.
    periods AS (SELECT c.tenant_id AS tenant_id, c.livemode AS livemode, c.account AS account, c.to_day AS to_day, c.source_offset AS offset FROM closes AS c FINAL WHERE c.state = 'closed')
SELECT
    p.local_date AS local_date,
    p.approved_at AS approved_at,
    p.tenant_id AS tenant_id,
    transform(toString(p.tenant_id), agencies.1, agencies.2, '') AS agency,
    p.livemode AS livemode,
    p.kind AS kind,
    p.state AS state,
    p.offer_id AS offer_id,
    p.order_id AS order_id,
    p.payment_ref AS payment_ref,
    p.session_id AS session_id,
    if(empty(p.session_id), '', substring(lower(hex(SHA256(p.session_id))), 1, 32)) AS session_key,
    p.operator_ref AS operator_ref,
    p.currency AS currency,
    p.gross AS gross,
    p.fee AS fee_amount,
    p.due_refs AS dues,
    p.transaction_ids AS transactions,
    p.amounts AS amounts,
    arrayMap(t -> toBool(has(a.transactions, t)), p.transaction_ids) AS confirmed,
    o.account AS account,
    o.line AS line,
    o.match_id AS match_id,
    o.stage AS stage,
    if(oday.account = '' OR olater.account = '', toDate(0), greatest(oday.to_day, olater.to_day)) AS closed_until,
    b.account AS bank_account,
    b.line AS bank_line,
    b.match_id AS bank_match_id,
    b.key AS bank_key,
    if(bday.account = '' OR blater.account = '', toDate(0), greatest(bday.to_day, blater.to_day)) AS bank_closed_until,
    arraySort(arrayDistinct(arrayConcat(d.case_ids, e.case_ids))) AS case_ids,
    p.row AS row
FROM payments AS p
LEFT JOIN accepted AS a ON a.tenant_id = p.tenant_id AND a.session_id = p.session_id
LEFT JOIN proved AS o ON o.livemode = p.livemode AND o.row = p.row AND (o.tenant_id = p.tenant_id OR p.tenant_id = '')
ASOF LEFT JOIN periods AS oday ON oday.tenant_id = o.tenant_id AND oday.livemode = o.livemode AND oday.account = o.account AND o.day <= oday.to_day
ASOF LEFT JOIN periods AS olater ON olater.tenant_id = o.tenant_id AND olater.livemode = o.livemode AND olater.account = o.account AND o.offset < olater.offset
LEFT JOIN paid AS b ON b.tenant_id = o.tenant_id AND b.livemode = o.livemode AND b.row = o.line AND o.line != ''
ASOF LEFT JOIN periods AS bday ON bday.tenant_id = b.tenant_id AND bday.livemode = b.livemode AND bday.account = b.account AND b.day <= bday.to_day
ASOF LEFT JOIN periods AS blater ON blater.tenant_id = b.tenant_id AND blater.livemode = b.livemode AND blater.account = b.account AND b.offset < blater.offset
LEFT JOIN disputed AS d ON d.tenant_id = p.tenant_id AND d.livemode = p.livemode AND d.row = p.row
LEFT JOIN disputed AS e ON e.tenant_id = o.tenant_id AND e.livemode = o.livemode AND e.row = o.line AND o.line != ''
COMMENT 'Payments that operators approved from one day until another, from the due to the line of the bank. The days are parameters: chain(from = ''2026-11-01'', until = ''2026-11-30'')'
