-- Agencies, so that a report can name one by its slug.
CREATE OR REPLACE VIEW agencies
(
    tenant_id String COMMENT 'Agency',
    slug      String COMMENT 'Short name of the agency in the registry, such as impots',
    name      String COMMENT 'Present name of the agency'
)
SQL SECURITY INVOKER
AS
SELECT
    n.tenant_id AS tenant_id,
    anyIf(n.name, n.kind = 'slug') AS slug,
    anyIf(n.name, n.kind = 'agency') AS name
FROM names AS n FINAL
WHERE n.kind IN ('agency', 'slug')
GROUP BY n.tenant_id
COMMENT 'Agencies with their ids, slugs and names'
