-- Accounts by day of a month: expected, found, fees of the operator, matched, open. Money that
-- belongs to no account of the registry has a row with its offer and merchant account. The payments
-- of a bank account are lines that settle to it.
SELECT
    t.agency AS agency,
    t.day AS day,
    t.account AS account,
    t.of_no_account AS of_no_account,
    t.currency AS currency,
    t.expected AS payments,
    t.expected_amount AS expected_minor,
    t.found AS lines,
    t.found_amount AS found_minor,
    t.fee_amount AS fees_minor,
    t.matched AS matched_payments,
    t.matched_amount AS matched_minor,
    t.open_expected AS open_payments,
    t.open_expected_amount AS open_expected_minor,
    t.open_found AS open_lines,
    t.open_found_amount AS open_found_minor
FROM
(
    SELECT
        d.agency AS agency, toString(d.day) AS day, toString(d.account) AS account, '' AS of_no_account, toString(d.currency) AS currency,
        d.expected AS expected, d.expected_amount AS expected_amount, d.found AS found, d.found_amount AS found_amount, d.fee_amount AS fee_amount,
        d.matched AS matched, d.matched_amount AS matched_amount, d.open_expected AS open_expected, d.open_expected_amount AS open_expected_amount,
        d.open_found AS open_found, d.open_found_amount AS open_found_amount
    FROM reconciliation_days AS d
    WHERE d.livemode = {livemode:Bool}
        AND toStartOfMonth(d.day) = toStartOfMonth({month:Date})
        AND ({agency:String} = ''
            OR d.tenant_id IN (SELECT a.tenant_id FROM agencies AS a WHERE a.slug = {agency:String}))
    UNION ALL
    SELECT
        any(a.name) AS agency, toString(e.local_date) AS day, '' AS account, trimBoth(concat(e.offer_id, ' ', e.account)) AS of_no_account, toString(e.currency) AS currency,
        sum(if(e.withdrawn, -1, 1)) AS expected, sum(e.gross) AS expected_amount, 0, 0, 0,
        0, 0, expected, expected_amount,
        0, 0
    FROM expected_money AS e FINAL
    LEFT JOIN agencies AS a ON a.tenant_id = e.tenant_id
    WHERE e.livemode = {livemode:Bool}
        AND toStartOfMonth(e.local_date) = toStartOfMonth({month:Date})
        AND ({agency:String} = ''
            OR e.tenant_id IN (SELECT a.tenant_id FROM agencies AS a WHERE a.slug = {agency:String}))
        AND e.kind NOT IN ('undecided', 'refused')
        AND concat(e.tenant_id, '/', e.currency, '/', e.offer_id, '/', e.account) NOT IN
        (
            SELECT arrayJoin(argMax(r.money_of, r.source_offset))
            FROM match_runs AS r
            WHERE r.livemode = {livemode:Bool}
            GROUP BY r.tenant_id, r.account
        )
    GROUP BY e.tenant_id, e.local_date, e.offer_id, e.account, e.currency
    HAVING expected != 0 OR expected_amount != 0
) AS t
ORDER BY agency, day, account, of_no_account, currency
