// Package processor decides checkout commands in memory. It replaces the processors in
// tests of packages that send commands and read sessions.
package processor

import (
	"maps"
	"sync"
	"testing"
	"time"

	"quittance/checkout"
)

// Processor has all sessions and the service's time. Its lock protects all fields.
type Processor struct {
	sync.Mutex
	T         testing.TB
	Time      time.Time
	Sessions  map[string]checkout.Session
	Orders    map[checkout.OrderKey]checkout.Order
	Tills     map[checkout.TillKey]checkout.Till
	Months    map[checkout.MonthKey]int
	Numbers   map[checkout.NumberKey]string
	Externals map[checkout.ExternalKey]checkout.External
	Claims    map[checkout.ClaimKey]checkout.Claim
	Keys      map[checkout.IdempotencyKey]checkout.Idempotency
	Refusing  map[checkout.ERPKey]checkout.RefusingERP
	// Requests are those that the sink collect would get.
	Requests []checkout.CollectionRequest
	// Events are all events.
	Events []checkout.Event
}

// New returns a processor without sessions.
func New(t testing.TB, now time.Time) *Processor {
	return &Processor{
		T: t, Time: now, Sessions: map[string]checkout.Session{}, Orders: map[checkout.OrderKey]checkout.Order{}, Tills: map[checkout.TillKey]checkout.Till{},
		Months: map[checkout.MonthKey]int{}, Numbers: map[checkout.NumberKey]string{}, Externals: map[checkout.ExternalKey]checkout.External{},
		Claims: map[checkout.ClaimKey]checkout.Claim{}, Keys: map[checkout.IdempotencyKey]checkout.Idempotency{}, Refusing: map[checkout.ERPKey]checkout.RefusingERP{},
	}
}

// view is the checkout.View of Decide.
type view struct{ *Processor }

func (v view) Session(id string) (checkout.Session, bool) { s, ok := v.Sessions[id]; return s, ok }
func (v view) Order(k checkout.OrderKey) checkout.Order   { return v.Orders[k] }
func (v view) Quota(string) checkout.Quota                { return checkout.Quota{} }
func (v view) Token(string) (checkout.Token, bool)        { return checkout.Token{}, false }
func (v view) Tokens(string) checkout.TokenList           { return checkout.TokenList{} }
func (v view) Till(k checkout.TillKey) checkout.Till      { return v.Tills[k] }
func (v view) Month(k checkout.MonthKey) int              { return v.Months[k] }
func (v view) Numbered(k checkout.NumberKey) string       { return v.Numbers[k] }
func (v view) External(k checkout.ExternalKey) checkout.External {
	return v.Externals[k]
}

func (v view) RefusingERP(k checkout.ERPKey) checkout.RefusingERP { return v.Refusing[k] }

func (v view) Claim(k checkout.ClaimKey) checkout.Claim { return v.Claims[k] }

func (v view) Idempotency(k checkout.IdempotencyKey) (checkout.Idempotency, bool) {
	i, ok := v.Keys[k]
	return i, ok
}

// Decide carries a command out and returns its answer. The caller holds the lock.
func (p *Processor) Decide(cmd checkout.Command) checkout.Answer {
	if cmd.At.IsZero() {
		cmd.At = p.Time
	}
	cmd.ReplyTo = &checkout.ReplyTo{CorrelationID: "r"}
	d, err := checkout.Decide(view{p}, cmd)
	if err != nil {
		p.T.Errorf("deciding %T: %v", cmd.Do, err)
		return checkout.Answer{}
	}
	maps.Copy(p.Sessions, d.Sessions)
	maps.Copy(p.Refusing, d.RefusingERPs)
	maps.Copy(p.Orders, d.Orders)
	maps.Copy(p.Tills, d.Tills)
	maps.Copy(p.Months, d.Months)
	maps.Copy(p.Numbers, d.Numbers)
	maps.Copy(p.Externals, d.Externals)
	maps.Copy(p.Claims, d.Claims)
	maps.Copy(p.Keys, d.Idempotency)
	p.Requests = append(p.Requests, d.Collections...)
	p.Events = append(p.Events, d.Events...)
	return *d.Answer
}

// Do carries out an action on a session.
func (p *Processor) Do(id string, do checkout.Action) checkout.Answer {
	p.Lock()
	defer p.Unlock()
	return p.Decide(checkout.Command{SessionID: id, Do: do})
}

// Change calls change with the lock held.
func (p *Processor) Change(change func()) {
	p.Lock()
	defer p.Unlock()
	change()
}

// Now returns the service's time.
func (p *Processor) Now() time.Time {
	p.Lock()
	defer p.Unlock()
	return p.Time
}

// Session returns a session, empty if it does not exist.
func (p *Processor) Session(id string) checkout.Session {
	p.Lock()
	defer p.Unlock()
	return p.Sessions[id]
}
