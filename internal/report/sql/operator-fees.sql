-- What operators and acquirers kept in a month, by account: the fees of its lines, and charges
-- that are lines of their own. Bank accounts have neither.
SELECT
    any(a.name) AS agency,
    l.account AS account,
    l.currency AS currency,
    sumIf(if(l.withdrawn, -1, 1), l.kind != 'charge') AS lines,
    sumIf(l.amount, l.kind != 'charge') AS gross_minor,
    sum(if(l.kind = 'charge', 0, l.fee_amount)) AS fees_minor,
    -sumIf(l.net_amount, l.kind = 'charge') AS charges_minor,
    fees_minor + charges_minor AS total_minor,
    gross_minor - total_minor AS net_minor
FROM statement_lines AS l FINAL
LEFT JOIN agencies AS a ON a.tenant_id = l.tenant_id
WHERE l.livemode = {livemode:Bool}
    AND toStartOfMonth(l.local_day) = toStartOfMonth({month:Date})
    AND ({agency:String} = ''
        OR l.tenant_id IN (SELECT a.tenant_id FROM agencies AS a WHERE a.slug = {agency:String}))
    AND l.kind IN ('payment', 'refund', 'reversal', 'charge')
GROUP BY l.tenant_id, l.account, l.currency
ORDER BY agency, account, currency
