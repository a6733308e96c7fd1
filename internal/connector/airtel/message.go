package airtel

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/contact"
)

// payment is the body of POST /merchant/v1/payments/.
type payment struct {
	Reference   string      `json:"reference"`
	Subscriber  subscriber  `json:"subscriber"`
	Transaction transaction `json:"transaction"`
}

type subscriber struct {
	Country  string `json:"country"`
	Currency string `json:"currency"`
	MSISDN   string `json:"msisdn"`
}

type transaction struct {
	Amount   int64  `json:"amount"`
	Country  string `json:"country"`
	Currency string `json:"currency"`
	ID       string `json:"id"`
}

// toPayment is the body that asks for a request's money. XAF has no decimals, so minor
// units are the amount.
func toPayment(r connector.Request) ([]byte, error) {
	if r.Currency != currency || r.Amount <= 0 {
		return nil, fmt.Errorf("amount %d %q cannot be asked for", r.Amount, r.Currency)
	}
	id, err := connector.ShortID(r.ID)
	if err != nil {
		return nil, err
	}
	national, ok := strings.CutPrefix(r.Payer, "242")
	if !ok {
		return nil, fmt.Errorf("the payer's number: %w", contact.ErrNotMobile)
	}
	return json.Marshal(payment{
		Reference:   r.PaymentRef,
		Subscriber:  subscriber{Country: country, Currency: currency, MSISDN: national},
		Transaction: transaction{Amount: r.Amount, Country: country, Currency: currency, ID: id},
	})
}

// envelope is the body of every answer to a request and to an enquiry, without its prose.
type envelope struct {
	Data struct {
		Transaction struct {
			ID            connector.Text `json:"id"`
			AirtelMoneyID connector.Text `json:"airtel_money_id"`
			Status        string         `json:"status"`
		} `json:"transaction"`
	} `json:"data"`
	Status struct {
		Code         connector.Text `json:"code"`
		ResponseCode connector.Text `json:"response_code"`
		ResultCode   connector.Text `json:"result_code"`
		Success      bool           `json:"success"`
	} `json:"status"`
	// ROUTER…, in answers of the gateway in front of Airtel Money.
	StatusCode connector.Text `json:"status_code"`
}

// codes lists the codes of an answer, the most specific first: that of the product, that
// of the gateway, the general ones.
func (e *envelope) codes() []string {
	var out []string
	for _, s := range []connector.Text{e.Status.ResponseCode, e.StatusCode, e.Status.Code, e.Status.ResultCode} {
		if c := code(string(s)); c != "" {
			out = append(out, c)
		}
	}
	return out
}

// any reports whether one of the codes is in the set.
func (e *envelope) any(set map[string]bool) bool {
	return slices.ContainsFunc(e.codes(), func(c string) bool { return set[c] })
}

// code returns the first code that is in a table, or else the first code; "" when there is
// none.
func (e *envelope) code() string {
	codes := e.codes()
	for _, c := range codes {
		if _, ok := failures[c]; ok || submitted[c] || notFound[c] {
			return c
		}
	}
	return append(codes, "")[0]
}

// missing reports whether Airtel has no such payment. The status may be TF then. It is not
// a refusal, because the payment may still arrive there.
func (e *envelope) missing() bool {
	t := e.Data.Transaction.Status
	return (t == "" || t == "TF") && e.any(notFound)
}

// report is the body of a callback.
type report struct {
	Transaction struct {
		ID            connector.Text `json:"id"`
		StatusCode    string         `json:"status_code"`
		AirtelMoneyID connector.Text `json:"airtel_money_id"`
	} `json:"transaction"`
}

// toOutcome reads the answer to an enquiry about the payment that Airtel knows as
// id. An answer about another payment is an error.
func toOutcome(e envelope, id string, ref connector.Reference) (connector.Outcome, error) {
	t := e.Data.Transaction
	if t.ID != "" && !strings.EqualFold(string(t.ID), id) {
		return connector.Outcome{}, errors.New("the answer is about another payment")
	}
	o, err := toStatus(t.Status, e.code())
	if err != nil {
		return connector.Outcome{}, err
	}
	o.OperatorRef = string(t.AirtelMoneyID)
	if o.Status == checkout.OutcomeApproved {
		o.Amount, o.Currency = ref.Amount, ref.Currency
	}
	return o, nil
}

// toStatus reads Airtel's states. Only TS, TF and TE are decisions, and TF only if its
// code is not in submitted.
func toStatus(status, reason string) (connector.Outcome, error) {
	switch status {
	case "TS":
		return connector.Outcome{Status: checkout.OutcomeApproved}, nil
	case "TF":
		if submitted[reason] {
			return connector.Outcome{Status: checkout.OutcomeAmbiguous, Reason: reason}, nil
		}
		return connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: failure(reason), Reason: reason}, nil
	case "TE":
		return connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: failure(status), Reason: status}, nil
	case "TIP":
		return connector.Outcome{Status: checkout.OutcomePending, Reason: reason}, nil
	case "TA":
		return connector.Outcome{Status: checkout.OutcomeAmbiguous, Reason: reason}, nil
	}
	return connector.Outcome{}, fmt.Errorf("unknown status %q", code(status))
}
