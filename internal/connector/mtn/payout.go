package mtn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"quittance/internal/connector"
	"quittance/internal/contact"
	"quittance/money"
)

// transfers is the path of payouts.
const transfers = "/disbursement/v1_0/transfer"

// holders is the path of what MTN tells of a number.
const holders = "/disbursement/v1_0/accountholder/msisdn/"

// PayoutAccount is an agency's account with MTN from which people are paid.
type PayoutAccount Account

// Fingerprint is of MTN's environment and the API user, as that of Account. It is another
// one: a user of both products has two accounts.
func (a PayoutAccount) Fingerprint() string {
	return connector.Fingerprint(Operator+" payouts", a.TargetEnvironment, a.APIUser)
}

// Payouts speaks MTN MoMo Disbursements. Safe for concurrent use.
type Payouts struct {
	*connector.Base[PayoutAccount]
}

// NewPayouts makes Payouts.
func NewPayouts(cfg connector.Config) (*Payouts, error) {
	base, err := connector.NewBase(Operator, cfg, func(a PayoutAccount) connector.Call {
		return Account(a).tokenCall("/disbursement/token/")
	})
	return &Payouts{base}, err
}

// Payee takes Congolese numbers of MTN, which start with 06.
func (p *Payouts) Payee(input string) (string, error) { return contact.MobileOf(input, "06") }

// transfer is the body of POST /disbursement/v1_0/transfer.
type transfer struct {
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
	ExternalID   string `json:"externalId"`
	Payee        party  `json:"payee"`
	PayerMessage string `json:"payerMessage"`
	PayeeNote    string `json:"payeeNote"`
}

func toTransfer(p connector.Payout) ([]byte, error) {
	currency, ok := money.Lookup(p.Currency)
	if !ok || p.Amount <= 0 {
		return nil, fmt.Errorf("amount %d %q cannot be paid", p.Amount, p.Currency)
	}
	return json.Marshal(transfer{
		Amount: currency.Decimal(p.Amount), Currency: p.Currency, ExternalID: p.PayoutRef,
		Payee:        party{PartyIDType: "MSISDN", PartyID: p.Payee},
		PayerMessage: plain(p.PayoutRef), PayeeNote: cmp.Or(plain(p.Purpose), plain(p.PayoutRef)),
	})
}

// Pay is POST transfer. The answer 202 is no payment, and 409 is our own earlier request.
func (p *Payouts) Pay(ctx context.Context, account connector.Account, payout connector.Payout) (connector.PayoutOutcome, error) {
	const doing = "paying out"
	own, err := p.Own(account)
	if err != nil {
		return connector.PayoutOutcome{}, err
	}
	body, err := toTransfer(payout)
	if err != nil {
		return connector.PayoutOutcome{}, connector.Malformed(doing, err)
	}
	a, err := p.Authorized(ctx, own, connector.Call{
		Doing: doing, Method: http.MethodPost, Path: transfers, Body: body,
		Header: Account(own).header(map[string]string{"X-Reference-Id": payout.ID, "X-Callback-Url": payout.CallbackURL}),
	})
	if err != nil {
		return connector.PayoutOutcome{}, err
	}
	var no refusal
	readable := a.Decode(&no) == nil
	switch {
	case a.Status == http.StatusAccepted:
		return connector.PayoutOutcome{Status: connector.PayoutPending}, nil
	case a.Status == http.StatusConflict, readable && no.Code == codeExists:
		return connector.PayoutOfKnown(p.EnquirePayout(ctx, account, payout.PayoutReference)), nil
	}
	o, definite := refused(string(no.Code))
	if a.Status < 400 || a.Status >= 500 || a.Status == http.StatusTooManyRequests || a.Status == http.StatusRequestTimeout || !definite {
		return connector.PayoutOutcome{}, a.Fault(doing, true, string(no.Code))
	}
	o.Unconfirmed = true
	return o, nil
}

// EnquirePayout is GET transfer/{id}, at most EnquiriesPerSecond of an account.
func (p *Payouts) EnquirePayout(ctx context.Context, account connector.Account, ref connector.PayoutReference) (connector.PayoutOutcome, error) {
	const doing = "asking about a payout"
	own, err := p.AwaitEnquiry(ctx, account, doing)
	if err != nil {
		return connector.PayoutOutcome{}, err
	}
	a, err := p.Authorized(ctx, own, connector.Call{Doing: doing, Method: http.MethodGet, Path: transfers + "/" + url.PathEscape(ref.ID), Header: Account(own).header(nil)})
	if err != nil {
		return connector.PayoutOutcome{}, err
	}
	switch a.Status {
	case http.StatusOK:
		var r payoutResult
		if err := a.Decode(&r); err != nil {
			return connector.PayoutOutcome{}, connector.Malformed(doing, err)
		}
		o, err := toPayoutOutcome(r, ref)
		if err != nil {
			return connector.PayoutOutcome{}, connector.Malformed(doing, err)
		}
		return o, nil
	case http.StatusNotFound:
		// A gateway without such a path answers 404 too.
		var no refusal
		if a.Decode(&no) == nil && no.Code == "RESOURCE_NOT_FOUND" {
			return connector.PayoutOutcome{Status: connector.PayoutUnknown, Reason: string(no.Code)}, nil
		}
	}
	return connector.PayoutOutcome{}, a.Fault(doing, false, "")
}

// CheckPayee is GET accountholder/msisdn/{number}/basicuserinfo. Whether the holder is active is not asked: a payout to one who is
// not is refused, and each call is one of EnquiriesPerSecond.
func (p *Payouts) CheckPayee(ctx context.Context, account connector.Account, payee, name string) (connector.NameVerdict, error) {
	const doing = "asking for a payee's name"
	own, err := p.AwaitEnquiry(ctx, account, doing)
	if err != nil {
		return "", err
	}
	a, err := p.Authorized(ctx, own, connector.Call{Doing: doing, Method: http.MethodGet, Path: holders + url.PathEscape(payee) + "/basicuserinfo", Header: Account(own).header(nil)})
	if err != nil {
		return "", err
	}
	switch a.Status {
	case http.StatusOK:
		var holder struct {
			Name       *string `json:"name"`
			GivenName  string  `json:"given_name"`
			FamilyName string  `json:"family_name"`
		}
		held := ""
		err := a.Decode(&holder)
		if err == nil {
			held = strings.TrimSpace(holder.GivenName + " " + holder.FamilyName)
		}
		switch {
		case err == nil && held == "" && holder.Name != nil:
			held = *holder.Name
		case err == nil && held == "":
			err = connector.ErrNotObject // not what MTN says of somebody, also not of one without a name
		}
		if err != nil {
			return "", connector.Malformed(doing, err)
		}
		return connector.CompareNames(name, held), nil
	case http.StatusNotFound:
		var no refusal
		if a.Decode(&no) == nil && no.Code == "RESOURCE_NOT_FOUND" {
			return connector.NameUnknown, nil
		}
	}
	return "", a.Fault(doing, false, "")
}

// payoutResult is the body of a status answer about a payout.
type payoutResult struct {
	result
	Payee party `json:"payee"`
}

// toPayoutOutcome reads MTN's states. Only SUCCESSFUL and FAILED are decisions, and FAILED
// with a reason that says otherwise is none.
func toPayoutOutcome(r payoutResult, ref connector.PayoutReference) (connector.PayoutOutcome, error) {
	o := connector.PayoutOutcome{OperatorRef: string(r.FinancialTransactionID), Reason: string(r.Reason)}
	switch r.Status {
	case "SUCCESSFUL":
		o.Status, o.Currency = connector.PayoutPaid, r.Currency
		// An unreadable amount becomes zero, which agrees with no payout.
		if currency, ok := money.Lookup(r.Currency); ok {
			if amount, err := currency.ParseDecimal(string(r.Amount)); err == nil {
				o.Amount = amount
			}
		}
		o.OtherPayee = r.Payee.PartyID != "" && r.Payee.PartyID != ref.Payee
	case "FAILED":
		if open(o.Reason) {
			o.Status = connector.PayoutPending
			break
		}
		no, definite := refused(o.Reason)
		if !definite {
			no = connector.PayoutOutcome{Status: connector.PayoutRefused, Cause: connector.CauseOperator, Unproven: true}
		}
		no.OperatorRef, no.Reason = o.OperatorRef, o.Reason
		return no, nil
	case "PENDING", "CREATED", "ONGOING", "DELAYED":
		o.Status = connector.PayoutPending
	default:
		return connector.PayoutOutcome{}, fmt.Errorf("unknown status %q", code(r.Status))
	}
	return o, nil
}

// codeExists says that MTN has a payout of this id.
const codeExists reason = "RESOURCE_ALREADY_EXIST"

// refusals are MTN's reasons not to pay somebody. INTERNAL_PROCESSING_ERROR and words that
// are missing here are no proof that nobody was paid.
var refusals = map[string]connector.PayoutCause{
	"NOT_ENOUGH_FUNDS": connector.CauseFunds,
	"LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED": connector.CausePayeeOrAccount,
	"PAYEE_NOT_FOUND":                connector.CausePayee,
	"PAYEE_NOT_ALLOWED_TO_RECEIVE":   connector.CausePayee,
	"PAYEE_LIMIT_REACHED":            connector.CausePayee,
	"PAYER_NOT_FOUND":                connector.CauseAccount,
	"PAYER_LIMIT_REACHED":            connector.CauseFunds, // until its limit is another day's
	"NOT_ALLOWED":                    connector.CauseAccount,
	"NOT_ALLOWED_TARGET_ENVIRONMENT": connector.CauseAccount,
	"INVALID_CURRENCY":               connector.CauseAccount,
	"INVALID_CALLBACK_URL_HOST":      connector.CauseAccount,
}

// refused returns the refusal that a code is; false for one that proves nothing.
func refused(code string) (connector.PayoutOutcome, bool) {
	cause, ok := refusals[code]
	return connector.PayoutOutcome{Status: connector.PayoutRefused, Cause: cause, Reason: code}, ok
}

// open reports whether a reason says that a payout is not decided, whatever its status.
func open(reason string) bool {
	return undecided[reason] || strings.HasSuffix(reason, "_DELAYED") || reason == "SERVICE_UNAVAILABLE"
}
