package simulator

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
)

const (
	operatorMTN    = "mtn"
	mtnCountryCode = "242"
	mtnMagicPrefix = "0660000"
	mtnSpelled     = "06 600 00 " // mtnMagicPrefix with spaces

	mtnCrowdPrefix  = "0660100" // payees who are all paid at once
	mtnCrowdSpelled = "06 601 00 "
	mtnOngoing      = "ONGOING"
	mtnRejected     = "APPROVAL_REJECTED"
)

// mtnOperator is MTN MoMo Collections and Disbursements.
func mtnOperator() operator {
	return operator{
		name: operatorMTN, routes: (*Simulator).mtnRoutes, index: mtnIndex + mtnPayoutIndex + payeesText(mtnPayees, mtnSpelled, mtnCrowdSpelled),
		reasons: mtnReasons, rejections: mtnRejections, callback: mtnCallback,
	}
}

const mtnIndex = `MOBILE MONEY A (MTN MoMo Collections)          /mtn
  POST /mtn/collection/token/
  POST /mtn/collection/v1_0/requesttopay
  GET  /mtn/collection/v1_0/requesttopay/{reference}

  What the payer does depends on the number; any other number waits for /control.
{numbers}

`

// mtnReasons are MTN's words for refusals. It has none for a wrong PIN.
var mtnReasons = map[cause]string{
	causeRejected:          mtnRejected,
	causeInsufficientFunds: "NOT_ENOUGH_FUNDS",
	causeLimitReached:      "PAYER_LIMIT_REACHED",
	causeUnknownPayer:      "PAYER_NOT_FOUND",
	causeWrongPIN:          mtnRejected,
}

// mtnRejections are the reasons that /control may choose. MTN's public pages and clients
// list them.
var mtnRejections = []string{
	mtnRejected, "REJECTED", "EXPIRED", "COULD_NOT_PERFORM_TRANSACTION", "NOT_ENOUGH_FUNDS",
	"PAYER_LIMIT_REACHED", "PAYER_NOT_FOUND", "PAYEE_NOT_FOUND", "PAYEE_NOT_ALLOWED_TO_RECEIVE",
	"SENDER_ACCOUNT_NOT_ACTIVE", "NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT",
	"INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY", "SERVICE_UNAVAILABLE", "INTERNAL_PROCESSING_ERROR",
}

func (s *Simulator) mtnRoutes(r chi.Router) {
	r.Use(s.misbehave(operatorMTN, func(w http.ResponseWriter, status int) {
		refuseCode(w, status, "SERVICE_UNAVAILABLE", "The service is temporarily unavailable")
	}))
	for _, product := range []mtnProduct{mtnCollection, mtnDisbursement} {
		r.Post("/"+string(product)+"/token/", s.mtnIssueToken(product))
		r.Post("/"+string(product)+"/token", s.mtnIssueToken(product))
	}
	r.Post("/disbursement/v1_0/transfer", s.mtnTransfer)
	r.Get("/disbursement/v1_0/transfer/{reference}", s.mtnTransferStatus)
	r.Get("/disbursement/v1_0/accountholder/msisdn/{number}/basicuserinfo", s.mtnHolder)
	r.Post("/collection/v1_0/requesttopay", s.mtnRequestToPay)
	r.Get("/collection/v1_0/requesttopay/{reference}", s.mtnStatus)
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		refuseCode(w, http.StatusNotFound, "RESOURCE_NOT_FOUND", "Resource not found")
	})
}

// mtnGatewayRefuse answers as the API gateway in front of MTN does.
func mtnGatewayRefuse(w http.ResponseWriter, message string) {
	writeJSON(w, http.StatusUnauthorized, map[string]any{"statusCode": http.StatusUnauthorized, "message": message})
}

const (
	mtnKeyHeader  = "Ocp-Apim-Subscription-Key"
	mtnMissingKey = "Access denied due to missing subscription key. Make sure to include subscription key when making requests to an API."
	mtnWrongKey   = "Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription."
)

// mtnProduct is a product of MTN. A token is that of one product.
type mtnProduct string

const (
	mtnCollection   mtnProduct = "collection"
	mtnDisbursement mtnProduct = "disbursement"
)

// mtnIssueToken is POST /{product}/token/.
func (s *Simulator) mtnIssueToken(product mtnProduct) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.mtnIssueTokenOf(product, w, r) }
}

func (s *Simulator) mtnIssueTokenOf(product mtnProduct, w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get(mtnKeyHeader)
	if key == "" {
		mtnGatewayRefuse(w, mtnMissingKey)
		return
	}
	user, secret, ok := r.BasicAuth()
	if !ok || user == "" || secret == "" || (s.cfg.MTN != nil && !s.cfg.MTN(key, user, secret)) {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "login_failed"})
		return
	}
	body, ok := readBody(w, r, maxOperatorBody)
	if !ok {
		return
	}
	if len(body) > 0 {
		refuseCode(w, http.StatusBadRequest, "BAD_REQUEST", "The token request takes no body")
		return
	}
	now := s.cfg.Now()
	token := s.gateways[operatorMTN].grant(grant{account: string(product) + " " + user, key: key, expiresAt: now.Add(s.cfg.TokenLifetime)}, now)
	if s.holdBack(w, r) {
		writeJSON(w, http.StatusOK, map[string]any{
			"access_token": token, "token_type": "access_token", "expires_in": int(s.cfg.TokenLifetime / time.Second),
		})
	}
}

// mtnAuthorize returns the merchant of a request's token of a product, or answers 401.
func (s *Simulator) mtnAuthorize(w http.ResponseWriter, r *http.Request, product mtnProduct) (account string, ok bool) {
	key := r.Header.Get(mtnKeyHeader)
	if key == "" {
		mtnGatewayRefuse(w, mtnMissingKey)
		return "", false
	}
	bearer, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	token, granted := s.gateways[operatorMTN].granted(bearer, s.cfg.Now())
	account, ofProduct := strings.CutPrefix(token.account, string(product)+" ")
	switch {
	case !isBearer || !granted || !ofProduct:
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
		return "", false
	case token.key != key:
		mtnGatewayRefuse(w, mtnWrongKey)
		return "", false
	}
	return account, true
}

// mtnParty is a payer in MTN's protocol.
type mtnParty struct {
	PartyIDType string `json:"partyIdType"`
	PartyID     string `json:"partyId"`
}

// mtnRequest is the body of a request to pay. All values are strings in JSON; a number is
// refused.
type mtnRequest struct {
	Amount       string   `json:"amount"`
	Currency     string   `json:"currency"`
	ExternalID   string   `json:"externalId"`
	Payer        mtnParty `json:"payer"`
	PayerMessage string   `json:"payerMessage"`
	PayeeNote    string   `json:"payeeNote"`
}

// mtnResult is the body of a status answer and of a callback.
type mtnResult struct {
	FinancialTransactionID string   `json:"financialTransactionId,omitempty"`
	ExternalID             string   `json:"externalId"`
	Amount                 string   `json:"amount"`
	Currency               string   `json:"currency"`
	Payer                  mtnParty `json:"payer"`
	PayerMessage           string   `json:"payerMessage,omitempty"`
	PayeeNote              string   `json:"payeeNote,omitempty"`
	Status                 string   `json:"status"`
	Reason                 string   `json:"reason,omitempty"`
}

var (
	mtnWhole   = regexp.MustCompile(`^[1-9][0-9]{0,14}$`)
	mtnDecimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})(\.[0-9]{1,2})?$`)
	mtnISO4217 = regexp.MustCompile(`^[A-Z]{3}$`)
	mtnMSISDN  = regexp.MustCompile(`^[0-9]{8,15}$`)
)

// fault returns the fault of the request; empty for none. The simulator names the field to
// help developers; MTN does not.
func (q mtnRequest) fault(environment string) (code, message string) {
	switch {
	case !mtnISO4217.MatchString(q.Currency),
		environment == "mtncongo" && q.Currency != "XAF",
		environment == "sandbox" && q.Currency != "EUR" && q.Currency != "XAF":
		return "INVALID_CURRENCY", "Currency not supported in target environment " + strconv.Quote(environment)
	case q.Currency == "XAF" && !mtnWhole.MatchString(q.Amount):
		return "BAD_REQUEST", "amount must be a string of digits above zero; XAF has no decimals"
	case !mtnDecimal.MatchString(q.Amount) || strings.Trim(q.Amount, "0.") == "":
		return "BAD_REQUEST", "amount must be a string such as 100 or 100.50, above zero"
	case q.Payer.PartyIDType != "MSISDN":
		return "BAD_REQUEST", "payer.partyIdType must be MSISDN"
	case !mtnMSISDN.MatchString(q.Payer.PartyID):
		return "BAD_REQUEST", "payer.partyId must be 8 to 15 digits, country code first, without +"
	case len([]rune(q.PayerMessage)) > 160 || len([]rune(q.PayeeNote)) > 160:
		return "BAD_REQUEST", "payerMessage and payeeNote take 160 characters at most"
	case strings.ContainsRune(q.PayerMessage, '\'') || strings.ContainsRune(q.PayeeNote, '\''):
		return "BAD_REQUEST", "payerMessage and payeeNote must not contain an apostrophe"
	}
	return "", ""
}

// mtnRequestToPay is POST /collection/v1_0/requesttopay.
func (s *Simulator) mtnRequestToPay(w http.ResponseWriter, r *http.Request) {
	account, ok := s.mtnAuthorize(w, r, mtnCollection)
	if !ok {
		return
	}
	body, ok := readBody(w, r, maxOperatorBody)
	if !ok {
		return
	}
	reference, q, ok := mtnReadRequest(w, r, body)
	if !ok {
		return
	}
	local, _ := strings.CutPrefix(q.Payer.PartyID, mtnCountryCode)
	c := collection{
		id: reference.String(), operator: operatorMTN, account: account,
		externalID: q.ExternalID, amount: q.Amount, currency: q.Currency, payer: q.Payer.PartyID,
		message: q.PayerMessage, note: q.PayeeNote, callbackURL: r.Header.Get("X-Callback-Url"),
		operatorRef: strconv.FormatUint(fifteenDigits(reference), 10), receivedAt: s.cfg.Now(),
		script: s.magicScript(local, mtnMagicPrefix),
	}
	if c.script.failFirst && s.gateways[operatorMTN].failsFirst(c.id) {
		refuseCode(w, http.StatusInternalServerError, "INTERNAL_PROCESSING_ERROR", "An internal error occurred while processing.")
		return
	}
	if !s.submit(c) {
		if s.holdBack(w, r) {
			refuseCode(w, http.StatusConflict, "RESOURCE_ALREADY_EXIST", "Duplicated reference id. Creation of resource failed.")
		}
		return
	}
	s.accept(w, r, c, func() {
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusAccepted)
	})
}

// mtnReadRequest reads the headers and the body of a request to pay. It answers a faulty one, and
// returns false.
func mtnReadRequest(w http.ResponseWriter, r *http.Request, body []byte) (reference uuid.UUID, q mtnRequest, ok bool) {
	if reference, ok = mtnReadReference(w, r); !ok {
		return reference, q, false
	}
	if err := json.Unmarshal(body, &q); err != nil {
		refuseCode(w, http.StatusBadRequest, "BAD_REQUEST", "the body is not the JSON of a request to pay; every value is a string")
		return reference, q, false
	}
	if code, message := q.fault(r.Header.Get("X-Target-Environment")); code != "" {
		refuseCode(w, http.StatusBadRequest, code, message)
		return reference, q, false
	}
	return reference, q, true
}

// mtnReadReference reads the headers of a request that moves money. It answers a faulty one,
// and returns false.
func mtnReadReference(w http.ResponseWriter, r *http.Request) (reference uuid.UUID, ok bool) {
	reference, err := uuid.Parse(r.Header.Get("X-Reference-Id"))
	if err != nil || reference.Version() != 4 || len(r.Header.Get("X-Reference-Id")) != 36 {
		refuseCode(w, http.StatusBadRequest, "BAD_REQUEST", "X-Reference-Id must be a UUID of version 4")
		return reference, false
	}
	environment := r.Header.Get("X-Target-Environment")
	if environment == "" {
		refuseCode(w, http.StatusBadRequest, "BAD_REQUEST", "X-Target-Environment is missing")
		return reference, false
	}
	callbackURL := r.Header.Get("X-Callback-Url")
	if callbackURL != "" && !isAbsoluteURL(callbackURL) {
		refuseCode(w, http.StatusBadRequest, "BAD_REQUEST", "X-Callback-Url must be an absolute URL")
		return reference, false
	}
	if !isJSON(r) {
		refuseCode(w, http.StatusBadRequest, "BAD_REQUEST", "Content-Type must be application/json")
		return reference, false
	}
	return reference, true
}

// mtnStatus is GET /collection/v1_0/requesttopay/{reference}. A payment of
// another merchant is unknown.
func (s *Simulator) mtnStatus(w http.ResponseWriter, r *http.Request) {
	account, ok := s.mtnAuthorize(w, r, mtnCollection)
	if !ok {
		return
	}
	if r.Header.Get("X-Target-Environment") == "" {
		refuseCode(w, http.StatusBadRequest, "BAD_REQUEST", "X-Target-Environment is missing")
		return
	}
	id := strings.ToLower(chi.URLParam(r, "reference"))
	if _, err := uuid.Parse(id); err != nil {
		refuseCode(w, http.StatusBadRequest, "BAD_REQUEST", "the reference id must be a UUID")
		return
	}
	c, found := s.book.get(id, s.cfg.Now())
	if !s.holdBack(w, r) {
		return
	}
	if !found || c.operator != operatorMTN || c.account != account {
		refuseCode(w, http.StatusNotFound, "RESOURCE_NOT_FOUND", "Requested resource was not found.")
		return
	}
	s.book.enquired(id)
	writeJSON(w, http.StatusOK, mtnResultOf(c))
}

func mtnResultOf(c collection) mtnResult {
	result := mtnResult{
		ExternalID: c.externalID, Amount: c.reported, Currency: c.currency,
		Payer: mtnParty{PartyIDType: "MSISDN", PartyID: c.payer}, PayerMessage: c.message, PayeeNote: c.note,
	}
	switch c.state {
	case stateApproved:
		result.Status, result.FinancialTransactionID = "SUCCESSFUL", c.operatorRef
	case stateRejected:
		result.Status, result.Reason = "FAILED", c.reason
	default:
		result.Status = "PENDING"
		if c.script.ambiguous {
			result.Reason = mtnOngoing
		}
	}
	return result
}

// mtnCallback is the callback with the outcome: the body of a status answer, by PUT.
func mtnCallback(c collection) (method string, body []byte) {
	body, err := json.Marshal(mtnResultOf(c))
	if err != nil {
		body = nil // strings always marshal
	}
	return http.MethodPut, body
}
