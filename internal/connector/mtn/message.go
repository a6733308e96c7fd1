package mtn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/money"
)

// requestToPay is the body of POST /collection/v1_0/requesttopay.
type requestToPay struct {
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
	ExternalID   string `json:"externalId"`
	Payer        party  `json:"payer"`
	PayerMessage string `json:"payerMessage"`
	PayeeNote    string `json:"payeeNote"`
}

type party struct {
	PartyIDType string `json:"partyIdType"`
	PartyID     string `json:"partyId"`
}

// toRequestToPay is the body that asks for a request's money.
func toRequestToPay(r connector.Request) ([]byte, error) {
	currency, ok := money.Lookup(r.Currency)
	if !ok || r.Amount <= 0 {
		return nil, fmt.Errorf("amount %d %q cannot be asked for", r.Amount, r.Currency)
	}
	return json.Marshal(requestToPay{
		Amount: currency.Decimal(r.Amount), Currency: r.Currency, ExternalID: r.PaymentRef,
		Payer:        party{PartyIDType: "MSISDN", PartyID: r.Payer},
		PayerMessage: cmp.Or(plain(r.Description), plain(r.PaymentRef)), PayeeNote: plain(r.PaymentRef),
	})
}

// accents replaces the accented letters of French, which MTN refuses.
var accents = strings.NewReplacer(
	"à", "a", "â", "a", "ä", "a", "ç", "c", "é", "e", "è", "e", "ê", "e", "ë", "e", "î", "i", "ï", "i", "ô", "o", "ö", "o",
	"ù", "u", "û", "u", "ü", "u", "œ", "oe", "æ", "ae", "À", "A", "Â", "A", "Ç", "C", "É", "E", "È", "E", "Ê", "E", "Ë", "E",
	"Î", "I", "Ï", "I", "Ô", "O", "Ù", "U", "Û", "U", "Œ", "OE",
)

// plain turns text into the form that MTN accepts: at most 160 letters, digits and spaces.
// MTN's gateway answers 400 to any other character, such as an apostrophe.
func plain(s string) string {
	const longest = 160
	mapped := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return ' '
	}, accents.Replace(s))
	out := strings.Join(strings.Fields(mapped), " ")
	if len(out) > longest {
		out = strings.TrimSpace(out[:longest])
	}
	return out
}

// result is the body of a status answer and of a callback.
type result struct {
	ReferenceID            string `json:"referenceId"`
	FinancialTransactionID text   `json:"financialTransactionId"`
	Amount                 text   `json:"amount"`
	Currency               string `json:"currency"`
	Status                 string `json:"status"`
	Reason                 reason `json:"reason"`
}

// toOutcome reads MTN's states. Only SUCCESSFUL and FAILED are decisions.
func toOutcome(r result) (connector.Outcome, error) {
	o := connector.Outcome{OperatorRef: string(r.FinancialTransactionID), Reason: string(r.Reason)}
	switch r.Status {
	case "SUCCESSFUL":
		o.Status = checkout.OutcomeApproved
		o.Currency = r.Currency
		// An unreadable amount becomes zero, which matches no collection and makes an
		// operator case. An error would leave the payment undecided for ever.
		if currency, ok := money.Lookup(r.Currency); ok {
			if amount, err := currency.ParseDecimal(string(r.Amount)); err == nil {
				o.Amount = amount
			}
		}
	case "FAILED":
		if undecided[o.Reason] {
			o.Status = checkout.OutcomeAmbiguous
			break
		}
		o.Status, o.FailureCode = checkout.OutcomeRefused, failure(o.Reason)
	case "PENDING", "CREATED":
		o.Status = checkout.OutcomePending
		if o.Reason == "ONGOING" || o.Reason == "DELAYED" {
			o.Status = checkout.OutcomeAmbiguous
		}
	case "ONGOING", "DELAYED":
		o.Status = checkout.OutcomeAmbiguous
	default:
		return connector.Outcome{}, fmt.Errorf("unknown status %q", code(r.Status))
	}
	return o, nil
}

// text is a JSON string, or in some of MTN's markets a number.
type text string

// UnmarshalJSON reads a string, or a number as it is written.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9') {
		*t = text(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(t))
}

// reason is a code: a string or, as in the specification, an object with a code.
type reason string

// UnmarshalJSON reads both forms and drops prose.
func (r *reason) UnmarshalJSON(b []byte) error {
	var s string
	if len(b) > 0 && b[0] == '{' {
		var object struct {
			Code string `json:"code"`
		}
		if err := json.Unmarshal(b, &object); err != nil {
			return err
		}
		s = object.Code
	} else if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*r = reason(code(s))
	return nil
}

// refusal is the body of an error answer.
type refusal struct {
	Code reason `json:"code"`
}
