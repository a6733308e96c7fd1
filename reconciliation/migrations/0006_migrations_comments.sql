ALTER TABLE schema_migrations
    MODIFY COMMENT 'Migrations of this database',
    COMMENT COLUMN version 'Number of the migration',
    COMMENT COLUMN name 'File of the migration',
    COMMENT COLUMN applied_at 'When it was applied, UTC'
