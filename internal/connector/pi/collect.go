package pi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"quittance/checkout"
	"quittance/internal/connector"
)

// Connector asks payers for money through the switch. Safe for concurrent use.
type Connector struct{ client }

var _ connector.PayerReader = (*Connector)(nil)

// New makes a Connector.
func New(cfg connector.Config) (*Connector, error) {
	c, err := newClient(cfg)
	return &Connector{c}, err
}

// Payer takes the mobile numbers of all Congolese operators.
func (c *Connector) Payer(input string) (string, error) { return number(input) }

// Collect is a request to pay (pain.013). The payer may answer until Request.ExpiresAt, by the clock of the switch. The answer to
// the request is never taken for an approval. If the switch knows the id already, Collect enquires.
func (c *Connector) Collect(ctx context.Context, account connector.Account, r connector.Request) (connector.Outcome, error) {
	const doing = "requesting payment"
	own, err := c.Own(account)
	if err != nil {
		return connector.Outcome{}, err
	}
	txID, err := connector.ShortID(r.ID)
	if err != nil {
		return connector.Outcome{}, connector.Malformed(doing, err)
	}
	a, err := c.send(ctx, own, doing, requests, instruction{
		txID: txID, debtor: alias(r.Payer), creditor: own.Alias, amount: r.Amount, currency: r.Currency, remittance: r.PaymentRef, until: r.ExpiresAt,
	})
	if err != nil {
		return connector.Outcome{}, err
	}
	ref := connector.Reference{ID: r.ID, Amount: r.Amount, Currency: r.Currency}
	refused := func(o connector.Outcome) (connector.Outcome, error) {
		known, err := c.Enquire(ctx, account, ref)
		return connector.OfRefused(o, known, err)
	}
	var answer told
	switch {
	case a.Status == http.StatusConflict:
		return connector.OfKnown(c.Enquire(ctx, account, ref)), nil
	case a.Status != http.StatusNotFound && refuses(a):
		return refused(connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailureOperatorError, Reason: strconv.Itoa(a.Status)})
	case a.Status == http.StatusForbidden:
		return connector.Outcome{}, a.Fault(doing, false, "") // of the gateway: the account
	case a.Status < 200 || a.Status > 299 || a.Decode(&answer) != nil:
		return connector.Outcome{}, a.Fault(doing, true, "")
	}
	said, err := answer.report(txID)
	switch {
	case err != nil:
		return connector.Outcome{}, connector.WithSent(connector.Malformed(doing, err), true)
	case said.status == statusRejected && known[said.reason]:
		return connector.OfKnown(c.Enquire(ctx, account, ref)), nil
	case said.status != statusRejected, undecided[said.reason]:
		return connector.Outcome{Status: checkout.OutcomePending, Reason: said.reason}, nil
	}
	if _, definite := failures[said.reason]; !definite {
		return connector.Outcome{}, a.Fault(doing, true, said.reason)
	}
	return refused(toOutcome(said))
}

// Enquire asks for the status of a request to pay (pain.014), at most EnquiriesPerSecond of an account.
func (c *Connector) Enquire(ctx context.Context, account connector.Account, ref connector.Reference) (connector.Outcome, error) {
	const doing = "asking about a payment"
	txID, err := connector.ShortID(ref.ID)
	if err != nil {
		return connector.Outcome{}, connector.Malformed(doing, err)
	}
	r, found, err := c.status(ctx, account, doing, requests, txID)
	switch {
	case err != nil:
		return connector.Outcome{}, err
	case !found:
		return connector.Outcome{Status: checkout.OutcomeUnknown, Reason: strconv.Itoa(http.StatusNotFound)}, nil
	}
	return toOutcome(r), nil
}

// ParseReport reads the report of an event. The switch sends reports to an address that is registered for a client, so none arrives
// at the address of a session by itself. A report names no reason, and only makes the service ask.
func (c *Connector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	return connector.ReadReport("the switch", body, func(e event) (connector.Report, error) {
		id, err := connector.LongID(e.TxID)
		if err != nil {
			return connector.Report{}, err
		}
		o := connector.Outcome{Status: checkout.OutcomePending}
		if strings.HasSuffix(e.Code, "_IRREVOCABLE") {
			o.Status = checkout.OutcomeApproved
		}
		return connector.Report{ID: id, Outcome: o, Ask: true}, nil
	})
}

// event is the body of a report.
type event struct {
	Code string `json:"evCode"`
	TxID string `json:"txId"`
}

// toOutcome reads a status. Only settled and rejected are decisions, and rejected with a reason that says otherwise is none.
func toOutcome(r report) connector.Outcome {
	o := connector.Outcome{Status: checkout.OutcomePending, OperatorRef: r.endToEnd, Reason: r.reason}
	switch {
	case r.status == statusSettled:
		o.Status, o.Amount, o.Currency, o.ApprovedAt = checkout.OutcomeApproved, r.amount, r.currency, r.settled
	case r.status == statusRejected && (undecided[r.reason] || known[r.reason]):
		o.Status = checkout.OutcomeAmbiguous
	case r.status == statusRejected:
		o.Status, o.FailureCode = checkout.OutcomeRefused, failure(r.reason)
	}
	return o
}
