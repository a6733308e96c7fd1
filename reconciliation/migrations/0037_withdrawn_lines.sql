-- Two people may withdraw an import by mistake. A line that no other import has gets a second row then, with
-- the opposite amounts, so that sums return to what they were. life tells the lines apart that were withdrawn
-- and imported again; it is part of content. Rows of earlier releases are of the first life and not withdrawn.
ALTER TABLE statement_lines
    ADD COLUMN IF NOT EXISTS life UInt32 COMMENT 'How often the same line was withdrawn before; part of content',
    ADD COLUMN IF NOT EXISTS withdrawn Bool COMMENT 'The import was withdrawn: this row has the opposite amounts of the row with the same line_id and content, and neither counts for single lines',
    MODIFY ORDER BY (tenant_id, local_day, account, livemode, line_id, content, withdrawn),
    MODIFY COMMENT 'Lines of the statements of operators, acquirers, banks and counters. Add up amounts, FINAL; for single lines leave out those that have a withdrawn row'
