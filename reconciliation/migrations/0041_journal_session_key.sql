-- Whoever has the id of a session can open its page. Reports and analysts get this key of it,
-- which opens nothing: the id has 128 random bits, so nobody finds it by its digest.
ALTER TABLE journal
    ADD COLUMN IF NOT EXISTS session_key String ALIAS if(empty(session_id), '', substring(lower(hex(SHA256(session_id))), 1, 32)) COMMENT 'Key of the session, the same in all views; empty for none',
    ADD INDEX IF NOT EXISTS by_session_key if(empty(session_id), '', substring(lower(hex(SHA256(session_id))), 1, 32)) TYPE bloom_filter GRANULARITY 4
