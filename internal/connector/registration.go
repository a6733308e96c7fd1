package connector

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"quittance/money"
)

// Registration is one operator as the service knows it. The package of a connector
// exports one; internal/connector/all lists them. A capability that is nil is one that the
// operator does not have.
type Registration struct {
	// Operator is the operator's short name, such as "mtn": a path element of
	// callback addresses and of the simulators, and a label of metrics.
	Operator string
	// Notice is what agencies and operators of the service must know before they rely on the operator, such as
	// that nobody has certified its connector; empty for nothing.
	Notice string
	// Collector takes money from payers.
	Collector *Collector
	// Disburser pays people.
	Disburser *Disburser
}

// Collector is the capability of an operator to take money from payers.
type Collector struct {
	// Account is the type of the accounts on which the money arrives.
	Account AccountType
	// USSD is the code that payers dial to see their pending payments; empty where it is
	// unknown.
	USSD string
	// Takes reports whether an account takes a currency. Only the flags of the account are
	// certain to be set. Nil: every account takes only XAF.
	Takes func(account Account, currency money.Currency) bool
	// New makes the connector.
	New func(Config) (Connector, error)
}

// Table is the operators of a service, and which of them each offer names.
type Table struct {
	Operators []Registration
	// Offers has the name of each offer's operator, by the id of the offer. An operator may
	// serve several offers, or none; cash at a counter has no operator. The list stands here
	// and not in checkout.Offers, because the domain decides by the channel of an offer
	// without knowing who is asked, and because a test can have operators of its own. An
	// offer keeps its operator: running collections name accounts of that operator.
	Offers map[string]string
}

// Operator finds an operator by its name.
func (t Table) Operator(name string) (Registration, bool) {
	i := slices.IndexFunc(t.Operators, func(r Registration) bool { return r.Operator == name })
	if i < 0 {
		return Registration{}, false
	}
	return t.Operators[i], true
}

// Collecting finds the operator that takes the money of an offer.
func (t Table) Collecting(offer string) (Registration, bool) {
	r, ok := t.Operator(t.Offers[offer])
	return r, ok && r.Collector != nil
}

// SameMerchant reports whether the money of two offers arrives on the same merchant account,
// because it is one offer or because one operator serves both.
func (t Table) SameMerchant(offer, other string) bool {
	return offer == other || t.Offers[offer] != "" && t.Offers[offer] == t.Offers[other]
}

// Accounts lists the types of the accounts that an agency can have for a purpose, in the
// order of the operators.
func (t Table) Accounts(purpose Purpose) (types []AccountType) {
	for _, r := range t.Operators {
		if a, ok := r.account(purpose); ok {
			types = append(types, a)
		}
	}
	return types
}

// AccountOf finds the type of the accounts of an operator for a purpose; false for an
// operator that lacks the capability.
func (t Table) AccountOf(operator string, purpose Purpose) (AccountType, bool) {
	r, _ := t.Operator(operator)
	return r.account(purpose)
}

func (r Registration) account(purpose Purpose) (AccountType, bool) {
	switch {
	case purpose == PurposeCollect && r.Collector != nil:
		return r.Collector.Account, true
	case purpose == PurposePayout && r.Disburser != nil:
		return r.Disburser.Account, true
	}
	return AccountType{}, false
}

// Connect makes the connector of every operator that takes money, by the operator's name.
func (t Table) Connect(cfg Config) (map[string]Connector, error) {
	out := map[string]Connector{}
	for _, r := range t.Operators {
		if r.Collector == nil {
			continue
		}
		c, err := r.Collector.New(cfg)
		if err != nil {
			return nil, err
		}
		out[r.Operator] = c
	}
	return out, nil
}

// ConnectPayouts makes the connector of every operator that pays people, by the operator's
// name.
func (t Table) ConnectPayouts(cfg Config) (map[string]PayoutConnector, error) {
	out := map[string]PayoutConnector{}
	for _, r := range t.Operators {
		if r.Disburser == nil {
			continue
		}
		c, err := r.Disburser.New(cfg)
		if err != nil {
			return nil, err
		}
		out[r.Operator] = c
	}
	return out, nil
}

// ByOffer returns the connectors that Connect has made by the ids of the offers.
func (t Table) ByOffer(connectors map[string]Connector) map[string]Connector {
	out := map[string]Connector{}
	for offer, operator := range t.Offers {
		if c, ok := connectors[operator]; ok {
			out[offer] = c
		}
	}
	return out
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
