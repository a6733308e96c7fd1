package disbursement

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/commands"
	"quittance/internal/journal"
	"quittance/internal/secret"
	"quittance/processors/entry"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/test/filled"
	"quittance/test/payroll"
	"quittance/test/servers"
)

var update = flag.Bool("update", false, "write the golden entries of kinds that have none yet")

// put is one call of Put.
type put struct {
	key      string
	value    []byte
	deadline time.Time
}

// entries is a transaction that commits at once.
type entries struct {
	state   map[string][]byte
	puts    []put
	emitted []*kgo.Record
}

func (e *entries) Partition() int32               { return 0 }
func (e *entries) Get(key []byte) ([]byte, error) { return e.state[string(key)], nil }
func (e *entries) Emit(r *kgo.Record)             { e.emitted = append(e.emitted, r) }
func (e *entries) Delete(key []byte)              { delete(e.state, string(key)) }

func (e *entries) Put(key, value []byte, deadline time.Time) {
	e.state[string(key)] = value
	e.puts = append(e.puts, put{string(key), value, deadline})
}

// topics is a Topology with one partition a topic.
type topics struct{}

func (topics) Name(topic string) string       { return topic }
func (topics) Partition(string, string) int32 { return 0 }

func newProcessor(t testing.TB) *Processor {
	t.Helper()
	client, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(t.Context(), client, true)
	if err != nil {
		t.Fatal(err)
	}
	requests, err := commands.NewPayoutSigner(secret.GenerateKeys())
	if err != nil {
		t.Fatal(err)
	}
	return &Processor{codec: codec, topology: topics{}, requests: requests}
}

// everyKind is a decision that writes one entry of each kind.
func everyKind() disbursement.Decision {
	b := filled.New[disbursement.Batch]()
	b.Status, b.Sweeping = disbursement.StatusReleasing, false
	l := filled.New[disbursement.Line]()
	a := filled.New[disbursement.Account]()
	return disbursement.Decision{
		Batches:   map[string]disbursement.Batch{"dsb_1": b},
		Sealings:  map[string]disbursement.Sealing{"dsb_1": filled.New[disbursement.Sealing]()},
		Lines:     map[disbursement.LineKey]disbursement.Line{{Batch: "dsb_1", Position: 12}: l},
		Queues:    map[disbursement.QueueKey]disbursement.Queued{{Owner: "w|dsb_1|0", N: 3}: filled.New[disbursement.Queued]()},
		Accounts:  map[disbursement.AccountKey]disbursement.Account{{TenantID: "agency", Live: true, Code: "mtn"}: a},
		Agencies:  map[disbursement.AgencyKey]disbursement.Agency{{TenantID: "agency"}: filled.New[disbursement.Agency]()},
		Rosters:   map[string]disbursement.Roster{"agency": filled.New[disbursement.Roster]()},
		Refs:      map[disbursement.RefKey]disbursement.LineKey{{1, 0, 2}: {Batch: "dsb_1", Position: 12}},
		BatchRefs: map[disbursement.BatchRefKey]disbursement.BatchRef{{AgencyKey: disbursement.AgencyKey{TenantID: "agency", Live: true}, BatchRef: "salaries\x00november"}: {Batch: "dsb_1", Revision: 2}},
	}
}

// The keys, the values and the deadlines of entries never change: state topics and local stores of installations have them.
func TestGoldenEntries(t *testing.T) {
	t.Parallel()
	tx := &entries{state: map[string][]byte{}}
	state := entry.NewState(tx, newProcessor(t).codec)
	write(state, everyKind())
	if err := state.Err(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, put := range tx.puts {
		deadline := "never"
		if !put.deadline.IsZero() {
			deadline = put.deadline.UTC().Format(time.RFC3339)
		}
		lines = append(lines, fmt.Sprintf("%q %s %x\n", put.key, deadline, put.value[5:])) // without the header, which has the registry's id of the schema
	}
	slices.Sort(lines)
	file := filepath.Join("testdata", "entries.golden")
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(lines, ""); got != string(golden) {
		t.Errorf("entries are\n%s\nwant\n%s", got, golden)
	}
	if len(lines) != len(kinds) {
		t.Errorf("%d entries of %d kinds", len(lines), len(kinds))
	}
	m := model{everyKind()}
	m.equals(t, view{state})
}

// model is a disbursement.View in memory.
type model struct{ d disbursement.Decision }

func newModel() model {
	return model{disbursement.Decision{
		Batches: map[string]disbursement.Batch{}, Sealings: map[string]disbursement.Sealing{}, Lines: map[disbursement.LineKey]disbursement.Line{},
		Queues: map[disbursement.QueueKey]disbursement.Queued{}, Accounts: map[disbursement.AccountKey]disbursement.Account{},
		Agencies: map[disbursement.AgencyKey]disbursement.Agency{}, Rosters: map[string]disbursement.Roster{},
		Refs: map[disbursement.RefKey]disbursement.LineKey{}, BatchRefs: map[disbursement.BatchRefKey]disbursement.BatchRef{},
	}}
}

func (m model) Batch(id string) (disbursement.Batch, bool)             { b, ok := m.d.Batches[id]; return b, ok }
func (m model) Sealing(id string) disbursement.Sealing                 { return m.d.Sealings[id] }
func (m model) Agency(k disbursement.AgencyKey) disbursement.Agency    { return m.d.Agencies[k] }
func (m model) Roster(id string) disbursement.Roster                   { return m.d.Rosters[id] }
func (m model) Ref(k disbursement.RefKey) disbursement.LineKey         { return m.d.Refs[k] }
func (m model) Account(k disbursement.AccountKey) disbursement.Account { return m.d.Accounts[k] }

func (m model) BatchRef(k disbursement.BatchRefKey) disbursement.BatchRef { return m.d.BatchRefs[k] }

func (m model) Line(k disbursement.LineKey) (disbursement.Line, bool) {
	l, ok := m.d.Lines[k]
	return l, ok
}

func (m model) Queued(k disbursement.QueueKey) (disbursement.Queued, bool) {
	q, ok := m.d.Queues[k]
	return q, ok
}

// take merges a decision.
func (m model) take(d disbursement.Decision) {
	maps.Copy(m.d.Batches, d.Batches)
	maps.Copy(m.d.Sealings, d.Sealings)
	maps.Copy(m.d.Lines, d.Lines)
	maps.Copy(m.d.Accounts, d.Accounts)
	maps.Copy(m.d.Agencies, d.Agencies)
	maps.Copy(m.d.Rosters, d.Rosters)
	maps.Copy(m.d.Refs, d.Refs)
	maps.Copy(m.d.BatchRefs, d.BatchRefs)
	maps.Copy(m.d.Queues, d.Queues)
	maps.DeleteFunc(m.d.Queues, func(_ disbursement.QueueKey, q disbursement.Queued) bool { return q == disbursement.Queued{} })
}

// failer is what equals needs of a test or a property.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// equals fails unless a view has each entry of the model.
func (m model) equals(t failer, v view) {
	t.Helper()
	has(t, "batch", only(v.Batch), m.d.Batches)
	has(t, "sealing", v.Sealing, m.d.Sealings)
	has(t, "line", only(v.Line), m.d.Lines)
	has(t, "queue", only(v.Queued), m.d.Queues)
	has(t, "account", v.Account, m.d.Accounts)
	has(t, "agency", v.Agency, m.d.Agencies)
	has(t, "roster", v.Roster, m.d.Rosters)
	has(t, "ref", v.Ref, m.d.Refs)
	has(t, "batch ref", v.BatchRef, m.d.BatchRefs)
}

// same reports whether two values are equal. A list without items is equal to no list: records do not tell them apart.
func same(a, b any) bool { return cmp.Equal(a, b, cmpopts.EquateEmpty()) }

func has[K comparable, V any](t failer, kind string, read func(K) V, want map[K]V) {
	t.Helper()
	for k, v := range want {
		if got := read(k); !same(got, v) {
			t.Errorf("%s %v is\n%+v\nwant\n%+v", kind, k, got, v)
		}
	}
}

func only[K, V any](read func(K) (V, bool)) func(K) V {
	return func(k K) V {
		v, _ := read(k)
		return v
	}
}

// twin decides each command twice: with the processor, through the bytes of Kafka, and with the domain in memory.
type twin struct {
	t   *rapid.T
	p   *Processor
	tx  *entries
	m   model
	now time.Time
	// money are the rows of expected money that the events make, by the entry, and offset that of the last event.
	money  map[string]journal.Expected
	offset int64
	seen   map[string]int // kinds and states
}

func (x *twin) decide(cmd disbursement.Command) disbursement.Answer {
	cmd.At, cmd.ReplyTo = x.now, &disbursement.ReplyTo{CorrelationID: "c"}
	if cmd.TenantID == "" {
		cmd.TenantID = payroll.Tenant
	}
	d, err := disbursement.Decide(x.m, cmd)
	if err != nil {
		x.t.Fatal(err)
	}
	x.m.take(d)
	travelled := cmd
	if _, tick := cmd.Do.(disbursement.Tick); !tick {
		travelled = x.travel(cmd)
	}
	x.tx.emitted = nil
	if err := x.p.decide(x.tx, travelled); err != nil {
		x.t.Fatalf("%T: %v", cmd.Do, err)
	}
	x.told(d)
	x.expect()
	return *d.Answer
}

// expect makes expected money of the events that were emitted, as the sink journal does, and fails unless it is what the lines
// say: each line that is paid was paid out once, each that came back came back once, and nothing else counts.
func (x *twin) expect() {
	for _, r := range x.tx.emitted {
		if r.Topic != schemas.Disbursement.Events {
			continue
		}
		var e record.DisbursementEvent
		if err := x.p.codec.Decode(r.Value, &e); err != nil {
			x.t.Fatal(err)
		}
		rows, err := journal.PayoutsOf(&e)
		if err != nil {
			x.t.Fatal(err)
		}
		for i := range rows {
			x.row(&rows[i])
		}
	}
	x.tx.emitted = nil
	x.counted()
}

// row takes a row of expected money.
func (x *twin) row(e *journal.Expected) {
	x.offset++
	e.SourceTopic, e.SourceOffset, e.Version = schemas.Disbursement.Events, x.offset, journal.ExpectedVersion(x.offset)
	if err := e.Validate(); err != nil {
		x.t.Fatal(err)
	}
	before, known := x.money[e.Row()]
	switch {
	case !e.Withdrawn && known && e.State == journal.ExpectedSent: // its case was opened again, after one of another kind
	case !e.Withdrawn && known:
		x.t.Errorf("%s %s of %s is there twice", e.Kind, e.ID, e.CollectionID)
	case e.Withdrawn && known && before.Gross != -e.Gross:
		x.t.Errorf("%s %s of %s has %d and is withdrawn with %d", e.Kind, e.ID, e.CollectionID, before.Gross, e.Gross)
	case e.Withdrawn:
		delete(x.money, e.Row())
		if known {
			x.seen["withdrawn "+before.Kind+" "+before.State]++
		} else if e.Kind != journal.ExpectedUndecided {
			x.t.Errorf("%s %s of %s is withdrawn and was never there", e.Kind, e.ID, e.CollectionID)
		}
	default:
		x.money[e.Row()] = *e
		x.seen[e.Kind+" "+e.State]++
	}
}

// counted compares the money that counts with the lines.
func (x *twin) counted() {
	type sums struct{ paid, returned int64 }
	got, want := map[string]sums{}, map[string]sums{}
	open := map[string]int{}
	for _, e := range x.money {
		line, attempt, err := journal.ParsePayoutName(e.CollectionID)
		if err != nil {
			x.t.Fatal(err)
		}
		if ref := disbursement.NewAttemptID(line.Batch, line.Position, attempt).PayoutRef(); ref != e.PaymentRef || !disbursement.ValidPayoutRef(ref) {
			x.t.Errorf("%s has the reference %s", e.CollectionID, e.PaymentRef)
		}
		of := fmt.Sprintf("%s/%d", line.Batch, line.Position)
		s := got[of]
		switch e.Kind {
		case journal.ExpectedPaidOut:
			s.paid -= e.Gross
		case journal.ExpectedReturned:
			if e.Gross == x.m.d.Lines[line].Amount { // not a part
				s.returned += e.Gross
			}
		case journal.ExpectedUndecided:
			if open[of]++; e.State == journal.ExpectedUnproven && !x.m.d.Lines[line].Unproven {
				x.t.Errorf("%s is unproven in the journal alone", of)
			}
		}
		if journal.Counted(e.Kind) {
			got[of] = s
		}
	}
	for key, l := range x.m.d.Lines {
		of := fmt.Sprintf("%s/%d", key.Batch, key.Position)
		switch l.Status {
		case disbursement.LinePaid:
			want[of] = sums{paid: l.Amount}
		case disbursement.LineReturned:
			want[of] = sums{paid: l.Amount, returned: l.Amount}
		default:
		}
		if got[of] != want[of] {
			x.t.Errorf("line %s is %s, of %d: its expected money is %+v", of, l.Status, l.Amount, got[of])
		}
		if l.Case == disbursement.CaseUndecided && open[of] == 0 || l.Status != disbursement.LineSent && !l.Out && !l.Unproven && open[of] > 0 || l.Unproven && open[of] == 0 {
			x.t.Errorf("line %s is %s with the case %q, and has %d undecided attempts in the journal", of, l.Status, l.Case, open[of])
		}
	}
}

// travel encodes and decodes a command, as Kafka does.
func (x *twin) travel(cmd disbursement.Command) disbursement.Command {
	r, err := batches.FromCommand(cmd)
	if err != nil {
		x.t.Fatal(err)
	}
	b, err := x.p.codec.Encode(r)
	if err != nil {
		x.t.Fatal(err)
	}
	var back record.DisbursementCommand
	if err := x.p.codec.Decode(b, &back); err != nil {
		x.t.Fatal(err)
	}
	out, err := batches.ToCommand(&back)
	if err != nil {
		x.t.Fatal(err)
	}
	return out
}

// told fails unless the processor has written the events, the requests and the answer of a decision, each once and in order.
func (x *twin) told(d disbursement.Decision) {
	var events []disbursement.Event
	var requests []disbursement.Request
	var answers []disbursement.Answer
	for _, r := range x.tx.emitted {
		switch r.Topic {
		case schemas.Disbursement.Events:
			events = append(events, decoded[record.DisbursementEvent](x, r, batches.ToEvent))
		case schemas.TopicPayouts:
			q := decoded[record.PayoutRequest](x, r, batches.ToRequest)
			if string(r.Key) != q.Line.AttemptID().PayoutRef() {
				x.t.Errorf("the request has the key %q", r.Key)
			}
			requests = append(requests, q)
		case schemas.Disbursement.Replies:
			answers = append(answers, decoded[record.DisbursementReply](x, r, batches.ToAnswer))
		default:
			x.t.Errorf("a record of %s", r.Topic)
		}
	}
	if !same(events, d.Events) || !same(requests, d.Requests) || len(answers) != 1 || !same(answers[0], *d.Answer) {
		x.t.Errorf("the processor tells\n%+v\n%+v\n%+v\nwant\n%+v\n%+v\n%+v", events, requests, answers, d.Events, d.Requests, *d.Answer)
	}
}

func decoded[R any, V any, P interface {
	*R
	record.Record
}](x *twin, r *kgo.Record, to func(*R) V) V {
	var rec R
	if err := x.p.codec.Decode(r.Value, P(&rec)); err != nil {
		x.t.Fatal(err)
	}
	return to(&rec)
}

// tick ticks what is due, as a restored state says when it is due.
func (x *twin) tick() {
	for range 50 {
		due := slices.DeleteFunc(slices.Sorted(maps.Keys(x.tx.state)), func(key string) bool {
			at := x.p.Deadline([]byte(key), x.tx.state[key])
			return at.IsZero() || x.now.Before(at)
		})
		if len(due) == 0 {
			return
		}
		for _, key := range due {
			cmd := disbursement.Command{At: x.now, TenantID: payroll.Tenant, Batch: key[2:], Do: disbursement.Tick{}}
			if key[0] == accounts.Letter {
				parts := strings.Split(key[2:], "\x00")
				cmd.Batch, cmd.Do = "", disbursement.Tick{Account: parts[2]}
			}
			d, err := disbursement.Decide(x.m, cmd)
			if err != nil {
				x.t.Fatal(err)
			}
			x.m.take(d)
			x.tx.emitted = nil
			if err := x.p.tick(x.tx, []byte(key), x.now); err != nil {
				x.t.Fatal(err)
			}
			x.expect()
		}
	}
}

// agency enrols people and sets a policy, two days before.
func (x *twin) agency() {
	x.decide(disbursement.Command{Do: disbursement.Enrol{
		People: []disbursement.Enrolled{payroll.Enrolled("ama", "maker"), payroll.Enrolled("ben", "chief")}, RPID: payroll.RPID, Origin: payroll.Origin,
	}})
	x.now = x.now.Add(25 * time.Hour)
	more := disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled("cleo", "chief")}}
	more.Confirmed = payroll.Confirm(2, more.Content(), "ama", "ben")
	x.decide(disbursement.Command{Do: more})
	set := disbursement.SetPolicy{Policy: payroll.Policy()}
	set.Confirmed = payroll.Confirm(3, set.Content(false), "ama", "ben")
	if a := x.decide(disbursement.Command{Do: set}); a.Refusal != nil {
		x.t.Fatalf("%+v", a.Refusal)
	}
	x.now = x.now.Add(25 * time.Hour)
}

// step carries out one thing that somebody does to a batch.
func (x *twin) step(id string) {
	b, known := x.m.d.Batches[id]
	n := rapid.IntRange(0, 3).Draw(x.t, "position")
	do := rapid.SampledFrom([]disbursement.Action{
		payroll.Opening("ref-"+id, x.now.Add(time.Hour).Format(time.DateOnly)),
		disbursement.AddLines{ImportID: "i", Position: b.Count, Lines: []disbursement.NewLine{payroll.Line(fmt.Sprintf("%s-%06d", id, b.Count), "mtn", "", int64(10+n))}},
		disbursement.Seal{Count: b.Count, Sum: b.Sum, Root: b.Tree.Root()},
		disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)},
		disbursement.Release{Signed: payroll.Step(b.Digest, "cleo", b.Holds, digest.Release)},
		disbursement.SetHold{By: "cleo", Reason: "a doubt"},
		disbursement.Lift{Signed: [2]disbursement.Signed{payroll.Step(b.Digest, "ben", b.Holds, digest.Resume), payroll.Step(b.Digest, "cleo", b.Holds, digest.Resume)}},
		disbursement.Reject{Reason: "no", Signed: payroll.Step(b.Digest, "cleo", 0, digest.Reject)},
		disbursement.Recall{By: "ama"},
		disbursement.Stop{By: "ben"},
		disbursement.Retry{By: "ben", Position: n},
		disbursement.Cancel{By: "ben", Position: n},
		disbursement.Discard{By: "ama"},
		disbursement.Tick{},
	}).Draw(x.t, "step")
	// Most steps follow the lifecycle, so that lines are sent and answered.
	if known && rapid.IntRange(0, 5).Draw(x.t, "follow") > 0 {
		switch {
		case b.Status == disbursement.StatusDraft && b.Count < 3:
			do = disbursement.AddLines{ImportID: "i", Position: b.Count, Lines: []disbursement.NewLine{payroll.Line(fmt.Sprintf("%s-%06d", id, b.Count), "airtel", "", int64(10+n))}}
		case b.Status == disbursement.StatusDraft:
			do = disbursement.Seal{Count: b.Count, Sum: b.Sum, Root: b.Tree.Root()}
		case b.Status == disbursement.StatusSealed:
			do = disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)}
		case b.Status == disbursement.StatusApproved && !b.Held():
			do = disbursement.Release{Signed: payroll.Step(b.Digest, "cleo", b.Holds, digest.Release)}
		case b.Status == disbursement.StatusReleasing && !b.Held():
			l := x.m.d.Lines[disbursement.LineKey{Batch: id, Position: n % b.Count}]
			kind := disbursement.WordPaid
			if rapid.Bool().Draw(x.t, "other word") {
				kind = rapid.SampledFrom(disbursement.WordKinds()).Draw(x.t, "word")
			}
			do = disbursement.Word{
				Position: n % b.Count, Attempt: max(l.Attempt, 1), Try: l.Try, Source: rapid.SampledFrom([]disbursement.WordSource{disbursement.FromRequest, disbursement.FromEnquiry}).Draw(x.t, "source"),
				Kind: kind, Amount: l.Amount, Currency: "XAF", Code: "code", Unproven: rapid.Bool().Draw(x.t, "unproven"),
			}
			if l.Status == disbursement.LineSent && rapid.IntRange(0, 2).Draw(x.t, "refusal") == 0 {
				do = disbursement.Word{Position: n % b.Count, Attempt: l.Attempt, Source: disbursement.FromEnquiry, Kind: disbursement.WordRefused, Unproven: true}
			}
		}
	}
	if known && b.Count > 0 && rapid.IntRange(0, 3).Draw(x.t, "statement") == 0 {
		do = x.late(b, n%b.Count)
	}
	x.decide(disbursement.Command{Batch: id, Do: do})
}

// late is what becomes of a line after the operator's answers: what a statement says of any of its attempts, or what two people decide.
func (x *twin) late(b disbursement.Batch, position int) disbursement.Action {
	l := x.m.d.Lines[disbursement.LineKey{Batch: b.ID, Position: position}]
	if l.Doubtful() && rapid.Bool().Draw(x.t, "settle") {
		x.now = x.now.Add(26 * time.Hour) // no request is underway any more
		return payroll.Settle(b.Digest, l, rapid.Bool().Draw(x.t, "paid"), "a letter", "ben", "cleo")
	}
	says := func(attempt int, kind disbursement.WordKind) disbursement.Word {
		return disbursement.Word{Position: position, Attempt: attempt, Source: disbursement.FromStatement, Kind: kind}
	}
	switch expected := rapid.Bool().Draw(x.t, "expected"); {
	case expected && len(l.Proofs) > 0:
		return says(l.Proofs[0].Attempt, disbursement.WordNoProof)
	case expected && l.Unproven:
		return says(l.Attempt, disbursement.WordNoDebit)
	case expected && l.ReturnShown:
		return says(l.PaidBy, disbursement.WordNoReturn)
	}
	return disbursement.Word{
		Position: position, Attempt: rapid.IntRange(1, max(l.Attempt, 1)).Draw(x.t, "attempt"), Source: disbursement.FromStatement,
		Kind:   rapid.SampledFrom([]disbursement.WordKind{disbursement.WordPaid, disbursement.WordReturned, disbursement.WordNoDebit, disbursement.WordNoProof, disbursement.WordNoReturn}).Draw(x.t, "word"),
		Amount: l.Amount - int64(rapid.IntRange(0, 1).Draw(x.t, "less")), Currency: "XAF",
	}
}

// Decided over encoded entries, each command has the effects that the domain decides over its own values: no field is lost on
// the way, and a restored state has the same deadlines.
func TestProcessorDecidesAsTheDomain(t *testing.T) {
	t.Parallel()
	p := newProcessor(t)
	steps, statuses, money := 0, map[disbursement.Status]int{}, map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		x := &twin{t: t, p: p, tx: &entries{state: map[string][]byte{}}, m: newModel(), money: map[string]journal.Expected{}, seen: money, now: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)}
		x.agency()
		for range rapid.IntRange(10, 50).Draw(t, "steps") {
			x.step(rapid.SampledFrom([]string{"dsb_1", "dsb_2"}).Draw(t, "batch"))
			if rapid.Bool().Draw(t, "wait") {
				x.now = x.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 26 * time.Hour}).Draw(t, "by"))
			}
			x.tick()
			steps++
		}
		for _, put := range x.tx.puts {
			if at := p.Deadline([]byte(put.key), put.value); !at.Equal(put.deadline) {
				t.Errorf("%q: Put says %v, a restore %v", put.key, put.deadline, at)
			}
		}
		x.m.equals(t, view{entry.NewState(x.tx, p.codec)})
		queued := 0
		for key := range x.tx.state {
			if key[0] == queues.Letter {
				queued++
			}
		}
		if queued != len(x.m.d.Queues) {
			t.Errorf("%d entries of queues, want %d", queued, len(x.m.d.Queues))
		}
		for _, b := range x.m.d.Batches {
			statuses[b.Status]++
		}
	})
	t.Logf("%d steps, batches: %v, rows of expected money: %v", steps, statuses, money)
	for _, s := range []disbursement.Status{disbursement.StatusReleasing, disbursement.StatusDone} {
		if statuses[s] == 0 {
			t.Errorf("no batch is %s", s)
		}
	}
}

// Statements prove refusals and tell of returns, are withdrawn, and say it again, in any order, while people try lines again and
// decide: after each step the expected money is what the lines say.
func TestMoneyThatStatementsTell(t *testing.T) {
	t.Parallel()
	p := newProcessor(t)
	money := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		x := &twin{t: t, p: p, tx: &entries{state: map[string][]byte{}}, m: newModel(), money: map[string]journal.Expected{}, seen: money, now: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)}
		x.agency()
		x.release("dsb_1")
		for range 20 {
			l := x.m.d.Lines[disbursement.LineKey{Batch: "dsb_1"}]
			says := disbursement.Word{Attempt: l.Attempt, Source: disbursement.FromEnquiry, Kind: disbursement.WordRefused, Unproven: true}
			if rapid.Bool().Draw(t, "pays") {
				says.Kind, says.Unproven, says.Amount, says.Currency = disbursement.WordPaid, false, l.Amount, "XAF"
			}
			x.decide(disbursement.Command{Batch: "dsb_1", Do: rapid.SampledFrom([]disbursement.Action{
				says, x.late(x.m.d.Batches["dsb_1"], 0), x.late(x.m.d.Batches["dsb_1"], 0), disbursement.Retry{By: "ben"},
			}).Draw(t, "step")})
			x.now = x.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "by"))
			x.tick()
		}
	})
	t.Logf("rows of expected money: %v", money)
	for _, row := range []string{"refused proven", "withdrawn refused proven", "returned reversed", "withdrawn returned reversed"} {
		if money[row] == 0 {
			t.Errorf("no row of expected money is %s", row)
		}
	}
}

// release makes a batch of one line that is sent.
func (x *twin) release(id string) {
	for range 6 {
		x.decide(disbursement.Command{Batch: id, Do: x.next(id)})
	}
	x.tick()
	if l := x.m.d.Lines[disbursement.LineKey{Batch: id}]; l.Status != disbursement.LineSent {
		x.t.Fatalf("%+v", l)
	}
}

// next returns what follows in the life of a batch of one line.
func (x *twin) next(id string) disbursement.Action {
	switch b := x.m.d.Batches[id]; {
	case b.Status == "":
		return payroll.Opening("ref-"+id, x.now.Add(time.Hour).Format(time.DateOnly))
	case b.Status == disbursement.StatusDraft && b.Count == 0:
		return disbursement.AddLines{ImportID: "i", Lines: []disbursement.NewLine{payroll.Line(id+"-000000", "airtel", "", 10)}}
	case b.Status == disbursement.StatusDraft:
		return disbursement.Seal{Count: b.Count, Sum: b.Sum, Root: b.Tree.Root()}
	case b.Status == disbursement.StatusSealed:
		return disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)}
	case b.Status == disbursement.StatusApproved:
		return disbursement.Release{Signed: payroll.Step(b.Digest, "cleo", b.Holds, digest.Release)}
	}
	return disbursement.Tick{}
}
