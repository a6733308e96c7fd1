-- What the accounts took in a month, by service. A report that its operator replaced, or is asked
-- about anew, is not given back: it is taken off what fits no payment.
SELECT
    r.agency AS agency,
    r.service_code AS service_code,
    argMax(r.service, r.occurred_at) AS service,
    r.currency AS currency,
    uniqExactIf(r.session_key, r.movement IN ('completed', 'late')) AS payments,
    sumIf(r.total_amount, r.movement = 'completed') AS completed_minor,
    sumIf(r.total_amount, r.movement = 'late') AS late_minor,
    sumIf(r.total_amount, r.movement IN ('orphan', 'mismatch') OR r.reason IN ('superseded', 'ask_again')) AS unmatched_minor,
    sumIf(r.total_amount, r.movement = 'reversal' AND r.reason NOT IN ('superseded', 'ask_again')) AS given_back_minor,
    sum(r.total_amount) AS total_minor
FROM receipts AS r
WHERE r.livemode = {livemode:Bool}
    AND toStartOfMonth(r.local_date) = toStartOfMonth({month:Date})
    AND ({agency:String} = ''
        OR r.tenant_id IN (SELECT a.tenant_id FROM agencies AS a WHERE a.slug = {agency:String}))
GROUP BY r.tenant_id, r.agency, r.service_code, r.currency
ORDER BY agency, service_code, currency
