package simulator

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"quittance/money"
)

const (
	operatorCard = "card"
	// cardMagicPrefix holds all but the last two digits of magic card numbers.
	cardMagicPrefix = "40000000000000"
	// cardSecret is the secret of every merchant when Config.Card is nil.
	cardSecret = "simulator"
	// cardFailingAmount is the total, in minor units, whose first request gets a
	// 500. It replaces magic number 11: at that time no card is known.
	cardFailingAmount = 1111
	cardClockSkew     = 5 * time.Minute
	cardTransaction   = "txn_"
)

// cardOperator is the card acquirer.
func cardOperator() operator {
	return operator{
		name: operatorCard, routes: (*Simulator).cardRoutes, index: cardIndex,
		reasons: cardReasons, rejections: cardRejections, callback: cardCallback, sign: (*Simulator).cardSign,
	}
}

const cardIndex = `CARD ACQUIRER                                  /card
  POST /card/v1/transactions                   signed, see the package connector/card
  GET  /card/v1/transactions/{reference}?merchant=…
  GET  /card/pay/{transaction_id}?token=…      the page: its address is in the answer

  The citizen decides on the page, with a button or by a card number; the last two
  digits of 4000 0000 0000 00NN mean the same as above, but
  4000 0000 0000 0003  no answer: expired when its time is over
  4000 0000 0000 0004  declined, as are 05 (insufficient funds), 06 (limit), 07 (unknown)
  4000 0000 0000 0010  approved after its time is over
  4000 0000 0000 0013  authentication failed
  4000 0000 0000 0014  abandoned
  A total of 1111 minor units: the first request gets a 500 and is not taken.
  Any other card waits for /control. Amounts are in minor units.

`

// Causes that only card payments have.
const (
	causeAbandoned cause = "abandoned"
	causeExpired   cause = "expired"
)

// The statuses of the protocol.
const (
	cardApproved   = "approved"
	cardDeclined   = "declined"
	cardPending    = "pending"
	cardProcessing = "processing"
	cardAuthFailed = "authentication_failed"
	cardAbandoned  = "abandoned"
	cardExpired    = "expired"
)

var cardReasons = map[cause]string{
	causeRejected:          cardDeclined,
	causeInsufficientFunds: "insufficient_funds",
	causeLimitReached:      "limit_exceeded",
	causeUnknownPayer:      "unknown_card",
	causeWrongPIN:          cardAuthFailed,
	causeAbandoned:         cardAbandoned,
	causeExpired:           cardExpired,
}

// cardRejections are the reasons that /control may choose.
var cardRejections = []string{
	cardDeclined, "insufficient_funds", "limit_exceeded", "unknown_card", cardAuthFailed, cardAbandoned, cardExpired,
}

// hostedPage holds the values of a transaction's page. They do not change.
type hostedPage struct {
	url         string
	token       string // in url
	clientToken string
	returnURL   string
	expiresAt   time.Time
}

func (s *Simulator) cardRoutes(r chi.Router) {
	r.Group(func(r chi.Router) {
		r.Use(s.misbehave(operatorCard, func(w http.ResponseWriter, status int) {
			refuseCode(w, status, "internal_error", "Something went wrong")
		}))
		r.Post("/v1/transactions", s.cardCreate)
		r.Get("/v1/transactions/{reference}", s.cardEnquire)
	})
	r.Get("/pay/{transaction_id}", s.cardShow)
	r.Post("/pay/{transaction_id}", s.cardPay)
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		refuseCode(w, http.StatusNotFound, "no_such_path", "There is no such path")
	})
}

// secretsOf returns the secrets that a merchant shares with the acquirer, of requests and of reports.
func (s *Simulator) secretsOf(merchant string) (requests, reports string, ok bool) {
	if s.cfg.Card == nil {
		return cardSecret, cardSecret, merchant != ""
	}
	requests, reports, ok = s.cfg.Card(merchant)
	return requests, cmp.Or(reports, requests), ok && requests != ""
}

var cardAuthorization = regexp.MustCompile(`^HMAC-SHA256 merchant="([!#-\[\]-~]{1,200})", timestamp="([0-9]{1,12})", signature="([0-9a-f]{64})"$`)

func cardSignature(secret string, lines ...string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(mac.Sum(nil))
}

func hexSHA256(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// cardAuthorize returns the merchant who signed a request, or answers 401.
func (s *Simulator) cardAuthorize(w http.ResponseWriter, r *http.Request, body []byte) (merchant string, ok bool) {
	parts := cardAuthorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if parts == nil {
		refuseCode(w, http.StatusUnauthorized, "signature_missing", `send Authorization: HMAC-SHA256 merchant="…", timestamp="…", signature="…"`)
		return "", false
	}
	merchant, timestamp := parts[1], parts[2]
	secret, _, known := s.secretsOf(merchant)
	want := cardSignature(secret, "request", merchant, timestamp, r.Method, r.URL.RequestURI(), hexSHA256(body))
	if !known || !hmac.Equal([]byte(want), []byte(parts[3])) {
		refuseCode(w, http.StatusUnauthorized, "signature_invalid", "the signature is not this merchant's of this request")
		return "", false
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Unix(seconds, 0).Sub(s.cfg.Timestamp()).Abs() > cardClockSkew {
		refuseCode(w, http.StatusUnauthorized, "timestamp_out_of_range", "the timestamp is more than five minutes from now")
		return "", false
	}
	return merchant, true
}

// cardRequest is the body of a request for a transaction.
type cardRequest struct {
	Merchant    string    `json:"merchant"`
	Reference   string    `json:"reference"`
	Amount      int64     `json:"amount"`
	Currency    string    `json:"currency"`
	Description string    `json:"description"`
	ReturnURL   string    `json:"return_url"`
	CallbackURL string    `json:"callback_url"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// fault returns the fault of the request; empty for none.
func (q *cardRequest) fault(merchant string, now time.Time) (code, message string) {
	id, err := uuid.Parse(q.Reference)
	currency, known := money.Lookup(q.Currency)
	switch {
	case q.Merchant != merchant:
		return "merchant_mismatch", "merchant is not the one who signed"
	case err != nil || id.String() != q.Reference:
		return "reference_invalid", "reference must be a UUID in small letters"
	case !known || !currency.Card() && q.Currency != money.Default:
		return "currency_not_supported", "this acquirer does not take the currency"
	case q.Amount <= 0:
		return "amount_not_supported", "amount must be above zero, in minor units"
	case len([]rune(q.Description)) > 200:
		return "description_invalid", "description takes 200 characters at most"
	case !isAbsoluteURL(q.ReturnURL):
		return "return_url_invalid", "return_url must be an absolute URL"
	case !isAbsoluteURL(q.CallbackURL):
		return "callback_url_invalid", "callback_url must be an absolute URL"
	case !q.ExpiresAt.After(now):
		return "expires_at_invalid", "expires_at must be in the future"
	}
	return "", ""
}

// cardCreate is POST /v1/transactions.
func (s *Simulator) cardCreate(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r, maxOperatorBody)
	if !ok {
		return
	}
	merchant, ok := s.cardAuthorize(w, r, body)
	if !ok {
		return
	}
	if !isJSON(r) {
		refuseCode(w, http.StatusUnsupportedMediaType, "content_type_invalid", "Content-Type must be application/json")
		return
	}
	var q cardRequest
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&q); err != nil || decoder.More() {
		refuseCode(w, http.StatusBadRequest, "body_invalid", "the body is not the JSON of a transaction; amount is a whole number, expires_at is RFC 3339")
		return
	}
	now := s.cfg.Now()
	if _, found := s.book.get(q.Reference, now); found {
		s.book.duplicate(q.Reference)
		s.cardReplay(w, r, merchant, q)
		return
	}
	if code, message := q.fault(merchant, now); code != "" {
		refuseCode(w, http.StatusUnprocessableEntity, code, message)
		return
	}
	if q.Amount == cardFailingAmount && s.gateways[operatorCard].failsFirst(q.Reference) {
		refuseCode(w, http.StatusInternalServerError, "internal_error", "Something went wrong")
		return
	}
	c := collection{
		id: q.Reference, operator: operatorCard, account: merchant, externalID: q.Reference, amount: strconv.FormatInt(q.Amount, 10), currency: q.Currency,
		message: q.Description, callbackURL: q.CallbackURL, operatorRef: cardTransaction + strings.ReplaceAll(q.Reference, "-", ""), receivedAt: now,
		script: script{decides: true, after: q.ExpiresAt.Sub(now), refusal: causeExpired, callbacks: 1},
		page:   hostedPage{token: rand.Text(), clientToken: rand.Text(), returnURL: q.ReturnURL, expiresAt: q.ExpiresAt},
	}
	c.page.url = "http://" + r.Host + "/card/pay/" + c.operatorRef + "?token=" + c.page.token
	if !s.submit(c) {
		s.cardReplay(w, r, merchant, q) // a concurrent request has taken the reference
		return
	}
	s.accept(w, r, c, func() { writeJSON(w, http.StatusCreated, cardCreated(c)) })
}

// cardReplay answers a repeated request.
func (s *Simulator) cardReplay(w http.ResponseWriter, r *http.Request, merchant string, q cardRequest) {
	c, _ := s.book.get(q.Reference, s.cfg.Now())
	if !s.holdBack(w, r) {
		return
	}
	if c.operator != operatorCard || c.account != merchant || c.amount != strconv.FormatInt(q.Amount, 10) || c.currency != q.Currency {
		refuseCode(w, http.StatusConflict, "reference_conflict", "there is a transaction of this reference with another amount or currency")
		return
	}
	writeJSON(w, http.StatusOK, cardCreated(c))
}

func cardCreated(c collection) map[string]string {
	return map[string]string{
		"transaction_id": c.operatorRef, "reference": c.id, "status": cardStatus(c),
		"url": c.page.url, "client_token": c.page.clientToken, "checkout_environment": "test",
	}
}

// cardEnquire is GET /v1/transactions/{reference}. A transaction of another
// merchant is unknown.
func (s *Simulator) cardEnquire(w http.ResponseWriter, r *http.Request) {
	merchant, ok := s.cardAuthorize(w, r, nil)
	if !ok {
		return
	}
	if r.URL.Query().Get("merchant") != merchant {
		refuseCode(w, http.StatusUnprocessableEntity, "merchant_mismatch", "merchant is not the one who signed")
		return
	}
	id := chi.URLParam(r, "reference")
	c, found := s.book.get(id, s.cfg.Now())
	if !s.holdBack(w, r) {
		return
	}
	if !found || c.operator != operatorCard || c.account != merchant {
		refuseCode(w, http.StatusNotFound, "transaction_not_found", "there is no transaction of this reference")
		return
	}
	s.book.enquired(id)
	writeJSON(w, http.StatusOK, cardResultOf(c))
}

// cardResult is the body of an enquiry's answer and of a report.
type cardResult struct {
	TransactionID string `json:"transaction_id"`
	Reference     string `json:"reference"`
	Status        string `json:"status"`
	Amount        int64  `json:"amount"`
	Currency      string `json:"currency"`
	Reason        string `json:"reason,omitempty"`
	// ApprovedAt is set for an approved transaction.
	ApprovedAt *time.Time `json:"approved_at,omitempty"`
}

func cardResultOf(c collection) cardResult {
	amount, err := strconv.ParseInt(c.reported, 10, 64)
	if err != nil {
		amount = 0 // /control can set an amount that is not in minor units
	}
	result := cardResult{
		TransactionID: c.operatorRef, Reference: c.id, Status: cardStatus(c), Amount: amount, Currency: c.currency, Reason: c.reason,
	}
	if result.Status == cardApproved {
		result.ApprovedAt = &c.decidedAt
	}
	return result
}

// cardStatus returns the protocol's status of a collection. A reason without a status of
// its own counts as declined.
func cardStatus(c collection) string {
	switch {
	case c.state == stateApproved:
		return cardApproved
	case c.state == stateRejected:
		switch c.reason {
		case cardAuthFailed, cardAbandoned, cardExpired:
			return c.reason
		}
		return cardDeclined
	case c.script.ambiguous:
		return cardProcessing
	}
	return cardPending
}

// cardCallback is the report to the merchant.
func cardCallback(c collection) (method string, body []byte) {
	body, err := json.Marshal(cardResultOf(c))
	if err != nil {
		body = nil // strings and numbers always marshal
	}
	return http.MethodPost, body
}

// cardSign returns the Authorization header of a report to the merchant, with the present
// time.
func (s *Simulator) cardSign(merchant string, body []byte) string {
	_, secret, _ := s.secretsOf(merchant)
	timestamp := strconv.FormatInt(s.cfg.Timestamp().Unix(), 10)
	return fmt.Sprintf(`HMAC-SHA256 merchant="%s", timestamp="%s", signature="%s"`, merchant, timestamp,
		cardSignature(secret, "report", merchant, timestamp, hexSHA256(body)))
}

// cardScript returns the script of a transaction after the card holder has pressed action
// on the page, with this card number. left is the remaining time of the transaction.
func (s *Simulator) cardScript(action, number string, left time.Duration) (script, bool) {
	decided := script{decides: true, callbacks: 1}
	switch action {
	case "approve":
		return decided, true
	case "decline":
		decided.refusal = causeRejected
		return decided, true
	case "fail_authentication":
		decided.refusal = causeWrongPIN
		return decided, true
	case "abandon":
		decided.refusal = causeAbandoned
		return decided, true
	case "pay":
	default:
		return script{}, false
	}
	switch number {
	case cardMagicPrefix + "10":
		decided.after = left + s.cfg.LateDelay
		return decided, true
	case cardMagicPrefix + "14":
		decided.refusal = causeAbandoned
		return decided, true
	}
	chosen := s.magicScript(number, cardMagicPrefix)
	if !chosen.decides || chosen.after > left {
		chosen.decides, chosen.after, chosen.refusal = true, left, causeExpired
	}
	return chosen, true
}
