// Package connectors is the conformance suite of connectors: it checks what callers rely
// on for every operator. Its inputs are the connector's registration and an Operator with
// what only the test needs.
package connectors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/contact"
	"quittance/internal/secret"
)

// Operator is what the suite needs besides a registration: a stand-in for the operator,
// and texts of its protocol.
type Operator struct {
	// Standin plays the operator in one test. See Simulators.
	Standin func(t *testing.T) Standin
	// Fields belong to an account that the operator accepts, Wrong to one that it refuses.
	Fields, Wrong map[string]string

	// Asks matches the call that asks for money, Enquires the one that asks about it.
	Asks, Enquires Match
	// Approves is a payer who approves at once, Waits one who does not answer. It is a
	// number as a citizen types it, or a name for Visit.
	Approves, Waits string
	// Refuses has a payer for every refusal of the operator.
	Refuses map[string]checkout.FailureCode
	// Malformed are inputs that are not numbers of this operator. Only for a PayerReader.
	Malformed []string
	// Visit plays the payer on the operator's page. Set it if and only if the operator
	// redirects.
	Visit func(t *testing.T, redirect connector.Redirect, payer string)
	// Redirects returns an answer to the call that asks for money. The answer sends the
	// payer of an id to an address. Only for an operator that redirects.
	Redirects func(id, address string) (status int, body string)
	// Tokens means that calls carry an access token of the operator.
	Tokens bool
	// Claims returns an answer to the call that asks for money. The answer says that the
	// payment of an id is already made.
	Claims func(id string) (status int, body string)

	// Report returns the body of a report that the collection of an id was approved with
	// an amount and a currency.
	Report func(id string, amount int64, currency string) []byte
	// Sign returns the header of a report that the account's operator signs at a time. Set
	// it if and only if the connector is a ReportVerifier.
	Sign func(account connector.Account, at time.Time, body []byte) http.Header
}

// target is an operator and its connector in one test.
type target struct {
	Operator
	registration   connector.Registration
	connector      connector.Connector
	account, wrong connector.Account
	secrets        []string
	faults         *Faults // in front of the operator
	collections    func(id string) int
	visits         *sync.Map // payers who have yet to go to the operator's page, by collection
}

const (
	patience = 10 * time.Second

	// Of every collection.
	amount   = 5075
	currency = "XAF"
)

// Run runs the suite over the operator of a registration. It skips an operator that takes no
// money.
func Run(t *testing.T, registration connector.Registration, operator Operator) {
	t.Helper()
	if registration.Collector == nil {
		t.Skip(registration.Operator + " takes no money")
	}
	t.Run("registration", func(t *testing.T) { t.Parallel(); registered(t, registration, operator) })
	for name, test := range map[string]func(*testing.T, target){
		"reports":            func(t *testing.T, x target) { reports(t, x.connector.ParseReport, x.Report) },
		"unreadable reports": func(t *testing.T, x target) { unreadableReports(t, x.connector.ParseReport, x.Report) },
		"signatures":         signatures,

		"approval":                   approval,
		"claimed approval":           claimedApproval,
		"refusals":                   refusals,
		"waiting payer":              waiting,
		"same id twice":              sameID,
		"unknown id":                 unknownID,
		"500 then works":             serverError,
		"silent before":              silentBefore,
		"silent after":               silentAfter,
		"cut after":                  cutAfter,
		"unreachable":                unreachable,
		"malformed answers":          malformedAnswers,
		"malformed answer to asking": malformedRequestAnswer,
		"wrong credentials":          wrongCredentials,
		"another operator's account": strangeAccount,
		"forgotten token":            forgottenToken,
		"context ends":               contextEnds,
		"payers":                     payers,
		"redirect":                   redirect,
		"malformed redirect":         malformedRedirect,
		"other content":              otherContent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, registration, operator))
		})
	}
}

// start plays the operator for one test.
func start(t *testing.T, registration connector.Registration, operator Operator) target {
	t.Helper()
	c, err := registration.Collector.New(Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.(connector.ReportVerifier); ok != (operator.Sign != nil) {
		t.Fatal("Sign belongs to a ReportVerifier")
	}
	standin, faults := operator.Standin(t), &Faults{}
	base := Serve(t, faults, standin)
	read := readFields(operator.Fields)
	return target{
		Operator: operator, registration: registration, connector: c,
		account: registration.Collector.Account.Read(base, read), wrong: registration.Collector.Account.Read(base, readFields(operator.Wrong)), secrets: read.secrets,
		faults: faults, collections: standin.Collections, visits: &sync.Map{},
	}
}

// request is a new collection.
func (x target) request(t *testing.T, payer string) connector.Request {
	t.Helper()
	r := connector.Request{
		ID: uuid.NewString(), Amount: amount, Currency: currency, PaymentRef: "1234567890123456",
		Description: "L'impôt — « 2026 » (n° 7)",
		// No server listens there.
		CallbackURL: "http://127.0.0.1:9/callbacks/hush", ReturnURL: "http://127.0.0.1:9/c/hush",
		ExpiresAt: time.Now().UTC().Add(5 * time.Minute),
	}
	if reader, ok := x.connector.(connector.PayerReader); ok {
		var err error
		if r.Payer, err = reader.Payer(payer); err != nil {
			t.Fatalf("Payer(%q): %v", payer, err)
		}
	}
	x.visits.Store(r.ID, payer)
	return r
}

// collect asks for the money. If the operator redirects, the payer visits the page.
func (x target) collect(t *testing.T, r connector.Request) connector.Outcome {
	t.Helper()
	o, err := x.connector.Collect(t.Context(), x.account, r)
	if err != nil {
		t.Fatalf("Collect: %v", err)
	}
	if x.Visit == nil && o.Redirect != nil {
		t.Fatal("a redirect, and the suite knows no page")
	}
	if o.Redirect != nil {
		if payer, ok := x.visits.LoadAndDelete(r.ID); ok {
			x.Visit(t, *o.Redirect, payer.(string))
		}
	}
	return o
}

// reference names a collection of request for an enquiry.
func reference(id string) connector.Reference {
	return connector.Reference{ID: id, Amount: amount, Currency: currency}
}

// settled enquires until the operator has decided.
func (x target) settled(t *testing.T, id string) connector.Outcome {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		o, err := x.connector.Enquire(t.Context(), x.account, reference(id))
		if err != nil {
			t.Fatalf("Enquire: %v", err)
		}
		if o.Decided() {
			return o
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %s after %v", o.Status, patience)
		}
	}
}

func (x target) once(t *testing.T, id string) {
	t.Helper()
	if n := x.collections(id); n != 1 {
		t.Errorf("the operator has %d collections of this id, want 1", n)
	}
}

// fault checks the class and the certainty of an error, and that it reveals no secret.
func (x target) fault(t *testing.T, r connector.Request, err error, want connector.FaultKind, sent bool) {
	t.Helper()
	var e *connector.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *connector.Error", err)
	}
	if e.Fault != want || e.Sent != sent || connector.Uncertain(err) != sent {
		t.Errorf("error %v: fault %s, sent %v; want %s, %v", err, e.Fault, e.Sent, want, sent)
	}
	for _, secret := range append(slices.Collect(maps.Values(x.Fields)), r.Payer, r.CallbackURL, r.ReturnURL) {
		if secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("error tells %q: %v", secret, err)
		}
	}
}

func approval(t *testing.T, x target) {
	r := x.request(t, x.Approves)
	if o := x.collect(t, r); o.Status == checkout.OutcomeRefused || o.Status == checkout.OutcomeUnknown {
		t.Fatalf("Collect: %+v", o)
	}
	o := x.settled(t, r.ID)
	if o.Status != checkout.OutcomeApproved || o.Amount != r.Amount || o.Currency != r.Currency || o.OperatorRef == "" || o.FailureCode != "" {
		t.Errorf("outcome %+v", o)
	}
	x.once(t, r.ID)
}

func refusals(t *testing.T, x target) {
	for payer, want := range x.Refuses {
		r := x.request(t, payer)
		o := x.collect(t, r)
		if !o.Decided() {
			o = x.settled(t, r.ID)
		}
		if o.Status != checkout.OutcomeRefused || o.FailureCode != want {
			t.Errorf("payer %s: %+v, want refused with %s", payer, o, want)
		}
		// The same request comes a second time, as after a redelivery.
		if o = x.collect(t, r); !o.Decided() {
			o = x.settled(t, r.ID)
		}
		if o.Status != checkout.OutcomeRefused || o.FailureCode != want {
			t.Errorf("payer %s, asked again: %+v, want refused with %s", payer, o, want)
		}
		if n := x.collections(r.ID); n > 1 {
			t.Errorf("payer %s: the operator has %d collections of this id", payer, n)
		}
	}
}

// claimedApproval: an approval in the answer to the request decides nothing, because the
// payer has not been asked yet.
func claimedApproval(t *testing.T, x target) {
	r := x.request(t, x.Waits)
	status, body := x.Claims(r.ID)
	x.faults.Answer(1, x.Asks, status, body)
	if o, err := x.connector.Collect(t.Context(), x.account, r); err == nil && o.Decided() {
		t.Errorf("outcome %+v, want undecided", o)
	}
	if n := x.collections(r.ID); n != 0 {
		t.Fatalf("the operator has %d collections, want none", n)
	}
}

// forgottenToken: the operator refuses a token before its end. Each call gets one such
// refusal and continues with a new token.
func forgottenToken(t *testing.T, x target) {
	if !x.Tokens {
		t.Skip("this operator gives out no tokens")
	}
	forget := func(call Match) {
		token := ""
		x.faults.Answer(1_000_000, func(r *http.Request) bool {
			if token == "" && call(r) {
				token = r.Header.Get("Authorization")
			}
			return token != "" && token == r.Header.Get("Authorization")
		}, http.StatusUnauthorized, `{"error":"invalid_token"}`)
	}
	forget(x.Asks)
	r := x.request(t, x.Approves)
	x.collect(t, r)
	forget(x.Enquires)
	if o := x.settled(t, r.ID); o.Status != checkout.OutcomeApproved {
		t.Errorf("outcome %+v", o)
	}
	x.once(t, r.ID)
}

func waiting(t *testing.T, x target) {
	r := x.request(t, x.Waits)
	for _, o := range []connector.Outcome{x.collect(t, r), x.enquire(t, r.ID)} {
		if o.Status != checkout.OutcomePending && o.Status != checkout.OutcomeAmbiguous {
			t.Errorf("outcome %+v, want undecided", o)
		}
	}
}

func (x target) enquire(t *testing.T, id string) connector.Outcome {
	t.Helper()
	o, err := x.connector.Enquire(t.Context(), x.account, reference(id))
	if err != nil {
		t.Fatalf("Enquire: %v", err)
	}
	return o
}

func sameID(t *testing.T, x target) {
	r := x.request(t, x.Approves)
	x.collect(t, r)
	if o := x.collect(t, r); o.Status == checkout.OutcomeRefused || o.Status == checkout.OutcomeUnknown {
		t.Errorf("the second call answers %+v", o)
	}
	if o := x.settled(t, r.ID); o.Status != checkout.OutcomeApproved {
		t.Errorf("outcome %+v", o)
	}
	x.once(t, r.ID)

	// A known id causes an enquiry. When its answer is lost, the collection is pending.
	x.faults.Next(1, x.Enquires, Error500)
	if o := x.collect(t, r); o.Status != checkout.OutcomePending && o.Status != checkout.OutcomeApproved {
		t.Errorf("the third call answers %+v", o)
	}
	x.once(t, r.ID)
}

func unknownID(t *testing.T, x target) {
	if o := x.enquire(t, uuid.NewString()); o.Status != checkout.OutcomeUnknown {
		t.Errorf("outcome %+v, want unknown", o)
	}
}

func serverError(t *testing.T, x target) {
	r := x.request(t, x.Approves)
	x.faults.Next(1, x.Asks, Error500)
	_, err := x.connector.Collect(t.Context(), x.account, r)
	x.fault(t, r, err, connector.FaultServer, true)

	x.collect(t, r)
	if o := x.settled(t, r.ID); o.Status != checkout.OutcomeApproved {
		t.Errorf("outcome %+v", o)
	}
	x.once(t, r.ID)

	x.faults.Next(1, x.Enquires, Error500)
	_, err = x.connector.Enquire(t.Context(), x.account, reference(r.ID))
	x.fault(t, r, err, connector.FaultServer, false)
}

func silentBefore(t *testing.T, x target) {
	r := x.request(t, x.Approves)
	x.faults.Next(1, x.Asks, Silent)
	_, err := x.connector.Collect(t.Context(), x.account, r)
	x.fault(t, r, err, connector.FaultTimeout, true)
	if o := x.enquire(t, r.ID); o.Status != checkout.OutcomeUnknown {
		t.Errorf("outcome %+v, want unknown", o)
	}
}

func silentAfter(t *testing.T, x target) { lostAnswer(t, x, SilentAfter, connector.FaultTimeout) }
func cutAfter(t *testing.T, x target)    { lostAnswer(t, x, CutAfter, connector.FaultNetwork) }

// lostAnswer: the operator has the request, but its answer is lost. A second request and
// an enquiry are safe.
func lostAnswer(t *testing.T, x target, fault Fault, want connector.FaultKind) {
	r := x.request(t, x.Approves)
	x.faults.Next(1, x.Asks, fault)
	_, err := x.connector.Collect(t.Context(), x.account, r)
	x.fault(t, r, err, want, true)
	x.collect(t, r)
	if o := x.settled(t, r.ID); o.Status != checkout.OutcomeApproved {
		t.Errorf("outcome %+v", o)
	}
	x.once(t, r.ID)
}

func unreachable(t *testing.T, x target) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	account := x.registration.Collector.Account.Read(connector.BaseURL("http://"+l.Addr().String()), readFields(x.Fields))
	_ = l.Close()
	r := x.request(t, x.Approves)
	_, err = x.connector.Collect(t.Context(), account, r)
	x.fault(t, r, err, connector.FaultNetwork, false)
}

func malformedAnswers(t *testing.T, x target) {
	r := x.request(t, x.Approves)
	x.collect(t, r)
	for _, fault := range []Fault{Garbage, Empty, Twice, Endless, Elsewhere} {
		x.faults.Next(1, x.Enquires, fault)
		_, err := x.connector.Enquire(t.Context(), x.account, reference(r.ID))
		if err == nil {
			t.Errorf("%s: no error", fault)
			continue
		}
		x.fault(t, r, err, connector.FaultMalformed, false)
	}
	if o := x.settled(t, r.ID); o.Status != checkout.OutcomeApproved {
		t.Errorf("outcome %+v", o)
	}
}

func malformedRequestAnswer(t *testing.T, x target) {
	for _, fault := range []Fault{Garbage, Empty, Endless, Elsewhere} {
		r := x.request(t, x.Approves)
		x.faults.Next(1, x.Asks, fault)
		if o, err := x.connector.Collect(t.Context(), x.account, r); err == nil && o.Decided() {
			t.Errorf("%s: %+v", fault, o)
		} else if err != nil {
			x.fault(t, r, err, connector.FaultMalformed, true)
		}
	}
}

func wrongCredentials(t *testing.T, x target) {
	r := x.request(t, x.Approves)
	_, err := x.connector.Collect(t.Context(), x.wrong, r)
	x.fault(t, r, err, connector.FaultCredentials, false)
	_, err = x.connector.Enquire(t.Context(), x.wrong, reference(r.ID))
	x.fault(t, r, err, connector.FaultCredentials, false)
	if n := x.collections(r.ID); n != 0 {
		t.Errorf("the operator has %d collections, want none", n)
	}
}

// strangeAccount: an account of another operator is not used.
func strangeAccount(t *testing.T, x target) {
	r := x.request(t, x.Approves)
	_, err := x.connector.Collect(t.Context(), anotherAccount{}, r)
	x.fault(t, r, err, connector.FaultCredentials, false)
	_, err = x.connector.Enquire(t.Context(), anotherAccount{}, reference(r.ID))
	x.fault(t, r, err, connector.FaultCredentials, false)
	if verifier, ok := x.connector.(connector.ReportVerifier); ok {
		body := x.Report(r.ID, amount, currency)
		if err := verifier.VerifyReport(anotherAccount{}, x.Sign(x.account, time.Now(), body), body); !errors.Is(err, connector.ErrSignature) {
			t.Errorf("a report for it: %v, want ErrSignature", err)
		}
	}
}

func contextEnds(t *testing.T, x target) {
	r := x.request(t, x.Approves)
	x.collect(t, r) // the connector has a token now
	x.faults.Next(1, x.Enquires, Silent)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := x.connector.Enquire(ctx, x.account, reference(r.ID))
	if err == nil {
		t.Error("an ended context brings no error")
	}
}

func payers(t *testing.T, x target) {
	reader, ok := x.connector.(connector.PayerReader)
	if !ok {
		t.Skip("this operator reaches payers by itself")
	}
	for _, input := range x.Malformed {
		if number, err := reader.Payer(input); !errors.Is(err, contact.ErrNotMobile) && !errors.Is(err, contact.ErrOtherOperator) {
			t.Errorf("Payer(%q) = %q, %v", input, number, err)
		}
	}
	number, err := reader.Payer(x.Approves)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := reader.Payer(number); err != nil || again != number {
		t.Errorf("Payer of its own result: %q, %v, want %q", again, err, number)
	}
}

// redirect: all requests for a collection get the same page. An enquiry does not return
// the page.
func redirect(t *testing.T, x target) {
	if x.Visit == nil {
		t.Skip("this operator does not redirect")
	}
	r := x.request(t, x.Waits)
	x.faults.Next(1, x.Asks, CutAfter)
	if _, err := x.connector.Collect(t.Context(), x.account, r); err == nil {
		t.Fatal("a lost answer brings no error")
	}
	first := x.collect(t, r)
	if first.Status != checkout.OutcomePending || first.Redirect == nil {
		t.Fatalf("outcome %+v, want pending and a redirect", first)
	}
	if d := *first.Redirect; d.URL == "" || d.TransactionID == "" || d.ClientToken == "" || d.Environment != "test" && d.Environment != "live" {
		t.Errorf("redirect %q %q, a token of %d bytes, %q", d.URL, d.TransactionID, len(d.ClientToken), d.Environment)
	}
	r.Description, r.ReturnURL, r.CallbackURL = "another", r.ReturnURL+"2", r.CallbackURL+"2" // addresses differ between versions
	r.ExpiresAt = r.ExpiresAt.Add(time.Second)
	if again := x.collect(t, r); again.Redirect == nil || *again.Redirect != *first.Redirect {
		t.Errorf("asked again: %+v, want the same redirect", again)
	}
	if o := x.enquire(t, r.ID); o.Redirect != nil || o.Decided() {
		t.Errorf("enquiry: %+v", o)
	}
	x.once(t, r.ID)
	other := x.collect(t, x.request(t, x.Waits))
	if other.Redirect == nil || other.Redirect.URL == first.Redirect.URL || other.Redirect.ClientToken == first.Redirect.ClientToken {
		t.Error("two collections have one page")
	}
}

// malformedRedirect: a payer is never sent to an unsafe address, and no error repeats the
// address.
func malformedRedirect(t *testing.T, x target) {
	if x.Visit == nil {
		t.Skip("this operator does not redirect")
	}
	for _, address := range []string{
		"", "/pay", "//pay.example/x", "http://pay.example/x", "javascript:alert(1)", "https:///x", "https://bank.example@evil.example/x",
		"data:text/html,x", "https://pay.example/\u0000", "ftp://127.0.0.1/x", "https://pay.example/" + strings.Repeat("a", 9000),
	} {
		r := x.request(t, x.Waits)
		status, body := x.Redirects(r.ID, address)
		x.faults.Answer(1, x.Asks, status, body)
		o, err := x.connector.Collect(t.Context(), x.account, r)
		if err == nil {
			t.Errorf("%.60q: %+v, want an error", address, o)
			continue
		}
		x.fault(t, r, err, connector.FaultMalformed, true)
		if strings.Contains(err.Error(), "example") {
			t.Errorf("the error tells the address: %v", err)
		}
	}
}

// otherContent: an id keeps the amount of its first request.
func otherContent(t *testing.T, x target) {
	r := x.request(t, x.Waits)
	x.collect(t, r)
	r.Amount++
	if o, err := x.connector.Collect(t.Context(), x.account, r); err == nil && (o.Decided() || o.Redirect != nil) {
		t.Errorf("another amount: %+v", o)
	}
	x.once(t, r.ID)
}

// signatures: a signature covers every byte of a report, and only the account's operator
// can make it.
func signatures(t *testing.T, x target) {
	verifier, ok := x.connector.(connector.ReportVerifier)
	if !ok {
		t.Skip("this operator signs nothing")
	}
	now := time.Now().UTC()
	body := x.Report(uuid.NewString(), amount, currency)
	other := x.Report(uuid.NewString(), amount, currency)
	changed := bytes.Replace(body, []byte(strconv.Itoa(amount)), []byte(strconv.Itoa(amount+1)), 1)
	if bytes.Equal(changed, body) {
		t.Fatal("the report names no amount")
	}
	bare := x.registration.Collector.Account.Read("https://operator.example", withoutSecrets{readFields(x.Fields)})
	for _, at := range []time.Time{now, now.Add(-4 * time.Minute), now.Add(4 * time.Minute)} {
		if err := verifier.VerifyReport(x.account, x.Sign(x.account, at, body), body); err != nil {
			t.Errorf("signed at %v: %v", at.Sub(now), err)
		}
	}
	twice := x.Sign(x.account, now, body)
	for name, values := range x.Sign(x.account, now, body) {
		twice[name] = append(twice[name], values...)
	}
	for name, c := range map[string]struct {
		account connector.Account
		header  http.Header
		body    []byte
	}{
		"no header":            {x.account, http.Header{}, body},
		"another account":      {x.account, x.Sign(x.wrong, now, body), body},
		"for another account":  {x.wrong, x.Sign(x.account, now, body), body},
		"changed body":         {x.account, x.Sign(x.account, now, body), changed},
		"one byte more":        {x.account, x.Sign(x.account, now, body), append(bytes.Clone(body), ' ')},
		"no body":              {x.account, x.Sign(x.account, now, body), nil},
		"another collection's": {x.account, x.Sign(x.account, now, other), body},
		"too old":              {x.account, x.Sign(x.account, now.Add(-6*time.Minute), body), body},
		"of the future":        {x.account, x.Sign(x.account, now.Add(6*time.Minute), body), body},
		"two headers":          {x.account, twice, body},
	} {
		err := verifier.VerifyReport(c.account, c.header, c.body)
		if !errors.Is(err, connector.ErrSignature) {
			t.Errorf("%s: error %v, want ErrSignature", name, err)
			continue
		}
		for _, text := range x.secrets {
			if strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error tells the secret", name)
			}
		}
	}
	// A process without the secret cannot tell: it must not believe, nor call the operator a liar.
	if err := verifier.VerifyReport(bare, x.Sign(bare, now, body), body); !errors.Is(err, secret.ErrNotHeld) {
		t.Errorf("no secret: error %v, want ErrNotHeld", err)
	}
	// What is sealed for the ingress is enough to verify a report and too little to make a request.
	stored := x.registration.Collector.Account.Store(readFields(x.Fields))
	edge := x.registration.Collector.Account.Read("https://operator.example", connector.NewStoredFields(stored.Reports(), nil))
	if err := verifier.VerifyReport(edge, x.Sign(x.account, now, body), body); err != nil || !connector.Is(edge, x.account.Fingerprint()) {
		t.Errorf("with what proves reports alone: %v", err)
	}
	if _, err := x.connector.Enquire(t.Context(), edge, connector.Reference{ID: uuid.NewString(), Amount: amount, Currency: currency}); err == nil {
		t.Error("a request without the secret of requests")
	}
}

// Reports is the part of the suite about reports, for sources of reports that have no
// enquiries. parse reads a report. write returns the body of a report that the collection
// of an id was approved.
func Reports(t *testing.T, parse parser, write writer) {
	t.Helper()
	t.Run("reports", func(t *testing.T) {
		t.Parallel()
		if r := reports(t, parse, write); r.Ask {
			t.Errorf("report: %+v, but there are no enquiries", r)
		}
	})
	t.Run("unreadable reports", func(t *testing.T) {
		t.Parallel()
		unreadableReports(t, parse, write)
	})
}

// reports: a report of an approval is read as an approval of its collection.
func reports(t *testing.T, parse parser, write writer) connector.Report {
	id := uuid.NewString()
	r, err := parse(nil, write(id, amount, currency))
	if err != nil || r.Outcome.Status != checkout.OutcomeApproved || r.ID != "" && r.ID != id {
		t.Errorf("report: %+v, %v", r, err)
	}
	// A report either names the amount or causes an enquiry.
	if !r.Ask && (r.Outcome.Amount != amount || r.Outcome.Currency != currency) {
		t.Errorf("report: %+v, want %d %s", r, amount, currency)
	}
	return r
}

type (
	parser = func(http.Header, []byte) (connector.Report, error)
	writer = func(id string, amount int64, currency string) []byte
)

// unreadableReports: a body that is not a report or has a field twice is refused. No error
// repeats the body, because it may hold a payer's number.
func unreadableReports(t *testing.T, parse parser, write writer) {
	const number = "+242066000001"
	report := write(uuid.NewString(), amount, currency)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(report, &fields); err != nil {
		t.Fatal(err)
	}
	bodies := []string{"", "{}", "[]", "null", "\x00", "\xff", `{"status":7}`, `{"` + number + `":1}`, string(report) + "{}", string(report[:len(report)-1])}
	for name, value := range fields {
		bodies = append(bodies, fmt.Sprintf(`{%q:%s,%s`, name, value, report[1:]))
	}
	for _, body := range bodies {
		r, err := parse(nil, []byte(body))
		if !errors.Is(err, connector.ErrReport) {
			t.Errorf("report %q: %+v, %v, want ErrReport", body, r, err)
		} else if strings.Contains(err.Error(), number[1:]) {
			t.Errorf("report %q: the error tells it: %v", body, err)
		}
	}
	for _, at := range regexp.MustCompile(`:\s*("[^"]*"|[0-9]+)`).FindAllSubmatchIndex(report, -1) { // no error repeats the number
		body := string(report[:at[2]]) + `"` + number + `"` + string(report[at[3]:])
		if _, err := parse(nil, []byte(body)); err != nil && strings.Contains(err.Error(), number[1:]) {
			t.Errorf("report %s: the error tells it: %v", body, err)
		}
	}
}
