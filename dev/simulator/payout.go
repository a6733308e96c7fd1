package simulator

import (
	"cmp"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
)

// State of a payout as its operator tells it, the same for every operator.
const (
	payoutPending = "pending"
	payoutPaid    = "paid"
	payoutRefused = "refused"
)

// payout is one request of a merchant to pay somebody. The lock of payouts guards what
// changes.
type payout struct {
	seq         int64
	id          string // the merchant's id
	operator    string
	account     string // the merchant at the operator; never shown
	externalID  string
	amount      string
	currency    string
	payee       string
	message     string
	note        string
	callbackURL string
	operatorRef string
	receivedAt  time.Time
	does        payeeScript

	state      string
	reason     string // the operator's word for a refusal
	decidedAt  time.Time
	payments   int // how often money moved to the payee: what the operator did, whatever it tells
	returnedAt time.Time
	fee        string // that the operator kept of a return
	duplicates int
	enquiries  int
	underway   bool // the request has not arrived yet: the operator does not know the id
}

// payeeScript is what becomes of a payout. The zero value waits for /control.
type payeeScript struct {
	decides   bool
	after     func(Config) time.Duration // nil: at once
	refusal   string                     // the operator's word; empty for a payment
	silent    bool                       // the payout is made, and the request gets no answer
	failFirst bool                       // the first request of an id gets a 500 and is not taken
	delayed   bool                       // the answers call it delayed until it is decided
	unpaid    bool                       // it is told as paid, and no money moves
	paysLater bool                       // it is told as refused, and paid after all
	comesBack bool                       // the money comes back after backAfter, less backFee
	dayAhead  bool                       // the operator's own date of the payment is a day ahead
	underway  bool                       // the request arrives when it is due; a repetition that arrives before is carried out in its place
}

// payoutPoor are the operators' words for an account without money.
var payoutPoor = map[string]string{operatorMTN: "NOT_ENOUGH_FUNDS", operatorAirtel: "DP00900001007", operatorSwitch: "AG07"}

// payoutReasons are the reasons that /control may choose.
var payoutReasons = map[string][]string{operatorMTN: mtnPayoutReasons, operatorAirtel: airtelPayoutReasons, operatorSwitch: switchPayoutReasons}

// What becomes of money that comes back by itself.
const (
	backAfter = 3 * 24 * time.Hour
	backFee   = "50"
)

// magicPayee is what becomes of payouts to a number.
type magicPayee struct {
	digits string // the last two
	says   string // in GET /
	does   payeeScript
}

// payeeScriptOf returns what becomes of a payout to a number; prefix holds all but its last
// two digits, and crowd those of the hundred numbers that are all paid at once: a batch pays
// many people, and each of them once.
func payeeScriptOf(all []magicPayee, number, prefix, crowd string) payeeScript {
	if strings.HasPrefix(number, crowd) && len(number) == len(crowd)+2 {
		return payeeScript{decides: true}
	}
	for _, p := range all {
		if number == prefix+p.digits {
			return p.does
		}
	}
	return payeeScript{}
}

// holder is whom an operator has behind a number.
type holder struct {
	given, family string
	unknown       bool // the operator has nobody
	silent        bool // the question gets no answer
}

// holderOf returns who has a number; prefix holds all but its last two digits. Every number but a few is the same person's, so that
// a file with her name is right for each of them.
func holderOf(number, prefix string) holder {
	switch number {
	case prefix + "02":
		return holder{given: "Awa Christelle", family: "Mabiala"}
	case prefix + "03":
		return holder{given: "Brice", family: "Okemba"}
	case prefix + "07":
		return holder{unknown: true}
	case prefix + "08":
		return holder{silent: true}
	}
	return holder{given: "Awa", family: "Mabiala"}
}

// holdersText says who has the numbers, for GET /.
func holdersText(spelled string) string {
	return "    The name of every number is Awa Mabiala, but of\n" +
		"    " + spelled + "02  Awa Christelle Mabiala\n" +
		"    " + spelled + "03  Brice Okemba\n" +
		"    " + spelled + "07  nobody\n" +
		"    " + spelled + "08  the question gets no answer\n\n"
}

// payeesText lists the numbers for GET /.
func payeesText(all []magicPayee, spelled, crowd string) string {
	var b strings.Builder
	for _, p := range all {
		b.WriteString("    " + spelled + p.digits + "  " + p.says + "\n")
	}
	b.WriteString("    " + crowd + "NN  is paid at once, whatever NN\n")
	b.WriteString("\n" + holdersText(spelled))
	return b.String()
}

// payouts has the payouts of all operators and what each account may still pay. Safe for
// concurrent use.
type payouts struct {
	mu    sync.Mutex
	byID  map[string]*payout
	all   history[*payout]
	float map[string]*big.Rat // by operator and account; none: without limit
	now   func() time.Time
	after func(payeeScript) time.Duration
}

func newPayouts(limit int, cfg Config) *payouts {
	return &payouts{
		byID: map[string]*payout{}, all: newHistory[*payout](limit), float: map[string]*big.Rat{}, now: cfg.Now,
		after: func(does payeeScript) time.Duration {
			if does.after == nil {
				return 0
			}
			return does.after(cfg)
		},
	}
}

// accept enters a payout unless its id is taken, and carries it out if it is due at once. A repetition of a request that has
// not arrived yet is carried out in its place.
func (l *payouts) accept(p payout) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if earlier := l.byID[p.id]; earlier != nil {
		earlier.duplicates++
		l.settle(earlier)
		arrives := earlier.underway
		if arrives {
			earlier.underway, earlier.does.after = false, nil
			l.settle(earlier)
		}
		return arrives
	}
	p.seq, p.state, p.underway = l.all.next(), payoutPending, p.does.underway
	for _, old := range l.all.add(&p) {
		delete(l.byID, old.id)
	}
	l.byID[p.id] = &p
	l.settle(&p)
	return true
}

// settle carries out what is due of a payout. The lock is held.
func (l *payouts) settle(p *payout) {
	now := l.now()
	due := p.receivedAt.Add(l.after(p.does))
	if !now.Before(due) {
		p.underway = false
	}
	switch {
	case !p.does.decides || now.Before(due):
	case p.state == payoutPending && p.does.paysLater:
		p.state, p.reason, p.decidedAt = payoutRefused, p.does.refusal, due
		p.payments++
	case p.state == payoutPending:
		l.decide(p, p.does.refusal, due)
	}
	if back := due.Add(backAfter); p.does.comesBack && p.state == payoutPaid && p.returnedAt.IsZero() && !now.Before(back) {
		p.returnedAt, p.fee = back, backFee
	}
}

// decide refuses a pending payout with a reason, or pays it if there is none and the account
// has the money. The lock is held.
func (l *payouts) decide(p *payout, reason string, at time.Time) {
	left := l.float[p.operator+" "+p.account]
	amount, readable := new(big.Rat).SetString(p.amount)
	if reason == "" && left != nil && readable && left.Cmp(amount) < 0 {
		reason = payoutPoor[p.operator]
	}
	p.decidedAt = at
	if p.reason = reason; reason != "" {
		p.state = payoutRefused
		return
	}
	p.state = payoutPaid
	if p.does.unpaid {
		return
	}
	p.payments++
	if left != nil && readable {
		left.Sub(left, amount)
	}
}

// get returns a payout as of now, and counts an enquiry of its merchant.
func (l *payouts) get(id string, enquiry bool) (payout, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.byID[id]
	if p == nil {
		return payout{}, false
	}
	l.settle(p)
	if p.underway {
		return payout{}, false
	}
	if enquiry {
		p.enquiries++
	}
	return *p, true
}

// change changes a payout as of now. It returns what change returned, or false without such a
// payout.
func (l *payouts) change(id string, change func(*payout) bool) (p payout, found, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.byID[id]
	if kept == nil {
		return payout{}, false, false
	}
	l.settle(kept)
	changed = change(kept)
	return *kept, true, changed
}

// list returns the payouts of an operator, or of all, oldest first.
func (l *payouts) list(operator string) []payout {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []payout{}
	for _, p := range l.all.entries {
		if operator == "" || p.operator == operator {
			l.settle(p)
			out = append(out, *p)
		}
	}
	return out
}

// fill sets what an account may still pay; nil for no limit.
func (l *payouts) fill(operator, account string, amount *big.Rat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.float[operator+" "+account] = amount
}

// payoutView is a payout in the JSON of /control. payments is what the operator did: more
// than one is double pay.
type payoutView struct {
	Seq         int64      `json:"seq"`
	ID          string     `json:"id"`
	Operator    string     `json:"operator"`
	ExternalID  string     `json:"external_id"`
	Amount      string     `json:"amount"`
	Currency    string     `json:"currency"`
	Payee       string     `json:"payee"`
	Status      string     `json:"status"`
	Reason      string     `json:"reason,omitempty"`
	OperatorRef string     `json:"operator_ref"`
	ReceivedAt  time.Time  `json:"received_at"`
	DecidedAt   *time.Time `json:"decided_at"`
	Payments    int        `json:"payments"`
	ReturnedAt  *time.Time `json:"returned_at"`
	Fee         string     `json:"fee,omitempty"`
	Duplicates  int        `json:"duplicate_requests"`
	Enquiries   int        `json:"enquiries"`
}

func payoutViewOf(p payout) payoutView {
	optional := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return payoutView{
		Seq: p.seq, ID: p.id, Operator: p.operator, ExternalID: p.externalID, Amount: p.amount, Currency: p.currency, Payee: p.payee,
		Status: p.state, Reason: p.reason, OperatorRef: p.operatorRef, ReceivedAt: p.receivedAt, DecidedAt: optional(p.decidedAt),
		Payments: p.payments, ReturnedAt: optional(p.returnedAt), Fee: p.fee, Duplicates: p.duplicates, Enquiries: p.enquiries,
	}
}

func (s *Simulator) payoutControlRoutes(r chi.Router) {
	r.Get("/", s.controlPayouts)
	r.Post("/{id}/pay", s.controlPay)
	r.Post("/{id}/refuse", s.controlRefuse)
	r.Post("/{id}/return", s.controlReturn)
}

// controlPayouts is GET /control/payouts: an array, newest last; ?operator= narrows it.
func (s *Simulator) controlPayouts(w http.ResponseWriter, r *http.Request) {
	views := []payoutView{}
	for _, p := range s.payouts.list(r.URL.Query().Get("operator")) {
		views = append(views, payoutViewOf(p))
	}
	writeJSON(w, http.StatusOK, views)
}

// controlPay is POST /control/payouts/{id}/pay: the money moves once more, whatever was told
// before. A pending payout becomes paid.
func (s *Simulator) controlPay(w http.ResponseWriter, r *http.Request) {
	s.controlPayout(w, r, func(p *payout) bool {
		if p.state == payoutPending {
			s.payouts.decide(p, "", s.cfg.Now())
			return true
		}
		p.payments++
		return true
	})
}

// controlRefuse is POST /control/payouts/{id}/refuse, of a pending payout. The body may name
// one of the operator's reasons.
func (s *Simulator) controlRefuse(w http.ResponseWriter, r *http.Request) {
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	p, _ := s.payouts.get(chi.URLParam(r, "id"), false)
	reasons := payoutReasons[cmp.Or(p.operator, operatorMTN)]
	reason := reasons[0]
	if f.take("reason", &reason, "a string, one of "+strings.Join(reasons, ", ")) && !slices.Contains(reasons, reason) {
		f.fail("reason", fmt.Sprintf("%q is not a reason of this operator", reason), "one of "+strings.Join(reasons, ", "))
	}
	if !f.accepted(w) {
		return
	}
	s.controlPayout(w, r, func(p *payout) bool {
		if p.state != payoutPending {
			return false
		}
		s.payouts.decide(p, reason, s.cfg.Now())
		return true
	})
}

// controlReturn is POST /control/payouts/{id}/return: the money of a payout comes back, less
// a fee.
func (s *Simulator) controlReturn(w http.ResponseWriter, r *http.Request) {
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	fee := "0"
	const expect = `a string of digits such as "50"`
	if f.take("fee", &fee, expect) && !mtnDecimal.MatchString(fee) {
		f.fail("fee", "is not an amount", "send "+expect)
	}
	if !f.accepted(w) {
		return
	}
	s.controlPayout(w, r, func(p *payout) bool {
		if p.payments == 0 || !p.returnedAt.IsZero() {
			return false
		}
		p.returnedAt, p.fee = s.cfg.Now(), fee
		return true
	})
}

func (s *Simulator) controlPayout(w http.ResponseWriter, r *http.Request, change func(*payout) bool) {
	id := chi.URLParam(r, "id")
	p, found, changed := s.payouts.change(id, change)
	switch {
	case !found:
		writeProblem(w, http.StatusNotFound, "There is no payout "+id+"; GET /control/payouts lists them.")
	case !changed:
		writeProblem(w, http.StatusConflict, "The payout is "+p.state+".")
	default:
		s.payoutDecided(p)
		writeJSON(w, http.StatusOK, payoutViewOf(p))
	}
}

// controlFloat is POST /control/{operator}/float: what an account may still pay. Without an
// amount it has no limit.
func (s *Simulator) controlFloat(operator string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f, ok := readForm(w, r)
		if !ok {
			return
		}
		var account, amount string
		if !f.take("account", &account, "the API user or the client id of the account") {
			f.fail("account", "is missing", "send the API user or the client id of the account")
		}
		const expect = `a string of digits such as "5000"`
		limited := f.take("amount", &amount, expect)
		left, readable := new(big.Rat).SetString(cmp.Or(amount, "0"))
		if limited && (!readable || !mtnDecimal.MatchString(amount)) {
			f.fail("amount", "is not an amount", "send "+expect)
		}
		if !f.accepted(w) {
			return
		}
		if !limited {
			left = nil
		}
		s.payouts.fill(operator, account, left)
		w.WriteHeader(http.StatusNoContent)
	}
}
