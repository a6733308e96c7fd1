package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/record"
)

const (
	relayEvery = 500 * time.Millisecond
	// roundWithin bounds a round, which holds a lock and a connection.
	roundWithin = 20 * time.Second
	atOnce      = 500
	// window is how far below the highest numbered id a round looks for rows whose transactions committed late.
	// The first round, and one an hour, look at all rows.
	window  = 10_000
	allRows = time.Hour
)

// RelayConfig configures a Relay. All fields are required.
type RelayConfig struct {
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
	// Client is a kafka.Config.Producer. The relay does not close it.
	Client *kgo.Client
	Pool   *pgxpool.Pool
	// Verify verifies the signatures of rows.
	Verify Signatures
	// Now is the service's clock in UTC.
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Signatures reports whether a signature of data under a label holds: secret.Keys.VerifySignature.
type Signatures func(label string, data, signature []byte) bool

// Relay numbers the rows of the audit table and writes their records to the topic. Any number
// of relays may run; they take turns.
type Relay struct {
	cfg      RelayConfig
	lookedAt time.Time    // when a round looked at all rows
	complete atomic.Int64 // when a round left nothing, Unix nanoseconds
	behind   atomic.Bool  // the last round failed
	unsigned prometheus.Counter
}

// NewRelay makes a relay. It connects when it runs.
func NewRelay(cfg RelayConfig) (*Relay, error) {
	if cfg.Topology == nil || cfg.Codec == nil || cfg.Client == nil || cfg.Pool == nil || cfg.Verify == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("audit: Topology, Codec, Client, Pool, Verify, Now, Log and Metrics are required")
	}
	r := &Relay{cfg: cfg, unsigned: promauto.With(cfg.Metrics).NewCounter(prometheus.CounterOpts{
		Name: "quittance_audit_unsigned_total", Help: "Rows of the audit table that no program with the key has written, as they were recorded in Kafka.",
	})}
	r.complete.Store(time.Now().UnixNano())
	promauto.With(cfg.Metrics).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_audit_unrecorded_seconds", Help: "Time since this process could last record the audit table's rows in Kafka; 0 while it can.",
	}, func() float64 {
		if !r.behind.Load() {
			return 0
		}
		return time.Since(time.Unix(0, r.complete.Load())).Seconds()
	})
	return r, nil
}

// Run relays rows until ctx ends, then returns nil.
func (r *Relay) Run(ctx context.Context) error {
	return consume.Every(ctx, relayEvery, r.Relay, func(err error) {
		r.cfg.Log.LogAttrs(ctx, slog.LevelError, "rows of the audit table could not be recorded in Kafka; it is tried again", slog.Any("error", err))
	})
}

// Relay records all rows that are committed now. After an error some of them may have been
// recorded; calling again does no harm.
func (r *Relay) Relay(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	for {
		n, err := r.round(ctx)
		r.behind.Store(err != nil)
		if err != nil {
			return err
		}
		if n < atOnce {
			r.complete.Store(time.Now().UnixNano())
			return nil
		}
	}
}

// position is a row of audit_position.
type position struct {
	sequence int64 // the highest number in the topic
	next     int64 // offset
	// unsignedUntil is the id of the last row of before programs signed them.
	unsignedUntil int64
}

// errRace says that another process has written to the topic in this round.
var errRace = errors.New("another process recorded rows of the audit table at the same time")

// round records up to atOnce rows, and returns their number.
func (r *Relay) round(ctx context.Context) (n int, err error) {
	err = pgx.BeginFunc(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		p, err := lock(ctx, tx)
		if err != nil {
			return err
		}
		before := p
		again, err := r.catchUp(ctx, tx, &p)
		if err != nil {
			return err
		}
		fresh, err := r.unnumbered(ctx, tx)
		if err != nil {
			return err
		}
		n = len(fresh)
		if p, err = r.write(ctx, tx, p, append(again, fresh...)); err != nil || p == before {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE audit_position SET sequence = $1, next = $2`, p.sequence, p.next)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("recording rows of the audit table: %w", err)
	}
	return n, nil
}

// lock locks the position. One that was removed is made again: the round then reads the whole topic.
func lock(ctx context.Context, tx pgx.Tx) (p position, err error) {
	const locked = `SELECT sequence, next, unsigned_until FROM audit_position FOR UPDATE`
	err = tx.QueryRow(ctx, locked).Scan(&p.sequence, &p.next, &p.unsignedUntil)
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err = tx.Exec(ctx, `INSERT INTO audit_position DEFAULT VALUES ON CONFLICT DO NOTHING`); err == nil {
			err = tx.QueryRow(ctx, locked).Scan(&p.sequence, &p.next, &p.unsignedUntil)
		}
	}
	if err != nil {
		return p, fmt.Errorf("reading the position: %w", err)
	}
	return p, nil
}

// catchUp reads what the topic has beyond the position. It returns numbered rows that the topic has not any more.
func (r *Relay) catchUp(ctx context.Context, tx pgx.Tx, p *position) (again []row, err error) {
	end, err := end(ctx, r.cfg.Client, r.cfg.Topology.Name(schemas.TopicAudit))
	if err != nil || end == p.next {
		return nil, err
	}
	lost := end < p.next
	if lost {
		r.cfg.Log.LogAttrs(ctx, slog.LevelError, "the topic audit has lost records; those of Postgres are written again", slog.Int64("end", end), slog.Int64("was", p.next))
		*p = position{unsignedUntil: p.unsignedUntil}
	}
	_, err = read(ctx, r.cfg.Kafka, r.cfg.Codec, p.next, end, func(rec *record.AuditRow, _ int64) error {
		if rec.Sequence <= p.sequence {
			return nil // another record of the number came first
		}
		p.sequence = rec.Sequence
		return adopt(ctx, tx, rec)
	})
	if p.next = end; err != nil || !lost {
		return nil, err
	}
	rows, _ := tx.Query(ctx, `SELECT `+columns+` FROM audit_sequence s JOIN audit a ON a.id = s.row_id WHERE s.sequence > $1 ORDER BY s.sequence`, p.sequence)
	return pgx.CollectRows(rows, scan)
}

// adopt gives a row the number of its record, if it has none.
func adopt(ctx context.Context, tx pgx.Tx, rec *record.AuditRow) error {
	rows, _ := tx.Query(ctx, `SELECT `+columns+` FROM audit a LEFT JOIN audit_sequence s ON s.row_id = a.id WHERE a.id = $1`, rec.RowID)
	v, err := pgx.CollectOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) || v.sequence != 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if same, err := v.proves(rec); err != nil || !same {
		return err
	}
	return number(ctx, tx, v.id, rec.Sequence)
}

func number(ctx context.Context, tx pgx.Tx, id, sequence int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO audit_sequence (sequence, row_id) VALUES ($1, $2)`, sequence, id)
	return err
}

// unnumbered returns committed rows without a number.
func (r *Relay) unnumbered(ctx context.Context, tx pgx.Tx) ([]row, error) {
	below := int64(window)
	if all := r.lookedAt.IsZero() || time.Since(r.lookedAt) > allRows; all {
		below = 1 << 62
	}
	rows, _ := tx.Query(ctx, `
		SELECT `+columns+` FROM audit a LEFT JOIN audit_sequence s ON s.row_id = a.id
		WHERE s.row_id IS NULL AND a.id > (SELECT coalesce(max(row_id), 0) - $1::bigint FROM audit_sequence) ORDER BY a.id LIMIT $2`, below, atOnce)
	out, err := pgx.CollectRows(rows, scan)
	if err == nil && below > window && len(out) < atOnce {
		r.lookedAt = time.Now()
	}
	return out, err
}

// write numbers rows that have no number and writes the records of all, in order.
func (r *Relay) write(ctx context.Context, tx pgx.Tx, p position, rows []row) (position, error) {
	if len(rows) == 0 {
		return p, nil
	}
	topic, now := r.cfg.Topology.Name(schemas.TopicAudit), r.cfg.Now()
	records := make([]*kgo.Record, len(rows))
	for i, v := range rows {
		sequence := v.sequence
		if sequence == 0 {
			sequence = p.sequence + 1
			if err := number(ctx, tx, v.id, sequence); err != nil {
				return p, err
			}
		}
		p.sequence = sequence
		rec, err := v.record(sequence, r.proof(ctx, v, p), now)
		if err != nil {
			return p, err
		}
		value, err := r.cfg.Codec.Encode(rec)
		if err != nil {
			return p, fmt.Errorf("encoding row %d: %w", v.id, err)
		}
		records[i] = &kgo.Record{Topic: topic, Key: []byte(strconv.FormatInt(sequence, 10)), Value: value}
	}
	if err := r.cfg.Client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return p, err
	}
	for i, rec := range records {
		if rec.Offset != p.next+int64(i) {
			return p, errRace // the next round reads what counts
		}
	}
	p.next += int64(len(records))
	return p, nil
}

// proof returns what a record says of the signature of its row; empty of a row of before programs signed them. It tells
// of one that is not signed.
func (r *Relay) proof(ctx context.Context, v row, p position) string {
	if v.id <= p.unsignedUntil && len(v.signature) == 0 {
		return ""
	}
	proof := v.proof(r.cfg.Verify)
	if proof == proofUnsigned {
		r.unsigned.Inc()
		r.cfg.Log.LogAttrs(ctx, slog.LevelError, "no program with the key has written a row of the audit table", slog.Int64("row", v.id), slog.String("action", v.action), slog.String("subject", v.subject), slog.String("actor", v.actor))
	}
	return proof
}

// end returns the offset after the last record of the topic.
func end(ctx context.Context, cl *kgo.Client, topic string) (int64, error) {
	ends, err := kafka.Offsets(kadm.NewClient(cl).ListEndOffsets(ctx, topic))
	if err != nil {
		return 0, fmt.Errorf("asking %s for its end: %w", topic, err)
	}
	return ends[0], nil
}

// read calls each for the records of the topic from an offset up to but not including another one, and counts those
// that cannot be decoded. The relay wrote none of these.
func read(ctx context.Context, c kafka.Config, codec *schemas.Codec, from, to int64, each func(rec *record.AuditRow, offset int64) error) (unreadable int64, err error) {
	err = c.Read(ctx, c.Prefix+schemas.TopicAudit, map[int32]kafka.Span{0: {From: from, To: to}}, nil, func(r *kgo.Record) (bool, error) {
		var rec record.AuditRow
		err := codec.Decode(r.Value, &rec)
		if errors.Is(err, schemas.ErrUndecodable) {
			unreadable++
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("decoding the record at offset %d of %s: %w", r.Offset, r.Topic, err)
		}
		return true, each(&rec, r.Offset)
	})
	return unreadable, err
}
