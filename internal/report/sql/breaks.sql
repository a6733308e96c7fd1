-- Breaks and proposals that were open at the end of a month, or are open now if it has not ended.
-- Their age is the days from the business date to the end of the month, or to the last run of the
-- matcher before.
WITH
    least(addMonths(toStartOfMonth({month:Date}), 1) - 1, assumeNotNull((SELECT max(r.today) FROM match_runs AS r WHERE r.livemode = {livemode:Bool}))) AS until
SELECT
    any(a.name) AS agency,
    b.account AS account,
    any(b.type) AS type,
    any(b.kind) AS kind,
    any(b.reason) AS reason,
    any(b.action) AS action,
    toString(any(b.day)) AS business_date,
    dateDiff('day', any(b.day), until) AS days,
    multiIf(days <= 1, '0-1', days <= 3, '2-3', days <= 7, '4-7', days <= 30, '8-30', 'over 30') AS age,
    any(b.currency) AS currency,
    any(b.amount) AS amount_minor,
    length(groupUniqArrayArray(b.sources)) AS payments,
    length(groupUniqArrayArray(b.lines)) AS lines,
    argMax(b.case_id, b.source_offset) AS case_id,
    b.finding_id AS finding_id
FROM breaks AS b FINAL
LEFT JOIN agencies AS a ON a.tenant_id = b.tenant_id
WHERE b.livemode = {livemode:Bool}
    AND b.at < toDateTime(addMonths(toStartOfMonth({month:Date}), 1), 'Africa/Brazzaville')
    AND ({agency:String} = ''
        OR b.tenant_id IN (SELECT a.tenant_id FROM agencies AS a WHERE a.slug = {agency:String}))
GROUP BY b.tenant_id, b.account, b.finding_id
HAVING argMax(b.state, b.source_offset) = 'open'
ORDER BY agency, account, business_date, finding_id
