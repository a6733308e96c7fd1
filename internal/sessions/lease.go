package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas"
	"quittance/schemas/record"
)

const leaseTimeout = 10 * time.Second

// errRace says that two processes leased at the same time although they should wait for
// each other.
var errRace = errors.New("another process leased blocks at the same time, in another database; the blocks are dropped: give all processes the same --postgres")

// lease leases a block for each of the names. Leases wait for each other: the lock of the
// table is held until the broker has the blocks. So the last record of a counter is its
// highest block, which is the one that compaction keeps.
//
// The numbers begin at the counter in Postgres or at the end of the highest block in
// Kafka, whichever is higher. The two differ after a restore of Postgres, and when a
// process ended between the record and the commit.
//
// The first lease also writes the fingerprint of the key to Kafka, and later ones compare it:
// a Postgres that was lost has lost it, and with another key the next numbers may be numbers
// that were issued before.
func (s *References) lease(ctx context.Context, names []string) (blocks []record.ReferenceBlock, err error) {
	now := s.cfg.Now()
	err = pgx.BeginFunc(ctx, s.cfg.Postgres, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE reference_counters IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return fmt.Errorf("locking the counters: %w", err)
		}
		highest, end, err := s.highest(ctx)
		if err != nil {
			return err
		}
		own := KeyFingerprint(s.cfg.Key)
		if err := s.checkKey(ctx, tx, own, highest); err != nil {
			return err
		}
		if _, known := highest[keyCounter]; !known {
			blocks = append(blocks, record.ReferenceBlock{Counter: keyCounter, First: own, End: own, LeasedAt: now})
		}
		for _, name := range names {
			b := record.ReferenceBlock{Counter: name, LeasedAt: now}
			err := tx.QueryRow(ctx, `INSERT INTO reference_counters AS c (name, next) VALUES ($1, $2::bigint + $3::bigint)
				ON CONFLICT (name) DO UPDATE SET next = greatest(c.next, $2) + $3 RETURNING next`, name, highest[name], s.block(name)).Scan(&b.End)
			if err != nil {
				return fmt.Errorf("advancing %s: %w", name, err)
			}
			b.First = b.End - s.block(name)
			blocks = append(blocks, b)
		}
		return s.announce(ctx, blocks, end)
	})
	if err != nil {
		return nil, fmt.Errorf("leasing numbers: %w", err)
	}
	return slices.DeleteFunc(blocks, func(b record.ReferenceBlock) bool { return b.Counter == keyCounter }), nil
}

// checkKey compares the fingerprint of the key with that of the first lease, in Kafka and
// beside the counters, where it is stored if it is missing.
func (s *References) checkKey(ctx context.Context, tx pgx.Tx, own int64, highest map[string]int64) error {
	if known, ok := highest[keyCounter]; ok && known != own {
		return ErrKey
	}
	var known int64
	err := tx.QueryRow(ctx, `INSERT INTO reference_counters AS c (name, next) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET next = c.next RETURNING next`, keyCounter, own).Scan(&known)
	if err != nil {
		return fmt.Errorf("checking the reference key: %w", err)
	}
	if known != own {
		return ErrKey
	}
	return nil
}

// highest returns the ends of the highest blocks in Kafka by counter, and the end offset
// up to which it has read.
func (s *References) highest(ctx context.Context) (ends map[string]int64, end int64, err error) {
	topic := s.cfg.Topology.Name(schemas.TopicReferences)
	ends = map[string]int64{}
	read, err := s.cfg.Kafka.ReadAll(ctx, topic, func(r *kgo.Record) error {
		var b record.ReferenceBlock
		if err := s.cfg.Codec.Decode(r.Value, &b); err != nil {
			// Ignoring the block would lease it again.
			return fmt.Errorf("decoding a block at offset %d of %s: %w", r.Offset, topic, err)
		}
		ends[b.Counter] = max(ends[b.Counter], b.End)
		return nil
	})
	return ends, read[0], err
}

// announce writes the blocks to Kafka, at the offset end.
func (s *References) announce(ctx context.Context, blocks []record.ReferenceBlock, end int64) error {
	for i := range blocks {
		value, err := s.cfg.Codec.Encode(&blocks[i])
		if err != nil {
			return err
		}
		r := &kgo.Record{Topic: s.cfg.Topology.Name(schemas.TopicReferences), Key: []byte(blocks[i].Counter), Value: value}
		if err := s.blocks.ProduceSync(ctx, r).FirstErr(); err != nil {
			return fmt.Errorf("writing a block to Kafka: %w", err)
		}
		if r.Offset != end+int64(i) {
			return errRace
		}
	}
	return nil
}
