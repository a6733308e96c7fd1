package checkout_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/checkout"
)

// The invariants hold for any sequence of commands. world.decide checks those of a single
// decision: deterministic, no gap in the sequence, terminal statuses stay, an answer
// exactly when the command asks for one, stored sessions are the fold of the events.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		n, asked, said := 0, 0, sums{}
		var ids []string
		session := func(t *rapid.T) string {
			if len(ids) == 0 {
				return "none"
			}
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		send := func(t *rapid.T, cmd checkout.Command) {
			if rapid.Bool().Draw(t, "asks") {
				cmd.ReplyTo = &checkout.ReplyTo{CorrelationID: "r"}
				asked++
			}
			w.decide(cmd)
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				n++
				s := draft(fmt.Sprintf("s%03d", n), rapid.SampledFrom([]string{"o1", "o2"}).Draw(t, "order"))
				s.ExpiresAt = w.now.Add(time.Hour)
				s.ClientSecretHash = []byte("secret")
				s.ERP = rapid.Bool().Draw(t, "erp")
				if rapid.Bool().Draw(t, "due") {
					s.Metadata = map[string]string{checkout.MetadataERPDueRef: "due"}
				}
				if rapid.Bool().Draw(t, "by transfer") {
					s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferBankTransfer, Channel: checkout.ChannelBankTransfer, Fee: 100})
				}
				if rapid.Bool().Draw(t, "two dues") {
					s.Items = []checkout.Item{{ERPDueRef: "one-" + s.ID, Amount: 1000, TransactionID: s.TransactionID}, {ERPDueRef: "two-" + s.ID, Amount: 4000, TransactionID: s.TransactionID + "-1"}}
				}
				key := fmt.Sprint("k", rapid.IntRange(n-2, n).Draw(t, "key"))
				send(t, checkout.Command{SessionID: s.ID, Do: checkout.Create{Session: s, IdempotencyKey: key, BodyHash: []byte(s.OrderID), CreationsPerMinute: 20}})
				if _, ok := w.sessions[s.ID]; ok {
					ids = append(ids, s.ID)
				}
			},
			"cancel": func(t *rapid.T) {
				by := rapid.SampledFrom([]checkout.Canceller{checkout.ByCitizen, checkout.ByIntegrator}).Draw(t, "by")
				send(t, checkout.Command{SessionID: session(t), Do: checkout.Cancel{By: by}})
			},
			"collect": func(t *rapid.T) {
				id := session(t)
				do := collection(rapid.SampledFrom([]string{"c-" + id, "d-" + id}).Draw(t, "c"))
				do.ByReference = rapid.Bool().Draw(t, "by reference")
				before := len(w.requests)
				send(t, checkout.Command{SessionID: id, Do: do})
				if len(w.requests) > before && w.requests[len(w.requests)-1].Kind == checkout.RequestCollect {
					chargeable(t, w, checkout.OrderKeyOf(w.sessions[id]))
				}
			},
			"outcome": func(t *rapid.T) {
				id := session(t)
				o := checkout.Outcome{
					CollectionID: rapid.SampledFrom([]string{"c-" + id, "c-" + id, "d-" + id, "x"}).Draw(t, "c"),
					Source:       rapid.SampledFrom([]checkout.Source{checkout.SourceRequest, checkout.SourceEnquiry, checkout.SourceCallback}).Draw(t, "source"),
					Status: rapid.SampledFrom([]checkout.OutcomeStatus{
						checkout.OutcomeApproved, checkout.OutcomeRefused, checkout.OutcomePending, checkout.OutcomeAmbiguous, checkout.OutcomeUnknown,
					}).Draw(t, "status"),
					Amount:      rapid.SampledFrom([]int64{5075, 5075, 5075, 6000, 0, 1}).Draw(t, "amount"),
					Currency:    rapid.SampledFrom([]string{"XAF", "XAF", "EUR"}).Draw(t, "currency"),
					FailureCode: rapid.SampledFrom(append(checkout.FailureCodes(), "")).Draw(t, "failure"),
				}
				if c := w.sessions[id].Collection; c != nil && o.Source == checkout.SourceEnquiry {
					o.AskedAt = c.LastEnquiryAt
				}
				o.HonourLate = rapid.Bool().Draw(t, "policy")
				if dated := rapid.SampledFrom([]time.Time{w.now, w.now.Add(-time.Hour), time.Unix(0, 0), time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC), {}}).Draw(t, "date"); !dated.IsZero() {
					o.ApprovedAt = dated
				}
				known := w.collected(id, o.CollectionID)
				send(t, checkout.Command{SessionID: id, Do: o})
				if known && o.Status == checkout.OutcomeApproved && o.Amount > 0 {
					said.add(id, o.CollectionID, o.Amount)
				}
			},
			"approved after a refusal": func(t *rapid.T) {
				id := session(t)
				n++
				do := collection(fmt.Sprint("r-", n))
				do.ByReference = true
				send(t, checkout.Command{SessionID: id, Do: do})
				send(t, checkout.Command{SessionID: id, Do: checkout.Outcome{CollectionID: do.CollectionID, Source: checkout.SourceCallback, Status: checkout.OutcomeRefused}})
				if rapid.Bool().Draw(t, "another begins") {
					send(t, checkout.Command{SessionID: id, Do: collection("c-" + id)})
				}
				o := approved()
				o.CollectionID, o.Source, o.Amount = do.CollectionID, checkout.SourceCallback, rapid.SampledFrom([]int64{5075, 6000, 50}).Draw(t, "amount")
				for w.collected(id, do.CollectionID) {
					send(t, checkout.Command{SessionID: id, Do: o})
					if o.Amount > 0 {
						said.add(id, do.CollectionID, o.Amount)
					}
					if !rapid.Bool().Draw(t, "again") {
						break
					}
					if rapid.Bool().Draw(t, "after the end") {
						w.advance(25 * time.Hour)
					}
					o.Amount = rapid.SampledFrom([]int64{5075, 6000, 50, 0}).Draw(t, "then")
				}
			},
			"erase": func(t *rapid.T) {
				send(t, checkout.Command{SessionID: session(t), Do: checkout.Erase{By: "officer"}})
			},
			"enquire": func(t *rapid.T) {
				id := session(t)
				send(t, checkout.Command{SessionID: id, Do: checkout.Enquire{CollectionID: "c-" + id}})
			},
			"token": func(t *rapid.T) {
				hash := []byte(rapid.SampledFrom([]string{"h1", "h2"}).Draw(t, "hash"))
				if rapid.Bool().Draw(t, "issue") {
					send(t, checkout.Command{SessionID: session(t), Do: checkout.IssueToken{Hash: hash, ClientSecretHash: []byte("secret"), Lifetime: time.Minute}})
				} else {
					send(t, checkout.Command{ApplicationID: app, Do: checkout.ConsumeToken{Hash: hash}})
				}
			},
			"time": func(t *rapid.T) {
				w.advance(time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "d")).Truncate(time.Millisecond))
			},
			"months": func(t *rapid.T) { w.advance(time.Duration(rapid.IntRange(1, 60).Draw(t, "days")) * 24 * time.Hour) },
			"late tick": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.Int64Range(0, int64(90*time.Minute)).Draw(t, "d")).Truncate(time.Millisecond))
				w.decide(checkout.Command{SessionID: session(t), Do: checkout.Tick{}})
			},
			"staff": func(t *rapid.T) { resolveSome(t, w, session(t), send) },
			"refund of dues": func(t *rapid.T) {
				id := session(t)
				do := checkout.OpenRefundRequest{By: "staff", Reason: "r"}
				for _, due := range w.sessions[id].Dues() {
					if rapid.Bool().Draw(t, "with "+due.TransactionID) {
						do.TransactionIDs = append(do.TransactionIDs, due.TransactionID)
					}
				}
				send(t, checkout.Command{SessionID: id, Do: do})
				if rapid.Bool().Draw(t, "at once") {
					resolveSome(t, w, id, send)
				}
			},
			"credit":      func(t *rapid.T) { credits(t, w, session(t), said, send) },
			"erp":         func(t *rapid.T) { answerSome(t, w, session(t), send) },
			"proposals":   func(t *rapid.T) { noteSome(t, w, session(t), send) },
			"resolve all": func(t *rapid.T) { resolveAll(t, w) },
			"": func(t *rapid.T) {
				invariants(t, w, asked)
				caseInvariants(t, w)
				confirmationInvariants(t, w)
				returnInvariants(t, w)
				dueInvariants(t, w)
				said.invariants(t, w)
			},
		})
	})
}

// sums are the amounts that the operator has said it has, by session and collection, as an
// observer notes them who knows nothing of cases.
type sums map[[2]string][]int64

func (m sums) add(session, collection string, amount int64) {
	k := [2]string{session, collection}
	m[k] = append(m[k], amount)
}

// collected reports whether the operator was asked for the collection.
func (w *world) collected(session, collection string) bool {
	return slices.ContainsFunc(w.requests, func(r checkout.CollectionRequest) bool {
		return r.Kind == checkout.RequestCollect && r.Session.ID == session && r.Session.Collection.ID == collection
	})
}

// invariants: a sum that the operator says it has is in one place, and in no two.
func (m sums) invariants(t *rapid.T, w *world) {
	for k, amounts := range m {
		s := w.sessions[k[0]]
		var total int64
		exits, anew, open := false, false, 0
		if c := s.Collection; c != nil && c.ID == k[1] && c.Status == checkout.CollectionApproved {
			total += c.Amount
		}
		for _, c := range s.Cases {
			if c.CollectionID != k[1] && c.CollectionID != k[1]+"-surplus" {
				continue
			}
			if c.Open() && c.CollectionID == k[1] && (c.Reported() || c.Kind == checkout.CaseLatePayment) {
				open++
			}
			anew = anew || c.Resolution == checkout.ResolutionAskAgain
			exits = exits || !c.Open() && !c.Replaced() && c.Resolution != checkout.ResolutionHonour || c.Open() && c.Notice()
			if c.Reported() && !c.Replaced() && c.Resolution != checkout.ResolutionHonour {
				total += c.Amount
			}
		}
		switch {
		case open > 1, open > 0 && s.Paid() && s.Collection.ID == k[1]:
			t.Fatalf("the sum of %s has %d open cases, and the session is paid %v: %+v", k[1], open, s.Paid(), s.Cases)
		case anew: // what was said before does not count
		case total == 0:
			t.Fatalf("the operator has %d of %s, and nobody else knows: %+v %+v", amounts, k[1], s, s.Collection)
		case !exits && !slices.Contains(amounts, total):
			t.Fatalf("the operator has one of %d of %s, and %d are counted: %+v %+v", amounts, k[1], total, s, s.Collection)
		}
	}
}

// dueInvariants: what an approved collection brought is the sum of the dues with their fees, each of which is kept or was
// given back, and the session is paid exactly as long as it keeps one.
func dueInvariants(t *rapid.T, w *world) {
	for id, s := range w.sessions {
		c := s.Collection
		if c == nil || c.Status != checkout.CollectionApproved || s.Status != checkout.StatusCompleted {
			continue
		}
		var kept, back int64
		for _, due := range s.Dues() {
			if s.Returned(due).IsZero() {
				kept += due.Total()
			} else {
				back += due.Total()
			}
		}
		if kept+back != c.Amount || s.Paid() != (kept > 0) {
			t.Fatalf("%s took %d, keeps %d and gave %d back, paid %v: %+v", id, c.Amount, kept, back, s.Paid(), s.Items)
		}
	}
}

// chargeable fails if an order is charged while a sum of it has no exit.
func chargeable(t *rapid.T, w *world, k checkout.OrderKey) {
	for id, s := range w.sessions {
		if checkout.OrderKeyOf(s) != k {
			continue
		}
		for _, c := range s.Cases {
			asked := c.Expected > 0 && (c.Kind == checkout.CaseMismatch || c.Kind == checkout.CaseLatePayment || c.Kind == checkout.CaseOrphan)
			if c.Open() && (asked || c.AmountUnknown && c.Kind == checkout.CaseUndecided || c.Surplus()) {
				t.Fatalf("the order is charged, and %s has the open %+v", id, c)
			}
		}
	}
}

func invariants(t *rapid.T, w *world, questions int) {
	if w.replies != questions {
		t.Fatalf("%d replies to %d questions", w.replies, questions)
	}
	open, completed := map[checkout.OrderKey]int{}, map[checkout.OrderKey]int{}
	for id, s := range w.sessions {
		k := checkout.OrderKeyOf(s)
		switch s.Status {
		case checkout.StatusOpen:
			open[k]++
			if w.orders[k].OpenSessionID != id {
				t.Fatalf("order of the open %s names %q", id, w.orders[k].OpenSessionID)
			}
		case checkout.StatusCompleted:
			if !s.Paid() {
				break
			}
			completed[k]++
			if w.orders[k].PaidSessionID != id || s.Collection.Status != checkout.CollectionApproved {
				t.Fatalf("completed %s: order %+v, collection %+v", id, w.orders[k], s.Collection)
			}
		case checkout.StatusExpired, checkout.StatusCancelled, checkout.StatusFailed:
		}
		if c := s.Collection; c != nil && s.Status == checkout.StatusFailed && c.Status == checkout.CollectionUndecided && !c.Mismatched && !c.Unreadable &&
			(c.ClosingEnquiryAt.IsZero() || c.ClosingEnquiryAt.Before(c.WindowEndsAt)) {
			t.Fatalf("%s failed although nobody asked after its window: %+v", id, c)
		}
		if s.Paid() != (s.Status == checkout.StatusCompleted && s.ReversedAt.IsZero()) {
			t.Fatalf("%s is %s and paid %v", id, s.Status, s.Paid())
		}
		if _, ok := s.Deadline(); !ok && (s.Status == checkout.StatusOpen || !s.Collection.Final() && !s.Collection.Mismatched) {
			t.Fatalf("%s would be forgotten: %+v", id, s)
		}
	}
	for k, n := range open {
		if n > 1 || completed[k] > 0 {
			t.Fatalf("order %s has %d open and %d completed sessions", k.OrderID, n, completed[k])
		}
	}
	for k, n := range completed {
		if n > 1 {
			t.Fatalf("order %s is paid %d times", k.OrderID, n)
		}
	}
	sequences, money := map[string]int64{}, map[string]int{}
	ids := map[string]bool{}
	for _, e := range w.events {
		if ids[e.ID] && e.Sequence != 0 {
			t.Fatalf("event id %s twice", e.ID)
		}
		ids[e.ID] = true
		if e.Sequence != 0 {
			if e.Sequence != sequences[e.SessionID]+1 {
				t.Fatalf("%s: event %d after %d", e.SessionID, e.Sequence, sequences[e.SessionID])
			}
			sequences[e.SessionID] = e.Sequence
		}
		if e.Type == checkout.EventCompleted && e.Detail[checkout.DetailLate] == "" || e.Type == checkout.EventLatePayment {
			if money[e.SessionID]++; money[e.SessionID] > 1 {
				t.Fatalf("%s took money twice", e.SessionID)
			}
		}
	}
	collects, asked := map[string]int{}, map[string]bool{}
	for _, r := range w.requests {
		if r.Kind != checkout.RequestCollect {
			continue
		}
		// A refused payment by reference frees the session for another one.
		if collects[r.Session.ID]++; collects[r.Session.ID] > 1+len(w.sessions[r.Session.ID].Refusals) {
			t.Fatalf("%s asked for money twice", r.Session.ID)
		}
		if asked[r.Session.Collection.ID] {
			t.Fatalf("%s was asked for twice", r.Session.Collection.ID)
		}
		asked[r.Session.Collection.ID] = true
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	refs, err := checkout.NewReferences(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int64{}
	for n := range int64(20_000) {
		ref, ok := refs.PaymentRef(n)
		if !checkout.ValidPaymentRef(ref) {
			t.Fatalf("%d: %s does not fit its own check", n, ref)
		}
		if before, twice := seen[ref]; twice {
			t.Fatalf("%d and %d both give %s", before, n, ref)
		}
		seen[ref] = n
		if ok == luhnValid(ref) {
			t.Fatalf("%s: usable %v, Luhn-valid %v", ref, ok, luhnValid(ref))
		}
		notice := refs.NoticeRef(2026, n)
		if len(notice) != 16 || notice[:6] != "AV2026" {
			t.Fatalf("notice_ref %s", notice)
		}
		if _, twice := seen[notice]; twice {
			t.Fatalf("notice_ref %s twice", notice)
		}
		seen[notice] = n
	}
	a, _ := refs.PaymentRef(1)
	b, _ := refs.PaymentRef(2)
	if a[:6] == b[:6] {
		t.Errorf("%s and %s look sequential", a, b)
	}
	for i := range a { // the check finds every single wrong digit
		wrong := []byte(a)
		wrong[i] = '0' + (wrong[i]-'0'+1)%10
		if checkout.ValidPaymentRef(string(wrong)) {
			t.Errorf("%s passes for %s", wrong, a)
		}
	}
}

// luhnValid implements the rule independently of the code under test.
func luhnValid(s string) bool {
	sum := 0
	for i, c := range s {
		d := int(c - '0')
		if (len(s)-i)%2 == 0 {
			d = []int{0, 2, 4, 6, 8, 1, 3, 5, 7, 9}[d]
		}
		sum += d
	}
	return sum%10 == 0
}

// ids have the MAC of a key of tests.
var ids = checkout.NewIDs(func(text string) [sha256.Size]byte { return sha256.Sum256([]byte("key" + text)) })

// The bytes are for ever: with another form or another MAC old addresses lead nowhere.
func TestIDsNeverChange(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_790_000_000_000)
	if got, want := ids.NewSession(at, 7, [16]byte{1}), "chs_06gc8k3c0000e080000000000000000000000006viiai3af5"; got != want {
		t.Errorf("session id %s, want %s", got, want)
	}
	if got, want := ids.NewCompletionToken(7, [32]byte{1}), "cpt_000000000000e080000000000000000000000000000000000000000000000000usmg5dn7hl"; got != want {
		t.Errorf("completion token %s, want %s", got, want)
	}
	other := checkout.NewIDs(func(text string) [sha256.Size]byte { return sha256.Sum256([]byte("other" + text)) })
	if _, _, err := other.CheckSession(ids.NewSession(at, 7, [16]byte{1})); !errors.Is(err, checkout.ErrMalformedID) {
		t.Errorf("an id of another key: %v", err)
	}
}

func BenchmarkIDs(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := ids.CheckSession(ids.NewSession(start, 7, [16]byte{1})); err != nil {
			b.Fatal(err)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		partition := int32(rapid.IntRange(0, 1<<16-1).Draw(t, "partition"))
		var random [16]byte
		copy(random[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "random"))
		at := start.Add(time.Duration(rapid.Int64Range(0, int64(1e6*time.Hour/1e3)).Draw(t, "at")))
		id := ids.NewSession(at, partition, random)
		if got, err := checkout.SessionPartition(id); err != nil || got != partition {
			t.Fatalf("%s: partition %d, %v; want %d", id, got, err, partition)
		}
		if got, proven, err := ids.CheckSession(id); err != nil || got != partition || !proven {
			t.Fatalf("%s: partition %d, %v, proven %v; want %d", id, got, err, proven, partition)
		}
		old := checkout.NewSessionID(at, partition, random)
		if got, proven, err := ids.CheckSession(old); err != nil || got != partition || proven {
			t.Fatalf("%s of an earlier release: partition %d, %v, proven %v", old, got, err, proven)
		}
		later := checkout.NewSessionID(at.Add(time.Millisecond), 0, [16]byte{})
		if later <= id {
			t.Fatalf("%s does not sort after %s", later, id)
		}
		token := ids.NewCompletionToken(partition, [32]byte{1})
		for _, token := range []string{token, token[:len(token)-10]} { // also one of an earlier release
			if got, _, err := ids.CheckCompletionToken(token); err != nil || got != partition {
				t.Fatalf("%s: partition %d, %v", token, got, err)
			}
		}
		changed := []byte(id)
		i := rapid.IntRange(len("chs_"), len(id)-1).Draw(t, "character")
		changed[i] ^= 1
		if _, _, err := ids.CheckSession(string(changed)); err == nil {
			t.Fatalf("%s passes, and we made %s", changed, id)
		}
	})
	for _, bad := range []string{"", "chs_", "chs_secret_abc", "evt_00", "chs_" + "zz", "CHS_0000000000000000000000000000000000000000"} {
		if _, err := checkout.SessionPartition(bad); err == nil {
			t.Errorf("%q passes for a session id", bad)
		}
	}
}
