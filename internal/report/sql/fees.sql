-- The fees that citizens paid beside their dues in a month, and those that were given back.
SELECT
    r.agency AS agency,
    r.channel AS channel,
    r.offer_id AS offer_id,
    r.currency AS currency,
    uniqExactIf(r.session_key, r.movement IN ('completed', 'late')) AS payments,
    sumIf(r.amount, r.movement IN ('completed', 'late')) AS due_minor,
    sumIf(r.fee_amount, r.fee_amount > 0) AS fees_minor,
    sumIf(r.fee_amount, r.fee_amount < 0) AS given_back_minor,
    sum(r.fee_amount) AS total_minor
FROM receipts AS r
WHERE r.livemode = {livemode:Bool}
    AND toStartOfMonth(r.local_date) = toStartOfMonth({month:Date})
    AND ({agency:String} = ''
        OR r.tenant_id IN (SELECT a.tenant_id FROM agencies AS a WHERE a.slug = {agency:String}))
    AND (r.movement IN ('completed', 'late') OR r.fee_amount != 0)
GROUP BY r.tenant_id, r.agency, r.channel, r.offer_id, r.currency
ORDER BY agency, channel, offer_id, currency
