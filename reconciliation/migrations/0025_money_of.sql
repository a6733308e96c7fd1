-- Whose money a run of the matcher expected: money of others belongs to no account of the registry.
ALTER TABLE match_runs
    ADD COLUMN IF NOT EXISTS money_of Array(String) COMMENT 'Whose money it expected: agency/currency/offer/merchant account or counter; agency and offer are empty for reports of no known session' CODEC(ZSTD) AFTER ended
