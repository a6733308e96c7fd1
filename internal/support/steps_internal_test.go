package support

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"quittance/internal/journal"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// Commands, events, calls and deliveries are one list. A command without an event of its time
// had no effect, unless events are missing.
func TestSteps(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	next := at(90)
	entries := []journal.Entry{
		{Type: journal.EntryTypeDelivery, OccurredAt: at(7), Event: "checkout.completed", Outcome: "failed", HTTPStatus: 500, Attempt: 1, DurationMS: 35, EndpointID: "e1", DestinationKind: "webhook", NextAttemptAt: &next},
		{Type: journal.EntryTypeEvent, OccurredAt: at(6), Sequence: 4, Event: "confirmation.awaited", Status: "completed", SourcePartition: 1, SourceOffset: 9},
		{Type: journal.EntryTypeEvent, OccurredAt: at(6), Sequence: 3, Event: "checkout.completed", Status: "completed", OfferID: "momo", TotalAmount: 5075, Currency: "XAF", OperatorRef: "op-7", Detail: map[string]string{"source": "enquiry", "operator_ref": "another"}},
		{Type: journal.EntryTypeCall, OccurredAt: at(5), Event: "call.enquire", Outcome: "approved", Attempt: 1, DurationMS: 120, OperatorRef: "op-7", TotalAmount: 5075, Currency: "XAF", Detail: map[string]string{"operator": "mtn"}},
		{Type: journal.EntryTypeEvent, OccurredAt: at(0), Sequence: 1, Event: "checkout.created", Status: "open"},
	}
	source := Source{"commands", 1, 7}
	commands := []command{
		{source: source, Command: &record.Command{Type: mapping.CommandOutcome, IssuedAt: at(6), Outcome: &record.CollectionOutcome{Source: "enquiry", Status: "approved", Amount: 5075, Currency: "XAF", OperatorRef: "op-7"}}},
		{Command: &record.Command{Type: mapping.CommandCancel, IssuedAt: at(4), By: "citizen"}},
	}
	want := []string{
		"0 event checkout.created open 0s",
		"4 command session.cancel no effect 0s by=citizen",
		"5 call call.enquire approved 120ms operator=mtn enquiry=1 amount=5075 XAF operator_ref=op-7",
		"6 command collection.outcome  0s source=enquiry status=approved amount=5075 XAF operator_ref=op-7",
		"6 event checkout.completed completed 0s offer=momo amount=5075 XAF operator_ref=op-7 source=enquiry",
		"6 event confirmation.awaited completed 0s",
		"7 delivery checkout.completed failed 35ms kind=webhook attempt=1 http_status=500 next_attempt_at=2026-11-22T12:01:30Z",
	}
	if got := lines(noon, steps("events", entries, commands, true)); !reflect.DeepEqual(got, want) {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var sources []Source
	for _, s := range steps("events", entries, commands, true) {
		sources = append(sources, s.Source)
	}
	if !reflect.DeepEqual(sources, []Source{{}, {}, {}, source, {}, {"events", 1, 9}, {}}) {
		t.Errorf("the places are %v", sources)
	}
	want[1] = "4 command session.cancel  0s by=citizen"
	if got := lines(noon, steps("events", entries, commands, false)); !reflect.DeepEqual(got, want) {
		t.Errorf("with a journal that is behind:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func lines(since time.Time, list []Step) (out []string) {
	for _, s := range list {
		line := fmt.Sprintf("%.0f %s %s %s %v", s.At.Sub(since).Seconds(), s.Kind, s.Name, s.Outcome, s.Took)
		for _, f := range s.Facts {
			line += " " + f.Name + "=" + f.Value
		}
		out = append(out, line)
	}
	return out
}

// No secret, no contact data and no number of a payer gets from a command into a step,
// whatever its fields hold.
func TestCommandsWithoutSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hidden"
	sealed := []byte(secret)
	for _, c := range []*record.Command{
		{Type: mapping.CommandCreate, Create: &record.CreateSession{IdempotencyKey: secret, BodyHash: sealed, Session: record.Session{
			OrderID: "A-1", Note: secret, Description: secret, CustomerID: secret, CustomerSealed: sealed, ClientSecretSealed: sealed, ClientSecretHash: sealed,
			SuccessURL: secret, CancelURL: secret, Metadata: map[string]string{"k": secret}, Customer: &record.Customer{Name: secret, Email: secret, Phone: secret},
		}}},
		{Type: mapping.CommandCollect, Collect: &record.StartCollection{Payer: secret, PayerSealed: sealed, PayerMasked: "+242 06 ••• •• 01"}},
		{Type: mapping.CommandRedirected, Redirect: &record.CollectionRedirect{Sealed: sealed}},
		{Type: mapping.CommandIssueToken, Token: &record.CompletionToken{Hash: sealed, ClientSecretHash: sealed}},
		{Type: mapping.CommandConsumeToken, CorrelationID: secret, Token: &record.CompletionToken{Hash: sealed}},
	} {
		if text := fmt.Sprint(ofCommand(c)); strings.Contains(text, secret) {
			t.Errorf("%s: %s", c.Type, text)
		}
	}
}
