package matcher

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/decisions"
	"quittance/internal/journal"
	"quittance/internal/registry"
)

// agreed is what people agreed on in the case of a finding.
type agreed struct {
	caseID     string
	resolution casework.Resolution
	reference  string
	// over means that an event has closed the case, and nobody has signed what it says: people cannot decide in it.
	over bool
}

// explains reports whether rows are settled without a match.
func (a agreed) explains() bool {
	return a.resolution == cases.ResolutionExplain || a.resolution == casework.ResolutionWriteOff
}

// steps is the condition for the events of cases that the matcher looks at: the steps of proposals that people sign, and
// exits that it has not caused.
const steps = "(event IN ('" + string(checkout.EventCaseProposed) + "', '" + string(checkout.EventCaseApproved) + "') OR " + exits + ")"

const exits = "event = '" + string(checkout.EventCaseResolved) + "' AND detail['by'] != '" + cases.Matcher + "'"

// deciding is the condition for those events that may say that people agreed.
const deciding = "(event = '" + string(checkout.EventCaseApproved) + "' OR " + exits + ")"

// told returns the events of cases that a condition selects, in order of the cases and of their times.
func (m *Matcher) told(ctx context.Context, where string, args ...any) (map[string][]cases.Told, error) {
	rows, err := m.cfg.ClickHouse.Query(querying(ctx), `SELECT case_id, entry_id, toString(event), detail FROM case_rows WHERE `+steps+" AND "+where+" ORDER BY occurred_at, entry_id", args...)
	if err != nil {
		return nil, fmt.Errorf("reading what people agreed on: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out := map[string][]cases.Told{}
	for rows.Next() {
		var id, event string
		var e cases.Told
		if err := rows.Scan(&id, &e.ID, &event, &e.Detail); err != nil {
			return nil, fmt.Errorf("reading what people agreed on: %w", err)
		}
		e.Event = checkout.EventType(event)
		out[id] = append(out[id], e)
	}
	return out, rows.Err()
}

// ofFindings returns what people agreed on in cases of findings, in order of the cases' ids. What nobody has signed
// about the finding as it is does not count.
func (m *Matcher) ofFindings(ctx context.Context, byCase map[string]cases.Case) (out []agreed, err error) {
	for _, ids := range chunks(slices.Sorted(maps.Keys(byCase))) {
		events, err := m.told(ctx, in("case_id", "", ids))
		if err != nil {
			return nil, err
		}
		for _, id := range slices.Sorted(maps.Keys(events)) {
			a := m.agreedIn(ctx, byCase[id], events[id])
			over := slices.ContainsFunc(events[id], func(e cases.Told) bool { return e.Event == checkout.EventCaseResolved })
			switch {
			case a != nil:
				out = append(out, agreed{caseID: id, resolution: a.Resolution, reference: a.Reference})
			case over:
				out = append(out, agreed{caseID: id, over: true})
			}
		}
	}
	return out, nil
}

// agreedIn returns what people agreed on in a case; nil for nothing. It tells of approvals that do not count.
func (m *Matcher) agreedIn(ctx context.Context, c cases.Case, events []cases.Told) *cases.Approved {
	a, unproven := c.Agreed(events, m.cfg.Now(), decisions.Verify(m.cfg.Verify))
	for _, event := range slices.Sorted(maps.Keys(unproven)) {
		m.refuse(ctx, c.ID, event, unproven[event])
	}
	return a
}

// refuse counts an approval that does not count, and logs it, once.
func (m *Matcher) refuse(ctx context.Context, caseID, event string, code checkout.Code) {
	if !m.refused.first(caseID + " " + event) {
		return
	}
	m.unproven.WithLabelValues(string(code)).Inc()
	m.cfg.Log.LogAttrs(ctx, slog.LevelError, "an approval in cases.events is not carried out: two people have not signed it as it stands there",
		slog.String("case", caseID), slog.String("event", event), slog.String("code", string(code)))
}

// seen remembers texts. The zero value is ready. It is safe for concurrent use.
type seen struct {
	mu    sync.Mutex
	texts map[string]bool
}

// seenAtMost bounds the texts: whoever writes more approvals has them counted again.
const seenAtMost = 10_000

// first reports whether it has not seen the text.
func (s *seen) first(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts[text] {
		return false
	}
	if s.texts == nil || len(s.texts) >= seenAtMost {
		s.texts = map[string]bool{}
	}
	s.texts[text] = true
	return true
}

// caseOf returns the case of a finding, with what people decide on.
func caseOf(f journal.Finding) cases.Case {
	kind := cases.KindBreak
	if f.Type == journal.FindingProposal {
		kind = cases.KindProposal
	}
	return cases.Case{
		Case:     casework.Case{ID: f.CaseID, Kind: kind, Amount: f.Amount, Currency: f.Currency},
		AgencyID: f.TenantID, Mode: registry.Mode(f.Livemode), Evidence: map[string]string{cases.EvidenceFinding: f.ID, cases.EvidenceLedger: f.Account},
	}
}

// caseOfClose returns the case of a close that an event tells of. All of it is signed.
func caseOfClose(id string, detail map[string]string) cases.Case {
	c := cases.Case{
		Case: casework.Case{ID: id, Kind: cases.KindClose}, AgencyID: detail[cases.EvidenceTenant], Mode: registry.Mode(detail[checkout.DetailLive] == strconv.FormatBool(true)),
		Evidence: map[string]string{},
	}
	for _, name := range []string{cases.EvidenceLedger, cases.EvidenceFrom, cases.EvidenceTo, cases.EvidenceDigest} {
		c.Evidence[name] = detail[name]
	}
	return c
}

// pendingAgreements returns the accounts with open findings in whose cases people agreed on something.
func (m *Matcher) pendingAgreements(ctx context.Context) (map[registry.StatementAccountKey]bool, error) {
	rows, err := m.cfg.ClickHouse.Query(ctx, `SELECT finding_id, toString(tenant_id), livemode, toString(account), last_case, toString(last.1), last.2, toString(last.3) FROM
		(SELECT finding_id, tenant_id, livemode, account, argMax(case_id, source_offset) AS last_case, argMax((type, amount, currency), source_offset) AS last FROM breaks
			GROUP BY tenant_id, livemode, account, finding_id HAVING argMax(state, source_offset) = 'open')
		WHERE last_case IN (SELECT case_id FROM case_rows WHERE `+deciding+`)`)
	if err != nil {
		return nil, fmt.Errorf("asking what people agreed on: %w", err)
	}
	defer func() { _ = rows.Close() }()
	byCase, accounts := map[string]cases.Case{}, map[string]registry.StatementAccountKey{}
	for rows.Next() {
		var f journal.Finding
		if err := rows.Scan(&f.ID, &f.TenantID, &f.Livemode, &f.Account, &f.CaseID, &f.Type, &f.Amount, &f.Currency); err != nil {
			return nil, fmt.Errorf("asking what people agreed on: %w", err)
		}
		byCase[f.CaseID], accounts[f.CaseID] = caseOf(f), registry.StatementAccountKey{AgencyID: f.TenantID, Live: f.Livemode, Code: f.Account}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	all, err := m.ofFindings(ctx, byCase)
	if err != nil {
		return nil, err
	}
	out := map[registry.StatementAccountKey]bool{}
	for _, a := range all {
		out[accounts[a.caseID]] = true
	}
	return out, nil
}

// approvedCloses reads the closes that two people have signed and that have no record yet.
func (m *Matcher) approvedCloses(ctx context.Context) ([]approved, error) {
	events, err := m.told(ctx, `case_id IN (SELECT case_id FROM case_rows WHERE event = ? AND detail['case_kind'] = ? AND detail['resolution'] = ?) AND case_id NOT IN (SELECT case_id FROM closes)`,
		string(checkout.EventCaseApproved), string(cases.KindClose), string(cases.ResolutionClose))
	if err != nil {
		return nil, fmt.Errorf("reading closes that people have approved: %w", err)
	}
	var out []approved
	var at []int64
	for _, id := range slices.Sorted(maps.Keys(events)) {
		a, when := m.approvedClose(ctx, id, events[id])
		if a == nil {
			continue
		}
		if _, known := m.cfg.Registry.StatementAccount(a.key); known {
			i, _ := slices.BinarySearch(at, when+1) // in the order of the approvals
			out, at = slices.Insert(out, i, *a), slices.Insert(at, i, when)
		}
	}
	return out, nil
}

// approvedClose returns the close that two people have signed in a case, and when it was approved, in milliseconds;
// nil if there is none. Each approval says itself what it closes.
func (m *Matcher) approvedClose(ctx context.Context, id string, events []cases.Told) (*approved, int64) {
	var tried seen
	for i := range events {
		if events[i].Event != checkout.EventCaseApproved || !tried.first(fmt.Sprint(events[i].Detail)) { // with its signature
			continue
		}
		of := slices.DeleteFunc(slices.Clone(events), func(e cases.Told) bool { return e.Event == checkout.EventCaseApproved && e.ID != events[i].ID })
		c := caseOfClose(id, events[i].Detail)
		if a := m.agreedIn(ctx, c, of); a != nil && a.Resolution == cases.ResolutionClose {
			key := registry.StatementAccountKey{AgencyID: c.AgencyID, Live: c.Mode == registry.Mode(true), Code: c.Evidence[cases.EvidenceLedger]}
			return &approved{key: key, caseID: id, from: c.Evidence[cases.EvidenceFrom], to: c.Evidence[cases.EvidenceTo], digest: c.Evidence[cases.EvidenceDigest]}, a.DecidedAt.UnixMilli()
		}
	}
	return nil, 0
}
