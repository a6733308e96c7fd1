-- Months that are not merged any more would stay without the index of 0041. ClickHouse makes it
-- in the background.
ALTER TABLE journal MATERIALIZE INDEX by_session_key
