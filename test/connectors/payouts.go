package connectors

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"quittance/internal/connector"
	"quittance/internal/contact"
)

// PayoutOperator is what the suite of payouts needs besides a registration: a stand-in for
// the operator, and texts of its protocol.
type PayoutOperator struct {
	// Standin plays the operator in one test.
	Standin func(t *testing.T) PayoutStandin
	// Fields belong to an account that the operator accepts, Wrong to one that it refuses.
	Fields, Wrong map[string]string
	// Asks matches the call that has it pay, Enquires the one that asks about a payout.
	Asks, Enquires Match
	// Paid is a payee who is paid, Waits one of whom nothing is decided, Refused one who is
	// refused: numbers as an agency writes them.
	Paid, Waits, Refused string
	// Malformed are inputs that are not numbers of this operator.
	Malformed []string

	// Known are all answers to the call that has it pay by which it says that it knows the
	// id.
	Known []Answer
	// Refusals are its refusals, by code.
	Refusals map[string]Refusal
	// RefusesCall returns an answer to the call that has it pay, with a code of Refusals;
	// false for a code that it says in answers to enquiries alone.
	RefusesCall func(code string) (a Answer, ok bool)
	// Says returns an answer to an enquiry about a payout, of a refusal by code, or of money
	// that was paid if the code is empty.
	Says func(ref connector.PayoutReference, code string) Answer
	// Undecided are answers to an enquiry that decide nothing, whatever their status says.
	Undecided []Answer
	// NotFound is the answer to an enquiry about an id that it does not have. The same status
	// with another body is no such answer.
	NotFound Answer
	// Named are answers to CheckPayee for the name AWA MABIALA, by the payee's number: one of each verdict. Mute is a number about
	// which the operator does not answer. Holder matches the call. Without Named the operator tells no names.
	Named  map[string]connector.NameVerdict
	Mute   string
	Holder Match
	// NobodyHeld is the answer about a number that it does not have. The same status with another body is no such answer.
	NobodyHeld Answer
	// NamesAmount is set if answers to enquiries name amount and currency, NamesPayee if they
	// name the payee.
	NamesAmount, NamesPayee bool
}

// PayoutStandin is a handler that plays an operator.
type PayoutStandin struct {
	http.Handler
	// Path is where the operator's API begins, such as "/mtn".
	Path string
	// Payments returns how often the operator has paid for an id.
	Payments func(id string) int
}

// Answer is an answer of an operator.
type Answer struct {
	Status int
	Body   string
}

// Refusal is what a refusal means.
type Refusal struct {
	Cause    connector.PayoutCause
	Unproven bool
}

// payoutTarget is an operator and its connector in one test.
type payoutTarget struct {
	PayoutOperator
	connector      connector.PayoutConnector
	account, wrong connector.Account
	at             func(connector.BaseURL) connector.Account // the account at another address
	faults         *Faults                                   // in front of the operator
	payments       func(id string) int
}

// payoutRules are the rows of docs/design/payouts.md, "Answers": what each answer means.
var payoutRules = []struct {
	answer, means string
	test          func(*testing.T, payoutTarget)
}{
	{"paid", "paid, once", payoutPaid},
	{"time-out, broken connection, 5xx", "undecided: whoever was paid is paid once", payoutLostAnswers},
	{"unreachable", "surely not sent", payoutUnreachable},
	{"unreadable, unknown code", "undecided", payoutUnreadable},
	{"the id is known", "our own request: enquire, never a refusal", payoutKnown},
	{"enquiry: not found", "unknown, and only in the operator's own words", payoutNotFound},
	{"refusal", "refused when an enquiry agrees", payoutRefused},
	{"enquiry: refusal", "refused, with its cause, proven or not", payoutRefusals},
	{"enquiry: undecided", "pending", payoutUndecided},
	{"success with another amount, payee or currency", "no payment of this payout", payoutOther},
	{"refused credentials", "surely not sent", payoutCredentials},
	{"another operator's account", "surely not sent", payoutStrangeAccount},
	{"numbers", "only those of the operator", payoutPayees},
	{"name of a payee", "match, close, different or unknown; nothing without an answer", payoutNames},
	{"end of the context", "undecided, with an error", payoutContextEnds},
}

// RunPayouts runs the suite over the payouts of a registration. It skips an operator that
// pays nobody.
func RunPayouts(t *testing.T, registration connector.Registration, operator PayoutOperator) {
	t.Helper()
	if registration.Disburser == nil {
		t.Skip(registration.Operator + " pays nobody")
	}
	t.Run("registration", func(t *testing.T) {
		t.Parallel()
		d := registration.Disburser
		c, err := d.New(Config())
		if err != nil || c.Operator() != registration.Operator {
			t.Fatalf("the connector of %q: %v, %v", registration.Operator, c, err)
		}
		if collects := registration.Collector; collects != nil && collects.Account.Name == d.Account.Name {
			t.Error("one account for both purposes")
		}
		for name, cfg := range map[string]connector.Config{"no clock": {}, "negative time-out": {Now: now, Timeout: -1}} {
			if _, err := d.New(cfg); err == nil || !strings.HasPrefix(err.Error(), registration.Operator+": ") {
				t.Errorf("%s: %v", name, err)
			}
		}
		accountType(t, d.Account, Operator{Fields: operator.Fields})
	})
	for _, rule := range payoutRules {
		t.Run(rule.answer+" means "+rule.means, func(t *testing.T) {
			t.Parallel()
			c, err := registration.Disburser.New(Config())
			if err != nil {
				t.Fatal(err)
			}
			standin, faults := operator.Standin(t), &Faults{}
			base := Serve(t, faults, Standin{Handler: standin, Path: standin.Path})
			read := registration.Disburser.Account.Read
			rule.test(t, payoutTarget{
				PayoutOperator: operator, connector: c, faults: faults, payments: standin.Payments,
				at:      func(base connector.BaseURL) connector.Account { return read(base, readFields(operator.Fields)) },
				account: read(base, readFields(operator.Fields)), wrong: read(base, readFields(operator.Wrong)),
			})
		})
	}
}

// payout is a new payout to a payee.
func (x payoutTarget) payout(t *testing.T, payee string) connector.Payout {
	t.Helper()
	number, err := x.connector.Payee(payee)
	if err != nil {
		t.Fatalf("Payee(%q): %v", payee, err)
	}
	return connector.Payout{
		PayoutReference: connector.PayoutReference{ID: uuid.NewString(), Payee: number, Amount: amount, Currency: currency},
		PayoutRef:       "QD0000000000000000000000AB", Purpose: "Bourse 2026 - n 7", CallbackURL: "http://127.0.0.1:9/callbacks/hush",
	}
}

// confirmed has the operator pay, and enquires if the answer says so, as whoever uses the port does.
func (x payoutTarget) confirmed(t *testing.T, p connector.Payout) (connector.PayoutOutcome, error) {
	t.Helper()
	o, err := x.connector.Pay(t.Context(), x.account, p)
	if err != nil || !o.Unconfirmed {
		return o, err
	}
	if o.Status != connector.PayoutRefused || o.Decided() {
		t.Errorf("only a refusal is unconfirmed, and it decides nothing: %+v", o)
	}
	known, err := x.connector.EnquirePayout(t.Context(), x.account, p.PayoutReference)
	return connector.PayoutOfRefused(o, known, err)
}

func (x payoutTarget) pay(t *testing.T, p connector.Payout) connector.PayoutOutcome {
	t.Helper()
	o, err := x.confirmed(t, p)
	if err != nil {
		t.Fatalf("Pay: %v", err)
	}
	return o
}

func (x payoutTarget) enquire(t *testing.T, p connector.Payout) connector.PayoutOutcome {
	t.Helper()
	o, err := x.connector.EnquirePayout(t.Context(), x.account, p.PayoutReference)
	if err != nil {
		t.Fatalf("EnquirePayout: %v", err)
	}
	return o
}

// settled checks that the payee has the money, once, and that enquiries say so.
func (x payoutTarget) settled(t *testing.T, p connector.Payout) {
	t.Helper()
	if o := x.enquire(t, p); !o.Agrees(p.PayoutReference) || o.OperatorRef == "" {
		t.Errorf("outcome %+v, want paid", o)
	}
	if n := x.payments(p.ID); n != 1 {
		t.Errorf("the operator has paid %d times, want once", n)
	}
}

// fault checks an error, and that it tells neither a number nor a secret.
func (x payoutTarget) fault(t *testing.T, p connector.Payout, err error, sent bool, want ...connector.FaultKind) {
	t.Helper()
	var e *connector.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *connector.Error", err)
	}
	if e.Sent != sent || !slices.Contains(want, e.Fault) {
		t.Errorf("error %v: fault %s, sent %v; want %v, %v", err, e.Fault, e.Sent, want, sent)
	}
	for _, secret := range append(slices.Collect(maps.Values(x.Fields)), p.Payee, p.CallbackURL) {
		if secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("error tells %q: %v", secret, err)
		}
	}
}

func payoutPaid(t *testing.T, x payoutTarget) {
	p := x.payout(t, x.Paid)
	if o := x.pay(t, p); o.Status == connector.PayoutRefused || o.Status == connector.PayoutUnknown {
		t.Fatalf("Pay: %+v", o)
	}
	x.settled(t, p)
	if o := x.pay(t, p); o.Status == connector.PayoutRefused || o.Status == connector.PayoutUnknown {
		t.Errorf("the second call answers %+v", o)
	}
	x.settled(t, p)
	waits := x.payout(t, x.Waits)
	if o := x.pay(t, waits); o.Decided() {
		t.Errorf("a payout that waits: %+v", o)
	}
	if o := x.enquire(t, waits); o.Status != connector.PayoutPending || x.payments(waits.ID) != 0 {
		t.Errorf("a payout that waits: %+v", o)
	}
}

func payoutLostAnswers(t *testing.T, x payoutTarget) {
	for fault, want := range map[Fault]connector.FaultKind{
		SilentAfter: connector.FaultTimeout, CutAfter: connector.FaultNetwork, Silent: connector.FaultTimeout, Error500: connector.FaultServer,
	} {
		p := x.payout(t, x.Paid)
		x.faults.Next(1, x.Asks, fault)
		_, err := x.confirmed(t, p)
		x.fault(t, p, err, true, want)
		x.pay(t, p) // with the same id
		x.settled(t, p)
		if fault == CutAfter {
			continue // net/http repeats a GET whose connection broke
		}
		x.faults.Next(1, x.Enquires, fault)
		_, err = x.connector.EnquirePayout(t.Context(), x.account, p.PayoutReference)
		if err == nil || connector.FaultOf(err) != want {
			t.Errorf("%s of an enquiry: %v", fault, err)
		}
	}
}

func payoutUnreachable(t *testing.T, x payoutTarget) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	p := x.payout(t, x.Paid)
	_, err = x.connector.Pay(t.Context(), x.at(connector.BaseURL("http://"+l.Addr().String())), p)
	x.fault(t, p, err, false, connector.FaultNetwork)
}

func payoutUnreadable(t *testing.T, x payoutTarget) {
	for _, fault := range []Fault{Garbage, Empty, Endless, Elsewhere} {
		p := x.payout(t, x.Paid)
		x.faults.Next(1, x.Asks, fault)
		if o, err := x.confirmed(t, p); err == nil && o.Decided() {
			t.Errorf("%s: %+v", fault, o)
		} else if err != nil {
			x.fault(t, p, err, true, connector.FaultMalformed)
		}
		x.pay(t, p)
		x.faults.Next(1, x.Enquires, fault)
		if o, err := x.connector.EnquirePayout(t.Context(), x.account, p.PayoutReference); err == nil {
			t.Errorf("%s of an enquiry: %+v", fault, o)
		}
	}
	for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity} {
		p := x.payout(t, x.Paid)
		x.faults.Answer(1, x.Asks, status, `{"code":"SOMETHING_NEW","message":"?","status":{"code":"400","response_code":"DP009000099999","success":false}}`)
		if o, err := x.confirmed(t, p); err == nil && o.Decided() {
			t.Errorf("an unknown code with %d: %+v", status, o)
		}
	}
}

func payoutKnown(t *testing.T, x payoutTarget) {
	for _, known := range x.Known {
		p := x.payout(t, x.Paid)
		x.pay(t, p)
		x.faults.Answer(1, x.Asks, known.Status, known.Body)
		if o := x.pay(t, p); o.Status != connector.PayoutPending && o.Status != connector.PayoutPaid {
			t.Errorf("%+v: %+v", known, o)
		}
		x.settled(t, p)
		// Neither a lost enquiry nor one that finds nothing yet makes a refusal of it.
		for _, enquiry := range []Answer{{http.StatusInternalServerError, ""}, x.NotFound} {
			x.faults.Answer(1, x.Asks, known.Status, known.Body)
			x.faults.Answer(1, x.Enquires, enquiry.Status, enquiry.Body)
			if o, err := x.confirmed(t, p); err != nil || o.Status != connector.PayoutPending {
				t.Errorf("%+v, enquiry %d: %+v, %v", known, enquiry.Status, o, err)
			}
		}
	}
}

func payoutNotFound(t *testing.T, x payoutTarget) {
	p := x.payout(t, x.Paid)
	if o := x.enquire(t, p); o.Status != connector.PayoutUnknown {
		t.Errorf("outcome %+v, want unknown", o)
	}
	for _, body := range []string{"", "<h1>Not Found</h1>", "{}", `{"message":"no such route"}`} {
		x.faults.Answer(1, x.Enquires, http.StatusNotFound, body)
		if o, err := x.connector.EnquirePayout(t.Context(), x.account, p.PayoutReference); err == nil {
			t.Errorf("404 with %q: %+v", body, o)
		}
	}
}

func payoutRefused(t *testing.T, x payoutTarget) {
	refused := x.payout(t, x.Refused)
	for range 2 {
		if o := x.pay(t, refused); o.Status != connector.PayoutRefused {
			o = x.enquire(t, refused)
			if o.Status != connector.PayoutRefused || o.Cause == "" {
				t.Errorf("outcome %+v, want refused", o)
			}
		}
	}
	for code, want := range x.Refusals {
		answer, ok := x.RefusesCall(code)
		if !ok {
			continue
		}
		p := x.payout(t, x.Paid)
		x.faults.Answer(1, x.Asks, answer.Status, answer.Body)
		if o, err := x.confirmed(t, p); err == nil {
			if o.Status != connector.PayoutRefused || o.Cause != want.Cause || o.Unproven != want.Unproven || o.Reason == "" {
				t.Errorf("%s: %+v, want %+v", code, o, want)
			}
		} else if !want.Unproven {
			t.Errorf("%s: %v", code, err)
		}
		// The operator has an earlier request of the id, whose answer was lost.
		x.pay(t, p)
		x.faults.Answer(1, x.Asks, answer.Status, answer.Body)
		if o, err := x.confirmed(t, p); err == nil && o.Status != connector.PayoutPaid && o.Status != connector.PayoutPending {
			t.Errorf("%s of a payout that was made: %+v", code, o)
		}
		x.settled(t, p)
		// No enquiry agrees.
		x.faults.Answer(1, x.Asks, answer.Status, answer.Body)
		x.faults.Next(1, x.Enquires, Error500)
		o, err := x.confirmed(t, p)
		if err == nil {
			t.Errorf("%s without an enquiry: %+v", code, o)
		} else if !connector.Uncertain(err) {
			t.Errorf("%s without an enquiry: surely not sent, %v", code, err)
		}
		x.faults.Clear()
	}
}

func payoutRefusals(t *testing.T, x payoutTarget) {
	for code, want := range x.Refusals {
		p := x.payout(t, x.Waits)
		x.pay(t, p)
		answer := x.Says(p.PayoutReference, code)
		x.faults.Answer(1, x.Enquires, answer.Status, answer.Body)
		if o := x.enquire(t, p); o.Status != connector.PayoutRefused || o.Cause != want.Cause || o.Unproven != want.Unproven || o.Agrees(p.PayoutReference) {
			t.Errorf("%s: %+v, want %+v", code, o, want)
		}
	}
}

func payoutUndecided(t *testing.T, x payoutTarget) {
	p := x.payout(t, x.Waits)
	x.pay(t, p)
	for _, answer := range x.Undecided {
		x.faults.Answer(1, x.Enquires, answer.Status, answer.Body)
		if o := x.enquire(t, p); o.Status != connector.PayoutPending {
			t.Errorf("%+v: %+v, want pending", answer, o)
		}
	}
}

func payoutOther(t *testing.T, x payoutTarget) {
	p := x.payout(t, x.Paid)
	says := func(change func(*connector.PayoutReference)) connector.PayoutOutcome {
		ref := p.PayoutReference
		change(&ref)
		answer := x.Says(ref, "")
		x.faults.Answer(1, x.Enquires, answer.Status, answer.Body)
		return x.enquire(t, p)
	}
	if o := says(func(*connector.PayoutReference) {}); !o.Agrees(p.PayoutReference) {
		t.Errorf("%+v does not agree", o)
	}
	if x.NamesAmount {
		for name, o := range map[string]connector.PayoutOutcome{
			"more":             says(func(r *connector.PayoutReference) { r.Amount++ }),
			"less":             says(func(r *connector.PayoutReference) { r.Amount-- }),
			"another currency": says(func(r *connector.PayoutReference) { r.Currency = "XOF" }),
		} {
			if o.Status != connector.PayoutPaid || o.Agrees(p.PayoutReference) {
				t.Errorf("%s: %+v", name, o)
			}
		}
	}
	if x.NamesPayee {
		if o := says(func(r *connector.PayoutReference) { r.Payee = r.Payee[:len(r.Payee)-1] + "9" }); o.Status != connector.PayoutPaid || !o.OtherPayee || o.Agrees(p.PayoutReference) {
			t.Errorf("another payee: %+v", o)
		}
	}
}

func payoutNames(t *testing.T, x payoutTarget) {
	checks, ok := x.connector.(connector.PayeeChecker)
	if ok != (x.Named != nil) {
		t.Fatalf("the operator tells names: %v", ok)
	}
	if !ok {
		return
	}
	check := func(account connector.Account, number string) (connector.NameVerdict, error) {
		t.Helper()
		p := x.payout(t, number)
		verdict, err := checks.CheckPayee(t.Context(), account, p.Payee, "AWA MABIALA")
		if err != nil {
			for _, personal := range []string{"mabiala", p.Payee, strings.TrimPrefix(p.Payee, "242")} {
				if strings.Contains(strings.ToLower(err.Error()), personal) {
					t.Errorf("the error tells %q: %v", personal, err)
				}
			}
		}
		return verdict, err
	}
	seen := map[connector.NameVerdict]bool{}
	for number, want := range x.Named {
		seen[want] = true
		if got, err := check(x.account, number); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %s", number, got, err, want)
		}
	}
	for _, v := range connector.NameVerdicts {
		if !seen[v] {
			t.Errorf("no number is %s", v)
		}
	}
	if got, err := check(x.account, x.Mute); err == nil || got != "" {
		t.Errorf("without an answer: %q, %v", got, err)
	}
	if got, err := check(x.wrong, x.Paid); connector.FaultOf(err) != connector.FaultCredentials || got != "" {
		t.Errorf("with wrong settings: %q, %v", got, err)
	}
	for _, fault := range []Fault{Silent, Error500, Garbage, Empty, Endless, Elsewhere} {
		x.faults.Next(1, x.Holder, fault)
		if got, err := check(x.account, x.Paid); err == nil || got != "" {
			t.Errorf("%s: %q, %v", fault, got, err)
		}
		x.faults.Clear()
	}
	x.faults.Answer(1, x.Holder, x.NobodyHeld.Status, x.NobodyHeld.Body)
	if got, err := check(x.account, x.Paid); err != nil || got != connector.NameUnknown {
		t.Errorf("a number that it does not have: %q, %v", got, err)
	}
	x.faults.Answer(1, x.Holder, http.StatusNotFound, "<h1>Not Found</h1>")
	if got, err := check(x.account, x.Paid); err == nil || got != "" {
		t.Errorf("the 404 of a gateway: %q, %v", got, err)
	}
}

func payoutCredentials(t *testing.T, x payoutTarget) {
	p := x.payout(t, x.Paid)
	_, err := x.connector.Pay(t.Context(), x.wrong, p)
	x.fault(t, p, err, false, connector.FaultCredentials)
	if n := x.payments(p.ID); n != 0 {
		t.Errorf("paid %d times", n)
	}
}

func payoutStrangeAccount(t *testing.T, x payoutTarget) {
	p := x.payout(t, x.Paid)
	_, err := x.connector.Pay(t.Context(), anotherAccount{}, p)
	x.fault(t, p, err, false, connector.FaultCredentials)
}

func payoutPayees(t *testing.T, x payoutTarget) {
	for _, input := range x.Malformed {
		if got, err := x.connector.Payee(input); !errors.Is(err, contact.ErrNotMobile) && !errors.Is(err, contact.ErrOtherOperator) || got != "" {
			t.Errorf("Payee(%q) is %q, %v", input, got, err)
		}
	}
}

func payoutContextEnds(t *testing.T, x payoutTarget) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := x.payout(t, x.Paid)
	if o, err := x.connector.Pay(ctx, x.account, p); err == nil {
		t.Errorf("%+v", o)
	}
}
