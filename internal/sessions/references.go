package sessions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
	"quittance/internal/kafka/consume"
)

// ErrExhausted says that all leased numbers are used and no more can be leased now.
var ErrExhausted = errors.New("no reference numbers are left while Postgres is away")

// Querier is the part of a Postgres pool that References uses.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ReferencesConfig of References.
type ReferencesConfig struct {
	Postgres Querier
	// Key of the permutation, 32 bytes. It never changes.
	Key []byte
	// Block is the number of references in a lease; 50,000 when zero.
	Block int64
	Now   func() time.Time
	Log   *slog.Logger
}

// References issues the numbers that people read: payment_ref and notice_ref (decisions
// § 8). The counters are in Postgres. References leases blocks of them, two in advance,
// so that sessions can be created while Postgres is away for some time. Numbers that a
// process leases and does not use are lost; the range of the counters allows for that.
// It is safe for concurrent use.
type References struct {
	cfg  ReferencesConfig
	refs *checkout.References

	mu     sync.Mutex
	leases map[string][]lease // by counter; the first is in use
	wake   chan struct{}
}

type lease struct{ next, end int64 }

const paymentCounter = "payment_ref"

func noticeCounter(year int) string { return "notice_ref/" + strconv.Itoa(year) }

// NewReferences checks the key and leases its first blocks.
func NewReferences(ctx context.Context, cfg ReferencesConfig) (*References, error) {
	cfg.Block = cmp.Or(cfg.Block, 50_000)
	refs, err := checkout.NewReferences(cfg.Key)
	if err != nil {
		return nil, err
	}
	s := &References{cfg: cfg, refs: refs, leases: map[string][]lease{}, wake: make(chan struct{}, 1)}
	if err := s.checkKey(ctx); err != nil {
		return nil, err
	}
	return s, s.fill(ctx)
}

// ErrKey says that the counters were used with another key, so that existing numbers
// would be issued again.
var ErrKey = errors.New("reference numbers were made with another master key: put the oldest entry of QUITTANCE_MASTER_KEYS back")

// checkKey compares the fingerprint of the key with that of the first use, which is stored
// beside the counters.
func (s *References) checkKey(ctx context.Context) error {
	sum := sha256.Sum256(append([]byte("quittance reference key"), s.cfg.Key...))
	fingerprint := int64(binary.BigEndian.Uint64(sum[:]) >> 1)
	var known int64
	err := s.cfg.Postgres.QueryRow(ctx, `INSERT INTO reference_counters (name, next) VALUES ('key', $1)
		ON CONFLICT (name) DO UPDATE SET next = reference_counters.next RETURNING next`, fingerprint).Scan(&known)
	if err != nil {
		return fmt.Errorf("checking the reference key: %w", err)
	}
	if known != fingerprint {
		return ErrKey
	}
	return nil
}

// Run keeps two blocks of each counter leased until ctx ends.
func (s *References) Run(ctx context.Context) error {
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

func (s *References) fill(ctx context.Context) error {
	now := s.cfg.Now()
	// Lease next year's numbers before the year begins, because Postgres may be away at
	// midnight.
	for _, name := range []string{paymentCounter, noticeCounter(now.Year()), noticeCounter(now.Year() + 1)} {
		for s.leased(name) < 2 {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			var next int64
			err := s.cfg.Postgres.QueryRow(ctx, `INSERT INTO reference_counters (name, next) VALUES ($1, $2)
				ON CONFLICT (name) DO UPDATE SET next = reference_counters.next + $2 RETURNING next - $2`, name, s.cfg.Block).Scan(&next)
			cancel()
			if err != nil {
				return fmt.Errorf("leasing numbers of %s: %w", name, err)
			}
			s.mu.Lock()
			s.leases[name] = append(s.leases[name], lease{next, next + s.cfg.Block})
			s.mu.Unlock()
		}
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

// NoticeRef returns a new notice_ref of the current year. The error is ErrExhausted.
func (s *References) NoticeRef() (string, error) {
	year := s.cfg.Now().Year()
	n, err := s.take(noticeCounter(year))
	if err != nil {
		return "", err
	}
	return s.refs.NoticeRef(year, n), nil
}
