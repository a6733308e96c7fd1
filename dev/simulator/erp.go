package simulator

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
)

// nameRule matches valid names of agencies and inboxes.
var nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// erps holds the agencies' ERPs. The first request to an ERP creates it.
type erps struct {
	mu       sync.Mutex
	byAgency map[string]*erp
}

// erp is one agency's system.
type erp struct {
	behaviour behaviour

	mu            sync.Mutex
	dues          map[string][]json.RawMessage // by subject_ref
	disbursements map[string][]json.RawMessage // by batch_ref
	asked         int                          // answers with lines
	lastPaid      time.Time                    // the latest paid_at
	transactions  map[string]*confirmation
	accepted      history[*confirmation]
	attempts      history[attempt]
	totals        erpTotals
}

// confirmation is a transaction that the ERP has accepted.
type confirmation struct {
	ID            int64           `json:"id"`
	TransactionID string          `json:"transaction_id"`
	AcceptedAt    time.Time       `json:"accepted_at"`
	Accepted      int             `json:"accepted"`
	Attempts      int             `json:"attempts"` // attempts of this transaction
	Body          json.RawMessage `json:"body"`

	digest [sha256.Size]byte
}

// attempt is one POST /payment-confirmations with its answer.
type attempt struct {
	ID            int64     `json:"id"`
	At            time.Time `json:"at"`
	TransactionID string    `json:"transaction_id"` // empty if it could not be read
	Status        int       `json:"status"`
	Code          string    `json:"code,omitempty"`
}

// erpTotals counts all attempts since the start or the last DELETE.
type erpTotals struct {
	Attempts int `json:"attempts"`
	Accepted int `json:"accepted"`
	Repeated int `json:"repeated"` // answered 409 already_recorded
	Refused  int `json:"refused"`  // any other answer that is not 2xx
}

func (s *Simulator) erp(agency string) *erp {
	s.erps.mu.Lock()
	defer s.erps.mu.Unlock()
	e := s.erps.byAgency[agency]
	if e == nil {
		e = &erp{
			dues:          standardDues(s.cfg.Now()),
			disbursements: standardBatches(),
		}
		e.forget(s.cfg)
		s.erps.byAgency[agency] = e
	}
	return e
}

// forget drops every confirmation and attempt. The numbering continues.
func (e *erp) forget(cfg Config) {
	e.transactions = map[string]*confirmation{}
	e.totals = erpTotals{}
	if e.accepted.max == 0 {
		e.accepted, e.attempts = newHistory[*confirmation](cfg.MaxConfirmations), newHistory[attempt](cfg.MaxAttempts)
		return
	}
	e.accepted.clear()
	e.attempts.clear()
}

func (s *Simulator) erpRoutes(r chi.Router) {
	r.Use(nameChecked("agency"))
	r.Get("/health", s.erpCall(func(w http.ResponseWriter, _ *http.Request, _ *erp, _ conduct) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	}))
	r.Get("/dues", s.erpCall(func(w http.ResponseWriter, r *http.Request, e *erp, now conduct) {
		e.list(w, r, "subject_ref", func(e *erp) map[string][]json.RawMessage { return e.dues }, now)
	}))
	r.Get("/disbursements", s.erpCall(func(w http.ResponseWriter, r *http.Request, e *erp, now conduct) {
		e.list(w, r, "batch_ref", func(e *erp) map[string][]json.RawMessage { return e.disbursements }, now)
	}))
	r.Post("/payment-confirmations", s.erpConfirm)
}

// breakOff ends the connection without an answer if the system is away.
func (c conduct) breakOff() {
	if c.away {
		panic(http.ErrAbortHandler)
	}
}

// nameChecked answers 404 to names that nameRule does not match.
func nameChecked(param string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !nameRule.MatchString(chi.URLParam(r, param)) {
				writeProblem(w, http.StatusNotFound, "The "+param+" in the address is not a name.",
					fault{param, "is not a name", "use 1 to 100 letters, digits, dots, hyphens or underscores"})
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// erpCall authenticates the caller, applies the outage set by /control, and then calls
// answer.
func (s *Simulator) erpCall(answer func(http.ResponseWriter, *http.Request, *erp, conduct)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		agency := chi.URLParam(r, "agency")
		e := s.erp(agency)
		now := e.behaviour.next()
		now.breakOff()
		if !now.misbehaves(misbehaveOpen) && !s.erpAuthorized(agency, r) {
			refuseERPCredentials(w)
			return
		}
		if !s.pause(w, r, now.delay) {
			return
		}
		if now.status != 0 {
			writeCodedProblem(w, now.status, "unavailable", "The ERP is out of order, as POST /control/erp/"+agency+" asked.")
			return
		}
		answer(w, r, e, now)
	}
}

func refuseERPCredentials(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer, Basic")
	writeCodedProblem(w, http.StatusUnauthorized, "unauthorized",
		"The credentials are missing or not those of this agency's ERP settings (agencies[].erp.test.auth in the registry).")
}

// erpAuthorized compares the request with every accepted credential in constant time.
func (s *Simulator) erpAuthorized(agency string, r *http.Request) bool {
	if s.cfg.ERPAuth == nil {
		return true
	}
	accepted := s.cfg.ERPAuth(agency)
	if len(accepted) == 0 {
		return true
	}
	equal := func(got, want string) bool {
		return want != "" && subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
	}
	for _, a := range accepted {
		switch a.Type {
		case AuthBearer:
			token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if ok && equal(token, a.Token) {
				return true
			}
		case AuthAPIKey:
			if equal(r.Header.Get(a.Header), a.Value) {
				return true
			}
		case AuthBasic:
			user, password, ok := r.BasicAuth()
			if ok && equal(user, a.Username) && equal(password, a.Password) {
				return true
			}
		}
	}
	return false
}

// erpConfirm is POST /payment-confirmations. The delay comes last: a slow ERP has
// recorded the confirmation before the caller gives up.
func (s *Simulator) erpConfirm(w http.ResponseWriter, r *http.Request) {
	agency := chi.URLParam(r, "agency")
	e := s.erp(agency)
	now := e.behaviour.next()
	now.breakOff()
	id, answer := s.erpJudge(w, r, agency, e, now)
	if answer.status == 0 {
		return // the refusal is already answered
	}
	e.note(s.cfg.Now(), id, answer)
	if !s.pause(w, r, now.delay) {
		return
	}
	if answer.status == http.StatusUnauthorized {
		refuseERPCredentials(w)
		return
	}
	if answer.status == http.StatusCreated {
		writeJSON(w, answer.status, map[string]string{"status": "recorded", "transaction_id": id})
		return
	}
	writeCodedProblem(w, answer.status, answer.code, answer.detail, answer.faults...)
}

// erpAnswer is an ERP's answer to a confirmation.
type erpAnswer struct {
	status int
	code   string
	detail string
	faults []fault
}

func (s *Simulator) erpJudge(w http.ResponseWriter, r *http.Request, agency string, e *erp, now conduct) (id string, _ erpAnswer) {
	key := r.Header.Get("Idempotency-Key")
	if !now.misbehaves(misbehaveOpen) && !s.erpAuthorized(agency, r) {
		return key, erpAnswer{status: http.StatusUnauthorized, code: "unauthorized"}
	}
	body, ok := readBody(w, r, maxERPBody)
	if !ok {
		return key, erpAnswer{}
	}
	switch {
	case now.status != 0:
		return key, erpAnswer{status: now.status, code: "unavailable", detail: "The ERP is out of order, as POST /control/erp/" + agency + " asked."}
	case now.refuse != 0:
		return key, erpAnswer{status: now.refuse, code: now.refuseCode, detail: "The ERP refuses confirmations, as POST /control/erp/" + agency + " asked."}
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return key, erpAnswer{
			status: http.StatusUnsupportedMediaType, code: "unsupported_media_type", detail: "The body must be JSON.",
			faults: []fault{{"Content-Type", "is not application/json", "send Content-Type: application/json"}},
		}
	}
	if !json.Valid(body) {
		return key, erpAnswer{status: http.StatusBadRequest, code: "invalid_json", detail: "The body is not JSON."}
	}
	if key == "" {
		return key, erpAnswer{
			status: http.StatusBadRequest, code: "idempotency_key_required", detail: "The header Idempotency-Key is missing.",
			faults: []fault{{"Idempotency-Key", "is missing", "send the transaction_id as Idempotency-Key"}},
		}
	}
	id, faults := confirmationFaults(body)
	if id != key {
		faults = append(faults, fault{"Idempotency-Key", "differs from transaction_id", "send the transaction_id as Idempotency-Key"})
	}
	if len(faults) > 0 {
		return key, erpAnswer{
			status: http.StatusUnprocessableEntity, code: "invalid_confirmation",
			detail: "The confirmation is not what the contract says: " + describe(faults), faults: faults,
		}
	}
	return key, e.record(s.cfg.Now(), id, body, now)
}

// record stores an acceptable confirmation once and takes its amount off the due.
func (e *erp) record(now time.Time, id string, body []byte, c conduct) erpAnswer {
	var compact bytes.Buffer
	var about struct {
		Ref    string    `json:"erp_due_ref"`
		Amount int64     `json:"amount_minor"`
		PaidAt time.Time `json:"paid_at"`
	}
	if json.Compact(&compact, body) != nil || json.Unmarshal(body, &about) != nil {
		return erpAnswer{status: http.StatusBadRequest, code: "invalid_json", detail: "The body is not JSON."}
	}
	digest := canonicalDigest(body)
	e.mu.Lock()
	defer e.mu.Unlock()
	if earlier := e.transactions[id]; earlier != nil {
		switch {
		case c.misbehaves(misbehaveCountsTwice):
			e.book(about.Ref, about.Amount)
			return erpAnswer{status: http.StatusCreated}
		case c.misbehaves(misbehaveRepeatFails):
			return erpAnswer{status: http.StatusUnprocessableEntity, code: "duplicate", detail: "This transaction is not acceptable."}
		case earlier.digest == digest:
			return erpAnswer{status: http.StatusConflict, code: "already_recorded", detail: "This transaction has been recorded before, with the same body."}
		}
		return erpAnswer{
			status: http.StatusUnprocessableEntity, code: "transaction_id_reused", detail: "This transaction has been recorded before, with another body.",
			faults: []fault{{"transaction_id", "belongs to another confirmation", "send the same body again, or another transaction_id"}},
		}
	}
	if c.misbehaves(misbehaveInOrder) && about.PaidAt.Before(e.lastPaid) {
		return erpAnswer{status: http.StatusUnprocessableEntity, code: "out_of_order", detail: "A later payment has been recorded before."}
	}
	recorded := &confirmation{
		ID: e.accepted.next(), TransactionID: id, AcceptedAt: now,
		Body: bytes.Clone(compact.Bytes()), digest: digest,
	}
	for _, old := range e.accepted.add(recorded) {
		delete(e.transactions, old.TransactionID)
	}
	e.transactions[id] = recorded
	if e.lastPaid.Before(about.PaidAt) {
		e.lastPaid = about.PaidAt
	}
	if !c.misbehaves(misbehaveBalances) {
		e.book(about.Ref, about.Amount)
	}
	return erpAnswer{status: http.StatusCreated}
}

// canonicalDigest returns the same digest for bodies that differ only in white space and
// in the order of their members. Numbers keep their spelling.
func canonicalDigest(body []byte) [sha256.Size]byte {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return sha256.Sum256(body)
	}
	canonical, err := json.Marshal(v) // sorts the members
	if err != nil {
		return sha256.Sum256(body)
	}
	return sha256.Sum256(canonical)
}

// note stores an attempt with its answer.
func (e *erp) note(now time.Time, id string, answer erpAnswer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.attempts.add(attempt{ID: e.attempts.next(), At: now, TransactionID: id, Status: answer.status, Code: answer.code})
	e.totals.Attempts++
	known := e.transactions[id]
	if known != nil {
		known.Attempts++
	}
	switch {
	case answer.status == http.StatusCreated:
		e.totals.Accepted++
		if known != nil {
			known.Accepted++
		}
	case answer.code == "already_recorded":
		e.totals.Repeated++
	default:
		e.totals.Refused++
	}
}

var (
	noticeRule   = regexp.MustCompile(`^AV[0-9]{14}$`)
	paymentRule  = regexp.MustCompile(`^[0-9]{16}$`)
	currencyRule = regexp.MustCompile(`^[A-Z]{3}$`)
	serviceRule  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,49}$`)
	channels     = []string{"MOBILE_MONEY", "CASH", "CARD", "BANK_TRANSFER"}
)

// rule describes a member of a confirmation: expect in words, holds as a check of the
// decoded member, whose numbers are json.Number.
type rule struct {
	field  string
	expect string
	holds  func(any) bool
}

func textThat(matches func(string) bool) func(any) bool {
	return func(v any) bool {
		s, ok := v.(string)
		return ok && matches(s)
	}
}

func orNull(holds func(any) bool) func(any) bool {
	return func(v any) bool { return v == nil || holds(v) }
}

func notBlank(s string) bool { return strings.TrimSpace(s) != "" }

// masked reports that a value is not a payer's complete number: it has other characters
// than digits.
func masked(s string) bool {
	return notBlank(s) && strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune("+0123456789 ", r) })
}

func isBoolean(v any) bool {
	_, ok := v.(bool)
	return ok
}

func isPositiveInteger(v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	return err == nil && i > 0
}

func isUUID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

// The members of a confirmation (contract decision 10). All are required, and no others
// are allowed.
var (
	confirmationRules = []rule{
		{"erp_due_ref", "a string that is not empty", textThat(notBlank)},
		{"transaction_id", "a UUID in lower case", textThat(isUUID)},
		{"notice_ref", "AV, the year and ten digits", textThat(noticeRule.MatchString)},
		{"payment_ref", "16 digits as a string", textThat(paymentRule.MatchString)},
		{"subject_ref", "a string that is not empty, or null", orNull(textThat(notBlank))},
		{"amount_minor", "a whole number above zero", isPositiveInteger},
		{"currency", "an ISO 4217 code", textThat(currencyRule.MatchString)},
		{"partial", "true or false", isBoolean},
		{"paid_at", "an RFC 3339 time such as 2026-09-30T08:15:00Z", textThat(isTime)},
		{"service_code", "a catalogue code, or null", orNull(textThat(serviceRule.MatchString))},
		{"payment", "an object", func(v any) bool { _, ok := v.(map[string]any); return ok }},
	}
	paymentRules = []rule{
		{"channel", strings.Join(channels, ", "), textThat(func(s string) bool { return slices.Contains(channels, s) })},
		{"offer_id", "a string that is not empty", textThat(notBlank)},
		{"operator_ref", "a string that is not empty", textThat(notBlank)},
		{"payer_masked", "a number with most digits masked, or null", orNull(textThat(masked))},
	}
)

// confirmationFaults checks a JSON body and returns its transaction_id if that
// is a string.
func confirmationFaults(body []byte) (id string, faults []fault) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var members map[string]any
	if err := dec.Decode(&members); err != nil || members == nil {
		return "", []fault{{"", "is not an object", "send a JSON object"}}
	}
	id, _ = members["transaction_id"].(string)
	faults = check("", members, confirmationRules, nil)
	if payment, ok := members["payment"].(map[string]any); ok {
		faults = check("payment.", payment, paymentRules, faults)
	}
	return id, faults
}

func check(prefix string, members map[string]any, rules []rule, faults []fault) []fault {
	for _, rule := range rules {
		v, ok := members[rule.field]
		switch {
		case !ok:
			faults = append(faults, fault{prefix + rule.field, "is missing", "send " + rule.expect})
		case !rule.holds(v):
			faults = append(faults, fault{prefix + rule.field, "has a wrong type or value", "send " + rule.expect})
		}
	}
	var unknown []string
	for name := range members {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.field == name }) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		faults = append(faults, fault{prefix + name, "is not part of a confirmation", "leave it out"})
	}
	return faults
}

// erpView is the answer of GET /control/erp/{agency}.
type erpView struct {
	Agency   string         `json:"agency"`
	Totals   erpTotals      `json:"totals"`
	Accepted []confirmation `json:"accepted"`
	Attempts []attempt      `json:"attempts"`
	// Dues by subject_ref, as they are after the confirmations.
	Dues map[string][]json.RawMessage `json:"dues"`
	// Disbursements are lines by batch_ref.
	Disbursements map[string][]json.RawMessage `json:"disbursements"`
}

// controlERPShow is GET /control/erp/{agency}: the accepted confirmations and all attempts,
// oldest first. after and limit page the confirmations, attempts_after and the same limit
// the attempts.
func (s *Simulator) controlERPShow(w http.ResponseWriter, r *http.Request) {
	accepted, ok := readPage(w, r, "attempts_after")
	if !ok {
		return
	}
	attempts := page{limit: accepted.limit}
	if value := r.URL.Query().Get("attempts_after"); value != "" {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			writeProblem(w, http.StatusBadRequest, "attempts_after is not understood.",
				fault{"attempts_after", "is not a number of an entry", "send the id of the last attempt you have seen, or 0"})
			return
		}
		attempts.after, attempts.resumes = n, true
	}
	agency := chi.URLParam(r, "agency")
	e := s.erp(agency)
	e.mu.Lock()
	kept := e.accepted.window(accepted)
	view := erpView{Agency: agency, Totals: e.totals, Accepted: make([]confirmation, len(kept)), Attempts: e.attempts.window(attempts), Dues: map[string][]json.RawMessage{}, Disbursements: map[string][]json.RawMessage{}}
	for subject, items := range e.dues {
		view.Dues[subject] = append([]json.RawMessage{}, items...)
	}
	for batch, lines := range e.disbursements {
		view.Disbursements[batch] = append([]json.RawMessage{}, lines...)
	}
	for i, c := range kept {
		view.Accepted[i] = *c
	}
	e.mu.Unlock()
	writeJSON(w, http.StatusOK, view)
}

// controlERPSet is POST /control/erp/{agency}.
func (s *Simulator) controlERPSet(w http.ResponseWriter, r *http.Request) {
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	e := s.erp(chi.URLParam(r, "agency"))
	var reset bool
	f.take("reset", &reset, "true or false")
	c, changes := readConduct(f)
	changes = takeMisbehaviour(f, &c) || changes
	changed := takeChanges(f)
	var dues, disbursements map[string][]json.RawMessage
	const lists = "an object of lists of objects, such as {\"NIU-1\": [{…}]}"
	f.take("dues", &dues, lists)
	f.take("disbursements", &disbursements, lists)
	checkObjects(f, "dues", dues)
	checkObjects(f, "disbursements", disbursements)
	var refuse map[string]json.RawMessage
	if f.take("refuse", &refuse, `an object such as {"status": 422, "code": "due_closed"}`) && refuse != nil {
		changes = true
		inner := &form{members: refuse}
		c.refuseCode = "refused"
		if !inner.integer("status", &c.refuse, 400, 499) && refuse["status"] == nil {
			inner.fail("status", "is missing", "send a status from 400 to 499")
		}
		inner.take("code", &c.refuseCode, "a string")
		for _, fault := range inner.finish() {
			f.fail("refuse."+fault.Field, fault.Message, fault.Mend)
		}
	}
	if !f.accepted(w) {
		return
	}
	e.mu.Lock()
	if reset {
		e.dues = standardDues(s.cfg.Now())
		e.disbursements = standardBatches()
	}
	for subject, items := range dues {
		e.dues[subject] = items
	}
	for batch, lines := range disbursements {
		e.disbursements[batch] = lines
	}
	unknown := e.apply(changed)
	e.mu.Unlock()
	if len(unknown) > 0 {
		writeProblem(w, http.StatusNotFound, "No due has the reference "+strings.Join(unknown, ", ")+".", fault{"change", "names an unknown erp_due_ref", "GET /control/erp/{agency} shows the dues"})
		return
	}
	if reset || changes {
		e.behaviour.set(c)
	}
	w.WriteHeader(http.StatusNoContent)
}

func checkObjects(f *form, name string, lists map[string][]json.RawMessage) {
	for key, items := range lists {
		for i, item := range items {
			if !bytes.HasPrefix(bytes.TrimSpace(item), []byte("{")) {
				f.fail(fmt.Sprintf("%s.%s[%d]", name, key, i), "is not an object", "send an object")
			}
		}
	}
}

// controlERPForget is DELETE /control/erp/{agency}.
func (s *Simulator) controlERPForget(w http.ResponseWriter, r *http.Request) {
	e := s.erp(chi.URLParam(r, "agency"))
	e.mu.Lock()
	e.forget(s.cfg)
	e.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}
