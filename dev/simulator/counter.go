package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
)

const operatorCounter = "counter"

// counterOperator is an agency's counter.
func counterOperator() operator {
	return operator{
		name: operatorCounter, index: counterIndex,
		reasons: counterReasons, rejections: counterRejections, callback: counterCallback,
		path: counterPath, sign: (*Simulator).counterSign, insists: true,
	}
}

const counterIndex = `CASH AT A COUNTER                              /control/counter
  A citizen comes to an agency's counter with the payment_ref, whose desk software
  looks it up at the service and says there what became of it:

  curl -X POST {base}/control/counter/PAYMENT_REF -d '{"number": "01"}'
  curl -X POST {base}/control/counter/PAYMENT_REF
  curl -X POST {base}/control/counter/PAYMENT_REF/reverse

  The numbers mean the same as above, without one it waits for /control, but
  03  the clerk leaves it: the reservation ends after ten minutes
  04  given up, as are 05 (not enough cash), 06 and 13
  07  the clerk mistypes the reference: the look-up is refused
  08  taken; the line is away, and the desk says it two seconds later
  09  taken, and said twice
  10  taken after the reservation has ended
  11  the answer to the first look-up is lost, and the clerk looks up again
  "key" names a clerk by the key; a reversal is by another one than took the cash.

`

// The clerk's words for cash that was not taken.
const (
	counterGivenUp  = "GIVEN_UP"
	counterTooShort = "NOT_ENOUGH_CASH"
)

// counterReasons maps causes that do not exist at a counter to "given up".
var counterReasons = map[cause]string{
	causeRejected: counterGivenUp, causeInsufficientFunds: counterTooShort, causeLimitReached: counterGivenUp,
	causeUnknownPayer: counterGivenUp, causeWrongPIN: counterGivenUp,
}

var counterRejections = []string{counterGivenUp, counterTooShort}

var paymentReference = regexp.MustCompile(`^[0-9]{16}$`)

// isMagic reports whether a number is a magic number of a visit.
func isMagic(digits string) bool {
	_, known := findMagic(digits, "")
	return known
}

// controlVisit is POST /control/counter/{payment_ref}: a citizen comes to the counter. The
// desk software looks the payment up at the service's API. The reservation becomes a
// collection in the book, which a magic number or /control/collections/{id} decides. The
// answer of a refusal is the service's.
func (s *Simulator) controlVisit(w http.ResponseWriter, r *http.Request) {
	ref, f, ok := s.atCounter(w, r)
	if !ok {
		return
	}
	var number string
	if f.take("number", &number, `the two digits of a magic number, "01" to "13"`) && !isMagic(number) {
		f.fail("number", fmt.Sprintf("%q is not a magic number", number), `send "01" to "13", or leave it out to decide by /control/collections`)
	}
	keys, _ := s.clerks(f)
	if !f.accepted(w) {
		return
	}
	plan := s.magicScript(number, "")
	if plan.refusal == causeUnknownPayer {
		ref = mistyped(ref)
	}
	tries := 1
	if plan.failFirst {
		tries = 2 // the first answer never reaches the desk
	}
	var held reservation
	var key string
	for range tries {
		var status int
		var answer []byte
		for _, key = range keys {
			if status, answer = s.desk(r.Context(), key, "reservations", map[string]any{"payment_ref": ref}); status != http.StatusNotFound {
				break // the payment belongs to this clerk's agency
			}
		}
		if status/100 != 2 || json.Unmarshal(answer, &held) != nil || len(held.CollectionID) < 8 {
			relay(w, status, answer)
			return
		}
	}
	now := s.cfg.Now()
	if number == "10" { // the clerk decides after the reservation has ended
		plan.after = held.ReservedUntil.Sub(now) + s.cfg.LateDelay
	}
	c := collection{
		id: held.CollectionID, operator: operatorCounter, account: key, externalID: ref,
		amount: strconv.FormatInt(held.Total, 10), currency: held.Currency, callbackURL: s.counterURL(),
		operatorRef: "R-" + held.CollectionID[:8], receivedAt: now, script: plan,
	}
	if s.submit(c) {
		s.schedule(c)
	} else if plan.decides { // the clerk has reserved it already
		due, chosen := s.book.choose(c.id, plan, "", now)
		if !chosen {
			writeProblem(w, http.StatusConflict, "What becomes of this visit is decided.", fault{"number", "comes too late", "take another session"})
			return
		}
		s.decisions.add(due, c.id)
	}
	c, _ = s.book.get(c.id, now)
	writeJSON(w, http.StatusCreated, viewOf(c))
}

// controlReverse is POST /control/counter/{payment_ref}/reverse: another clerk gives the
// cash back. Its answer is the service's.
func (s *Simulator) controlReverse(w http.ResponseWriter, r *http.Request) {
	ref, f, ok := s.atCounter(w, r)
	if !ok {
		return
	}
	keys, named := s.clerks(f)
	taken := s.book.list(filter{state: stateApproved, operator: operatorCounter, externalID: ref}, page{}, s.cfg.Now())
	if !f.accepted(w) {
		return
	}
	if len(taken) == 0 {
		writeProblem(w, http.StatusNotFound, "No cash was taken for "+ref+" at this counter.",
			fault{"payment_ref", "has no cash", "take some with POST /control/counter/" + ref + ` {"number": "01"}`})
		return
	}
	c := taken[len(taken)-1]
	key := keys[0]
	if !named {
		key = cmp.Or(s.colleague(c.account), key)
	}
	status, answer := s.desk(r.Context(), key, "reversals", map[string]any{"payment_ref": ref, "collection_id": c.id, "reason": "by /control"})
	if status/100 == 2 {
		s.book.givenBack(c.id, s.cfg.Now())
	}
	relay(w, status, answer)
}

// atCounter reads the parts that all calls to the counter share.
func (s *Simulator) atCounter(w http.ResponseWriter, r *http.Request) (ref string, f *form, ok bool) {
	if s.cfg.Counter == "" {
		writeProblem(w, http.StatusNotImplemented, "This process knows no service to bring cash to (use quittance-dev up).")
		return "", nil, false
	}
	if f, ok = readForm(w, r); !ok {
		return "", nil, false
	}
	if ref = chi.URLParam(r, "payment_ref"); !paymentReference.MatchString(ref) {
		f.fail("payment_ref", "is not a payment reference", "send the 16 digits of the session's payment_ref in the address")
	}
	return ref, f, true
}

// clerks returns the keys to try, one of each agency, or the key that the caller names.
func (s *Simulator) clerks(f *form) (keys []string, named bool) {
	var key string
	if f.take("key", &key, "a clerk's key, ck_test_…") && key != "" {
		return []string{key}, true
	}
	for _, agency := range s.cfg.Clerks {
		if len(agency) > 0 {
			keys = append(keys, agency[0])
		}
	}
	if len(keys) == 0 {
		f.fail("key", "is missing: this process knows no clerk", "send a clerk's key, ck_test_…; `quittance clerks` makes them")
	}
	return keys, false
}

// colleague returns the key of another clerk of the same agency; empty if there is none.
func (s *Simulator) colleague(key string) string {
	for _, agency := range s.cfg.Clerks {
		if !slices.Contains(agency, key) {
			continue
		}
		for _, other := range agency {
			if other != key {
				return other
			}
		}
	}
	return ""
}

// reservation is the part of a look-up's answer that the desk needs.
type reservation struct {
	CollectionID  string    `json:"collection_id"`
	Total         int64     `json:"total"`
	Currency      string    `json:"currency"`
	ReservedUntil time.Time `json:"reserved_until"`
}

func (s *Simulator) counterURL() string { return s.cfg.Counter + "/api/v1/counter/" }

// desk calls the service as the desk software; status 0 means no answer.
func (s *Simulator) desk(ctx context.Context, key, path string, body map[string]any) (status int, answer []byte) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil
	}
	status, answer, err = s.callbacks.put(ctx, callback{
		method: http.MethodPost, url: s.counterURL() + path, body: text,
		authorization: func() string { return s.counterSign(key, text) },
	})
	if err != nil {
		return 0, nil
	}
	return status, answer
}

// relay passes on the service's answer to the desk.
func relay(w http.ResponseWriter, status int, answer []byte) {
	if status == 0 {
		writeProblem(w, http.StatusBadGateway, "The service does not answer the counter.")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if status/100 != 2 {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer) // an error means that the caller has disconnected
}

// mistyped returns a reference with one wrong digit.
func mistyped(ref string) string {
	last := (ref[len(ref)-1]-'0'+1)%10 + '0'
	return ref[:len(ref)-1] + string(last)
}

// counterCallback is the call of the desk software after the visit: a payment or a
// release.
func counterCallback(c collection) (method string, body []byte) {
	entry := map[string]any{"payment_ref": c.externalID, "collection_id": c.id}
	if c.state == stateApproved {
		entry["total"], entry["receipt"] = json.Number(c.reported), c.operatorRef
	}
	body, err := json.Marshal(entry)
	if err != nil {
		body = nil // strings and digits always marshal
	}
	return http.MethodPost, body
}

// counterPath returns the path of that call.
func counterPath(c collection) string {
	if c.state == stateApproved {
		return "payments"
	}
	return "releases"
}

// counterSign returns a clerk's Authorization header.
func (s *Simulator) counterSign(key string, _ []byte) string { return "Bearer " + key }

// checkedCounter returns the service's address without a path.
func checkedCounter(address string) error {
	if u, err := url.Parse(address); address != "" && (err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https")) {
		return fmt.Errorf("simulator: Counter %q is no address such as http://127.0.0.1:8080", address)
	}
	return nil
}
