package connector

import (
	"cmp"
	"errors"
	"time"

	"quittance/internal/secret"
	"quittance/money"
)

// Registration is one operator as the service knows it. The package of a connector
// exports one; internal/connector/all lists them.
type Registration struct {
	// Operator is the operator's short name, such as "mtn": a path element of
	// callback addresses and of the simulators, and a label of metrics.
	Operator string
	// Offer is the id of the offer that the operator takes money for: a row of
	// checkout.Offers, which has its channel.
	Offer string
	// USSD is the code that payers dial to see their pending payments; empty where it is
	// unknown.
	USSD string
	// Account reads the operator's fields of an account.
	Account func(base BaseURL, fields Fields) Account
	// Takes reports whether an account takes a currency. Only the flags of the account are
	// certain to be set. Nil: every account takes only XAF.
	Takes func(account Account, currency money.Currency) bool
	// Simulated are the fields of the account that an agency has with the
	// developer's simulators.
	Simulated func(agencyID, agencySlug string) map[string]string
	// New makes the connector.
	New func(Config) (Connector, error)
}

// Store reads the operator's fields of an account into the form that is stored.
func (r Registration) Store(fields Fields) StoredFields {
	out := StoredFields{sealed: map[string]secret.Text{}}
	r.Account("", recorder{fields, &out})
	return out
}

// Table is a list of operators, each with an offer of its own.
type Table []Registration

// Offer finds the operator of an offer.
func (t Table) Offer(id string) (Registration, bool) {
	return t.find(func(r Registration) bool { return r.Offer == id })
}

// Operator finds an operator by its name.
func (t Table) Operator(name string) (Registration, bool) {
	return t.find(func(r Registration) bool { return r.Operator == name })
}

func (t Table) find(is func(Registration) bool) (Registration, bool) {
	for _, r := range t {
		if is(r) {
			return r, true
		}
	}
	return Registration{}, false
}

// Connect makes the connector of every operator, by offer id.
func (t Table) Connect(cfg Config) (map[string]Connector, error) {
	out := map[string]Connector{}
	for _, r := range t {
		c, err := r.New(cfg)
		if err != nil {
			return nil, err
		}
		out[r.Offer] = c
	}
	return out, nil
}

// Config of a connector.
type Config struct {
	// Now returns the service's time in UTC. It decides when tokens end. Required.
	Now func() time.Time
	// Timestamp returns the machine's time in UTC for signatures. A developer's clock does
	// not move it. The machine's clock when nil.
	Timestamp func() time.Time
	// Timeout of one HTTP call, dialling and answer included; 20 s when zero.
	Timeout time.Duration
	// EnquiriesPerSecond is the limit of an account; 10 when zero.
	EnquiriesPerSecond float64
}

// check sets defaults and validates the other fields.
func (c *Config) check(operator string) error {
	if c.Now == nil {
		return errors.New(operator + ": Now is required")
	}
	if c.Timeout < 0 || c.EnquiriesPerSecond < 0 {
		return errors.New(operator + ": Timeout and EnquiriesPerSecond must not be negative")
	}
	if c.Timestamp == nil {
		c.Timestamp = func() time.Time { return time.Now().UTC() }
	}
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	c.EnquiriesPerSecond = cmp.Or(c.EnquiriesPerSecond, 10)
	return nil
}
