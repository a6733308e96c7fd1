-- What the reports said of the days of a closed period (docs/design/reconciliation.md, "Signed closes").
ALTER TABLE closes
    ADD COLUMN IF NOT EXISTS reports Array(String) COMMENT 'What the reports said of the days of the period when it was closed, sorted: report, column and sum, such as reconciliation.found_minor 5075; empty for a refused close and for those of earlier releases' CODEC(ZSTD)
