package docs

// counterExplanations are those of the codes that only desk software at a counter
// meets (ingress/counter/openapi.yaml).
var counterExplanations = []explanation{
	{
		Code: "counter.reference_mistyped", Status: 422, Title: "Reference mistyped",
		Meaning: "The digits of `payment_ref` do not fit its check. Nothing was looked up.",
		Causes:  []string{"A digit was read or typed wrongly.", "The number is another one: a notice, a card, a phone."},
		Mend:    []string{"Read all 16 digits again from the citizen's page."},
		Detail:  "The digits of payment_ref do not fit its check: read all 16 again from the citizen's page.",
	},
	{
		Code: "counter.reserved", Status: 409, Title: "Held by another clerk",
		Meaning: "Another clerk has looked the payment up and may be taking the cash now.",
		Causes:  []string{"Two desks were told the same reference.", "A clerk looked it up and did not give it up."},
		Mend:    []string{"Take no cash.", "Wait for the end that `detail` names, or have it given up at the other desk; then look it up again."},
		Detail:  "Clerk c02 holds this payment until 2026-11-21T10:24:05.000Z, or until it is given up there.",
	},
	{
		Code: "counter.taken", Status: 409, Title: "Cash is taken",
		Meaning: "The reservation cannot be given up: its cash is on record.",
		Causes:  []string{"The confirmation went through although its answer was lost."},
		Mend:    []string{"Give the citizen the receipt.", "Was it a mistake, a second clerk reverses it on the same day."},
		Detail:  "This cash is on record as taken, so the reservation cannot be given up; a second clerk can reverse it today.",
	},
	{
		Code: "counter.not_taken", Status: 409, Title: "Not taken",
		Meaning: "No cash of this `collection_id` is on record as the payment of this reference.",
		Causes:  []string{"The `collection_id` is of another look-up.", "The cash became an operator case, which the agency's office settles.", "The citizen paid by other means."},
		Mend:    []string{"Read the payment with `GET payments/{payment_ref}` and use its `collection_id`."},
		Detail:  "No cash of this collection_id is on record as this payment's, so there is none to reverse.",
	},
	{
		Code: "counter.too_many_entries", Status: 409, Title: "Too many entries",
		Meaning: "A hundred payments in cash are on record for this reference beside its own, each an operator case. Nothing more is put on record.",
		Causes:  []string{"A program makes up a `collection_id` for each try."},
		Mend:    []string{"Use the `collection_id` of the reservation, and repeat the same call.", "Have the agency's office look at the cases."},
		Detail:  "A hundred payments in cash are on record for this reference beside its own: nothing more is. A program makes up a collection_id for each try; use that of the reservation.",
	},
	{
		Code: "counter.second_person_required", Status: 409, Title: "Second person required",
		Meaning: "Whoever took the cash cannot put on record that it was given back.",
		Causes:  []string{"The reversal was sent with the key of the clerk who took the cash."},
		Mend:    []string{"Have another clerk sign in and reverse it, on the same day."},
		Detail:  "Whoever took the cash cannot reverse it: another clerk has to.",
	},
	{
		Code: "counter.reversal_too_late", Status: 409, Title: "Day is over",
		Meaning: "Cash is reversed at the counter on the day on which it was taken, by the time of Brazzaville.",
		Causes:  []string{"The till of that day is closed."},
		Mend:    []string{"Send the citizen to the agency's office."},
		Detail:  "The day on which the cash was taken is over: the agency's office gives it back.",
	},
	{
		Code: "checkout.collection_in_flight", Status: 409, Title: "Being paid",
		Meaning: "The citizen is paying by other means, or another reservation than yours is the current one.",
		Causes:  []string{"The citizen has confirmed a mobile money or card payment on their page."},
		Mend:    []string{"Take no cash.", "Look the payment up again in a few minutes."},
		Detail:  "The citizen is paying by other means, or the id is not that of the current reservation: take no cash, and look it up again in a few minutes.",
	},
	{
		Code: "checkout.previous_undecided", Status: 409, Title: "Earlier payment undecided",
		Meaning: "An earlier session of the same order ended before its operator had decided: its money may still come.",
		Causes:  []string{"A mobile money payment was not answered in time."},
		Mend:    []string{"Take no cash.", "Look the payment up again in a minute: the operator is being asked."},
		Detail:  "An earlier payment of the same order may still succeed: take no cash, and look it up again in a minute.",
	},
	{
		Code: "checkout.offer_unknown", Status: 409, Title: "No cash",
		Meaning: "The payment cannot be made in cash.",
		Causes:  []string{"The integrator does not offer cash.", "The amount is not in XAF."},
		Mend:    []string{"Have the citizen choose another means on their page."},
		Detail:  "This payment cannot be made in cash: take none. Cash is taken in XAF only, where the integrator offers it.",
	},
	{
		Code: "checkout.total_changed", Status: 409, Title: "Other total",
		Meaning: "`total` is not the due amount and the fee. Nothing was put on record.",
		Causes:  []string{"The amount was typed instead of taken from the look-up."},
		Mend:    []string{"Send the `total` of the reservation."},
		Detail:  "The total is not due and fee, which are 5050 XAF. Nothing was put on record.",
	},
}
