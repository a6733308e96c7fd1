package sessions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
)

// ErrExhausted says that all leased numbers are used and no more can be leased now.
var ErrExhausted = errors.New("no reference numbers are left while Postgres is away")

// Beginner begins transactions of Postgres, as a pool does.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// ReferencesConfig of References.
type ReferencesConfig struct {
	Postgres Beginner
	// Kafka, Topology and Codec reach the topic of leased blocks.
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
	// Key of the permutation, 32 bytes. It never changes.
	Key []byte
	// Block is the number of references in a lease; 50,000 when zero. A lease of paymentIds
	// has 1,000 at most, because there are fewer of them.
	Block int64
	Now   func() time.Time
	Log   *slog.Logger
}

// References issues the numbers that people read: payment_ref and notice_ref (decisions
// § 8). The counters are in Postgres, and each leased block is in the topic references
// before it is used, so that a Postgres that was restored from a backup leases no block
// twice. References leases blocks two in advance, so that sessions can be created while
// Postgres is away for some time. Numbers that a process leases and does not use are lost;
// the range of the counters allows for that. It is safe for concurrent use.
type References struct {
	cfg    ReferencesConfig
	refs   *checkout.References
	blocks *kgo.Client // writes leased blocks

	mu     sync.Mutex
	leases map[string][]lease // by counter; the first is in use
	wake   chan struct{}
}

type lease struct{ next, end int64 }

const (
	paymentCounter   = "payment_ref"
	paymentIDCounter = "payment_id"

	// paymentIDBlock is the most paymentIds in a lease, lastPaymentID the last one: programs of
	// partners may read it into 32 bits.
	paymentIDBlock = 1_000
	lastPaymentID  = math.MaxInt32
)

// block returns the number of values in a lease.
func (s *References) block(name string) int64 {
	if name == paymentIDCounter {
		return min(s.cfg.Block, paymentIDBlock)
	}
	return s.cfg.Block
}

func noticeCounter(year int) string { return "notice_ref/" + strconv.Itoa(year) }

// NewReferences checks the key and leases its first blocks.
func NewReferences(ctx context.Context, cfg ReferencesConfig) (*References, error) {
	if cfg.Postgres == nil || len(cfg.Kafka.Brokers) == 0 || cfg.Topology == nil || cfg.Codec == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("references: Postgres, Kafka.Brokers, Topology, Codec, Now and Log are required")
	}
	cfg.Block = cmp.Or(cfg.Block, 50_000)
	refs, err := checkout.NewReferences(cfg.Key)
	if err != nil {
		return nil, err
	}
	s := &References{cfg: cfg, refs: refs, leases: map[string][]lease{}, wake: make(chan struct{}, 1)}
	if s.blocks, err = cfg.Kafka.Producer(); err != nil {
		return nil, err
	}
	if err := s.fill(ctx); err != nil {
		s.blocks.Close()
		return nil, err
	}
	return s, nil
}

// ErrKey says that the numbers were made with another key, so that existing numbers would be
// issued again.
var ErrKey = errors.New("QUITTANCE_REFERENCE_KEY is not the key with which this installation has made its reference numbers, and would make numbers again that are printed already: " +
	"put that key back; if the installation has never had a reference key, make it with `quittance secrets reference-key`")

// keyCounter is the counter whose value is the fingerprint of the key.
const keyCounter = "key"

// KeyFingerprint identifies a key of the permutation.
func KeyFingerprint(key []byte) int64 {
	sum := sha256.Sum256(append([]byte("quittance reference key"), key...))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 1)
}

// KnownFingerprint returns the fingerprint of the key with which an installation makes its
// numbers, from Kafka or Postgres; ok is false when it has made none yet. Only Postgres,
// Kafka, Topology and Codec are used.
func KnownFingerprint(ctx context.Context, cfg ReferencesConfig) (fingerprint int64, ok bool, err error) {
	s := &References{cfg: cfg}
	highest, _, err := s.highest(ctx)
	if err != nil {
		return 0, false, err
	}
	if fingerprint, ok = highest[keyCounter]; ok {
		return fingerprint, true, nil
	}
	err = pgx.BeginFunc(ctx, cfg.Postgres, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT next FROM reference_counters WHERE name = $1`, keyCounter).Scan(&fingerprint)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("reading the fingerprint of the reference key: %w", err)
	}
	return fingerprint, true, nil
}

// Run keeps two blocks of each counter leased until ctx ends.
func (s *References) Run(ctx context.Context) error {
	defer s.blocks.Close()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.wake:
		}
		if err := s.fill(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("leasing reference numbers", slog.Any("error", err))
			consume.Sleep(ctx, time.Second) // s.wake may fire for every number taken meanwhile
		}
	}
}

// fill leases the blocks that are missing.
func (s *References) fill(ctx context.Context) error {
	now := s.cfg.Now()
	var missing []string
	// Lease next year's numbers before the year begins, because Postgres may be away at
	// midnight.
	for _, name := range []string{paymentCounter, paymentIDCounter, noticeCounter(now.Year()), noticeCounter(now.Year() + 1)} {
		for range 2 - s.leased(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	blocks, err := s.lease(ctx, missing)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range blocks {
		s.leases[b.Counter] = append(s.leases[b.Counter], lease{b.First, b.End})
	}
	return nil
}

func (s *References) leased(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases[name])
}

func (s *References) take(name string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	blocks := s.leases[name]
	if len(blocks) == 0 {
		s.refill()
		return 0, ErrExhausted
	}
	n := blocks[0].next
	if blocks[0].next++; blocks[0].next == blocks[0].end {
		s.leases[name] = blocks[1:]
		s.refill()
	}
	return n, nil
}

func (s *References) refill() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// PaymentRef returns a new payment_ref. The error is ErrExhausted.
func (s *References) PaymentRef() (string, error) {
	for {
		n, err := s.take(paymentCounter)
		if err != nil {
			return "", err
		}
		if ref, ok := s.refs.PaymentRef(n); ok {
			return ref, nil
		}
	}
}

// PaymentID returns a new paymentId of the deprecated cash-in surface: positive, below 2^31,
// and unique in the installation. The error is ErrExhausted.
func (s *References) PaymentID() (int64, error) {
	n, err := s.take(paymentIDCounter)
	if err != nil {
		return 0, err
	}
	if n >= lastPaymentID {
		return 0, ErrExhausted
	}
	return n + 1, nil
}

// NoticeRef returns a new notice_ref of the current year. The error is ErrExhausted.
func (s *References) NoticeRef() (string, error) {
	year := s.cfg.Now().Year()
	n, err := s.take(noticeCounter(year))
	if err != nil {
		return "", err
	}
	return s.refs.NoticeRef(year, n), nil
}
