package disbursement_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/disbursement"
	"quittance/test/payroll"
)

// attempt is one attempt to pay a line, as the operator knows it.
type attempt struct {
	line   disbursement.LineKey
	number int
}

// ledger is an operator that tells the truth, late, twice, in any order or never. It knows nothing of the code under test:
// what it has paid is what was paid.
type ledger struct {
	*world
	rt *rapid.T
	// truth is what became of an attempt: pending, paid, refused or no_funds. Of what never arrived it knows nothing.
	truth map[attempt]disbursement.WordKind
	// unproven are attempts whose refusal proves nothing, doubt those of them that the operator may pay all the same. doubted are their
	// lines.
	unproven, doubt map[attempt]bool
	doubted         map[disbursement.LineKey]bool
	// read are requests that were read before.
	read map[string]bool
	// topic are requests to pay that can be read, also again. words are answers that can arrive, also again.
	topic []disbursement.Request
	words []told
	// proofs are the attempts that a statement has proven unpaid, with the requests that there were.
	proofs map[attempt]int
	pays   int // of world.pays that are in the topic
	asks   int
	funds  bool
}

type told struct {
	batch string
	word  disbursement.Word
}

// take moves new requests to the topic, and answers new enquiries as of now.
func (x *ledger) take() {
	x.topic = append(x.topic, x.world.pays[x.pays:]...)
	x.pays = len(x.world.pays)
	for _, r := range x.world.asks[x.asks:] {
		x.answer(r)
	}
	x.asks = len(x.world.asks)
}

// answer adds what the operator says when it is asked about an attempt.
func (x *ledger) answer(r disbursement.Request) {
	kind, known := x.truth[attempt{r.Line.LineKey, r.Line.Attempt}]
	if !known {
		kind = disbursement.WordNotFound
	}
	x.say(r, disbursement.FromEnquiry, kind)
}

func (x *ledger) say(r disbursement.Request, source disbursement.WordSource, kind disbursement.WordKind) {
	w := disbursement.Word{Position: r.Line.Position, Attempt: r.Line.Attempt, Source: source, Kind: kind}
	if source == disbursement.FromRequest {
		w.Try = r.Line.Try
	}
	if kind == disbursement.WordPaid || kind == disbursement.WordReturned {
		w.Amount, w.Currency = r.Line.Amount, r.Currency
	}
	w.Unproven = kind == disbursement.WordRefused && x.unproven[attempt{r.Line.LineKey, r.Line.Attempt}]
	x.words = append(x.words, told{r.Line.Batch, w})
}

// send reads a request as a sink does: a first reader after its end sends nothing, any later reader only asks, and a
// content with another leaf is never sent.
func (x *ledger) send(r disbursement.Request) {
	id := fmt.Sprint(r.Line.LineKey, r.Line.Attempt, r.Line.Try)
	first := !x.read[id]
	x.read[id] = true
	if !first {
		x.answer(r)
		return
	}
	if x.now.After(r.NotAfter) {
		x.say(r, disbursement.FromRequest, disbursement.WordNeverSent)
		return
	}
	if c := opened(r); !r.Same(c.Salt, c.Line) {
		x.say(r, disbursement.FromRequest, disbursement.WordChanged)
		return
	}
	x.call(r)
}

func opened(r disbursement.Request) (c payroll.Content) {
	_ = json.Unmarshal(r.Line.Sealed, &c)
	return c
}

// call is the call to the operator.
func (x *ledger) call(r disbursement.Request) {
	if c := opened(r); c.Line.MSISDN != payee || c.Line.Amount != x.lines[r.Line.LineKey].Amount {
		x.t.Fatalf("another content is sent than was approved: %+v", c)
	}
	k := attempt{r.Line.LineKey, r.Line.Attempt}
	arrives := rapid.SampledFrom([]string{"answered", "answered", "time-out", "lost"}).Draw(x.rt, "call")
	if arrives == "lost" {
		x.say(r, disbursement.FromRequest, disbursement.WordUndecided)
		return
	}
	kind := disbursement.WordDuplicate
	if _, known := x.truth[k]; !known {
		outcomes := []disbursement.WordKind{disbursement.WordPaid, disbursement.WordPending, disbursement.WordRefused}
		if !x.funds {
			outcomes = []disbursement.WordKind{disbursement.WordNoFunds, disbursement.WordPending}
		}
		kind = rapid.SampledFrom(outcomes).Draw(x.rt, "outcome")
		x.truth[k] = kind
		if kind == disbursement.WordRefused && r.Account == "airtel" {
			x.unproven[k], x.doubt[k], x.doubted[k.line] = true, true, true
		}
		x.once(k)
	}
	if arrives == "time-out" {
		kind = disbursement.WordUndecided
	}
	x.say(r, disbursement.FromRequest, kind)
}

// once fails if the payee can get the money of a line twice: by two attempts, or by a line and those that correct it.
func (x *ledger) once(k attempt) {
	x.t.Helper()
	root := x.root(k.line)
	n := 0
	for other, kind := range x.truth {
		if (kind == disbursement.WordPaid || kind == disbursement.WordPending || x.doubt[other]) && x.root(other.line) == root {
			n++
		}
	}
	if n > 1 {
		x.t.Fatalf("line %+v can be paid %d times: %+v", k, n, x.truth)
	}
}

// root returns the line that a line corrects, directly or not.
func (x *ledger) root(k disbursement.LineKey) disbursement.LineKey {
	for x.lines[k].Corrects != (disbursement.LineKey{}) {
		k = x.lines[k].Corrects
	}
	return k
}

// hear delivers a word, and the same once more: a repeated word sends nothing and changes no line.
func (x *ledger) hear(w told) {
	x.t.Helper()
	cmd := disbursement.Command{Batch: w.batch, Do: w.word}
	x.decide(cmd)
	l, pays := x.at(w.batch, w.word.Position), len(x.world.pays)
	x.decide(cmd)
	again := x.at(w.batch, w.word.Position)
	if again.Status != l.Status || again.Attempt != l.Attempt || again.Contested != l.Contested || len(x.world.pays) != pays {
		x.t.Fatalf("a repeated %+v changes\n%+v to\n%+v", w.word, l, again)
	}
	if l.Contested && !x.doubted[l.LineKey] {
		x.t.Fatalf("an operator that tells the truth is contradicted: %+v of %+v", w.word, l)
	}
}

// An operator that tells the truth, with requests and answers that are lost, late, repeated and reordered, pays no line
// twice, and every line ends as it says.
func TestNobodyIsPaidTwice(t *testing.T) {
	t.Parallel()
	begin := startingFrom(t, func(w *world) {
		w.agency(payroll.Policy())
		w.releasing("b1", payroll.Line("b1-a", "airtel", "", 10), line("b1-b", 20), payroll.Line("b1-c", "airtel", "", 30))
	})
	rapid.Check(t, func(t *rapid.T) {
		x := &ledger{world: begin(t), rt: t, truth: map[attempt]disbursement.WordKind{}, unproven: map[attempt]bool{}, doubt: map[attempt]bool{}, doubted: map[disbursement.LineKey]bool{}, read: map[string]bool{}, proofs: map[attempt]int{}, funds: true}
		n := 1
		batch := func() string { return fmt.Sprint("b", rapid.IntRange(1, n).Draw(t, "batch")) }
		some := func(id string) int { return rapid.IntRange(0, max(0, x.batches[id].Count-1)).Draw(t, "position") }
		t.Repeat(map[string]func(*rapid.T){
			"new batch": func(t *rapid.T) {
				if n < 5 {
					n++
					id := fmt.Sprint("b", n)
					x.releasing(id, payroll.Line(id+"-a", "airtel", "", 10), line(id+"-b", 20))
				}
			},
			"correct":  func(t *rapid.T) { n = x.correct(n) },
			"read":     func(t *rapid.T) { x.readSome() },
			"readings": func(t *rapid.T) { several(t, x.readSome) },
			"word":     func(t *rapid.T) { x.hearSome() },
			"words":    func(t *rapid.T) { several(t, x.hearSome) },
			"rail":     func(t *rapid.T) { x.decideSome() },
			"doubt":    func(t *rapid.T) { x.proveSome() },
			"withdraw": func(t *rapid.T) { x.withdrawSome() },
			"funds":    func(t *rapid.T) { x.funds = rapid.Bool().Draw(t, "funds") },
			"minutes":  func(t *rapid.T) { x.jump(time.Duration(rapid.IntRange(0, 20).Draw(t, "m")) * time.Minute) },
			"hours":    func(t *rapid.T) { x.jump(time.Duration(rapid.IntRange(1, 15).Draw(t, "h")) * time.Hour) },
			"hold": func(t *rapid.T) {
				x.decide(disbursement.Command{Batch: batch(), Do: disbursement.SetHold{By: "ben", Reason: "doubt"}})
			},
			"lift": func(t *rapid.T) { x.decide(x.lift(batch(), "ama", "cleo")) },
			"stop": func(t *rapid.T) { x.stopSome(batch()) },
			"retry": func(t *rapid.T) {
				id := batch()
				x.decide(disbursement.Command{Batch: id, Do: disbursement.Retry{By: "ama", Position: some(id)}})
			},
			"cancel": func(t *rapid.T) {
				id := batch()
				x.decide(disbursement.Command{Batch: id, Do: disbursement.Cancel{By: "ama", Position: some(id)}})
			},
			"swap": func(t *rapid.T) { id := batch(); x.swap(id, some(id)) },
			"":     func(t *rapid.T) { x.take() },
		})
		x.settled()
	})
}

func several(t *rapid.T, do func()) {
	for range rapid.IntRange(1, 5).Draw(t, "n") {
		do()
	}
}

func (x *ledger) readSome() {
	if len(x.topic) == 0 {
		return
	}
	i := rapid.IntRange(0, len(x.topic)-1).Draw(x.rt, "request")
	x.send(x.topic[i])
	if rapid.IntRange(0, 3).Draw(x.rt, "again") > 0 {
		x.topic = slices.Delete(x.topic, i, i+1)
	}
}

func (x *ledger) hearSome() {
	if len(x.words) == 0 {
		return
	}
	i := rapid.IntRange(0, len(x.words)-1).Draw(x.rt, "word")
	w := x.words[i]
	if rapid.IntRange(0, 3).Draw(x.rt, "stays") > 0 {
		x.words = slices.Delete(x.words, i, i+1)
	}
	x.hear(w)
}

// decideSome has the operator decide what is pending.
func (x *ledger) decideSome() {
	var open []attempt
	for k, kind := range x.truth {
		if kind == disbursement.WordPending {
			open = append(open, k)
		}
	}
	if len(open) == 0 {
		return
	}
	slices.SortFunc(open, func(a, b attempt) int { return compare(fmt.Sprint(a), fmt.Sprint(b)) })
	k := rapid.SampledFrom(open).Draw(x.rt, "attempt")
	x.truth[k] = rapid.SampledFrom([]disbursement.WordKind{disbursement.WordPaid, disbursement.WordRefused, disbursement.WordNoFunds}).Draw(x.rt, "decision")
}

// proveSome has the operator pay what it has refused without proof, or a statement prove that it has not.
func (x *ledger) proveSome() {
	var open []attempt
	for k, doubt := range x.doubt {
		if _, proven := x.proofs[k]; doubt || proven {
			open = append(open, k)
		}
	}
	if len(open) == 0 {
		return
	}
	slices.SortFunc(open, func(a, b attempt) int { return compare(fmt.Sprint(a), fmt.Sprint(b)) })
	k := rapid.SampledFrom(open).Draw(x.rt, "attempt")
	_, proven := x.proofs[k]
	if !proven {
		x.doubt[k] = false
		if rapid.Bool().Draw(x.rt, "pays") {
			x.truth[k] = disbursement.WordPaid
			return
		}
	}
	x.show(k, disbursement.WordNoDebit) // each run tells it, until it is taken
	if !proven {                        // what is requested after the first proof rests on it, also when it is told again
		x.proofs[k] = x.requested(k.line)
	}
}

// requested counts the requests to pay a line, and those that correct it.
func (x *ledger) requested(k disbursement.LineKey) (n int) {
	root := x.root(k)
	for _, r := range x.world.pays {
		if x.root(r.Line.LineKey) == root {
			n++
		}
	}
	return n
}

// show has statements say something of an attempt. Their words stay in their order.
func (x *ledger) show(k attempt, kind disbursement.WordKind) {
	x.hear(told{k.line.Batch, disbursement.Word{Position: k.line.Position, Attempt: k.number, Source: disbursement.FromStatement, Kind: kind}})
}

// withdrawSome withdraws a statement that has proven that an attempt paid nobody: it may have. What was requested until then cannot
// be called back, but nothing may be requested from then on.
func (x *ledger) withdrawSome() {
	var open []attempt
	for k := range x.proofs {
		open = append(open, k)
	}
	if len(open) == 0 {
		return
	}
	slices.SortFunc(open, func(a, b attempt) int { return compare(fmt.Sprint(a), fmt.Sprint(b)) })
	k := rapid.SampledFrom(open).Draw(x.rt, "attempt")
	x.jump(time.Second)
	x.doubt[k] = x.proofs[k] == x.requested(k.line)
	delete(x.proofs, k)
	x.show(k, disbursement.WordNoProof)
	x.decide(disbursement.Command{Batch: k.line.Batch, Do: disbursement.Retry{By: "ama", Position: k.line.Position}})
}

func (x *ledger) stopSome(id string) {
	if rapid.IntRange(0, 4).Draw(x.rt, "stops") == 0 {
		x.decide(disbursement.Command{Batch: id, Do: disbursement.Stop{By: "ben"}})
	}
}

// correct makes a batch of one line that pays an ended line again, if it may.
func (x *ledger) correct(n int) int {
	var ended []disbursement.LineKey
	for k, l := range x.lines {
		if l.Status == disbursement.LineRefused || l.Status == disbursement.LineCancelled || l.Status == disbursement.LineReturned {
			ended = append(ended, k)
		}
	}
	if n >= 8 || len(ended) == 0 {
		return n
	}
	slices.SortFunc(ended, func(a, b disbursement.LineKey) int { return compare(fmt.Sprint(a), fmt.Sprint(b)) })
	old := x.lines[rapid.SampledFrom(ended).Draw(x.rt, "line")]
	id := fmt.Sprint("b", n+1)
	x.ok(disbursement.Command{Batch: id, Do: x.opening("ref-" + id)})
	a := x.decide(disbursement.Command{Batch: id, Do: disbursement.AddLines{ImportID: "i", Lines: []disbursement.NewLine{payroll.Line(id+"-a", "mtn", old.Ref, old.Amount)}}})
	if a.Refusal != nil || rapid.IntRange(0, 3).Draw(x.rt, "discards") == 0 {
		x.ok(disbursement.Command{Batch: id, Do: disbursement.Discard{By: "ama"}})
		return n + 1
	}
	x.ok(x.seal(id))
	x.ok(x.approve(id, 1, "ben"))
	x.ok(x.release(id, "cleo"))
	return n + 1
}

// swap changes the sealed content of a waiting request in the topic, as somebody does who writes it.
func (x *ledger) swap(id string, position int) {
	for i, r := range x.topic {
		if r.Line.LineKey == (disbursement.LineKey{Batch: id, Position: position}) {
			c := opened(r)
			c.Line.MSISDN = "242069999999"
			x.topic[i].Line.Sealed, _ = json.Marshal(c)
			return
		}
	}
}

// settled lets the operator decide, everything arrive and time pass, and fails unless each line ends as the operator
// says.
func (x *ledger) settled() {
	x.t.Helper()
	x.funds = true
	for range 200 {
		x.take()
		for k, kind := range x.truth {
			if kind == disbursement.WordPending {
				x.truth[k] = disbursement.WordPaid
			}
		}
		for len(x.topic) > 0 {
			r := x.topic[0]
			x.topic = x.topic[1:]
			x.send(r)
		}
		words := x.words
		x.words = nil
		for _, w := range words {
			x.hear(w)
		}
		x.jump(10 * time.Minute)
		if len(x.world.pays) == x.pays && len(x.words) == 0 && x.quiet() {
			break
		}
	}
	for k, l := range x.lines {
		if x.doubted[k] {
			continue // people decide what the operator does not tell
		}
		paid := false
		for n := range l.Attempt {
			paid = paid || x.truth[attempt{k, n + 1}] == disbursement.WordPaid
		}
		if b := x.batches[k.Batch]; b.ID != "" && (paid != (l.Status == disbursement.LinePaid) || x.waits(l)) {
			l.Sealed = nil
			x.t.Fatalf("the operator has paid %v: %v: %+v of %+v", k, paid, l, b)
		}
	}
}

// waits reports whether a line is sent although the operator knows what became of it, or nobody was asked about it.
func (x *ledger) waits(l disbursement.Line) bool {
	_, known := x.truth[attempt{l.LineKey, l.Attempt}]
	return l.Status == disbursement.LineSent && (known || l.Case == "")
}

// quiet reports whether no line is sent, or waits in a batch that pays.
func (x *ledger) quiet() bool {
	for k, l := range x.lines {
		b := x.batches[k.Batch]
		if x.waits(l) || l.Status == disbursement.LineReady && b.Status == disbursement.StatusReleasing && !b.Held() && !l.Contested {
			return false
		}
	}
	return true
}

// Any words in any order leave counts right, end nowhere but in a status of the table, and send no contested line.
func TestAnyWords(t *testing.T) {
	t.Parallel()
	begin := startingFrom(t, func(w *world) {
		w.agency(payroll.Policy())
		w.releasing("b", line("a", 10), line("b", 20))
		w.ticks()
	})
	rapid.Check(t, func(t *rapid.T) {
		w := begin(t)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			position := rapid.IntRange(0, 1).Draw(t, "position")
			before := w.at("b", position)
			pays := len(w.pays)
			w.word("b", disbursement.Word{
				Position: position, Attempt: rapid.IntRange(0, before.Attempt+1).Draw(t, "attempt"), Try: rapid.IntRange(0, 2).Draw(t, "try"),
				Source: rapid.SampledFrom([]disbursement.WordSource{disbursement.FromRequest, disbursement.FromEnquiry, disbursement.FromCallback, disbursement.FromStatement}).Draw(t, "source"),
				Kind:   rapid.SampledFrom(disbursement.WordKinds()).Draw(t, "kind"), Amount: rapid.SampledFrom([]int64{0, 10, 20, 5}).Draw(t, "amount"),
				Currency: "XAF", Unproven: rapid.Bool().Draw(t, "unproven"), Suspect: rapid.Bool().Draw(t, "suspect"),
			})
			after := w.at("b", position)
			if after.Attempt != before.Attempt {
				t.Fatalf("a word makes an attempt: %+v to %+v", before, after)
			}
			if before.Contested && len(w.pays) > pays {
				t.Fatalf("a contested line is sent: %+v", before)
			}
			w.jump(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 11, 1500}).Draw(t, "minutes")) * time.Minute)
			for _, r := range w.pays[pays:] {
				if l := w.lines[r.Line.LineKey]; l.Contested && r.Line.Contested {
					t.Fatalf("a contested line is sent: %+v", l)
				}
			}
		}
	})
}

func TestIDs(t *testing.T) {
	t.Parallel()
	ids := disbursement.NewIDs(func(text string) [32]byte { return sha256.Sum256([]byte("key" + text)) })
	rapid.Check(t, func(t *rapid.T) {
		var random [16]byte
		copy(random[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "random"))
		partition := int32(rapid.IntRange(0, 1<<16-1).Draw(t, "partition"))
		id := ids.New(start, partition, random)
		if got, err := ids.Partition(id); err != nil || got != partition {
			t.Fatalf("%s: %d, %v", id, got, err)
		}
		i := rapid.IntRange(4, len(id)-1).Draw(t, "i")
		wrong := []byte(id)
		if wrong[i] = rapid.SampledFrom([]byte("0123456789abcdefghijklmnopqrstuvwxyz-")).Draw(t, "c"); string(wrong) != id {
			if _, err := ids.Partition(string(wrong)); err == nil {
				t.Fatalf("%s passes for %s", wrong, id)
			}
		}
		a := disbursement.NewAttemptID(id, 7, 1)
		ref := a.PayoutRef()
		if !disbursement.ValidPayoutRef(ref) || len(ref) != 26 {
			t.Fatalf("%s is not valid", ref)
		}
		j, k := rapid.IntRange(2, 25).Draw(t, "j"), rapid.IntRange(2, 25).Draw(t, "k")
		other := []byte(ref)
		if other[j] = rapid.SampledFrom([]byte("0123456789ABCDEFGHJKMNPQRSTVWXYZ")).Draw(t, "c"); string(other) != ref && disbursement.ValidPayoutRef(string(other)) {
			t.Fatalf("%s passes for %s", other, ref)
		}
		swapped := []byte(ref)
		if swapped[j], swapped[k] = swapped[k], swapped[j]; string(swapped) != ref && j < 24 && k < 24 && disbursement.ValidPayoutRef(string(swapped)) {
			t.Fatalf("%s passes for %s", swapped, ref)
		}
	})
}

// The bytes are for ever: operators know attempts by them.
func TestAttemptsNeverChange(t *testing.T) {
	t.Parallel()
	a := disbursement.NewAttemptID("dsb_1", 7, 2)
	if got, want := a.PayoutRef(), "QD52V76NNRPRX9TR2M22XBT94Y"; got != want {
		t.Errorf("payout_ref %s, want %s", got, want)
	}
	if got, want := a.UUID(), "28b67356-b8b6-4a9d-a054-10babd24ef26"; got != want {
		t.Errorf("UUID %s, want %s", got, want)
	}
	if got, want := disbursement.FileRef("dsb_1", 2), "QFTAGJ21FAVZRXWAZZ0JXZKTJN"; got != want || !disbursement.ValidFileRef(got) || disbursement.ValidPayoutRef(got) {
		t.Errorf("reference of a file %s, want %s", got, want)
	}
}
