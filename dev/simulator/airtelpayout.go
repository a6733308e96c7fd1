package simulator

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
)

const (
	airtelSpelled = "05 500 00 " // airtelMagicPrefix with spaces

	airtelCrowdPrefix  = "0550100" // payees who are all paid at once
	airtelCrowdSpelled = "05 501 00 "
)

// airtelPayoutIndex is the text of GET / about Airtel Money Disbursements.
const airtelPayoutIndex = `MOBILE MONEY B (Airtel Money Disbursements)    /airtel
  POST /airtel/standard/v1/disbursements/
  GET  /airtel/standard/v1/disbursements/{id}?transactionType=B2C
  GET  /airtel/standard/v1/users/{number}

  curl -X POST {base}/control/airtel/float -d '{"account": "the client id", "amount": "100000"}'

  /control/payouts as above. What becomes of a payout depends on the payee's number:
`

// airtelPayoutReasons are the codes that /control may choose.
var airtelPayoutReasons = []string{
	"DP00900001012", "DP00900001003", "DP00900001004", "DP00900001005", "DP00900001007", "DP00900001009",
	"DP00900001010", "DP00900001011", "DP00900001013", "DP00900001014",
}

var airtelPayees = []magicPayee{
	{"01", "is paid at once", payeeScript{decides: true}},
	{"02", "is paid after 5 s", payeeScript{decides: true, after: approvalDelay}},
	{"03", "waits, for ever", payeeScript{}},
	{"04", "is refused", payeeScript{decides: true, refusal: "DP00900001013"}},
	{"06", "has reached a limit", payeeScript{decides: true, refusal: "DP00900001003"}},
	{"07", "is not known", payeeScript{decides: true, refusal: "DP00900001012"}},
	{"08", "is paid; the request gets no answer", payeeScript{decides: true, silent: true}},
	{"09", "is said to have failed, and is paid", payeeScript{decides: true, refusal: "DP00900001005", paysLater: true}},
	{"10", "is said to be paid, and is not", payeeScript{decides: true, unpaid: true}},
	{"11", "the first request gets a 500 and is not taken, then is paid", payeeScript{decides: true, failFirst: true}},
	{"12", "is ambiguous for a while, then is paid", payeeScript{decides: true, delayed: true, after: ambiguousDelay}},
	{"13", "the request gets no answer and arrives after 12 minutes, then is paid", payeeScript{decides: true, silent: true, underway: true, after: arrivalDelay}},
}

// airtelDisbursement is the body of a request for a payout.
type airtelDisbursement struct {
	Payee struct {
		MSISDN string `json:"msisdn"`
	} `json:"payee"`
	Reference   string `json:"reference"`
	PIN         string `json:"pin"`
	Transaction struct {
		Amount int64  `json:"amount"`
		ID     string `json:"id"`
	} `json:"transaction"`
}

// fault returns the fault of the request; empty for none.
func (q *airtelDisbursement) fault(pin func([]byte) bool) (code, message string) {
	encrypted, err := base64.StdEncoding.DecodeString(q.PIN)
	switch {
	case err != nil || len(encrypted) < 128:
		return "ROUTER116", "The encrypted value of the pin is incorrect."
	case pin != nil && !pin(encrypted):
		return "ROUTER115", "Pin you have entered is incorrect."
	case !airtelMSISDN.MatchString(q.Payee.MSISDN):
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

// airtelDisburse is POST /standard/v1/disbursements/: the money moves at once, and the answer
// says what became of it.
func (s *Simulator) airtelDisburse(w http.ResponseWriter, r *http.Request) {
	account, ok := s.airtelAuthorize(w, r)
	if !ok {
		return
	}
	body, ok := readBody(w, r, maxOperatorBody)
	if !ok {
		return
	}
	var q airtelDisbursement
	if !isJSON(r) || json.Unmarshal(body, &q) != nil {
		airtelRefuse(w, http.StatusBadRequest, "ESB000008", "", "the body is not the JSON of a disbursement; transaction.amount is a number, the rest are strings")
		return
	}
	switch code, message := q.fault(s.cfg.AirtelPIN); {
	case len(code) > 6 && code[:6] == "ROUTER":
		airtelRouterRefuse(w, code, message)
		return
	case code != "":
		airtelRefuse(w, http.StatusBadRequest, code, "", message)
		return
	}
	id := q.Transaction.ID
	p := payout{
		id: id, operator: operatorAirtel, account: account, externalID: q.Reference, amount: strconv.FormatInt(q.Transaction.Amount, 10), currency: airtelCurrency,
		payee: q.Payee.MSISDN, operatorRef: airtelMoneyID(id), receivedAt: s.cfg.Now(), does: payeeScriptOf(airtelPayees, q.Payee.MSISDN, airtelMagicPrefix, airtelCrowdPrefix),
	}
	if p.does.failFirst && s.gateways[operatorAirtel].failsFirst(id) {
		airtelRefuse(w, http.StatusInternalServerError, "ESB000001", "", "Something Went Wrong")
		return
	}
	if !s.payouts.accept(p) {
		if s.holdBack(w, r) {
			airtelRefuse(w, http.StatusBadRequest, "ESB000041", "DP00900001017", "Duplicate Transaction Id.")
		}
		return
	}
	if p.does.silent {
		panic(http.ErrAbortHandler)
	}
	if made, _ := s.payouts.get(id, false); s.holdBack(w, r) {
		airtelTellPayout(w, made)
	}
}

// airtelEnquirePayout is GET /standard/v1/disbursements/{id}. A payout of another merchant is
// unknown.
func (s *Simulator) airtelEnquirePayout(w http.ResponseWriter, r *http.Request) {
	account, ok := s.airtelAuthorize(w, r)
	if !ok {
		return
	}
	if r.URL.Query().Get("transactionType") != "B2C" {
		airtelRefuse(w, http.StatusBadRequest, "ESB000008", "", "transactionType must be B2C")
		return
	}
	p, found := s.payouts.get(chi.URLParam(r, "id"), true)
	if !s.holdBack(w, r) {
		return
	}
	if !found || p.operator != operatorAirtel || p.account != account {
		airtelRefuse(w, http.StatusBadRequest, "ESB000045", "DP00900001015", "The transaction was not found.")
		return
	}
	airtelTellPayout(w, p)
}

// airtelUser is GET /standard/v1/users/{number}: who has a number, without the calling code.
func (s *Simulator) airtelUser(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.airtelAuthorize(w, r); !ok {
		return
	}
	number := chi.URLParam(r, "number")
	if !airtelMSISDN.MatchString(number) {
		airtelRefuse(w, http.StatusBadRequest, "ESB000036", "", "Invalid MSISDN length. MSISDN length should be 9 and should start with 0")
		return
	}
	h := holderOf(number, airtelMagicPrefix)
	switch {
	case h.silent:
		panic(http.ErrAbortHandler)
	case !s.holdBack(w, r):
	case h.unknown:
		airtelRefuse(w, http.StatusBadRequest, "ESB000011", "DP02200000002", "User not found")
	default:
		writeJSON(w, http.StatusOK, map[string]any{
			"data": map[string]any{
				"first_name": h.given, "last_name": h.family, "msisdn": number, "grade": "SUBS", "is_barred": false, "is_pin_set": true, "registration": map[string]string{"status": "SUBS"},
			},
			"status": airtelStatus{Code: "200", Message: "SUCCESS", ResultCode: "ESB000010", ResponseCode: "DP02200000001", Success: true},
		})
	}
}

func airtelTellPayout(w http.ResponseWriter, p payout) {
	var a airtelAnswer
	a.Data.Transaction = airtelTransaction{ID: p.id, Status: "TIP", Message: "Transaction in progress"}
	a.Status = airtelStatus{Code: "200", Message: "SUCCESS", ResultCode: "ESB000010", ResponseCode: "DP00900001006", Success: true}
	switch {
	case p.state == payoutPaid:
		a.Data.Transaction.Status, a.Data.Transaction.AirtelMoneyID, a.Status.ResponseCode = "TS", p.operatorRef, "DP00900001001"
	case p.state == payoutRefused:
		a.Data.Transaction.Status, a.Status.ResponseCode, a.Status.Success = "TF", p.reason, false
	case p.does.delayed:
		a.Data.Transaction.Status, a.Status.ResponseCode = "TA", "DP00900001000"
	}
	writeJSON(w, http.StatusOK, a)
}
