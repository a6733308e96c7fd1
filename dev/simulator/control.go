package simulator

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

const (
	maxDelay   = 10 * time.Minute
	maxAdvance = 10 * 365 * 24 * time.Hour
	maxTimes   = 1_000_000
)

func (s *Simulator) controlRoutes(r chi.Router) {
	r.Get("/collections", s.controlCollections)
	r.Get("/collections/{id}", s.controlCollection)
	r.Post("/collections/{id}/approve", s.controlApprove)
	r.Post("/collections/{id}/reject", s.controlReject)
	r.Route("/payouts", s.payoutControlRoutes)
	for operator := range payoutPoor {
		r.Post("/"+operator+"/float", s.controlFloat(operator))
	}
	r.Post("/counter/{payment_ref}", s.controlVisit)
	r.Post("/counter/{payment_ref}/reverse", s.controlReverse)
	for name, g := range s.gateways {
		r.Post("/"+name, s.controlGateway(g))
	}
	r.Post("/sms", s.controlLetters(s.sms.behaviour.set, http.StatusBadRequest, map[string][]string{"refuse": {smsRefusePermanent, smsRefuseTemporary, smsRefuseUnknown}, "report": smsReports}))
	r.Post("/mail", s.controlLetters(s.mail.behaviour.set, http.StatusBadRequest, map[string][]string{"at": {mailAtRecipient, mailAtData}}))
	r.Post("/clock", s.controlClock)
	r.Post("/bank/credit", s.controlCredit)
	r.Get("/statements", s.controlStatements)
	r.Get("/statements/{account}", s.controlStatement)
	r.Post("/statements/{account}", s.controlFault)
	r.Route("/erp/{agency}", func(r chi.Router) {
		r.Use(nameChecked("agency"))
		r.Get("/", s.controlERPShow)
		r.Post("/", s.controlERPSet)
		r.Delete("/", s.controlERPForget)
	})
	r.Route("/idp/{provider}", func(r chi.Router) {
		r.Use(nameChecked("provider"))
		r.Post("/", s.controlIdP)
		r.Post("/logout", s.controlIdPLogout)
	})
	r.Route("/inbox/{name}", func(r chi.Router) {
		r.Use(nameChecked("name"))
		r.Post("/", s.controlInbox)
	})
}

// readConduct takes the members that every surface has and reports whether there was one. A
// call with any member replaces the whole conduct.
func readConduct(f *form) (c conduct, changes bool) {
	changes = f.integer("status", &c.status, 200, 599)
	if c.status == http.StatusOK {
		c.status = 0 // the normal answer
	}
	changes = f.duration("delay", &c.delay, maxDelay) || changes
	changes = f.integer("times", &c.times, 1, maxTimes) || changes
	return c, changes
}

// collectionView is a collection in the JSON of /control.
type collectionView struct {
	Seq            int64      `json:"seq"`
	ID             string     `json:"id"`
	Operator       string     `json:"operator"`
	ExternalID     string     `json:"external_id"`
	Amount         string     `json:"amount"`
	Currency       string     `json:"currency"`
	Payer          string     `json:"payer"`
	Status         string     `json:"status"`
	Reason         string     `json:"reason,omitempty"`
	OperatorRef    string     `json:"operator_ref"`
	ReportedAmount string     `json:"reported_amount"`
	ReceivedAt     time.Time  `json:"received_at"`
	DueAt          *time.Time `json:"due_at"` // null: only /control decides
	DecidedAt      *time.Time `json:"decided_at"`
	CallbackURL    string     `json:"callback_url"`
	CallbacksSent  int        `json:"callbacks_sent"`
	CallbackStatus int        `json:"callback_status"`
	Duplicates     int        `json:"duplicate_requests"`
	Enquiries      int        `json:"enquiries"`
}

func viewOf(c collection) collectionView {
	optional := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return collectionView{
		Seq: c.seq, ID: c.id, Operator: c.operator, ExternalID: c.externalID,
		Amount: c.amount, Currency: c.currency, Payer: c.payer,
		Status: c.state, Reason: c.reason, OperatorRef: c.operatorRef, ReportedAmount: c.reported,
		ReceivedAt: c.receivedAt, DueAt: optional(c.dueAt), DecidedAt: optional(c.decidedAt),
		CallbackURL: c.callbackURL, CallbacksSent: c.callbacksSent, CallbackStatus: c.callbackCode,
		Duplicates: c.duplicates, Enquiries: c.enquiries,
	}
}

// controlCollections is GET /control/collections: an array, newest last.
// ?status=, ?operator= and ?external_id= narrow it; after takes a seq.
func (s *Simulator) controlCollections(w http.ResponseWriter, r *http.Request) {
	p, ok := readPage(w, r, "status", "operator", "external_id")
	if !ok {
		return
	}
	query := r.URL.Query()
	f := filter{state: query.Get("status"), operator: query.Get("operator"), externalID: query.Get("external_id")}
	states := []string{statePending, stateApproved, stateRejected}
	if f.state != "" && !slices.Contains(states, f.state) {
		writeProblem(w, http.StatusBadRequest, "The query is not understood.",
			fault{"status", fmt.Sprintf("%q is not a status", f.state), "one of " + strings.Join(states, ", ")})
		return
	}
	views := []collectionView{}
	for _, c := range s.book.list(f, p, s.cfg.Now()) {
		views = append(views, viewOf(c))
	}
	writeJSON(w, http.StatusOK, views)
}

// controlCollection is GET /control/collections/{id}.
func (s *Simulator) controlCollection(w http.ResponseWriter, r *http.Request) {
	c, found := s.book.get(chi.URLParam(r, "id"), s.cfg.Now())
	if !found {
		writeUnknownCollection(w, chi.URLParam(r, "id"))
		return
	}
	writeJSON(w, http.StatusOK, viewOf(c))
}

func writeUnknownCollection(w http.ResponseWriter, id string) {
	writeProblem(w, http.StatusNotFound, fmt.Sprintf("There is no collection %q.", id),
		fault{"id", "is not a collection", "take the id from GET /control/collections?status=pending"})
}

// controlApprove is POST /control/collections/{id}/approve. A body may name another amount,
// which the operator then reports.
func (s *Simulator) controlApprove(w http.ResponseWriter, r *http.Request) {
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	var amount string
	const expect = `a string of digits such as "5000"`
	if f.take("amount", &amount, expect) && !mtnDecimal.MatchString(amount) {
		f.fail("amount", "is not an amount", "send "+expect)
	}
	if f.accepted(w) {
		s.controlDecide(w, r, stateApproved, "", amount)
	}
}

// controlReject is POST /control/collections/{id}/reject. The body may name one of the
// operator's reasons.
func (s *Simulator) controlReject(w http.ResponseWriter, r *http.Request) {
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	c, found := s.book.get(chi.URLParam(r, "id"), s.cfg.Now())
	if !found {
		writeUnknownCollection(w, chi.URLParam(r, "id"))
		return
	}
	words := s.operators[c.operator]
	reason := words.reasons[causeRejected]
	if f.take("reason", &reason, "a string, one of "+strings.Join(words.rejections, ", ")) &&
		!slices.Contains(words.rejections, reason) {
		f.fail("reason", fmt.Sprintf("%q is not a reason of this operator", reason), "one of "+strings.Join(words.rejections, ", "))
	}
	if f.accepted(w) {
		s.controlDecide(w, r, stateRejected, reason, "")
	}
}

func (s *Simulator) controlDecide(w http.ResponseWriter, r *http.Request, state, reason, amount string) {
	id := chi.URLParam(r, "id")
	c, found, changed := s.book.decide(id, state, reason, amount, s.cfg.Now())
	switch {
	case !found:
		writeUnknownCollection(w, id)
	case !changed:
		writeProblem(w, http.StatusConflict, "This collection is already "+c.state+".",
			fault{"id", "is final", "take one from GET /control/collections?status=pending"})
	default:
		writeJSON(w, http.StatusOK, viewOf(c))
	}
}

// controlGateway is POST /control/mtn and those of the other operators: an outage or a
// slow gateway.
func (s *Simulator) controlGateway(g *gateway) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f, ok := readForm(w, r)
		if !ok {
			return
		}
		var reset bool
		f.take("reset", &reset, "true or false")
		c, changes := readConduct(f)
		if c.status != 0 && c.status < 400 {
			f.fail("status", fmt.Sprintf("%d is not a refusal", c.status), "send 400 to 599, or 200 for normal answers")
		}
		if !f.accepted(w) {
			return
		}
		if reset || changes {
			g.behaviour.set(c)
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// controlInbox is POST /control/inbox/{name}. It sets how the receiver answers.
func (s *Simulator) controlInbox(w http.ResponseWriter, r *http.Request) {
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	var reset bool
	f.take("reset", &reset, "true or false")
	c, changes := readConduct(f)
	changes = f.take("hang", &c.hang, "true or false") || changes
	changes = f.take("drip", &c.drip, "true or false") || changes
	if f.take("redirect", &c.redirect, "an absolute URL") {
		changes = true
		if u, err := url.Parse(c.redirect); c.redirect != "" && (err != nil || !u.IsAbs() || u.Host == "") {
			f.fail("redirect", "is not an absolute URL", "send one such as http://127.0.0.1:8081/inbox/other")
		}
	}
	var seconds int
	if f.integer("retry_after", &seconds, 0, 30*24*3600) {
		changes = true
		c.retryAfter = strconv.Itoa(seconds)
		if c.status == 0 {
			c.status = http.StatusTooManyRequests
		}
	}
	if !f.accepted(w) {
		return
	}
	if reset || changes {
		s.inbox(chi.URLParam(r, "name")).behaviour.set(c)
	}
	w.WriteHeader(http.StatusNoContent)
}

// controlClock is POST /control/clock. It moves the clock of the whole service forward.
func (s *Simulator) controlClock(w http.ResponseWriter, r *http.Request) {
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	var d time.Duration
	if !f.duration("advance", &d, maxAdvance) && f.members["advance"] == nil {
		f.fail("advance", "is missing", `send {"advance": "24h"}`)
	}
	if !f.accepted(w) {
		return
	}
	if s.cfg.AdvanceClock == nil {
		writeProblem(w, http.StatusNotImplemented, "This process has no clock to move: it was started without the service (use quittance-dev up).")
		return
	}
	now, err := s.cfg.AdvanceClock(r.Context(), d)
	if err != nil {
		s.cfg.Log.Error("advancing the clock", slog.Any("error", err))
		writeProblem(w, http.StatusInternalServerError, "The clock was not moved: "+err.Error()+".")
		return
	}
	s.decisions.nudge()
	s.callbacks.queue.nudge()
	writeJSON(w, http.StatusOK, map[string]any{"advanced": d.String(), "now": now})
}
