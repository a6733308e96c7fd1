package disbursement_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/test/payroll"
)

// Properties run 2,000 times. -rapid.checks=100000 runs them longer.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "2000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// tb is what world needs of a test or a property.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

const (
	tenant = payroll.Tenant
	rpID   = payroll.RPID
	origin = payroll.Origin
	payee  = payroll.Payee
)

// start is a Monday morning in Brazzaville.
var start = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

// world is a partition's state in memory. Like a processor it merges decisions into it.
type world struct {
	t         tb
	now       time.Time
	batches   map[string]disbursement.Batch
	sealings  map[string]disbursement.Sealing
	lines     map[disbursement.LineKey]disbursement.Line
	queues    map[disbursement.QueueKey]disbursement.Queued
	accounts  map[disbursement.AccountKey]disbursement.Account
	agencies  map[disbursement.AgencyKey]disbursement.Agency
	rosters   map[string]disbursement.Roster
	refs      map[disbursement.RefKey]disbursement.LineKey
	batchRefs map[disbursement.BatchRefKey]disbursement.BatchRef

	events    []disbursement.Event
	questions []disbursement.Question
	// told and histories are the lines as events alone tell them.
	told      map[disbursement.LineKey]disbursement.LineStatus
	histories map[disbursement.LineKey]disbursement.History
	// large turns off what would count the lines at each decision. seen gets the decisions.
	large bool
	seen  func(disbursement.Decision)
	// pays are the requests to pay, asks those to enquire.
	pays, asks []disbursement.Request
}

func newWorld(t tb) *world {
	return &world{
		t: t, now: start, batches: map[string]disbursement.Batch{}, sealings: map[string]disbursement.Sealing{},
		lines: map[disbursement.LineKey]disbursement.Line{}, queues: map[disbursement.QueueKey]disbursement.Queued{},
		accounts: map[disbursement.AccountKey]disbursement.Account{}, agencies: map[disbursement.AgencyKey]disbursement.Agency{},
		rosters: map[string]disbursement.Roster{}, refs: map[disbursement.RefKey]disbursement.LineKey{},
		batchRefs: map[disbursement.BatchRefKey]disbursement.BatchRef{}, told: map[disbursement.LineKey]disbursement.LineStatus{}, histories: map[disbursement.LineKey]disbursement.History{},
	}
}

// startingFrom makes a world once and returns what makes worlds of a property's runs, each with that state: a
// third of the time of all runs would go to the same signatures. Decisions do not change the state that they
// read, which the end of the test checks.
func startingFrom(t *testing.T, begin func(*world)) func(tb) *world {
	t.Helper()
	fresh := func() *world {
		w := newWorld(t)
		begin(w)
		return w
	}
	first := fresh()
	t.Cleanup(func() {
		if again := fresh(); !reflect.DeepEqual(again, first) {
			t.Errorf("runs have changed the state that they began with:\n%+v\n%+v", again, first)
		}
	})
	return func(run tb) *world {
		w := *first
		w.t = run
		w.batches, w.sealings, w.lines, w.queues = maps.Clone(w.batches), maps.Clone(w.sealings), maps.Clone(w.lines), maps.Clone(w.queues)
		w.accounts, w.agencies, w.rosters = maps.Clone(w.accounts), maps.Clone(w.agencies), maps.Clone(w.rosters)
		w.told, w.histories = maps.Clone(w.told), maps.Clone(w.histories)
		w.refs, w.batchRefs = maps.Clone(w.refs), maps.Clone(w.batchRefs)
		w.events, w.questions, w.pays, w.asks = slices.Clone(w.events), slices.Clone(w.questions), slices.Clone(w.pays), slices.Clone(w.asks)
		return &w
	}
}

func (w *world) Batch(id string) (disbursement.Batch, bool)                { b, ok := w.batches[id]; return b, ok }
func (w *world) Sealing(id string) disbursement.Sealing                    { return w.sealings[id] }
func (w *world) Agency(k disbursement.AgencyKey) disbursement.Agency       { return w.agencies[k] }
func (w *world) Roster(id string) disbursement.Roster                      { return w.rosters[id] }
func (w *world) Ref(k disbursement.RefKey) disbursement.LineKey            { return w.refs[k] }
func (w *world) Account(k disbursement.AccountKey) disbursement.Account    { return w.accounts[k] }
func (w *world) BatchRef(k disbursement.BatchRefKey) disbursement.BatchRef { return w.batchRefs[k] }

func (w *world) Line(k disbursement.LineKey) (disbursement.Line, bool) {
	l, ok := w.lines[k]
	return l, ok
}

func (w *world) Queued(k disbursement.QueueKey) (disbursement.Queued, bool) {
	q, ok := w.queues[k]
	return q, ok
}

// decide carries a command out and checks what holds of every decision.
func (w *world) decide(cmd disbursement.Command) disbursement.Answer {
	w.t.Helper()
	cmd.At, cmd.TenantID, cmd.ReplyTo = w.now, tenant, &disbursement.ReplyTo{}
	d, err := disbursement.Decide(w, cmd)
	if err != nil {
		w.t.Fatalf("deciding %T: %v", cmd.Do, err)
	}
	if again, _ := disbursement.Decide(w, cmd); !w.large && !reflect.DeepEqual(d, again) {
		w.t.Fatalf("deciding %T twice gives two decisions:\n%+v\n%+v", cmd.Do, d, again)
	}
	for _, r := range d.Requests {
		w.mayRequest(cmd, r)
		if r.Kind == disbursement.RequestPay {
			w.pays = append(w.pays, r)
		} else {
			w.asks = append(w.asks, r)
		}
	}
	if len(d.Lines) > 2*disbursement.MaxLinesTicked || len(d.Requests) > disbursement.MaxLinesTicked {
		w.t.Fatalf("%T changes %d lines and makes %d requests", cmd.Do, len(d.Lines), len(d.Requests))
	}
	maps.Copy(w.batches, d.Batches)
	maps.Copy(w.sealings, d.Sealings)
	maps.Copy(w.lines, d.Lines)
	maps.Copy(w.accounts, d.Accounts)
	maps.Copy(w.agencies, d.Agencies)
	maps.Copy(w.rosters, d.Rosters)
	maps.Copy(w.refs, d.Refs)
	maps.Copy(w.batchRefs, d.BatchRefs)
	for k, q := range d.Queues {
		if w.queues[k] = q; q == (disbursement.Queued{}) {
			delete(w.queues, k)
		}
	}
	w.tell(d)
	w.events = append(w.events, d.Events...)
	w.questions = append(w.questions, d.Questions...)
	if w.seen != nil {
		w.seen(d)
	}
	if !w.large {
		w.counted(d)
	}
	return *d.Answer
}

// tell takes events as whoever proves a batch does, and checks that they tell each line as it is: its status, and that it was paid
// exactly when it is paid, or was and came back, without a doubt. No paper is made of another line.
func (w *world) tell(d disbursement.Decision) {
	w.t.Helper()
	for _, e := range d.Events {
		for _, l := range e.Lines {
			w.told[l.LineKey] = l.Status
			if len(e.Lines) == 1 {
				w.histories[l.LineKey] = w.histories[l.LineKey].After(e.Type, e.At, e.Detail)
			}
		}
	}
	for k, l := range d.Lines {
		paid := l.Status == disbursement.LinePaid || l.Status == disbursement.LineReturned
		h := w.histories[k]
		switch {
		case w.told[k] != l.Status:
			w.t.Fatalf("events say that line %d is %s, it is %s", k.Position, w.told[k], l.Status)
		case h.Evidenced(l) != (paid && !l.Contested):
			w.t.Fatalf("line %d is %s (contested: %v), its events say %+v", k.Position, l.Status, l.Contested, h)
		}
	}
}

// mayRequest checks a request against the state before the decision: the batch was approved by others than its maker,
// pays, is not held and not past its last day.
func (w *world) mayRequest(cmd disbursement.Command, r disbursement.Request) {
	w.t.Helper()
	if r.Kind != disbursement.RequestPay {
		return
	}
	b := w.batches[r.Line.Batch]
	day := w.now.Add(time.Hour).Format(time.DateOnly)
	if b.Status != disbursement.StatusReleasing || b.Held() || b.Stopped || b.Overdue || day > b.PayUntil {
		w.t.Fatalf("%T of %s sends line %d of %+v", cmd.Do, day, r.Line.Position, b)
	}
	if known := w.lines[r.Line.LineKey]; known.Leaf != r.Line.Leaf || known.Amount != r.Line.Amount || !reflect.DeepEqual(known.Sealed, r.Line.Sealed) {
		w.t.Fatalf("another line is sent than was sealed: %+v", r.Line)
	}
	w.approved(b)
}

// approved checks, without the code under test, that the batch was approved as it was sealed.
func (w *world) approved(b disbursement.Batch) {
	w.t.Helper()
	s := w.sealings[b.ID]
	used := map[string]bool{b.Maker: true}
	for i, level := range s.Content.Levels {
		n := 0
		for _, a := range s.Approvals {
			if a.Level != i+1 {
				continue
			}
			n++
			for _, person := range []string{a.Person, a.For} {
				if person != "" && used[person] {
					w.t.Fatalf("%s approves %s again, or made it: %+v", person, b.ID, s.Approvals)
				}
				used[person] = person != ""
			}
			want, err := digest.Step{Digest: b.Digest, Level: a.Level, Person: a.Person, Verdict: digest.Approve}.Statement()
			if err != nil || a.Signed.Assertion.Verify(assertion.Party{RPID: rpID, Origin: origin}, want) != nil {
				w.t.Fatalf("an approval of %s is of other content: %+v", b.ID, a)
			}
		}
		if n < level.Needed {
			w.t.Fatalf("%s has %d of %d approvals at level %d", b.ID, n, level.Needed, i+1)
		}
	}
}

// counted checks counts, sums and queues of what a decision changed.
func (w *world) counted(d disbursement.Decision) {
	w.t.Helper()
	for id, b := range d.Batches {
		var want disbursement.Totals
		var sum int64
		for position := range b.Count {
			l := w.lines[disbursement.LineKey{Batch: id, Position: position}]
			total := want.Of(l.Status)
			total.Count++
			total.Sum += l.Amount
			sum += l.Amount
		}
		if b.Lines != want || b.Sum != sum {
			w.t.Fatalf("%s counts %+v of %d, its lines are %+v of %d", id, b.Lines, b.Sum, want, sum)
		}
		live := slices.Contains(w.agencies[disbursement.AgencyKey{TenantID: b.TenantID, Live: b.Live}].Batches, id)
		if live != b.Status.Live() {
			w.t.Fatalf("%s is %s, and one of the live batches: %v", id, b.Status, live)
		}
	}
	for k, a := range d.Accounts {
		open := 0
		for _, l := range w.lines {
			if l.Status == disbursement.LineSent && !l.Answered && w.batches[l.Batch].Accounts[l.Account].Code == k.Code {
				open++
			}
		}
		if a.InFlight != open || open > disbursement.MaxInFlight {
			w.t.Fatalf("account %s has %d requests in flight, %d lines wait for an answer", k.Code, a.InFlight, open)
		}
	}
	last := map[string]*disbursement.Batch{}
	for _, e := range d.Events {
		if e.Batch != nil {
			last[e.Batch.ID] = e.Batch
		}
		for _, l := range e.Lines {
			if l.Batch != e.Batch.ID {
				w.t.Fatalf("%s of %s carries a line of %s", e.Type, e.Batch.ID, l.Batch)
			}
		}
	}
	for id, b := range last {
		if now := w.batches[id]; now.Status != b.Status || now.Lines != b.Lines || now.Hold != b.Hold || now.Sequence != b.Sequence {
			w.t.Fatalf("the last event of %s says %+v, the state %+v", id, b, now)
		}
	}
}

// due returns the command of the first tick that is due by a time; false if none is.
func (w *world) due(by time.Time) (cmd disbursement.Command, at time.Time, ok bool) {
	take := func(c disbursement.Command, deadline time.Time) {
		if !deadline.IsZero() && !deadline.After(by) && (!ok || deadline.Before(at)) {
			cmd, at, ok = c, deadline, true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.batches)) {
		b := w.batches[id]
		take(disbursement.Command{Batch: id, Live: b.Live, Do: disbursement.Tick{}}, b.Deadline())
	}
	keys := slices.SortedFunc(maps.Keys(w.accounts), func(a, b disbursement.AccountKey) int { return compare(a.Code, b.Code) })
	for _, k := range keys {
		take(disbursement.Command{Live: k.Live, Do: disbursement.Tick{Account: k.Code}}, w.accounts[k].Deadline())
	}
	return cmd, at, ok
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// advance lets time pass and ticks what is due, as a processor does that is never away.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	for range 20_000 {
		cmd, at, ok := w.due(end)
		if !ok {
			w.now = end
			return
		}
		if at.After(w.now) {
			w.now = at
		}
		w.decide(cmd)
	}
	w.t.Fatalf("ticks without end")
}

// jump lets time pass while the processor is away, and ticks what is due then.
func (w *world) jump(d time.Duration) {
	w.t.Helper()
	w.now = w.now.Add(d)
	w.ticks()
}

// step signs a step about a batch.
func (w *world) step(id, batch string, level int, verdict digest.Verdict) disbursement.Signed {
	return payroll.Step(w.batches[batch].Digest, id, level, verdict)
}

// confirm has two people sign a change of roster or policy.
func (w *world) confirm(content map[string]string, ids ...string) (out []disbursement.Signed) {
	return payroll.Confirm(w.rosters[tenant].Changes+1, content, ids...)
}

// agency makes an agency in which ama prepares, ben and cleo are chiefs, dan is an agent and the policy is in force.
func (w *world) agency(p policy.Policy) {
	w.t.Helper()
	w.ok(disbursement.Command{Do: disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled("ama", "maker"), payroll.Enrolled("ben", "chief")}, RPID: rpID, Origin: origin}})
	w.advance(25 * time.Hour)
	more := disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled("cleo", "chief"), payroll.Enrolled("dan", "agent"), payroll.Enrolled("eve", "agent")}}
	more.Confirmed = w.confirm(more.Content(), "ama", "ben")
	w.ok(disbursement.Command{Do: more})
	set := disbursement.SetPolicy{Policy: p}
	set.Confirmed = w.confirm(set.Content(false), "ama", "ben")
	w.ok(disbursement.Command{Do: set})
	w.advance(25 * time.Hour)
}

// ok fails unless the command is carried out.
func (w *world) ok(cmd disbursement.Command) disbursement.Answer {
	w.t.Helper()
	a := w.decide(cmd)
	if a.Refusal != nil {
		w.t.Fatalf("%T is refused: %+v", cmd.Do, *a.Refusal)
	}
	return a
}

// no fails unless the command is refused with a code, a field and a mend.
func (w *world) no(code disbursement.Code, cmd disbursement.Command) {
	w.t.Helper()
	a := w.decide(cmd)
	if a.Code() != code {
		w.t.Errorf("%T: %s, want %s", cmd.Do, a.Code(), code)
	}
	if a.Refusal != nil && (a.Refusal.Field == "" || a.Refusal.Mend == "") {
		w.t.Errorf("%s names no field or no mend: %+v", code, a.Refusal)
	}
}

func (w *world) today() string { return w.now.Add(time.Hour).Format(time.DateOnly) }

func (w *world) opening(ref string) disbursement.Open { return payroll.Opening(ref, w.today()) }

// line is a line of an amount from MTN's account.
func line(ref string, amount int64) disbursement.NewLine { return payroll.Line(ref, "mtn", "", amount) }

// draft opens a batch with lines.
func (w *world) draft(id string, lines ...disbursement.NewLine) {
	w.t.Helper()
	w.ok(disbursement.Command{Batch: id, Do: w.opening("ref-" + id)})
	for i := 0; i < len(lines); i += disbursement.MaxLinesAdded {
		w.ok(disbursement.Command{Batch: id, Do: disbursement.AddLines{ImportID: "i", Position: i, Lines: lines[i:min(i+disbursement.MaxLinesAdded, len(lines))]}})
	}
}

func (w *world) seal(id string) disbursement.Command {
	b := w.batches[id]
	return disbursement.Command{Batch: id, Do: disbursement.Seal{Count: b.Count, Sum: b.Sum, Root: b.Tree.Root()}}
}

func (w *world) approve(id string, level int, person string) disbursement.Command {
	return disbursement.Command{Batch: id, Do: disbursement.Approve{Level: level, Signed: w.step(person, id, level, digest.Approve)}}
}

func (w *world) release(id, person string) disbursement.Command {
	return disbursement.Command{Batch: id, Do: disbursement.Release{Signed: w.step(person, id, w.batches[id].Holds, digest.Release)}}
}

func (w *world) lift(id, one, two string) disbursement.Command {
	n := w.batches[id].Holds
	return disbursement.Command{Batch: id, Do: disbursement.Lift{Signed: [2]disbursement.Signed{w.step(one, id, n, digest.Resume), w.step(two, id, n, digest.Resume)}}}
}

// settle has two people decide about the first line of a batch as it is now.
func (w *world) settle(id string, paid bool, people ...string) disbursement.Command {
	return disbursement.Command{Batch: id, Do: payroll.Settle(w.batches[id].Digest, w.at(id, 0), paid, "letter 12", people...)}
}

// releasing makes a batch that pays.
func (w *world) releasing(id string, lines ...disbursement.NewLine) {
	w.t.Helper()
	w.draft(id, lines...)
	w.ok(w.seal(id))
	w.ok(w.approve(id, 1, "ben"))
	w.ok(w.release(id, "cleo"))
}

// ticks ticks what is due now.
func (w *world) ticks() {
	w.t.Helper()
	w.advance(0)
}

func (w *world) word(id string, word disbursement.Word) disbursement.Answer {
	w.t.Helper()
	l := w.at(id, word.Position)
	if word.Attempt == 0 {
		word.Attempt = l.Attempt
	}
	if word.Source == disbursement.FromRequest && word.Try == 0 {
		word.Try = l.Try
	}
	if (word.Kind == disbursement.WordPaid || word.Kind == disbursement.WordReturned) && word.Amount == 0 {
		word.Amount, word.Currency = l.Amount, "XAF"
	}
	return w.decide(disbursement.Command{Batch: id, Do: word})
}

func (w *world) at(id string, position int) disbursement.Line {
	return w.lines[disbursement.LineKey{Batch: id, Position: position}]
}

// want fails unless the lines of a batch have statuses.
func (w *world) want(id string, statuses ...disbursement.LineStatus) {
	w.t.Helper()
	var got []disbursement.LineStatus
	for i := range w.batches[id].Count {
		got = append(got, w.at(id, i).Status)
	}
	if fmt.Sprint(got) != fmt.Sprint(statuses) {
		w.t.Errorf("the lines of %s are %v, want %v", id, got, statuses)
	}
}

func (w *world) status(id string, want disbursement.Status) {
	w.t.Helper()
	if got := w.batches[id].Status; got != want {
		w.t.Errorf("%s is %s, want %s", id, got, want)
	}
}
