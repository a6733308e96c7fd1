package lines_test

import (
	"maps"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/policy"
	"quittance/internal/disbursements/lines"
)

// state is the state of the domain that these commands need.
type state struct {
	batches   map[string]disbursement.Batch
	sealings  map[string]disbursement.Sealing
	lines     map[disbursement.LineKey]disbursement.Line
	queues    map[disbursement.QueueKey]disbursement.Queued
	agencies  map[disbursement.AgencyKey]disbursement.Agency
	refs      map[disbursement.RefKey]disbursement.LineKey
	batchRefs map[disbursement.BatchRefKey]disbursement.BatchRef
	roster    disbursement.Roster
}

func (s *state) Batch(id string) (disbursement.Batch, bool) { b, ok := s.batches[id]; return b, ok }
func (s *state) Sealing(batch string) disbursement.Sealing  { return s.sealings[batch] }
func (s *state) Line(k disbursement.LineKey) (disbursement.Line, bool) {
	l, ok := s.lines[k]
	return l, ok
}

func (s *state) Queued(k disbursement.QueueKey) (disbursement.Queued, bool) {
	q, ok := s.queues[k]
	return q, ok
}

func (s *state) Account(k disbursement.AccountKey) disbursement.Account {
	return disbursement.Account{AccountKey: k}
}

func (s *state) Agency(k disbursement.AgencyKey) disbursement.Agency       { return s.agencies[k] }
func (s *state) Roster(string) disbursement.Roster                         { return s.roster }
func (s *state) Ref(k disbursement.RefKey) disbursement.LineKey            { return s.refs[k] }
func (s *state) BatchRef(k disbursement.BatchRefKey) disbursement.BatchRef { return s.batchRefs[k] }

// decide carries out a command, which must not be refused.
func (s *state) decide(t *testing.T, do disbursement.Action) disbursement.Batch {
	t.Helper()
	d, err := disbursement.Decide(s, disbursement.Command{
		At: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), TenantID: "agency", Batch: "dsb_1", Do: do, ReplyTo: &disbursement.ReplyTo{CorrelationID: "1"},
	})
	if err != nil || d.Answer == nil || d.Answer.Refusal != nil {
		t.Fatalf("%T: %+v, %v", do, d.Answer, err)
	}
	maps.Copy(s.batches, d.Batches)
	maps.Copy(s.sealings, d.Sealings)
	maps.Copy(s.lines, d.Lines)
	maps.Copy(s.queues, d.Queues)
	maps.Copy(s.agencies, d.Agencies)
	maps.Copy(s.refs, d.Refs)
	maps.Copy(s.batchRefs, d.BatchRefs)
	return s.batches["dsb_1"]
}

// The domain takes the chunks of a file one after the other, and seals the batch with the file's count, sum and root.
func TestDomainTakesChunks(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	key := disbursement.AgencyKey{TenantID: "agency"}
	person := func(id string, hash byte) policy.Person {
		return policy.Person{ID: id, Number: id, Roles: []string{"agent"}, At: day, Keys: []policy.Key{{Hash: [32]byte{hash}, At: day}}}
	}
	s := &state{
		batches: map[string]disbursement.Batch{}, sealings: map[string]disbursement.Sealing{}, lines: map[disbursement.LineKey]disbursement.Line{},
		queues: map[disbursement.QueueKey]disbursement.Queued{}, refs: map[disbursement.RefKey]disbursement.LineKey{},
		batchRefs: map[disbursement.BatchRefKey]disbursement.BatchRef{},
		agencies: map[disbursement.AgencyKey]disbursement.Agency{key: {AgencyKey: key, Policy: policy.Policy{
			Version: 1, Currency: "XAF", Tiers: []policy.Tier{{Rules: []policy.Rule{{Role: "agent", Needed: 1}}}}, ApproveWithin: 72 * time.Hour, PayWithinDays: 5,
			NameCheck: policy.CheckOff, Release: policy.ReleaseManual,
		}}},
		roster: disbursement.Roster{TenantID: "agency", Roster: policy.Roster{People: []policy.Person{person("ama", 1), person("ben", 2)}}, RPID: "x.example", Origin: "https://x.example"},
	}
	in := many(1001)
	for i := range in {
		in[i].Corrects = "" // there is no earlier line
	}
	f := read(t, file(t, lines.FormatXLSX, in), rules())
	sealed, err := lines.Seal(f.Lines, fixed(4))
	if err != nil {
		t.Fatal(err)
	}
	s.decide(t, disbursement.Open{
		BatchRef: "SALARIES", Scope: disbursement.ScopeAgency, Source: disbursement.SourceFile, Currency: "XAF", Date: "2026-12-01", Maker: "ama", ImportID: "import",
		Accounts: []disbursement.Payout{{Code: "mtn", Fingerprint: "1", PerSecond: 10}, {Code: "bank", Fingerprint: "2", PerSecond: 10}},
	})
	for chunk, err := range sealed.Chunks(func(_ int, content []byte) ([]byte, error) { return content, nil }) {
		if err != nil {
			t.Fatal(err)
		}
		s.decide(t, disbursement.AddLines{ImportID: "import", Position: chunk.Position, Lines: chunk.Lines})
	}
	b := s.decide(t, disbursement.Seal{Count: len(sealed.Lines), Sum: sealed.Sum, Root: sealed.Root})
	if b.Status != disbursement.StatusSealed || b.Largest != sealed.Largest || b.Count != 1001 {
		t.Errorf("%+v", b)
	}
	for _, funding := range b.Accounts {
		i := map[string]int{"bank": 0, "mtn": 1}[funding.Code]
		if total := sealed.Totals[i]; total.Account != funding.Code || total.Count != funding.Count || total.Sum != funding.Sum {
			t.Errorf("%+v is not %+v", total, funding)
		}
	}
	salt, content, err := lines.ParseContent(s.lines[disbursement.LineKey{Batch: "dsb_1", Position: 1000}].Sealed)
	request := disbursement.Request{Line: s.lines[disbursement.LineKey{Batch: "dsb_1", Position: 1000}], Account: "bank", Currency: "XAF"}
	if err != nil || !request.Same(salt, content) {
		t.Errorf("the last line is not what was sealed: %v", err)
	}
}
