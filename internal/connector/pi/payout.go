package pi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"quittance/internal/connector"
)

// Payouts pays people through the switch. Safe for concurrent use.
type Payouts struct{ client }

// NewPayouts makes Payouts.
func NewPayouts(cfg connector.Config) (*Payouts, error) {
	c, err := newClient(cfg)
	return &Payouts{c}, err
}

// Payee takes the mobile numbers of all Congolese operators.
func (p *Payouts) Payee(input string) (string, error) { return number(input) }

// Pay is a credit transfer (pacs.008). Its answer, which may say that the money has moved, is not taken for the payment: the
// enquiry says the same, and is not made here (connector.PayoutConnector).
func (p *Payouts) Pay(ctx context.Context, account connector.Account, payout connector.Payout) (connector.PayoutOutcome, error) {
	const doing = "paying out"
	own, err := p.Own(account)
	if err != nil {
		return connector.PayoutOutcome{}, err
	}
	txID, err := connector.ShortID(payout.ID)
	if err != nil {
		return connector.PayoutOutcome{}, connector.Malformed(doing, err)
	}
	a, err := p.send(ctx, own, doing, transfers, instruction{
		txID: txID, debtor: own.Alias, creditor: alias(payout.Payee), amount: payout.Amount, currency: payout.Currency,
		remittance: strings.TrimSpace(payout.PayoutRef + " " + payout.Purpose),
	})
	if err != nil {
		return connector.PayoutOutcome{}, err
	}
	var answer told
	switch {
	case a.Status == http.StatusConflict:
		return connector.PayoutOfKnown(p.EnquirePayout(ctx, account, payout.PayoutReference)), nil
	case a.Status != http.StatusNotFound && refuses(a):
		// The switch has read the request and carries it not out, without a reason of ISO 20022: the payee's alias, the amount, or
		// what the account may do.
		return connector.PayoutOutcome{Status: connector.PayoutRefused, Cause: connector.CausePayeeOrAccount, Reason: strconv.Itoa(a.Status), Unconfirmed: true}, nil
	case a.Status == http.StatusForbidden:
		return connector.PayoutOutcome{}, a.Fault(doing, false, "") // of the gateway: the account
	case a.Status < 200 || a.Status > 299 || a.Decode(&answer) != nil:
		return connector.PayoutOutcome{}, a.Fault(doing, true, "")
	}
	r, err := answer.report(txID)
	switch {
	case err != nil:
		return connector.PayoutOutcome{}, connector.WithSent(connector.Malformed(doing, err), true)
	case r.status != statusRejected, r.reason == aborted:
		return connector.PayoutOutcome{Status: connector.PayoutPending, Reason: r.reason}, nil
	case known[r.reason]:
		return connector.PayoutOfKnown(p.EnquirePayout(ctx, account, payout.PayoutReference)), nil
	}
	cause, definite := refusals[r.reason]
	if !definite {
		return connector.PayoutOutcome{}, a.Fault(doing, true, r.reason)
	}
	return connector.PayoutOutcome{Status: connector.PayoutRefused, Cause: cause, Reason: r.reason, Unconfirmed: true}, nil
}

// EnquirePayout asks for the status of a credit transfer (pacs.028), at most EnquiriesPerSecond of an account.
func (p *Payouts) EnquirePayout(ctx context.Context, account connector.Account, ref connector.PayoutReference) (connector.PayoutOutcome, error) {
	const doing = "asking about a payout"
	txID, err := connector.ShortID(ref.ID)
	if err != nil {
		return connector.PayoutOutcome{}, connector.Malformed(doing, err)
	}
	r, found, err := p.status(ctx, account, doing, transfers, txID)
	switch {
	case err != nil:
		return connector.PayoutOutcome{}, err
	case !found:
		return connector.PayoutOutcome{Status: connector.PayoutUnknown, Reason: strconv.Itoa(http.StatusNotFound)}, nil
	}
	return toPayoutOutcome(r, ref), nil
}

// CheckPayee identifies the payee (acmt.023).
func (p *Payouts) CheckPayee(ctx context.Context, account connector.Account, payee, name string) (connector.NameVerdict, error) {
	const doing = "asking for a payee's name"
	_, a, err := p.get(ctx, account, doing, "/alias/"+url.PathEscape(alias(payee)))
	if err != nil {
		return "", err
	}
	var held struct {
		Name *string `json:"nom"`
	}
	switch {
	case a.Status == http.StatusNotFound && refuses(a):
		return connector.NameUnknown, nil
	case a.Status != http.StatusOK:
		return "", a.Fault(doing, false, "")
	case a.Decode(&held) != nil || held.Name == nil:
		return "", connector.Malformed(doing, connector.ErrNotObject)
	}
	return connector.CompareNames(name, *held.Name), nil
}

// toPayoutOutcome reads a status. Only settled and rejected are decisions, and rejected with a reason that says otherwise is none.
func toPayoutOutcome(r report, ref connector.PayoutReference) connector.PayoutOutcome {
	o := connector.PayoutOutcome{Status: connector.PayoutPending, OperatorRef: r.endToEnd, Reason: r.reason}
	switch {
	case r.status == statusSettled:
		o.Status, o.Amount, o.Currency, o.PaidAt, o.Returned = connector.PayoutPaid, r.amount, r.currency, r.settled, r.returned
		o.OtherPayee = r.creditor != "" && r.creditor != alias(ref.Payee)
	case r.status == statusRejected && r.reason != aborted && !known[r.reason]:
		cause, proven := refusals[r.reason]
		if !proven {
			cause = connector.CauseOperator
		}
		o.Status, o.Cause, o.Unproven = connector.PayoutRefused, cause, !proven
	}
	return o
}
