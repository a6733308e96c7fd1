package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// CloseState says what became of a close that people approved.
type CloseState = string

// States of closes.
const (
	CloseClosed  CloseState = "closed"
	CloseRefused CloseState = "refused" // what people had approved had changed
)

// Close is a row of closes: a closed period of an account. Amounts are minor units of Currency.
// Sources are expected money, or of a bank account lines that settle to it. On both sides Start
// and New less Matched and Resolved is End.
type Close struct {
	ID       string     `ch:"close_id"`
	TenantID string     `ch:"tenant_id"`
	Livemode bool       `ch:"livemode"`
	Account  string     `ch:"account"`
	FromDay  time.Time  `ch:"from_day"`
	ToDay    time.Time  `ch:"to_day"`
	State    CloseState `ch:"state"`
	Reason   string     `ch:"reason"`
	CaseID   string     `ch:"case_id"`
	// Digest is the SHA-256 of what people approved, and Previous the hash of the close before (Hash).
	Digest     string           `ch:"digest"`
	Previous   string           `ch:"previous"`
	Rule       uint32           `ch:"rule"`
	Watermarks map[string]int64 `ch:"watermarks"`
	Statements []string         `ch:"statements"`
	Currency   string           `ch:"currency"`

	SourcesStart          int64 `ch:"sources_start"`
	SourcesStartAmount    int64 `ch:"sources_start_amount"`
	SourcesNew            int64 `ch:"sources_new"`
	SourcesNewAmount      int64 `ch:"sources_new_amount"`
	SourcesMatched        int64 `ch:"sources_matched"`
	SourcesMatchedAmount  int64 `ch:"sources_matched_amount"`
	SourcesResolved       int64 `ch:"sources_resolved"`
	SourcesResolvedAmount int64 `ch:"sources_resolved_amount"`
	SourcesEnd            int64 `ch:"sources_end"`
	SourcesEndAmount      int64 `ch:"sources_end_amount"`
	LinesStart            int64 `ch:"lines_start"`
	LinesStartAmount      int64 `ch:"lines_start_amount"`
	LinesNew              int64 `ch:"lines_new"`
	LinesNewAmount        int64 `ch:"lines_new_amount"`
	LinesMatched          int64 `ch:"lines_matched"`
	LinesMatchedAmount    int64 `ch:"lines_matched_amount"`
	LinesResolved         int64 `ch:"lines_resolved"`
	LinesResolvedAmount   int64 `ch:"lines_resolved_amount"`
	LinesEnd              int64 `ch:"lines_end"`
	LinesEndAmount        int64 `ch:"lines_end_amount"`

	OpenBreaks       int64  `ch:"open_breaks"`
	OpenBreaksAmount int64  `ch:"open_breaks_amount"`
	OpenBreaksDigest string `ch:"open_breaks_digest"`
	// Corrections are matches and explanations of earlier closes that do not hold any more.
	Corrections     int64     `ch:"corrections"`
	At              time.Time `ch:"at"`
	SourcePartition int32     `ch:"source_partition"`
	SourceOffset    int64     `ch:"source_offset"`
	// ChainRoot is the root of the tree over ChainRows rows (reconciliation/chain) in the canonical
	// form ChainVersion, which is 0 for a close without a root.
	ChainVersion uint32 `ch:"chain_version"`
	ChainRows    int64  `ch:"chain_rows"`
	ChainRoot    string `ch:"chain_root"`
	// MoneyOf says whose money arrives on the account, as MatchRun.MoneyOf, and Settling which
	// accounts settle to it.
	MoneyOf  []string `ch:"money_of"`
	Settling []string `ch:"settling"`
	// Signature is the Ed25519 signature of Statement in base64, and SignedWith the id of its key. Both are empty for a
	// refused close and for those of earlier releases.
	Signature  string `ch:"signature"`
	SignedWith string `ch:"signed_with"`
	// Reports is what the reports said of the days when they were closed (report.Closing); empty for a refused close
	// and for those of earlier releases.
	Reports []string `ch:"reports"`
}

// Hash returns the SHA-256, in hexadecimal, of what people approved and of the root. The next close
// of the account keeps it as Previous, so no close can be changed without all later ones.
func (c *Close) Hash() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "quittance-closed/1\n%s\n%d\n%d\n%s\n", c.Digest, c.ChainVersion, c.ChainRows, c.ChainRoot))
	return hex.EncodeToString(sum[:])
}

var closeTable = tableOf[Close]("closes").by("to_day", "tenant_id", "account", "livemode", "source_offset")

// Validate returns an error that wraps ErrInvalidEntry unless the row can be written.
func (c *Close) Validate() error {
	if c.ID == "" || c.TenantID == "" || c.Account == "" || c.State == "" {
		return fmt.Errorf("%w: a close without id, agency, account or state", ErrInvalidEntry)
	}
	return validTimes(c.ID, &c.FromDay, &c.ToDay, &c.At)
}

func (c *Close) table() *table { return closeTable }
func (c *Close) key() string   { return c.ID }

// CloseFilter selects closes. Empty fields select all.
type CloseFilter struct {
	TenantID string
	Live     *bool
	Account  string
}

// ClosedTo returns the last local day of the closed periods of an account, such as 2026-11-30; empty for none.
func (s *Store) ClosedTo(ctx context.Context, tenantID string, live bool, account string) (to string, err error) {
	list, err := s.Closes(ctx, CloseFilter{TenantID: tenantID, Live: &live, Account: account})
	for _, c := range list {
		if c.State == CloseClosed {
			to = max(to, c.ToDay.Format(time.DateOnly))
		}
	}
	return to, err
}

// Closes returns closes by agency and account, in the order in which they were made.
func (s *Store) Closes(ctx context.Context, f CloseFilter) ([]Close, error) {
	live := -1
	if f.Live != nil {
		live = 0
		if *f.Live {
			live = 1
		}
	}
	var out []Close
	err := s.conn.Select(ctx, &out, `SELECT `+closeTable.columns+` FROM closes FINAL
		WHERE (? = '' OR tenant_id = ?) AND (? = -1 OR toInt8(livemode) = ?) AND (? = '' OR account = ?) ORDER BY tenant_id, livemode, account, source_offset`,
		f.TenantID, f.TenantID, live, live, f.Account, f.Account)
	if err != nil {
		return nil, fmt.Errorf("reading closes: %w", err)
	}
	return out, nil
}
