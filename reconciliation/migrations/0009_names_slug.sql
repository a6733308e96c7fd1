ALTER TABLE names
    COMMENT COLUMN kind 'agency, application; slug: the short name of an agency',
    COMMENT COLUMN id 'tenant_id, or application_id of an application',
    MODIFY COMMENT 'Names of agencies and applications, and slugs of agencies'
