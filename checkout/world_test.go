package checkout_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"quittance/checkout"
)

// tb is what world needs of a test or a property.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Error(args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// world is a partition's state in memory. Like a processor it merges decisions into it.
type world struct {
	t         tb
	now       time.Time
	sessions  map[string]checkout.Session
	orders    map[checkout.OrderKey]checkout.Order
	keys      map[checkout.IdempotencyKey]checkout.Idempotency
	quotas    map[string]checkout.Quota
	tokens    map[string]checkout.Token
	lists     map[string]checkout.TokenList
	tills     map[checkout.TillKey]checkout.Till
	months    map[checkout.MonthKey]int
	numbers   map[checkout.NumberKey]string
	externals map[checkout.ExternalKey]checkout.External
	claims    map[checkout.ClaimKey]checkout.Claim
	refusing  map[checkout.ERPKey]checkout.RefusingERP

	events   []checkout.Event
	requests []checkout.CollectionRequest
	replies  int
}

var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func newWorld(t tb) *world {
	return &world{
		t: t, now: start, sessions: map[string]checkout.Session{}, orders: map[checkout.OrderKey]checkout.Order{},
		keys: map[checkout.IdempotencyKey]checkout.Idempotency{}, quotas: map[string]checkout.Quota{}, tokens: map[string]checkout.Token{},
		lists: map[string]checkout.TokenList{}, tills: map[checkout.TillKey]checkout.Till{},
		months: map[checkout.MonthKey]int{}, numbers: map[checkout.NumberKey]string{}, externals: map[checkout.ExternalKey]checkout.External{},
		claims: map[checkout.ClaimKey]checkout.Claim{}, refusing: map[checkout.ERPKey]checkout.RefusingERP{},
	}
}

func (w *world) Session(id string) (checkout.Session, bool) { s, ok := w.sessions[id]; return s, ok }
func (w *world) Order(k checkout.OrderKey) checkout.Order   { return w.orders[k] }
func (w *world) Quota(app string) checkout.Quota            { return w.quotas[app] }
func (w *world) Token(h string) (checkout.Token, bool)      { t, ok := w.tokens[h]; return t, ok }
func (w *world) Tokens(id string) checkout.TokenList        { return w.lists[id] }
func (w *world) Till(k checkout.TillKey) checkout.Till      { return w.tills[k] }
func (w *world) Month(k checkout.MonthKey) int              { return w.months[k] }
func (w *world) Numbered(k checkout.NumberKey) string       { return w.numbers[k] }
func (w *world) External(k checkout.ExternalKey) checkout.External {
	return w.externals[k]
}

// RefusingERP forgets an ERP, as a processor does at ForgetAt.
func (w *world) RefusingERP(k checkout.ERPKey) checkout.RefusingERP {
	r := w.refusing[k]
	if at := r.ForgetAt(); !at.IsZero() && !w.now.Before(at) {
		return checkout.RefusingERP{}
	}
	return r
}

// Claim forgets an acceptance, as a processor does at ForgetAt.
func (w *world) Claim(k checkout.ClaimKey) checkout.Claim {
	c := w.claims[k]
	if at := c.ForgetAt(); !at.IsZero() && !w.now.Before(at) {
		return checkout.Claim{}
	}
	return c
}

func (w *world) Idempotency(k checkout.IdempotencyKey) (checkout.Idempotency, bool) {
	i, ok := w.keys[k]
	return i, ok
}

// decide carries a command out and checks the invariants of every decision.
func (w *world) decide(cmd checkout.Command) checkout.Decision {
	w.t.Helper()
	if cmd.At.IsZero() {
		cmd.At = w.now
	}
	d, err := checkout.Decide(w, cmd)
	if err != nil {
		w.t.Fatalf("deciding %T: %v", cmd.Do, err)
	}
	again, _ := checkout.Decide(w, cmd)
	if !reflect.DeepEqual(d, again) {
		w.t.Fatalf("deciding %T twice gives two decisions:\n%+v\n%+v", cmd.Do, d, again)
	}
	if (d.Answer != nil) != (cmd.ReplyTo != nil) {
		w.t.Fatalf("%T: asked for a reply: %v, answered: %v", cmd.Do, cmd.ReplyTo != nil, d.Answer != nil)
	}
	if d.Answer != nil {
		w.replies++
	}
	if _, resolves := cmd.Do.(checkout.Resolve); resolves && d.Answer != nil && d.Answer.Code != checkout.CodeOK && !slices.Contains(checkout.RefusalCodes(), d.Answer.Code) {
		w.t.Fatalf("a resolution is refused as %s, for which people have no words", d.Answer.Code)
	}
	fold := map[string]checkout.Session{}
	for _, e := range d.Events {
		if e.Sequence == 0 {
			continue
		}
		before, ok := fold[e.SessionID]
		if !ok {
			before = w.sessions[e.SessionID]
		}
		if e.Sequence != before.Sequence+1 {
			w.t.Fatalf("%s of %s has sequence %d after %d", e.Type, e.SessionID, e.Sequence, before.Sequence)
		}
		after := checkout.Apply(before, e)
		if !reflect.DeepEqual(after, e.Session) {
			w.t.Fatalf("%s carries\n%+v\nbut the fold is\n%+v", e.Type, e.Session, after)
		}
		if before.Ended() && before.ID != "" && !after.Late && (after.Status != before.Status || !after.EndedAt.Equal(before.EndedAt)) {
			w.t.Fatalf("%s moved the terminal %s to %s", e.Type, before.Status, after.Status)
		}
		fold[e.SessionID] = after
	}
	if !reflect.DeepEqual(fold, orEmpty(d.Sessions)) {
		w.t.Fatalf("stored sessions are not the fold of the events:\n%+v\n%+v", d.Sessions, fold)
	}
	maps.Copy(w.sessions, d.Sessions)
	maps.Copy(w.orders, d.Orders)
	maps.Copy(w.keys, d.Idempotency)
	maps.Copy(w.quotas, d.Quotas)
	maps.Copy(w.tokens, d.Tokens)
	maps.Copy(w.lists, d.TokenLists)
	maps.Copy(w.tills, d.Tills)
	maps.Copy(w.months, d.Months)
	maps.Copy(w.numbers, d.Numbers)
	maps.Copy(w.externals, d.Externals)
	maps.Copy(w.refusing, d.RefusingERPs)
	for k, c := range d.Claims {
		if w.claims[k] = c; c.Empty() {
			delete(w.claims, k)
		}
	}
	for _, hash := range d.ForgottenTokens {
		delete(w.tokens, hash)
	}
	w.events = append(w.events, d.Events...)
	w.requests = append(w.requests, d.Collections...)
	return d
}

func orEmpty(m map[string]checkout.Session) map[string]checkout.Session {
	if m == nil {
		return map[string]checkout.Session{}
	}
	return m
}

// ask is decide for a command that needs an answer.
func (w *world) ask(cmd checkout.Command) checkout.Answer {
	w.t.Helper()
	cmd.ReplyTo = &checkout.ReplyTo{CorrelationID: "r"}
	return *w.decide(cmd).Answer
}

// advance lets time pass and ticks each session at its deadline, as a processor does that
// is never away.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	for range 10_000 {
		due, first := "", end
		for id, s := range w.sessions {
			if at, ok := s.Deadline(); ok && (at.Before(first) || at.Equal(first) && (due == "" || id < due)) {
				due, first = id, at
			}
		}
		if due == "" {
			w.now = end
			return
		}
		if first.After(w.now) {
			w.now = first
		}
		before := w.sessions[due]
		w.decide(checkout.Command{SessionID: due, Do: checkout.Tick{}})
		if at, ok := w.sessions[due].Deadline(); ok && !at.After(w.now) && reflect.DeepEqual(before, w.sessions[due]) {
			w.t.Fatalf("tick of %s at %s does nothing about its deadline %s", due, w.now, at)
		}
	}
	w.t.Fatal("ticks without end")
}

const app = "018f0000-0000-7000-8000-00000000000a"

func draft(id, order string) checkout.Session {
	return checkout.Session{
		ID: id, ApplicationID: app, TenantID: "018f0000-0000-7000-8000-000000000001", OrderID: order, Amount: 5000, Currency: "XAF",
		Mode: checkout.ModeHosted, PaymentRef: "ref-" + id, NoticeID: "n-" + id, TransactionID: "t-" + id,
		Offers:    []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75}},
		ExpiresAt: start.Add(24 * time.Hour),
	}
}

// create makes a session of an order, or returns the refusal.
func (w *world) create(id, order string) checkout.Answer {
	w.t.Helper()
	s := draft(id, order)
	s.ExpiresAt = w.now.Add(24 * time.Hour)
	return w.ask(checkout.Command{SessionID: id, ApplicationID: app, Do: checkout.Create{
		Session: s, IdempotencyKey: "key-" + id, BodyHash: []byte(order), CreationsPerMinute: 1000,
	}})
}

func (w *world) cancel(id string) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{SessionID: id, ApplicationID: app, Do: checkout.Cancel{By: checkout.ByIntegrator}})
}

func (w *world) collect(id string) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{SessionID: id, Do: collection("c-" + id)})
}

func collection(id string) checkout.Collect {
	return checkout.Collect{
		CollectionID: id, OfferID: checkout.OfferMomo, Payer: "242066000001", PayerMasked: "+242 06 ••• •• 01", Total: 5075,
		ApprovalWindow: 5 * time.Minute, SendWithin: 2 * time.Minute,
	}
}

func (w *world) outcome(id string, o checkout.Outcome) checkout.Answer {
	w.t.Helper()
	if o.CollectionID == "" {
		o.CollectionID = "c-" + id
	}
	if o.Source == "" {
		o.Source = checkout.SourceCallback
	}
	return w.ask(checkout.Command{SessionID: id, Do: o})
}

func approved() checkout.Outcome {
	return checkout.Outcome{Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF", OperatorRef: "op1"}
}

func (w *world) want(id string, status checkout.Status, types ...checkout.EventType) {
	w.t.Helper()
	if got := w.sessions[id].Status; got != status {
		w.t.Errorf("%s is %s, want %s", id, got, status)
	}
	var got []checkout.EventType
	for _, e := range w.events {
		if e.SessionID == id && e.Type != checkout.EventCollectionEnquired {
			got = append(got, e.Type)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(types) {
		w.t.Errorf("%s has events %v, want %v", id, got, types)
	}
}

func wantCode(t tb, a checkout.Answer, code checkout.Code) {
	t.Helper()
	if a.Code != code {
		t.Errorf("answer is %s, want %s", a.Code, code)
	}
}
