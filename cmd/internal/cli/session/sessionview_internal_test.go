package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/cmd/internal/cli/delivery"
	"quittance/cmd/internal/cli/display"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/deliveries"
	"quittance/internal/support"
	"quittance/sinks/cashin"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
)

// The first sentence about a payment answers the call.
func TestAnswers(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 11, 22, 12, minute, 0, 0, time.UTC) }
	momo := func(status checkout.CollectionStatus) *checkout.Collection {
		return &checkout.Collection{
			OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Status: status, Amount: 5075, Fee: 75, Currency: "XAF", PayerMasked: "+242 06 ••• •• 01",
			RequestedAt: at(1), WindowEndsAt: at(6), LastEnquiryAt: at(9),
		}
	}
	paid := momo(checkout.CollectionApproved)
	paid.OperatorRef = "918273"
	silent := momo(checkout.CollectionUndecided)
	silent.NextEnquiryAt = at(16)
	known := momo(checkout.CollectionApproved)
	known.OperatorRef, known.DecidedAt = "918273", at(2)
	cash := &checkout.Collection{OfferID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Status: checkout.CollectionPending, Clerk: "c01", WindowEndsAt: at(10)}
	late := []checkout.Case{{Case: casework.Case{ID: "case_1", Kind: checkout.CaseLatePayment, Amount: 5075, Currency: "XAF", OpenedAt: at(8)}}}
	withoutPayer := &checkout.Collection{OfferID: checkout.OfferMomo, Status: checkout.CollectionApproved, Amount: 5075, Fee: 75, Currency: "XAF"}
	second := checkout.Case{Case: casework.Case{ID: "case_2", Kind: checkout.CaseOrphan, Amount: 900, Currency: "XAF", OpenedAt: at(20)}}
	kept := checkout.Case{Case: casework.Case{ID: "case_3", Kind: checkout.CaseLatePayment, Amount: 5075, Currency: "XAF", OpenedAt: at(8), Resolution: casework.ResolutionWriteOff, ClosedAt: at(50)}}
	for want, s := range map[string]checkout.Session{
		"paid: 5075 XAF by momo from +242 06 ••• •• 01, operator's reference 918273 at 2026-11-22 12:02:00 UTC":                        {Status: checkout.StatusCompleted, Collection: paid, EndedAt: at(2)},
		"paid: 5075 XAF by momo from +242 06 ••• •• 01, operator's reference 918273 at 2026-11-22 12:02:00 UTC, late: the session had": {Status: checkout.StatusCompleted, Collection: known, EndedAt: at(1), Late: true},
		"paid: 5075 XAF by momo from +242 06 ••• •• 01, operator's reference 918273 at 2026-11-22 12:02:00 UTC; of it 2030 XAF were given back": {
			Status: checkout.StatusCompleted, Collection: paid, EndedAt: at(2), Items: []checkout.Item{{Amount: 3000, Fee: 45}, {Amount: 2000, Fee: 30, ReversedAt: at(9)}},
		},
		"the money was given back at 2026-11-22 12:30:00 UTC (refunded, reference wire 8); it was 5075 XAF by momo": {Status: checkout.StatusCompleted, Collection: paid, ReversedAt: at(30), ReversalReason: "refunded", ReversalRef: "wire 8"},
		"money came that does not fit the session, which is failed; staff decide: 5075 XAF of kind late_payment, opened at 2026-11-22 12:08:00 UTC (case case_1)": {
			Status: checkout.StatusFailed, Collection: paid, Cases: late,
		},
		"the session is failed since 2026-11-22 12:06:00 UTC, but the operator of momo has not decided; it was asked last at 2026-11-22 12:09:00 UTC": {
			Status: checkout.StatusFailed, Collection: momo(checkout.CollectionUndecided), EndedAt: at(6),
		},
		"the session is failed since 2026-11-22 12:06:00 UTC, but the operator of momo has not decided; it was asked last at 2026-11-22 12:09:00 UTC and is asked again at 2026-11-22 12:16:00 UTC": {
			Status: checkout.StatusFailed, Collection: silent, EndedAt: at(6),
		},
		"not decided yet: momo was asked for 5075 XAF at 2026-11-22 12:01:00 UTC, and the payer has until 2026-11-22 12:06:00 UTC": {Status: checkout.StatusOpen, Collection: momo(checkout.CollectionPending)},
		"not paid yet: clerk c01 has reserved it until 2026-11-22 12:10:00 UTC":                                                    {Status: checkout.StatusOpen, Collection: cash},
		"not paid: nobody has tried yet; it expires at 2026-11-22 12:59:00 UTC":                                                    {Status: checkout.StatusOpen, ExpiresAt: at(59)},
		"not paid: failed at 2026-11-22 12:03:00 UTC: The payer rejected the payment (collect.rejected)": {
			Status: checkout.StatusFailed, Collection: momo(checkout.CollectionRefused), EndedAt: at(3), FailureCode: checkout.FailureRejected,
		},
		"paid: 5075 XAF by momo at 2026-11-22 12:04:00 UTC; other money came that does not fit the session; staff decide: 900 XAF of kind orphan, opened at 2026-11-22 12:20:00 UTC (case case_2)": {
			Status: checkout.StatusCompleted, Collection: withoutPayer, EndedAt: at(4), Cases: []checkout.Case{kept, second},
		},
		"the money was given back at 2026-11-22 12:30:00 UTC (refunded); it was 5075 XAF by momo; other money came that does not fit the session; staff decide: 900 XAF of kind orphan": {
			Status: checkout.StatusCompleted, Collection: withoutPayer, ReversedAt: at(30), ReversalReason: "refunded", Cases: []checkout.Case{second},
		},
		"not paid: expired at 2026-11-22 12:05:00 UTC; but money was reported for it, and staff closed its case with evidence (write_off): 5075 XAF of kind late_payment, opened at 2026-11-22 12:08:00 UTC (case case_3, closed at 2026-11-22 12:50:00 UTC)": {
			Status: checkout.StatusExpired, Collection: withoutPayer, EndedAt: at(5), Cases: []checkout.Case{kept},
		},
		"not paid: cancelled at 2026-11-22 12:03:00 UTC": {Status: checkout.StatusCancelled, EndedAt: at(3)},
	} {
		s.Currency = "XAF"
		if got := (view{}).answer(support.Payment{Session: s}); !strings.HasPrefix(got, want) {
			t.Errorf("the answer is\n%s, want\n%s", got, want)
		}
	}

	to := display.Destinations{"e1": {Kind: webhook.Kind, ID: "e1", Name: "e1", Owner: "Guichet fiscal (impots)", URL: "https://guichet.example/hook"}}
	p := support.Payment{Session: checkout.Session{Status: checkout.StatusCompleted}, Deliveries: []deliveries.Delivery{
		{ID: "dlv_3", Kind: cashin.Kind, DestinationID: "partner", Event: "checkout.updated", State: deliveries.StateDelivered, LastOutcomeAt: at(9)},
		{ID: "dlv_2", Kind: erp.Kind, DestinationID: "gone", Event: "checkout.completed", State: deliveries.StateNeedsOperator, Attempts: 1, HTTPStatus: 422},
		{ID: "dlv_1", Kind: webhook.Kind, DestinationID: "e1", Event: "checkout.completed", State: deliveries.StateWaiting, Attempts: 3, HTTPStatus: 500, NextAttemptAt: at(40)},
		{ID: "dlv_1b", Kind: webhook.Kind, DestinationID: "e1", Event: "checkout.failed", State: deliveries.StateWaiting, Attempts: 1, HTTPStatus: 500, NextAttemptAt: at(20)},
		{ID: "dlv_1c", Kind: webhook.Kind, DestinationID: "e1", Event: "checkout.failed", State: deliveries.StateWaiting, Attempts: 1, HTTPStatus: 500, NextAttemptAt: at(20), HoldUntil: at(50)},
		{ID: "dlv_1d", Kind: webhook.Kind, DestinationID: "e1", Event: "checkout.failed", State: deliveries.StateWaiting, Attempts: 1, HTTPStatus: 410, NextAttemptAt: at(40), Suspended: true},
		{ID: "dlv_0", Kind: webhook.Kind, DestinationID: "e1", Event: "checkout.late_payment", State: deliveries.StateDelivered, LastOutcomeAt: at(8)},
	}}
	v := view{to: to, now: at(30)}
	want := []string{
		"Webhook checkout.late_payment to https://guichet.example/hook (Guichet fiscal (impots)) was accepted at 2026-11-22 12:08:00 UTC",
		"Webhook checkout.failed to https://guichet.example/hook (Guichet fiscal (impots)) is not accepted (calls: 1, last answer 410); its endpoint is suspended, and it is sent when somebody resumes it",
		"Webhook checkout.failed to https://guichet.example/hook (Guichet fiscal (impots)) is not accepted (calls: 1, last answer 500); the next call is at 2026-11-22 12:50:00 UTC",
		"Webhook checkout.failed to https://guichet.example/hook (Guichet fiscal (impots)) is not accepted (calls: 1, last answer 500); the next call is due now",
		"Webhook checkout.completed to https://guichet.example/hook (Guichet fiscal (impots)) is not accepted (calls: 3, last answer 500); the next call is at 2026-11-22 12:40:00 UTC",
		"The ERP's confirmation to gone is not accepted (calls: 1, last answer 422), and nobody calls again; when the cause is mended, `quittance deliveries retry dlv_2` does",
		"Unsigned cash-in webhook checkout.updated to partner was accepted at 2026-11-22 12:09:00 UTC",
	}
	if got := v.toldOf(p); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("told:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var text render.Page
	v.found(&text, support.Found{Payments: []support.Payment{p, p}})
	if got := text.String(); strings.Count(got, "\n  "+want[5]+".\n") != 2 || !strings.Contains(got, "sessions show SESSION") {
		t.Errorf("two payments:\n%s", got)
	}
}

// A command for webhook endpoints says of the other destinations who sets them.
func TestWebhookOnly(t *testing.T) {
	t.Parallel()
	for kind, want := range map[deliveries.Kind]string{
		webhook.Kind: "", erp.Kind: "an ERP and its credentials are set by", cashin.Kind: "its webhooks are not signed", "new": "is for webhook endpoints",
	} {
		err := delivery.WebhookOnly(deliveries.Entry{Kind: kind})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ERP") != (kind == erp.Kind)) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// An operator that stays silent for days is asked hundreds of times. The page has one row for that,
// and each step before and after it.
func TestStepsOfEnquiries(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return time.Date(2026, 11, 22, 12, n, 0, 0, time.UTC) }
	event := func(n int, name string) support.Step {
		return support.Step{At: at(n), Kind: support.StepEvent, Name: name}
	}
	call := func(n int, outcome string) support.Step {
		return support.Step{At: at(n), Kind: support.StepCall, Name: "enquire", Outcome: outcome, Facts: []support.Fact{{Name: "enquiry", Value: "1"}}}
	}
	enquired := string(checkout.EventCollectionEnquired)
	all := []support.Step{event(1, "collection.requested"), call(2, "pending"), event(2, enquired), event(3, "checkout.failed")}
	for n := 4; n < 24; n += 2 {
		all = append(all, event(n, enquired), call(n+1, "pending"))
	}
	all = append(all, event(30, "checkout.late_payment"))
	var got []string
	for _, row := range (view{}).steps(all) {
		got = append(got, fmt.Sprint(row[2], " ", row[3]))
	}
	want := []string{"collection.requested -", "enquire pending", enquired + " -", "checkout.failed -", "20 steps of enquiries pending", "checkout.late_payment -"}
	if !slices.Equal(got, want) {
		t.Errorf("rows are %q, want %q", got, want)
	}
}

// Each code of what is missing has words, with its numbers.
func TestWordsOfMissingParts(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, code := range support.MissingCodes() {
		for _, part := range []support.Part{support.PartReferences, support.PartJournal, support.PartCommands} {
			text := whyMissing(support.Missing{Part: part, Code: code, Read: 3, All: 5, Until: until, Kept: 30 * 24 * time.Hour, Err: errors.New("the broker is away")})
			if text == string(code) || !strings.Contains(text, map[support.MissingCode]string{
				support.MissingUnread: "broker", support.MissingLater: "2026-11-22T12:00:00Z were not read: the broker", support.MissingBeyond: "3", support.MissingBehind: "3 of 5", support.MissingExpired: "30 days",
			}[code]) {
				t.Errorf("%s of %s: %q", code, part, text)
			}
		}
	}
}
