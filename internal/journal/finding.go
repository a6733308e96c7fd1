package journal

import (
	"context"
	"fmt"
	"time"

	"quittance/internal/tally"
)

// FindingType is what a run of the matcher found.
type FindingType = string

// Types of findings.
const (
	FindingMatch    FindingType = "match"
	FindingProposal FindingType = "proposal"
	FindingBreak    FindingType = "break"
)

// FindingTypes lists all types.
var FindingTypes = []FindingType{FindingMatch, FindingProposal, FindingBreak}

// FindingState says whether a finding is in force, or how it ended.
type FindingState = string

// States of findings.
const (
	FindingOpen       FindingState = "open"
	FindingSuperseded FindingState = "superseded" // a match, by a later run
	FindingWithdrawn  FindingState = "withdrawn"  // a proposal, by a later run
	FindingCleared    FindingState = "cleared"    // a break, by a later run
	FindingResolved   FindingState = "resolved"   // by people
)

// Hops of findings.
const (
	HopReceipt    = "receipt"    // money and a line of its operator
	HopSettlement = "settlement" // lines of operators and a line of the bank
)

// Finding is a row of matches, or of breaks for proposals and breaks: a finding of the matcher,
// or its end. Like an Entry it is derived from its Kafka record only, and never changes. A
// finding is in force while the row with the highest offset is open. Amounts are minor units of
// Currency.
type Finding struct {
	ID     string       `ch:"finding_id"`
	State  FindingState `ch:"state"`
	Type   FindingType  `ch:"type"`
	Hop    string       `ch:"hop"`
	Stage  string       `ch:"stage"`
	Kind   string       `ch:"kind"`
	Reason string       `ch:"reason"`
	Action string       `ch:"action"`
	Key    string       `ch:"key"`
	// Day is the latest local day of the rows; of a break the earliest. It selects the partition by its month and is
	// part of the sorting key.
	Day time.Time `ch:"day"`

	TenantID string   `ch:"tenant_id"`
	Livemode bool     `ch:"livemode"`
	Account  string   `ch:"account"`
	Currency string   `ch:"currency"`
	Amount   int64    `ch:"amount"`
	Sources  []string `ch:"sources"`
	Lines    []string `ch:"lines"`
	NotTaken []string `ch:"not_taken"`
	Part     uint32   `ch:"part"`
	Parts    uint32   `ch:"parts"`

	Rule       uint32    `ch:"rule"`
	RunID      string    `ch:"run_id"`
	CaseID     string    `ch:"case_id"`
	Resolution string    `ch:"resolution"`
	At         time.Time `ch:"at"`

	SourcePartition int32 `ch:"source_partition"`
	SourceOffset    int64 `ch:"source_offset"`
}

// DayTotal is a row of day_totals: the sums of a local day of an account. Of several rows of a
// day the one with the highest offset counts. Amounts are minor units of Currency.
type DayTotal struct {
	Day               time.Time `ch:"day"`
	TenantID          string    `ch:"tenant_id"`
	Livemode          bool      `ch:"livemode"`
	Account           string    `ch:"account"`
	Currency          string    `ch:"currency"`
	Sources           int64     `ch:"sources"`
	SourcesAmount     int64     `ch:"sources_amount"`
	Lines             int64     `ch:"lines"`
	LinesAmount       int64     `ch:"lines_amount"`
	LinesFee          int64     `ch:"lines_fee"`
	OpenSources       int64     `ch:"open_sources"`
	OpenSourcesAmount int64     `ch:"open_sources_amount"`
	OpenLines         int64     `ch:"open_lines"`
	OpenLinesAmount   int64     `ch:"open_lines_amount"`
	RunID             string    `ch:"run_id"`
	At                time.Time `ch:"at"`
	SourcePartition   int32     `ch:"source_partition"`
	SourceOffset      int64     `ch:"source_offset"`
}

// MatchRun is a row of match_runs: a run of the matcher over an account.
type MatchRun struct {
	ID       string `ch:"run_id"`
	TenantID string `ch:"tenant_id"`
	Livemode bool   `ch:"livemode"`
	Account  string `ch:"account"`
	// Today is the local day for which it ran. Horizon is the earliest local day of a source
	// that still waits for its line.
	Today   time.Time `ch:"today"`
	Horizon time.Time `ch:"horizon"`
	Rule    uint32    `ch:"rule"`
	// Watermarks are offsets by topic/partition. The run read the rows of the records below.
	Watermarks map[string]int64 `ch:"watermarks"`
	Rows       int64            `ch:"rows"`
	Matches    int64            `ch:"matches"`
	Proposals  int64            `ch:"proposals"`
	Breaks     int64            `ch:"breaks"`
	Ended      int64            `ch:"ended"`
	// MoneyOf is whose money the run expected: agency/currency/offer/merchant account or counter.
	MoneyOf         []string  `ch:"money_of"`
	At              time.Time `ch:"at"`
	SourcePartition int32     `ch:"source_partition"`
	SourceOffset    int64     `ch:"source_offset"`
}

var (
	matchTable = tableOf[Finding]("matches").by("day", "tenant_id", "account", "livemode", "finding_id", "source_offset")
	breakTable = tableOf[Finding]("breaks").by("day", "tenant_id", "account", "livemode", "finding_id", "source_offset")
	totalTable = tableOf[DayTotal]("day_totals").by("day", "tenant_id", "account", "livemode", "currency")
	runTable   = tableOf[MatchRun]("match_runs").by("today", "tenant_id", "account", "livemode", "source_offset")
)

// Validate returns an error that wraps ErrInvalidEntry unless the row can be written.
func (f *Finding) Validate() error {
	if f.ID == "" || f.Type == "" || f.State == "" || f.TenantID == "" || f.Account == "" {
		return fmt.Errorf("%w: a finding without id, type, state, agency or account", ErrInvalidEntry)
	}
	return validTimes(f.ID, &f.Day, &f.At)
}

// Validate returns an error that wraps ErrInvalidEntry unless the row can be written.
func (t *DayTotal) Validate() error {
	if t.TenantID == "" || t.Account == "" || t.Currency == "" {
		return fmt.Errorf("%w: sums of a day without agency, account or currency", ErrInvalidEntry)
	}
	return validTimes(t.key(), &t.Day, &t.At)
}

// Validate returns an error that wraps ErrInvalidEntry unless the row can be written.
func (r *MatchRun) Validate() error {
	if r.ID == "" || r.TenantID == "" || r.Account == "" {
		return fmt.Errorf("%w: a run of the matcher without id, agency or account", ErrInvalidEntry)
	}
	return validTimes(r.ID, &r.Today, &r.Horizon, &r.At)
}

func (f *Finding) table() *table {
	if f.Type == FindingMatch {
		return matchTable
	}
	return breakTable
}

func (t *DayTotal) table() *table { return totalTable }
func (r *MatchRun) table() *table { return runTable }

func (f *Finding) key() string  { return f.ID }
func (t *DayTotal) key() string { return t.Account + " " + t.Day.Format(time.DateOnly) }
func (r *MatchRun) key() string { return r.ID }

// Tally returns the row's part of a sum. Its status is the type and the state.
func (f *Finding) Tally() (tally.Key, tally.Count) {
	return tally.Key{Live: f.Livemode, Currency: f.Currency, Status: f.Type + " " + f.State}, tally.Count{Events: 1, Amount: f.Amount}
}

// TallyFindings returns the sums of all rows of findings that were made before a time.
func (s *Store) TallyFindings(ctx context.Context, before time.Time) (tally.Tally, error) {
	matches, err := s.tallyRows(ctx, matchTable, "concat(type, ' ', state)", "amount", "at", before)
	if err != nil {
		return nil, err
	}
	breaks, err := s.tallyRows(ctx, breakTable, "concat(type, ' ', state)", "amount", "at", before)
	if err != nil {
		return nil, err
	}
	for k, c := range breaks {
		matches.Add(k, c)
	}
	return matches, nil
}
