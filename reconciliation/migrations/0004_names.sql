-- Names of agencies and applications, copied from the registry in Postgres. A name that
-- changed is a newer row.
CREATE TABLE IF NOT EXISTS names
(
    kind       LowCardinality(String) COMMENT 'agency, application',
    id         String COMMENT 'tenant_id or application_id',
    tenant_id  String COMMENT 'Agency that the name belongs to',
    name       String COMMENT 'Present name',
    written_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When the name was copied, UTC'
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY (kind, id)
COMMENT 'Names of agencies and applications'
