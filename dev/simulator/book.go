package simulator

import (
	"slices"
	"sync"
	"time"
)

// State of a collection, the same for every operator.
const (
	statePending  = "pending"
	stateApproved = "approved"
	stateRejected = "rejected"
)

// collection is one request to a payer. The book's lock guards what changes.
type collection struct {
	// Set on acceptance; constant afterwards.
	seq         int64
	id          string // the merchant's id
	operator    string
	account     string // the merchant at the operator; never shown
	externalID  string
	amount      string
	currency    string
	message     string
	note        string
	callbackURL string
	operatorRef string
	receivedAt  time.Time
	page        hostedPage // only for operators that redirect

	// These fields change.
	payer         string
	script        script
	dueAt         time.Time // of the script's decision; zero when only /control decides
	chosen        bool      // the payer has chosen on the operator's page
	state         string
	reason        string // the operator's word for a refusal
	decidedAt     time.Time
	givenBackAt   time.Time // of cash
	reported      string    // amount that the operator reports; differs from amount only if /control sets it
	duplicates    int
	enquiries     int
	callbacksSent int
	callbackCode  int // status of the last callback's answer; 0 for none
}

// book holds the collections of all operators. Safe for concurrent use.
type book struct {
	mu         sync.Mutex
	byID       map[string]*collection
	byExternal map[string][]*collection
	pending    map[int64]*collection
	all        history[*collection]

	// decided is called once for each collection, without the lock held.
	decided func(collection)
	// reason returns an operator's word for a refusal. It must not call the book.
	reason func(operator string, why cause) string
}

func newBook(limit int) *book {
	return &book{
		byID:       map[string]*collection{},
		byExternal: map[string][]*collection{},
		pending:    map[int64]*collection{},
		all:        newHistory[*collection](limit),
	}
}

// accept enters c as pending unless its id is taken.
func (b *book) accept(c collection) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if earlier := b.byID[c.id]; earlier != nil {
		earlier.duplicates++
		return false
	}
	c.seq, c.state, c.reported = b.all.next(), statePending, c.amount
	if c.script.decides {
		c.dueAt = c.receivedAt.Add(c.script.after)
	}
	for _, old := range b.all.add(&c) {
		b.forget(old)
	}
	b.byID[c.id] = &c
	b.byExternal[c.externalID] = append(b.byExternal[c.externalID], &c)
	b.pending[c.seq] = &c
	return true
}

func (b *book) forget(c *collection) {
	delete(b.byID, c.id)
	delete(b.pending, c.seq)
	// byExternal keeps the order of acceptance: the oldest collection is the first of its list.
	if rest := b.byExternal[c.externalID][1:]; len(rest) > 0 {
		b.byExternal[c.externalID] = rest
	} else {
		delete(b.byExternal, c.externalID)
	}
}

// get returns the collection as of now. It carries out a decision that is due even if
// its timer has not fired yet, so that no reader sees an old state after the clock
// jumped.
func (b *book) get(id string, now time.Time) (collection, bool) {
	b.settle(id, now)
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.byID[id]
	if c == nil {
		return collection{}, false
	}
	return *c, true
}

// choose gives a pending collection the script that its payer has chosen on the operator's
// page, and returns when the script is due. Only the first call has an effect.
func (b *book) choose(id string, s script, payer string, now time.Time) (due time.Time, chosen bool) {
	b.settle(id, now)
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.byID[id]
	if c == nil || c.state != statePending || c.chosen {
		return time.Time{}, false
	}
	c.script, c.payer, c.dueAt, c.chosen = s, payer, now.Add(s.after), true
	return c.dueAt, true
}

// duplicate counts a repeated request for a collection.
func (b *book) duplicate(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.byID[id]; c != nil {
		c.duplicates++
	}
}

// enquired counts an enquiry of the merchant.
func (b *book) enquired(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.byID[id]; c != nil {
		c.enquiries++
	}
}

// calledBack records the answer to a callback; code 0 means there was none.
func (b *book) calledBack(id string, code int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.byID[id]; c != nil {
		c.callbacksSent++
		c.callbackCode = code
	}
}

// givenBack records that the money of a collection was given back.
func (b *book) givenBack(id string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.byID[id]; c != nil && c.givenBackAt.IsZero() {
		c.givenBackAt = at
	}
}

// settle carries out the script's decision if it is due.
func (b *book) settle(id string, now time.Time) {
	b.mu.Lock()
	c := b.byID[id]
	if c != nil && c.state == stateRejected && c.script.wavers > 0 && !now.Before(c.decidedAt.Add(c.script.wavers)) {
		c.script.wavers = 0
		decided := b.decideLocked(c, stateApproved, "", now)
		b.mu.Unlock()
		b.decided(decided)
		return
	}
	if c == nil || c.state != statePending || c.dueAt.IsZero() || now.Before(c.dueAt) {
		b.mu.Unlock()
		return
	}
	state, reason := stateApproved, ""
	if c.script.refusal != "" {
		state, reason = stateRejected, b.reason(c.operator, c.script.refusal)
	}
	decided := b.decideLocked(c, state, reason, now)
	b.mu.Unlock()
	b.decided(decided)
}

// decide makes a pending collection final. It returns the collection, whether
// there is one, and whether this call decided it. A non-empty amount is what
// the operator reports from then on.
func (b *book) decide(id, state, reason, amount string, now time.Time) (c collection, found, changed bool) {
	b.settle(id, now)
	b.mu.Lock()
	kept := b.byID[id]
	if kept == nil {
		b.mu.Unlock()
		return collection{}, false, false
	}
	if kept.state != statePending {
		defer b.mu.Unlock()
		return *kept, true, false
	}
	if amount != "" {
		kept.reported = amount
	}
	c = b.decideLocked(kept, state, reason, now)
	b.mu.Unlock()
	b.decided(c)
	return c, true, true
}

func (b *book) decideLocked(c *collection, state, reason string, now time.Time) collection {
	c.state, c.reason, c.decidedAt = state, reason, now
	delete(b.pending, c.seq)
	return *c
}

// filter narrows a list of collections; empty fields do not.
type filter struct {
	state, operator, externalID string
}

// list returns the collections asked for, oldest first.
func (b *book) list(f filter, p page, now time.Time) []collection {
	b.mu.Lock()
	var due []string
	for _, c := range b.pending {
		if !c.dueAt.IsZero() && !now.Before(c.dueAt) {
			due = append(due, c.id)
		}
	}
	b.mu.Unlock()
	for _, id := range due {
		b.settle(id, now)
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	if f == (filter{}) {
		kept := b.all.window(p)
		out := make([]collection, len(kept))
		for i, c := range kept {
			out[i] = *c
		}
		return out
	}
	// Use the narrowest index. Only a list by operator or by final state alone has to
	// read all collections.
	var candidates []*collection
	switch {
	case f.externalID != "":
		candidates = b.byExternal[f.externalID]
	case f.state == statePending:
		for _, c := range b.pending {
			candidates = append(candidates, c)
		}
		slices.SortFunc(candidates, func(x, y *collection) int { return int(x.seq - y.seq) })
	default:
		candidates = b.all.entries
	}
	var out []collection
	for _, c := range candidates {
		if (f.state != "" && c.state != f.state) || (f.operator != "" && c.operator != f.operator) ||
			(f.externalID != "" && c.externalID != f.externalID) || c.seq <= p.after {
			continue
		}
		out = append(out, *c)
		if p.resumes && p.limit > 0 && len(out) == p.limit {
			break
		}
	}
	if p.limit > 0 && len(out) > p.limit {
		out = out[len(out)-p.limit:]
	}
	return out
}
