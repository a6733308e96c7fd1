-- Where the money of a month is: by channel, offer and merchant account or counter. What an operator
-- reported and replaced was never received.
SELECT
    r.agency AS agency,
    r.channel AS channel,
    r.offer_id AS offer_id,
    r.account AS account,
    r.currency AS currency,
    count() AS movements,
    sumIf(r.total_amount, r.movement != 'reversal' OR r.reason IN ('superseded', 'ask_again')) AS received_minor,
    sumIf(r.total_amount, r.movement = 'reversal' AND r.reason NOT IN ('superseded', 'ask_again')) AS given_back_minor,
    sum(r.total_amount) AS total_minor
FROM receipts AS r
WHERE r.livemode = {livemode:Bool}
    AND toStartOfMonth(r.local_date) = toStartOfMonth({month:Date})
    AND ({agency:String} = ''
        OR r.tenant_id IN (SELECT a.tenant_id FROM agencies AS a WHERE a.slug = {agency:String}))
GROUP BY r.tenant_id, r.agency, r.channel, r.offer_id, r.account, r.currency
ORDER BY agency, channel, offer_id, account, currency
