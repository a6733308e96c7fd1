-- Operator cases that were open at the end of a month.
SELECT
    c.agency AS agency,
    c.kind AS kind,
    formatDateTime(assumeNotNull(c.opened_at), '%F %T', 'Africa/Brazzaville') AS opened_at,
    c.order_id AS order_id,
    c.operator_ref AS operator_ref,
    c.currency AS currency,
    c.amount AS amount_minor,
    c.reason AS reason,
    c.proposed_resolution AS proposed_resolution,
    c.proposed_by AS proposed_by,
    c.case_id AS case_id
FROM cases AS c
WHERE c.livemode = {livemode:Bool}
    AND c.kind != 'poison'
    AND ({agency:String} = ''
        OR c.tenant_id IN (SELECT a.tenant_id FROM agencies AS a WHERE a.slug = {agency:String}))
    AND c.opened_at < toDateTime(addMonths(toStartOfMonth({month:Date}), 1), 'Africa/Brazzaville')
    AND (c.closed_at IS NULL OR c.closed_at >= toDateTime(addMonths(toStartOfMonth({month:Date}), 1), 'Africa/Brazzaville'))
ORDER BY agency, opened_at, case_id
