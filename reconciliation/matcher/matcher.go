// Package matcher runs package match over the accounts: it reads expected money and lines of
// statements from ClickHouse, and writes what it finds to reconciliation.events.
//
// # A run
//
// A run is of one account: an operator's, an acquirer's or a counter's, whose lines prove
// receipts, or a bank's, whose lines settle the lines of the accounts that settle to it.
//
//	1  take the account's transactional id at Kafka: an earlier run cannot write any more
//	2  take the ends of the partitions that have its payments, statements and findings
//	3  wait until the sink journal has written to ClickHouse what is below; end if it has set
//	   aside some of that
//	4  read the rows below: new ones, open ones, and what shares a reference with them
//	5  match, and compare with the findings in force
//	6  write what changed, the sums of the days and the run, in one transaction
//
// The rows below an offset never change, so a run that is repeated finds the same. A run that
// changes nothing writes nothing. When a process dies, nothing of its run is visible.
//
// # When
//
// Run does it for each account after each of its statements, and when its local day begins: then
// lines are missing that are late by more than the days of grace. Several instances share the
// accounts by locks in Postgres.
package matcher

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/statement"
)

// TransactionalIDs is the beginning of the transactional ids of runs, for the rights at the
// broker.
const TransactionalIDs = "matcher-"

const (
	// transactionTimeout is how long writing may take, and how long the transaction of a process
	// that died can hold back the readers of its partition.
	transactionTimeout = 5 * time.Minute
	// patience is how long the broker may take to answer.
	patience = 30 * time.Second
	// longestRun is how long the lock of an account is held at most. A longer run goes on, but
	// another instance may begin one, which fences it off.
	longestRun = time.Hour
	// journalPatience is how long a run waits for the sink journal, and journalPause the time
	// between two looks.
	journalPatience = 2 * time.Minute
	journalPause    = 200 * time.Millisecond
	// lookEvery is the time between two looks for accounts to run, and retryAfter the time until
	// a run that failed is tried again.
	lookEvery  = 5 * time.Second
	retryAfter = time.Minute
)

// Config configures a Matcher. All fields but Every and Kept are required.
type Config struct {
	Kafka      kafka.Config
	Topology   *kafka.Topology
	Codec      *schemas.Codec
	ClickHouse driver.Conn
	Pool       *pgxpool.Pool
	Registry   *registry.Registry
	// JournalGroup is the consumer group of the sink journal, without the prefix.
	JournalGroup string
	// Keys sign closes (journal.LabelCloses). Sheet needs none.
	Keys *secret.Keys
	// Verify verifies the signatures of what people agreed on, and the rows of people and passkeys.
	Verify *secret.Keys
	// Words signs what statements say of payouts to the processor of batches. Sheet needs none.
	Words commands.Signer
	// Credits is for accounts to which citizens transfer money. Sheet needs none.
	Credits Credits
	// Every is the time between two looks for accounts to run; 5 s when zero.
	Every time.Duration
	// Kept is told after each run how many bytes the matcher keeps for later runs.
	Kept    func(bytes int64)
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Matcher runs accounts. Any number of them share the work.
type Matcher struct {
	cfg      Config
	runs     *prometheus.CounterVec
	duration prometheus.Histogram
	unproven *prometheus.CounterVec // reason
	refused  seen                   // the approvals that unproven has counted
	failing  atomic.Int64
	// checked are the watermarks of the last run of this process, by account, failed when a run
	// failed, and unclosed when a close failed.
	checked          map[registry.StatementAccountKey]marks
	failed, unclosed map[registry.StatementAccountKey]time.Time
	admin            *kadm.Client    // made by the first look
	killed           func(step) bool // for tests
	pause            time.Duration   // journalPause
	few, many        int             // fewRefs, manyRefs
	// memories are those of the last runs of this process, and remembered is how many bytes their references
	// have. remembering guards them.
	memories    map[registry.StatementAccountKey]*memory
	remembered  atomic.Int64
	remembering sync.Mutex
}

// step is a step of a run, after which the process may die.
type step string

// The steps of a run.
const (
	stepFenced   step = "fenced"   // earlier runs cannot write
	stepProduced step = "produced" // the records are at the broker, not committed
)

var errKilled = errors.New("killed by a test")

func (m *Matcher) reached(at step) error {
	if m.killed != nil && m.killed(at) {
		return errKilled
	}
	return nil
}

// Outcomes of runs.
const (
	outcomeWritten   = "written"
	outcomeUnchanged = "unchanged"
	outcomeFailed    = "failed"
)

// New makes a matcher.
func New(cfg Config) (*Matcher, error) {
	if cfg.Topology == nil || cfg.Codec == nil || cfg.ClickHouse == nil || cfg.Pool == nil || cfg.Registry == nil || cfg.JournalGroup == "" || cfg.Verify == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("matcher: Topology, Codec, ClickHouse, Pool, Registry, JournalGroup, Verify, Now, Log and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	m := &Matcher{
		cfg: cfg, checked: map[registry.StatementAccountKey]marks{}, failed: map[registry.StatementAccountKey]time.Time{}, unclosed: map[registry.StatementAccountKey]time.Time{}, pause: journalPause,
		few: fewRefs, many: manyRefs, memories: map[registry.StatementAccountKey]*memory{},
		runs: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_matcher_runs_total", Help: "Runs of the matcher over an account, by outcome.",
		}, []string{"outcome"}),
		duration: with.NewHistogram(prometheus.HistogramOpts{
			Name: "quittance_matcher_run_duration_seconds", Help: "Duration of runs that succeeded.",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}),
	}
	m.unproven = with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_matcher_unproven_total", Help: "Approvals in cases.events that were not carried out because two people have not signed them as they stand there, by reason. A process counts each once.",
	}, []string{"reason"})
	for _, code := range checkout.UnprovenCodes() {
		m.unproven.WithLabelValues(string(code))
	}
	for _, o := range []string{outcomeWritten, outcomeUnchanged, outcomeFailed} {
		m.runs.WithLabelValues(o)
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_matcher_failing_accounts", Help: "Accounts whose last run or close by this process failed; at least 1 while it cannot look for accounts.",
	}, func() float64 { return float64(m.failing.Load()) })
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_matcher_memory_bytes", Help: "Size of the references that this process keeps of the accounts' histories.",
	}, func() float64 { return float64(m.remembered.Load()) })
	return m, nil
}

// Run runs the accounts that are due until ctx ends, then returns nil.
func (m *Matcher) Run(ctx context.Context) error {
	every := m.cfg.Every
	if every == 0 {
		every = lookEvery
	}
	for {
		if err := m.Look(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the matcher cannot look for accounts", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			if m.admin != nil {
				m.admin.Close()
			}
			return nil
		case <-time.After(every):
		}
	}
}

// Look runs the accounts that are due, one after the other. One caller at a time. The error is about finding them; a
// run that fails is logged and tried again a minute later.
func (m *Matcher) Look(ctx context.Context) error {
	due, err := m.due(ctx)
	if err != nil {
		m.failing.Store(max(1, m.failing.Load()))
		return err
	}
	for key := range m.failed { // another instance has succeeded, or the account is gone
		if !slices.Contains(due, key) {
			delete(m.failed, key)
		}
	}
	for _, key := range due {
		if m.rests(key) || ctx.Err() != nil {
			continue
		}
		m.runLocked(ctx, key)
		m.countFailing()
	}
	err = m.closeApproved(ctx)
	m.countFailing()
	return err
}

func (m *Matcher) countFailing() {
	failing := maps.Clone(m.failed)
	maps.Copy(failing, m.unclosed)
	m.failing.Store(int64(len(failing)))
}

// rests reports whether a run or a close of the account has just failed.
func (m *Matcher) rests(key registry.StatementAccountKey) bool {
	return time.Since(m.failed[key]) < retryAfter || time.Since(m.unclosed[key]) < retryAfter
}

// runLocked runs an account unless another instance does.
func (m *Matcher) runLocked(ctx context.Context, key registry.StatementAccountKey) {
	agency, _ := m.cfg.Registry.Agency(key.AgencyID)
	about := []slog.Attr{slog.String("agency", agency.Slug), slog.String("mode", registry.Mode(key.Live)), slog.String("account", key.Code)}
	begun := time.Now()
	var s Summary
	ran, err := m.locked(ctx, key, func() (err error) {
		s, err = m.Account(ctx, key)
		return err
	})
	switch {
	case ctx.Err() != nil || err == nil && !ran:
		return
	case err != nil:
		m.failed[key] = time.Now()
		m.runs.WithLabelValues(outcomeFailed).Inc()
		m.cfg.Log.LogAttrs(ctx, slog.LevelError, "a run of the matcher failed and is tried again", append(about, slog.Any("error", err))...)
		return
	}
	delete(m.failed, key)
	m.checked[key] = s.marks
	m.duration.Observe(time.Since(begun).Seconds())
	if !s.Written {
		m.runs.WithLabelValues(outcomeUnchanged).Inc()
		return
	}
	m.runs.WithLabelValues(outcomeWritten).Inc()
	m.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "account matched", append(about, slog.String("run_id", s.RunID), slog.Int("rows", s.Rows), slog.Int("matches", len(s.Matches)),
		slog.Int("proposals", len(s.Proposals)), slog.Int("breaks", len(s.Breaks)), slog.Int("ended", len(s.Superseded)+len(s.Withdrawn)+len(s.Cleared)))...)
}

// locked does something while it holds the lock of an account. It reports false if another
// instance holds it.
//
// The lock is a transaction's, not a session's, whose unlock can miss it: behind a pooler in
// transaction mode it runs in another session, and the account is never matched again.
func (m *Matcher) locked(ctx context.Context, key registry.StatementAccountKey, do func() error) (ran bool, err error) {
	h := fnv.New64a()
	_, _ = h.Write([]byte("matcher " + m.cfg.Kafka.Prefix + keyOf(key))) // never fails
	id := int64(h.Sum64())                                               //nolint:gosec // any number
	tx, err := m.cfg.Pool.Begin(ctx)
	if err != nil {
		return false, fmt.Errorf("locking the account: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // one that fails closes the connection, which unlocks
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", longestRun.Milliseconds())); err != nil {
		return false, fmt.Errorf("locking the account: %w", err)
	}
	if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", id).Scan(&ran); err != nil {
		return false, fmt.Errorf("locking the account: %w", err)
	}
	if !ran {
		return false, nil
	}
	return true, do()
}

// due returns the accounts that have a statement that was not matched, whose day has begun, or in
// whose cases people have agreed on something.
// Accounts that settle to a bank account come before it.
func (m *Matcher) due(ctx context.Context) ([]registry.StatementAccountKey, error) {
	ran, err := m.ran(ctx)
	if err != nil {
		return nil, err
	}
	if m.admin == nil {
		cl, err := m.cfg.Kafka.Client()
		if err != nil {
			return nil, err
		}
		m.admin = kadm.NewClient(cl)
	}
	bounds, err := kafka.Bounds(ctx, m.admin, m.cfg.Topology.Name(schemas.TopicStatements))
	if err != nil {
		return nil, err
	}
	agreed, err := m.pendingAgreements(ctx)
	if err != nil {
		return nil, err
	}
	now := m.cfg.Now()
	var out, banks []registry.StatementAccountKey
	for _, agency := range m.cfg.Registry.Agencies() {
		for _, live := range []bool{false, true} {
			accounts := m.cfg.Registry.StatementAccounts(agency.ID, live)
			for _, a := range accounts {
				zone, err := a.Location()
				if err != nil {
					return nil, err
				}
				last, ok := ran[a.StatementAccountKey]
				is := !ok || agreed[a.StatementAccountKey] || last.today < statement.DayOf(now, zone)
				for _, from := range accounts {
					if from.Code == a.Code || from.SettlesTo == a.Code {
						p := m.partition(schemas.TopicStatements, from.StatementAccountKey)
						at := markOf(schemas.TopicStatements, p)
						is = is || bounds[p].To > max(last.marks[at], m.checked[a.StatementAccountKey][at])
					}
				}
				switch {
				case is && a.Kind == registry.AccountBank:
					banks = append(banks, a.StatementAccountKey)
				case is:
					out = append(out, a.StatementAccountKey)
				}
			}
		}
	}
	return slices.Concat(out, banks), nil
}

// ranLast is the last run of an account.
type ranLast struct {
	today statement.Day
	marks marks
}

func (m *Matcher) ran(ctx context.Context) (map[registry.StatementAccountKey]ranLast, error) {
	rows, err := m.cfg.ClickHouse.Query(ctx, `SELECT toString(tenant_id), livemode, toString(account), toString(argMax(today, source_offset)), argMax(watermarks, source_offset)
		FROM match_runs GROUP BY tenant_id, livemode, account`)
	if err != nil {
		return nil, fmt.Errorf("reading the last runs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out := map[registry.StatementAccountKey]ranLast{}
	for rows.Next() {
		var k registry.StatementAccountKey
		var today string
		var watermarks map[string]int64
		if err := rows.Scan(&k.AgencyID, &k.Live, &k.Code, &today, &watermarks); err != nil {
			return nil, fmt.Errorf("reading the last runs: %w", err)
		}
		last := ranLast{marks: maps.Clone(watermarks)}
		if last.today, err = statement.ParseDay(today); err != nil {
			return nil, err
		}
		out[k] = last
	}
	return out, rows.Err()
}
