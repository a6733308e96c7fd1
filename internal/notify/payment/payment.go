// Package payment makes the messages about the money of a session: a receipt, and what was given back. The
// announcer of sinks/notify sends them when an event says so, and the checkout pages send the receipt that a
// payer asks for, so that both say the same.
package payment

import (
	"strconv"
	"time"

	"quittance/checkout"
	"quittance/internal/contact"
	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/money"
	"quittance/money/language"
	"quittance/money/localtime"
)

// Agency is what messages say of an agency. The fields besides Name say how to reach it, in the agency's own
// language; each may be empty.
type Agency struct {
	Name, Address, Phone, Email, Hours string
	// Locked means that the agency's row is not as it was signed, so that its other fields are unknown.
	Locked bool
}

// News is what people are told about the money of a session.
type News struct {
	Kind    notify.Kind
	Session checkout.Session
	// Dues are those that the message is about; empty for all of the session.
	Dues     []checkout.Item
	Amount   int64 // minor units
	Currency string
	// At is the time of the payment, the reversal or the refund, UTC.
	At time.Time
	// About says what makes the message unique, besides its kind and its channel, such as the id of an event.
	About []string
	// Caused is when the message's life begins, UTC.
	Caused time.Time
}

// Receipt is the news that a session was paid, which the session must be. The caller sets About and Caused.
func Receipt(s checkout.Session) News {
	return News{Kind: notify.Receipt, Session: s, Amount: s.Collection.Amount, Currency: s.Currency, At: s.PaidAt()}
}

// Message returns the message to an address. An agency without a name is one that the registry has no more.
func (n News) Message(agency Agency, to contact.Address, lang money.Language) notify.Message {
	s := n.Session
	if len(s.Items) > 0 && len(n.Dues) > 0 {
		s.Items = n.Dues
	}
	if agency.Name == "" {
		agency.Name = "Administration"
	}
	amount := strconv.FormatInt(n.Amount, 10) + " " + n.Currency // of a currency that is not listed
	if c, listed := money.Lookup(n.Currency); listed {
		amount = c.Format(lang, n.Amount)
	}
	m := notify.Message{
		Kind: n.Kind, Channel: provider.ChannelEmail, To: to.Text(), Locale: string(lang), AgencyID: s.TenantID, SessionID: s.ID, Live: s.Live, At: n.Caused,
		Variables: map[string]string{
			notify.VariableAgency: agency.Name, notify.VariableAmount: amount, notify.VariableReference: language.GroupReference(s.PaymentRef),
			notify.VariableDate: localtime.In(n.At).Format("02/01/2006 15:04"), notify.VariableObject: objectOf(s, lang),
		},
	}
	if to.Kind == contact.Phone {
		m.Channel = provider.ChannelSMS
	} else {
		m.Variables[notify.VariableDetails], m.Variables[notify.VariableContact] = detailsOf(s, lang), agency.contact(lang)
	}
	if n.Kind.Name == notify.Receipt.Name {
		m.Variables[notify.VariableSession] = s.ID
	}
	m.ID = notify.MessageID(m.Kind, m.Channel, n.About...)
	return m
}
