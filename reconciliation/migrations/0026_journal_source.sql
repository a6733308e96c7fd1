-- Where an event is in Kafka: the close of a period takes the confirmations below its watermark.
ALTER TABLE journal
    ADD COLUMN IF NOT EXISTS source_partition Int32 COMMENT 'Of events: partition in checkout.events. 0 for other entries, and for those of releases before this column' CODEC(ZSTD),
    ADD COLUMN IF NOT EXISTS source_offset Int64 COMMENT 'Of events: offset there; 0 as source_partition' CODEC(Delta, ZSTD)
