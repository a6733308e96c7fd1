package simulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
)

const (
	operatorAirtel    = "airtel"
	airtelCountry     = "CG"
	airtelCurrency    = "XAF"
	airtelMagicPrefix = "0550000" // 05 500 00 NN
	airtelRefused     = "DP00800001008"
	airtelExpired     = "DP00800001029"
	airtelNoPIN       = "DP00800001005"

	// airtelTokenLifetime is the lifetime of Airtel's tokens.
	airtelTokenLifetime = 180 * time.Second
)

// airtelOperator is Airtel Money.
func airtelOperator() operator {
	return operator{
		name: operatorAirtel, routes: (*Simulator).airtelRoutes, index: airtelIndex + airtelPayoutIndex + payeesText(airtelPayees, airtelSpelled, airtelCrowdSpelled),
		reasons: airtelReasons, rejections: airtelRejections, callback: airtelCallback,
	}
}

const airtelIndex = `MOBILE MONEY B (Airtel Money, Congo)           /airtel
  POST /airtel/auth/oauth2/token
  POST /airtel/merchant/v1/payments/
  GET  /airtel/standard/v1/payments/{id}

  The same numbers as above with 05 500 00 in front, but
  05 500 00 07  is not known: the request itself is refused
  05 500 00 13  mistypes the PIN: DP00800001002

`

// airtelReasons are Airtel's codes for refusals. The request for an unknown payer is
// refused at once, see airtelPay.
var airtelReasons = map[cause]string{
	causeRejected:          airtelRefused,
	causeInsufficientFunds: "DP00800001007",
	causeLimitReached:      "DP00800001003",
	causeUnknownPayer:      airtelNoPIN,
	causeWrongPIN:          "DP00800001002",
}

// airtelRejections are the codes that /control may choose. Airtel's public pages and
// clients list them.
var airtelRejections = []string{
	airtelRefused, "DP00800001002", "DP00800001003", "DP00800001004", airtelNoPIN, "DP00800001007",
	"DP00800001009", "DP00800001010", "DP00800001024", airtelExpired,
}

// airtelStatus is the outcome in every answer.
type airtelStatus struct {
	Code         string `json:"code"`
	Message      string `json:"message"`
	ResultCode   string `json:"result_code"`
	ResponseCode string `json:"response_code"`
	Success      bool   `json:"success"`
}

type airtelTransaction struct {
	ID            string `json:"id"`
	AirtelMoneyID string `json:"airtel_money_id,omitempty"`
	Message       string `json:"message,omitempty"`
	Status        string `json:"status"`
}

type airtelAnswer struct {
	Data struct {
		Transaction airtelTransaction `json:"transaction"`
	} `json:"data"`
	Status airtelStatus `json:"status"`
}

func (s *Simulator) airtelRoutes(r chi.Router) {
	r.Use(s.misbehave(operatorAirtel, func(w http.ResponseWriter, status int) {
		airtelRefuse(w, status, "ESB000001", "", "Something went wrong")
	}))
	r.Post("/auth/oauth2/token", s.airtelIssueToken)
	r.Post("/merchant/v1/payments/", s.airtelPay)
	r.Post("/merchant/v1/payments", s.airtelPay)
	r.Get("/standard/v1/payments/{id}", s.airtelEnquire)
	r.Post("/standard/v1/disbursements/", s.airtelDisburse)
	r.Post("/standard/v1/disbursements", s.airtelDisburse)
	r.Get("/standard/v1/disbursements/{id}", s.airtelEnquirePayout)
	r.Get("/standard/v1/users/{number}", s.airtelUser)
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusNotFound, map[string]string{"message": "no Route matched with those values"})
	})
}

func airtelRefuse(w http.ResponseWriter, status int, result, response, message string) {
	writeJSON(w, status, map[string]any{"status": airtelStatus{
		Code: strconv.Itoa(status), Message: message, ResultCode: result, ResponseCode: response,
	}})
}

// airtelRouterRefuse answers as the gateway in front of Airtel Money does.
func airtelRouterRefuse(w http.ResponseWriter, code, message string) {
	writeJSON(w, http.StatusBadRequest, map[string]string{"status_code": code, "status_message": message})
}

// airtelIssueToken is POST /auth/oauth2/token.
func (s *Simulator) airtelIssueToken(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r, maxOperatorBody)
	if !ok {
		return
	}
	var q struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		GrantType    string `json:"grant_type"`
	}
	if !isJSON(r) || json.Unmarshal(body, &q) != nil || q.GrantType != "client_credentials" {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "unsupported_grant_type", "error_description": "send JSON with client_id, client_secret and grant_type client_credentials"})
		return
	}
	if q.ClientID == "" || q.ClientSecret == "" || s.cfg.Airtel != nil && !s.cfg.Airtel(q.ClientID, q.ClientSecret) {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client", "error_description": "Invalid client authentication"})
		return
	}
	now := s.cfg.Now()
	token := s.gateways[operatorAirtel].grant(grant{account: q.ClientID, expiresAt: now.Add(airtelTokenLifetime)}, now)
	if s.holdBack(w, r) {
		writeJSON(w, http.StatusOK, map[string]string{
			"token_type": "bearer", "expires_in": strconv.Itoa(int(airtelTokenLifetime / time.Second)), "access_token": token,
		})
	}
}

// airtelAuthorize returns the merchant of a request's token, or answers with the fault of
// its headers.
func (s *Simulator) airtelAuthorize(w http.ResponseWriter, r *http.Request) (account string, ok bool) {
	bearer, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	token, granted := s.gateways[operatorAirtel].granted(bearer, s.cfg.Now())
	switch {
	case !isBearer || !granted:
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token", "error_description": "Invalid access token"})
	case r.Header.Get("X-Country") == "":
		airtelRouterRefuse(w, "ROUTER003", "Mandatory header X-Country is missing")
	case r.Header.Get("X-Currency") == "":
		airtelRouterRefuse(w, "ROUTER119", "Currency is missing")
	case r.Header.Get("X-Country") != airtelCountry:
		airtelRouterRefuse(w, "ROUTER006", "Invalid country")
	case r.Header.Get("X-Currency") != airtelCurrency:
		airtelRouterRefuse(w, "ROUTER112", "Invalid currency")
	default:
		return token.account, true
	}
	return "", false
}

// airtelPayment is the body of a request for a payment.
type airtelPayment struct {
	Reference  string `json:"reference"`
	Subscriber struct {
		Country  string `json:"country"`
		Currency string `json:"currency"`
		MSISDN   string `json:"msisdn"`
	} `json:"subscriber"`
	Transaction struct {
		Amount   int64  `json:"amount"`
		Country  string `json:"country"`
		Currency string `json:"currency"`
		ID       string `json:"id"`
	} `json:"transaction"`
}

var (
	airtelAlphanumeric = regexp.MustCompile(`^[A-Za-z0-9]{4,64}$`)
	airtelMSISDN       = regexp.MustCompile(`^0[45][0-9]{7}$`)
)

// fault returns the fault of the request; empty for none.
func (q *airtelPayment) fault() (code, message string) {
	for _, c := range []string{q.Subscriber.Country, q.Transaction.Country} {
		if c != "" && c != airtelCountry {
			return "ESB000034", "Invalid country name"
		}
	}
	for _, c := range []string{q.Subscriber.Currency, q.Transaction.Currency} {
		if c != "" && c != airtelCurrency {
			return "ESB000035", "Invalid currency code"
		}
	}
	switch {
	case !airtelMSISDN.MatchString(q.Subscriber.MSISDN):
		return "ESB000036", "Invalid MSISDN length. MSISDN length should be 9 and should start with 0"
	case !airtelAlphanumeric.MatchString(q.Transaction.ID):
		return "ESB000008", "transaction.id must be 4 to 64 letters and digits"
	case !airtelAlphanumeric.MatchString(q.Reference):
		return "ESB000008", "reference must be 4 to 64 letters and digits"
	case q.Transaction.Amount <= 0:
		return "ESB000008", "transaction.amount must be a whole number above zero"
	}
	return "", ""
}

// airtelPay is POST /merchant/v1/payments/: the payer's phone asks for the PIN.
//
// Airtel has one callback address for all payments of a merchant, which is set in its
// portal. The simulator has no portal, so a request may name its own address in
// X-Callback-Url.
func (s *Simulator) airtelPay(w http.ResponseWriter, r *http.Request) {
	account, ok := s.airtelAuthorize(w, r)
	if !ok {
		return
	}
	body, ok := readBody(w, r, maxOperatorBody)
	if !ok {
		return
	}
	if !isJSON(r) {
		airtelRouterRefuse(w, "ROUTER003", "Content-Type must be application/json")
		return
	}
	callbackURL := r.Header.Get("X-Callback-Url")
	if callbackURL != "" && !isAbsoluteURL(callbackURL) {
		airtelRouterRefuse(w, "ROUTER003", "X-Callback-Url must be an absolute URL")
		return
	}
	var q airtelPayment
	if err := json.Unmarshal(body, &q); err != nil {
		airtelRefuse(w, http.StatusBadRequest, "ESB000008", "", "the body is not the JSON of a payment; transaction.amount is a number, the rest are strings")
		return
	}
	if code, message := q.fault(); code != "" {
		airtelRefuse(w, http.StatusBadRequest, code, "", message)
		return
	}
	id := q.Transaction.ID
	c := collection{
		id: id, operator: operatorAirtel, account: account,
		externalID: q.Reference, amount: strconv.FormatInt(q.Transaction.Amount, 10), currency: airtelCurrency,
		payer: q.Subscriber.MSISDN, callbackURL: callbackURL,
		operatorRef: airtelMoneyID(id), receivedAt: s.cfg.Now(),
		script: s.magicScript(q.Subscriber.MSISDN, airtelMagicPrefix),
	}
	switch {
	case c.script.refusal == causeUnknownPayer:
		airtelRefuse(w, http.StatusBadRequest, "ESB000011", airtelReasons[causeUnknownPayer], "Msisdn Not Found")
		return
	case c.script.failFirst && s.gateways[operatorAirtel].failsFirst(id):
		airtelRefuse(w, http.StatusInternalServerError, "ESB000001", airtelNoPIN, "Something Went Wrong")
		return
	case !s.submit(c):
		if s.holdBack(w, r) {
			airtelRefuse(w, http.StatusBadRequest, "ESB000041", "", "External Transaction ID already exists.")
		}
		return
	}
	s.accept(w, r, c, func() {
		var a airtelAnswer
		a.Data.Transaction = airtelTransaction{ID: id, Status: "SUCCESS"}
		a.Status = airtelStatus{Code: "200", Message: "SUCCESS", ResultCode: "ESB000010", ResponseCode: "DP00800001006", Success: true}
		writeJSON(w, http.StatusOK, a)
	})
}

// airtelEnquire is GET /standard/v1/payments/{id}. A payment of another merchant
// is unknown.
func (s *Simulator) airtelEnquire(w http.ResponseWriter, r *http.Request) {
	account, ok := s.airtelAuthorize(w, r)
	if !ok {
		return
	}
	id := chi.URLParam(r, "id")
	c, found := s.book.get(id, s.cfg.Now())
	if !s.holdBack(w, r) {
		return
	}
	if !found || c.operator != operatorAirtel || c.account != account {
		airtelRefuse(w, http.StatusBadRequest, "ESB000045", "DP00800001025", "No Transaction Found With Provided Transaction Id.")
		return
	}
	s.book.enquired(id)
	state, code := airtelState(c)
	var a airtelAnswer
	a.Data.Transaction = airtelTransaction{ID: id, Status: state, Message: airtelMessage(c)}
	a.Status = airtelStatus{Code: "200", Message: "SUCCESS", ResultCode: "ESB000010", ResponseCode: code, Success: c.state != stateRejected}
	if c.state == stateApproved {
		a.Data.Transaction.AirtelMoneyID = c.operatorRef
	}
	writeJSON(w, http.StatusOK, a)
}

// airtelState returns the state of a collection in Airtel's words.
func airtelState(c collection) (status, code string) {
	switch {
	case c.state == stateApproved:
		return "TS", "DP00800001001"
	case c.state == stateRejected && c.reason == airtelExpired:
		return "TE", c.reason
	case c.state == stateRejected:
		return "TF", c.reason
	case c.script.ambiguous:
		return "TA", "DP00800001000"
	}
	return "TIP", "DP00800001006"
}

// airtelMessage is the text for people. It is the only place where Airtel names the
// amount.
func airtelMessage(c collection) string {
	switch c.state {
	case stateApproved:
		return fmt.Sprintf("Paid %s %s to merchant, Trans ID %s.", c.currency, c.reported, c.operatorRef)
	case stateRejected:
		return "Transaction failed"
	}
	return "Transaction in progress"
}

// airtelCallback is the callback with the outcome. It has no reason, and the amount only in
// the text. Its hash has a key that no merchant knows, because receivers must accept a
// report with a hash.
func airtelCallback(c collection) (method string, body []byte) {
	status, _ := airtelState(c)
	if status == "TE" {
		status = "TF" // callbacks have only success and failure
	}
	transaction := map[string]string{"id": c.id, "message": airtelMessage(c), "status_code": status}
	if c.state == stateApproved {
		transaction["airtel_money_id"] = c.operatorRef
	}
	inner, err := json.Marshal(transaction)
	if err != nil {
		inner = []byte("{}") // strings always marshal
	}
	mac := hmac.New(sha256.New, []byte("simulator"))
	mac.Write(inner)
	body, err = json.Marshal(map[string]any{"transaction": json.RawMessage(inner), "hash": base64.StdEncoding.EncodeToString(mac.Sum(nil))})
	if err != nil {
		body = nil // marshalled JSON always marshals
	}
	return http.MethodPost, body
}

// airtelMoneyID derives Airtel's own id of a payment from the merchant's.
func airtelMoneyID(id string) string {
	return "MP" + strconv.FormatUint(fifteenDigits(uuid.NewSHA1(uuid.NameSpaceOID, []byte(id))), 10)
}
