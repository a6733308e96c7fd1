package simulator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
)

// mtnPayoutIndex is the text of GET / about MTN MoMo Disbursements.
const mtnPayoutIndex = `MOBILE MONEY A (MTN MoMo Disbursements)        /mtn
  POST /mtn/disbursement/token/
  POST /mtn/disbursement/v1_0/transfer
  GET  /mtn/disbursement/v1_0/transfer/{reference}
  GET  /mtn/disbursement/v1_0/accountholder/msisdn/{number}/basicuserinfo

  curl '{base}/control/payouts?operator=mtn'
  curl -X POST {base}/control/payouts/{id}/pay
  curl -X POST {base}/control/payouts/{id}/refuse -d '{"reason": "PAYEE_LIMIT_REACHED"}'
  curl -X POST {base}/control/payouts/{id}/return -d '{"fee": "50"}'
  curl -X POST {base}/control/mtn/float -d '{"account": "the API user", "amount": "100000"}'

  "payments" is how often money went to the payee. "pay" of a payout that is decided
  moves it once more. What becomes of a payout depends on the payee's number; any
  other number waits for /control.
`

// mtnPayoutReasons are the reasons that /control may choose. MTN's public pages and clients
// list them.
var mtnPayoutReasons = []string{
	"PAYEE_NOT_FOUND", "PAYEE_NOT_ALLOWED_TO_RECEIVE", "PAYEE_LIMIT_REACHED", "NOT_ENOUGH_FUNDS",
	"LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED", "NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT",
	"INVALID_CURRENCY", "INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE", "TRANSFER_DELAYED",
}

func approvalDelay(c Config) time.Duration { return c.ApprovalDelay }

// arrivalDelay is longer than the ten minutes for which the service may still carry out a request of its own: only a
// repetition under the same id is no second payment.
func arrivalDelay(Config) time.Duration { return 12 * time.Minute }

func ambiguousDelay(c Config) time.Duration { return c.AmbiguousDelay }

var mtnPayees = []magicPayee{
	{"01", "is paid at once", payeeScript{decides: true}},
	{"02", "is paid after 5 s", payeeScript{decides: true, after: approvalDelay}},
	{"03", "waits, for ever", payeeScript{}},
	{"04", "may not receive", payeeScript{decides: true, refusal: "PAYEE_NOT_ALLOWED_TO_RECEIVE"}},
	{"06", "has reached a limit", payeeScript{decides: true, refusal: "PAYEE_LIMIT_REACHED"}},
	{"07", "is not known", payeeScript{decides: true, refusal: "PAYEE_NOT_FOUND"}},
	{"08", "is paid; the request gets no answer", payeeScript{decides: true, silent: true}},
	{"09", "is said to be refused, and is paid", payeeScript{decides: true, refusal: "INTERNAL_PROCESSING_ERROR", paysLater: true}},
	{"10", "is said to be paid, and is not", payeeScript{decides: true, unpaid: true}},
	{"11", "the first request gets a 500 and is not taken, then is paid", payeeScript{decides: true, failFirst: true}},
	{"12", "is called delayed for a while, then is paid", payeeScript{decides: true, delayed: true, after: ambiguousDelay}},
	{"13", "the request gets no answer and arrives after 12 minutes, then is paid", payeeScript{decides: true, silent: true, underway: true, after: arrivalDelay}},
}

// mtnTransferRequest is the body of a transfer.
type mtnTransferRequest struct {
	Amount       string   `json:"amount"`
	Currency     string   `json:"currency"`
	ExternalID   string   `json:"externalId"`
	Payee        mtnParty `json:"payee"`
	PayerMessage string   `json:"payerMessage"`
	PayeeNote    string   `json:"payeeNote"`
}

// mtnTransferResult is the body of a status answer and of a callback.
type mtnTransferResult struct {
	FinancialTransactionID string   `json:"financialTransactionId,omitempty"`
	ExternalID             string   `json:"externalId"`
	Amount                 string   `json:"amount"`
	Currency               string   `json:"currency"`
	Payee                  mtnParty `json:"payee"`
	PayerMessage           string   `json:"payerMessage,omitempty"`
	PayeeNote              string   `json:"payeeNote,omitempty"`
	Status                 string   `json:"status"`
	Reason                 string   `json:"reason,omitempty"`
}

// mtnTransfer is POST /disbursement/v1_0/transfer.
func (s *Simulator) mtnTransfer(w http.ResponseWriter, r *http.Request) {
	account, ok := s.mtnAuthorize(w, r, mtnDisbursement)
	if !ok {
		return
	}
	body, ok := readBody(w, r, maxOperatorBody)
	if !ok {
		return
	}
	reference, ok := mtnReadReference(w, r)
	if !ok {
		return
	}
	var q mtnTransferRequest
	if err := json.Unmarshal(body, &q); err != nil {
		refuseCode(w, http.StatusBadRequest, "BAD_REQUEST", "the body is not the JSON of a transfer; every value is a string")
		return
	}
	// A transfer has the rules of a request to pay, for the payee in place of the payer.
	if code, message := (mtnRequest{q.Amount, q.Currency, q.ExternalID, q.Payee, q.PayerMessage, q.PayeeNote}).fault(r.Header.Get("X-Target-Environment")); code != "" {
		refuseCode(w, http.StatusBadRequest, code, strings.ReplaceAll(message, "payer.", "payee."))
		return
	}
	p := payout{
		id: reference.String(), operator: operatorMTN, account: account, externalID: q.ExternalID, amount: q.Amount, currency: q.Currency,
		payee: q.Payee.PartyID, message: q.PayerMessage, note: q.PayeeNote, callbackURL: r.Header.Get("X-Callback-Url"),
		operatorRef: strconv.FormatUint(fifteenDigits(reference), 10), receivedAt: s.cfg.Now(), does: payeeScriptOf(mtnPayees, q.Payee.PartyID, mtnCountryCode+mtnMagicPrefix, mtnCountryCode+mtnCrowdPrefix),
	}
	if p.does.failFirst && s.gateways[operatorMTN].failsFirst(p.id) {
		refuseCode(w, http.StatusInternalServerError, "INTERNAL_PROCESSING_ERROR", "An internal error occurred while processing.")
		return
	}
	taken := s.payouts.accept(p)
	if taken && p.does.decides {
		s.due.add(p.receivedAt.Add(s.payouts.after(p.does)), p.id)
	}
	if p.does.silent && taken {
		panic(http.ErrAbortHandler)
	}
	switch {
	case !s.holdBack(w, r):
	case taken:
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusAccepted)
	default:
		refuseCode(w, http.StatusConflict, "RESOURCE_ALREADY_EXIST", "Duplicated reference id. Creation of resource failed.")
	}
}

// mtnTransferStatus is GET /disbursement/v1_0/transfer/{reference}. A payout of another
// merchant is unknown.
func (s *Simulator) mtnTransferStatus(w http.ResponseWriter, r *http.Request) {
	account, ok := s.mtnAuthorize(w, r, mtnDisbursement)
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
	p, found := s.payouts.get(id, true)
	if !s.holdBack(w, r) {
		return
	}
	if !found || p.operator != operatorMTN || p.account != account {
		refuseCode(w, http.StatusNotFound, "RESOURCE_NOT_FOUND", "Requested resource was not found.")
		return
	}
	writeJSON(w, http.StatusOK, mtnTransferResultOf(p))
}

// mtnHolder is GET /disbursement/v1_0/accountholder/msisdn/{number}/basicuserinfo: who has a number.
func (s *Simulator) mtnHolder(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.mtnAuthorize(w, r, mtnDisbursement); !ok {
		return
	}
	if r.Header.Get("X-Target-Environment") == "" {
		refuseCode(w, http.StatusBadRequest, "BAD_REQUEST", "X-Target-Environment is missing")
		return
	}
	h := holderOf(chi.URLParam(r, "number"), mtnCountryCode+mtnMagicPrefix)
	switch {
	case h.silent:
		panic(http.ErrAbortHandler)
	case !s.holdBack(w, r):
	case h.unknown:
		refuseCode(w, http.StatusNotFound, "RESOURCE_NOT_FOUND", "Requested resource was not found.")
	default:
		writeJSON(w, http.StatusOK, map[string]any{
			"sub": "0", "name": h.given + " " + h.family, "given_name": h.given, "family_name": h.family, "birthdate": "1990-01-01", "locale": "fr_CG", "gender": "F", "updated_at": 0,
		})
	}
}

func mtnTransferResultOf(p payout) mtnTransferResult {
	result := mtnTransferResult{
		ExternalID: p.externalID, Amount: p.amount, Currency: p.currency,
		Payee: mtnParty{PartyIDType: "MSISDN", PartyID: p.payee}, PayerMessage: p.message, PayeeNote: p.note,
	}
	switch p.state {
	case payoutPaid:
		result.Status, result.FinancialTransactionID = "SUCCESSFUL", p.operatorRef
	case payoutRefused:
		result.Status, result.Reason = "FAILED", p.reason
	default:
		result.Status = "PENDING"
		if p.does.delayed {
			result.Reason = "TRANSFER_DELAYED"
		}
	}
	return result
}

// payoutDue carries out a payout that is due.
func (s *Simulator) payoutDue(id string) {
	if p, ok := s.payouts.get(id, false); ok && p.state != payoutPending {
		s.payoutDecided(p)
	}
}

// payoutDecided queues the callback with the outcome: the body of a status answer, by PUT,
// without the merchant's id.
func (s *Simulator) payoutDecided(p payout) {
	if p.callbackURL == "" || p.operator != operatorMTN {
		return
	}
	body, err := json.Marshal(mtnTransferResultOf(p))
	if err != nil {
		return // strings always marshal
	}
	s.callbacks.queue.add(s.cfg.Now(), callback{collection: p.id, operator: p.operator, url: p.callbackURL, method: http.MethodPut, body: body})
}
