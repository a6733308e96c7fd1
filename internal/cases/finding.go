package cases

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/journal"
	"quittance/schemas"
	"quittance/schemas/record"
)

// Kinds of cases that the matcher opens and ends. No session holds them.
const (
	// KindBreak is a difference between money that is expected and the statements.
	KindBreak casework.Kind = "break"
	// KindProposal is a pair that the matcher proposes and a person confirms.
	KindProposal casework.Kind = "match_proposal"
	// KindClose is the close of a period of an account, which two people agree on.
	KindClose casework.Kind = "close"
)

// Resolutions of the matcher's cases. It carries them out after their approval, and its answer ends
// the case.
const (
	// ResolutionExplain says why rows have no other side, such as a charge of the bank. They
	// are settled.
	ResolutionExplain casework.Resolution = "explain"
	// ResolutionMatch confirms a proposal of the matcher.
	ResolutionMatch casework.Resolution = "match"
	// ResolutionMatchByHand matches the rows of a break with those of other breaks, which its
	// reference names by their cases. The amounts add up to zero. It takes two people.
	ResolutionMatchByHand casework.Resolution = "match_by_hand"
	// ResolutionClose closes the period of a case of the kind close.
	ResolutionClose casework.Resolution = "close"
	// ResolutionRefused ends a case if the matcher could not carry out what people agreed on, because
	// its rows had changed meanwhile. Nobody proposes it.
	ResolutionRefused casework.Resolution = "refused"
)

// reconciliation is the kinds of the matcher, and how staff can close cases of each.
var reconciliation = casework.Catalog{
	Kinds: []casework.Kind{KindBreak, KindProposal, KindClose},
	Exits: []casework.Exit{
		{Resolution: casework.ResolutionWriteOff, Of: []casework.Kind{KindBreak, KindProposal}, NeedsReference: true},
		{Resolution: ResolutionExplain, Of: []casework.Kind{KindBreak, KindProposal}, NeedsReference: true},
		{Resolution: ResolutionMatch, Of: []casework.Kind{KindProposal}},
		{Resolution: ResolutionMatchByHand, Of: []casework.Kind{KindBreak}, NeedsTwo: true},
		{Resolution: ResolutionClose, Of: []casework.Kind{KindClose}, NeedsTwo: true},
	},
	Evidence: []string{
		EvidenceTenant, EvidenceFinding, EvidenceFindings, EvidenceFound, EvidenceStage, EvidenceLedger, EvidenceDay, EvidenceExpected,
		EvidenceLines, EvidenceSimilar, EvidenceFrom, EvidenceTo, EvidenceDigest, EvidenceSums,
	},
}

// ofMatcher is the kinds whose resolutions the matcher carries out.
var ofMatcher = names(reconciliation.Kinds)

// ByMatcher reports whether the matcher carries out what people agree on in cases of a kind.
func ByMatcher(k casework.Kind) bool { return slices.Contains(reconciliation.Kinds, k) }

// Matcher is who ends a case that a later run of the matcher has cleared up.
const Matcher = "matcher"

// Names of the evidence of a case of the matcher.
const (
	EvidenceFinding  = "finding_id"
	EvidenceFindings = "finding_kind"      // of a break, such as missing_line
	EvidenceFound    = "found"             // why it is a break
	EvidenceStage    = "stage"             // rule that the rows reached
	EvidenceLedger   = "statement_account" // code of the account in the registry
	EvidenceDay      = "day"               // local day of the account
	EvidenceExpected = "expected"          // ids of expected money, or of lines that settle to the account
	EvidenceLines    = "lines"             // ids of lines of the account
	EvidenceSimilar  = "not_taken"         // ids of rows with the same reference
	EvidenceTenant   = checkout.DetailTenant
	EvidenceFrom     = "period_from"  // of a close: first local day
	EvidenceTo       = "period_to"    // last local day
	EvidenceDigest   = "close_digest" // of what people approve
	EvidenceSums     = "sums"         // for people
)

// beforeOpening is the sequence of a row that was made of the end of its case. The opening of the case
// replaces it.
const beforeOpening = -1

// shown is how many rows of a list a case names. The view open_breaks has all.
const shown = 20

// OfFinding returns the id of the case of a finding that a run of the matcher has opened. A
// finding that ends and is opened again has another case.
func OfFinding(findingID, runID string) string {
	sum := sha256.Sum256([]byte("finding|" + findingID + "|" + runID))
	return "case_" + strings.ToLower(idEncoding.EncodeToString(sum[:20]))
}

// ReadFinding returns the case in a record of reconciliation.events: one that a break or a
// proposal opens, or one that ends with it or with a close, whose EndedAs is set. Other records have
// none.
// Errors are those of Codec.Decode.
func ReadFinding(codec *schemas.Codec, value []byte) ([]Case, error) {
	name, err := codec.NameOf(value)
	switch {
	case err != nil:
		return nil, err
	case name == (*record.Close)(nil).Name():
		return readClose(codec, value)
	case name != (*record.Finding)(nil).Name():
		return nil, nil
	}
	var f record.Finding
	if err := codec.Decode(value, &f); err != nil {
		return nil, err
	}
	if f.CaseID == "" || f.Part > 1 || f.Type == journal.FindingMatch {
		return nil, nil
	}
	c := Case{
		Case:     casework.Case{ID: f.CaseID, Kind: KindBreak, Amount: f.Amount, Currency: f.Currency, Reason: f.Reason, OpenedAt: f.At.UTC()},
		AgencyID: f.TenantID, Mode: mode(f.Livemode), Clerks: []string{}, Evidence: map[string]string{EvidenceTenant: f.TenantID},
	}
	if f.Type == journal.FindingProposal {
		c.Kind = KindProposal
	}
	if f.State != journal.FindingOpen {
		c.EndedAs, c.EndedAt = casework.Resolution(f.State), f.At.UTC()
		if f.Resolution != "" {
			c.EndedAs = casework.Resolution(f.Resolution)
		}
		if c.EndedAs == ResolutionRefused {
			c.EndedReason = RefusalChanged
		}
	}
	for name, text := range map[string]string{
		EvidenceFinding: f.FindingID, EvidenceFindings: f.Kind, EvidenceFound: f.Reason, EvidenceStage: f.Stage, EvidenceLedger: f.Account, EvidenceDay: f.Day,
		EvidenceExpected: listed(f.Sources, f.Parts), EvidenceLines: listed(f.Lines, f.Parts), EvidenceSimilar: listed(f.NotTaken, f.Parts),
	} {
		if text != "" {
			c.Evidence[name] = storable(text)
		}
	}
	return []Case{c}, nil
}

// readClose returns the case that the record of a close, or of its refusal, ends. It has what the row
// of the case needs: after a rebuild, the record may be read before the opening of the case.
func readClose(codec *schemas.Codec, value []byte) ([]Case, error) {
	var c record.Close
	if err := codec.Decode(value, &c); err != nil {
		return nil, err
	}
	ended := Case{
		Case:     casework.Case{ID: c.CaseID, Kind: KindClose, OpenedAt: c.At.UTC()},
		AgencyID: c.TenantID, Mode: mode(c.Livemode), Clerks: []string{}, Evidence: map[string]string{}, Sequence: beforeOpening,
		EndedAs: ResolutionClose, EndedAt: c.At.UTC(),
	}
	if c.State != journal.CloseClosed {
		ended.EndedAs, ended.EndedReason = ResolutionRefused, c.Reason
	}
	return []Case{ended}, nil
}

// listed names the first rows of a list.
func listed(ids []string, parts int32) string {
	if len(ids) <= shown {
		return strings.Join(ids, ", ")
	}
	more := strconv.Itoa(len(ids) - shown)
	if parts > 1 {
		more = "many"
	}
	return strings.Join(ids[:shown], ", ") + fmt.Sprintf(", and %s more in the view open_breaks", more)
}

// Others returns the ids of cases in the reference of a match by hand.
func Others(reference string) []string {
	return strings.FieldsFunc(reference, func(r rune) bool { return r == ',' || r == ' ' })
}
