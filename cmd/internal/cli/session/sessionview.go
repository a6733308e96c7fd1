package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/cmd/internal/cli/display"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/internal/support"
	"quittance/sinks/cashin"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
)

// view renders payments.
type view struct {
	dir registry.Directory
	to  display.Destinations
	// reported are the reports on the messages among the deliveries.
	reported display.Reports
	// now is the service's clock.
	now time.Time
}

// agency returns the slug of an agency.
func (v view) agency(id string) string {
	if a, ok := v.dir.Agency(id); ok {
		return a.Slug
	}
	return id
}

func (v view) application(id string) string {
	if a, ok := v.dir.Application(id); ok {
		return a.Name
	}
	return id
}

// paymentJSON is a payment as --json prints it. The agency is a slug.
func (v view) paymentJSON(p support.Payment) render.Object {
	s := p.Session
	var collection any
	if c := s.Collection; c != nil {
		collection = render.Object{
			"id", c.ID, "offer_id", c.OfferID, "channel", c.Channel, "status", c.Status, "amount", c.Amount, "fee_amount", c.Fee, "payer_masked?", c.PayerMasked,
			"requested_at", c.RequestedAt, "window_ends_at", c.WindowEndsAt, "enquiries", c.Enquiries, "last_enquiry_at", c.LastEnquiryAt,
			"decided_at", c.DecidedAt, "operator_ref?", c.OperatorRef, "failure_code?", c.FailureCode, "clerk?", c.Clerk,
		}
	}
	return render.Object{
		"id", s.ID, "verdict", p.Verdict(), "answer", v.answer(p), "order_id", s.OrderID, "agency", v.agency(s.TenantID), "tenant_id", s.TenantID,
		"application", v.application(s.ApplicationID), "application_id", s.ApplicationID, "mode", registry.Mode(s.Live),
		"status", s.Status, "paid", s.Paid(), "late", s.Late, "amount", s.Amount, "currency", s.Currency,
		"payment_ref", s.PaymentRef, "notice_id", s.NoticeID, "notice_ref", s.NoticeRef, "transaction_id", s.TransactionID, "service_code?", s.ServiceCode,
		"created_at", s.CreatedAt, "expires_at", s.ExpiresAt, "ended_at", s.EndedAt, "failure_code?", s.FailureCode,
		"reversed_at", s.ReversedAt, "reversal_reason?", s.ReversalReason, "reversal_ref?", s.ReversalRef, "confirmation?", s.Confirmation.Status,
		"collection", collection, "deliveries", render.Mapped(p.Deliveries, func(d deliveries.Delivery) render.Object {
			return append(display.DeliveryJSON(d, v.to), v.reported.Json(d)...)
		}),
	}
}

func missingJSON(list []support.Missing) []render.Object {
	return render.Mapped(list, func(m support.Missing) render.Object {
		return render.Object{"part", m.Part, "code", m.Code, "why", whyMissing(m)}
	})
}

// whyMissing returns the words of what an answer lacks.
func whyMissing(m support.Missing) string {
	until := m.Until.UTC().Format(time.RFC3339)
	switch m.Code {
	case support.MissingUnread:
		return m.Err.Error()
	case support.MissingLater:
		return fmt.Sprintf("those after %s were not read: %v", until, m.Err)
	case support.MissingBeyond:
		if m.Part == support.PartCommands {
			return fmt.Sprintf("%s of all sessions read, up to %s; later ones were not", render.Counted(m.Read, "record"), until)
		}
		return fmt.Sprintf("only the beginning is shown: %s", render.Counted(m.Read, "entry"))
	case support.MissingBehind:
		return fmt.Sprintf("it has the first %d of %s; the others arrive within seconds if `quittance sink journal` runs", m.Read, render.Counted(m.All, "event"))
	case support.MissingExpired:
		return fmt.Sprintf("they are kept for %s, and the session is older", render.Counted(int(m.Kept.Hours()/24), "day"))
	}
	return string(m.Code)
}

func (v view) foundJSON(f support.Found) render.Object {
	return render.Object{"payments", render.Mapped(f.Payments, v.paymentJSON), "cases", render.Mapped(f.Cases, display.CaseJSON), "missing", missingJSON(f.Missing)}
}

func (v view) pageJSON(p support.Page) render.Object {
	return append(v.paymentJSON(p.Payment),
		"cases", render.Mapped(p.Cases, func(d cases.Detail) render.Object { return display.DetailJSON(d, v.agency(d.AgencyID)) }),
		"timeline", render.Mapped(p.Steps, func(s support.Step) render.Object {
			known := render.Object{}
			for _, f := range s.Facts {
				known = append(known, f.Name, f.Value)
			}
			step := render.Object{
				"at", s.At, "kind", s.Kind, "name", s.Name, "outcome?", s.Outcome, "took_ms?", s.Took.Milliseconds(), "endpoint?", v.endpoint(s.DestinationID), "facts", known,
			}
			if s.Source.Topic != "" {
				step = append(step, "topic", s.Source.Topic, "partition", s.Source.Partition, "offset", s.Source.Offset)
			}
			return step
		}),
		"missing", missingJSON(p.Missing))
}

// endpoint returns the name of a destination for operators.
func (v view) endpoint(id string) string {
	if e, ok := v.to[id]; ok {
		return e.Name
	}
	return id
}

// found prints several payments, or none.
func (v view) found(p *render.Page, f support.Found) {
	for i, one := range f.Payments {
		p.Say("%s%s of order %s: %s, %s, %s mode, created %s", strings.Repeat("\n", min(i, 1)), render.Decimal(one.Amount, one.Currency), one.OrderID,
			v.agency(one.TenantID), v.application(one.ApplicationID), registry.Mode(one.Live), render.Moment(one.CreatedAt))
		p.Say("  %s", one.ID)
		for _, line := range v.sentences(one) {
			p.Say("  %s", line)
		}
	}
	if len(f.Payments) > 0 {
		p.Say("\n`quittance sessions show SESSION` shows everything about one of them.")
	}
	if len(f.Cases) > 0 {
		p.Say("\nMoney with this reference that belongs to no session:")
		p.Table("", "CASE,KIND,STATE,AMOUNT,OPENED", render.Mapped(f.Cases, func(c cases.Case) []any {
			return []any{c.ID, c.Kind, c.State(), display.CaseSum(c), render.Moment(c.OpenedAt)}
		}))
	}
	sayMissing(p, f.Missing)
}

// sayMissing says what could not be read.
func sayMissing(p *render.Page, list []support.Missing) {
	for _, m := range list {
		p.Say("\nNot read: %s: %s.", m.Part, whyMissing(m))
	}
}

// page prints everything about a payment, the answer first.
func (v view) page(p *render.Page, all support.Page) {
	s := all.Session
	for _, line := range v.sentences(all.Payment) {
		p.Say("%s", line)
	}
	p.Say("")
	p.Facts([][2]string{
		{"Session", s.ID},
		{"Order", s.OrderID},
		{"Of", v.agency(s.TenantID) + ", " + v.application(s.ApplicationID) + ", " + registry.Mode(s.Live) + " mode"},
		{"Amount", render.Decimal(s.Amount, s.Currency)},
		{"Status", string(s.Status)},
		{"Service", s.ServiceCode},
		{"Payment reference", s.PaymentRef},
		{"Notice", s.NoticeRef},
		{"Transaction", s.TransactionID},
		{"Created", render.Moment(s.CreatedAt)},
		{"Expires", render.Moment(s.ExpiresAt)},
		{"Ended", render.MomentOr(s.EndedAt, "")},
	}, v.collection(s))
	if len(all.Deliveries) > 0 {
		p.Say("\nDeliveries:")
		display.SayDeliveries(p, "", all.Deliveries, v.to, v.reported, v.now)
	}
	if len(all.Cases) > 0 {
		p.Say("\nCases:")
		p.Table("", "ID,KIND,STATE,AMOUNT,OPENED,RESOLUTION,PROPOSALS", render.Mapped(all.Cases, func(d cases.Detail) []any {
			return []any{d.ID, d.Kind, d.State(), display.CaseSum(d.Case), render.Moment(d.OpenedAt), render.OrDash(string(d.Resolution)), render.OrDash(strings.Join(render.Mapped(d.Proposals, func(o cases.Proposal) string {
				return fmt.Sprintf("%s by %s: %s", o.Resolution, o.Proposer, display.ProposalSaid(o))
			}), "; "))}
		}))
	}
	if len(all.Steps) > 0 {
		p.Say("\nWhat happened:")
		p.Table("", "AT,STEP,WHAT,OUTCOME,TOOK,MORE", v.steps(all.Steps))
	}
	sayMissing(p, all.Missing)
}

// collection returns the facts of the collection of a session.
func (v view) collection(s checkout.Session) [][2]string {
	c := s.Collection
	if c == nil {
		return nil
	}
	return [][2]string{
		{"Collection", c.ID + ", " + string(c.Status)},
		{"By", c.OfferID},
		{"Payer", c.PayerMasked},
		{"Clerk", c.Clerk},
		{"Total", render.Decimal(c.Amount, c.Currency) + ", fee " + render.Decimal(c.Fee, c.Currency)},
		{"Operator's reference", c.OperatorRef},
		{"Operator's refusal", string(c.FailureCode)},
	}
}

// enquiriesShown is how many steps of enquiries in a row are shown one by one. An operator that stays
// silent is asked for days.
const enquiriesShown = 4

// steps returns the rows of the steps: one for enquiries that follow each other without anything
// between them. The JSON has each.
func (v view) steps(all []support.Step) (rows [][]any) {
	for begin := 0; begin < len(all); {
		end := begin
		for end < len(all) && enquires(all[end]) {
			end++
		}
		if end-begin > enquiriesShown {
			rows = append(rows, enquiries(all[begin:end]))
			begin = end
			continue
		}
		rows = append(rows, v.step(all[begin]))
		begin++
	}
	return rows
}

// enquiries returns the row of several steps of enquiries, with the outcome of the last call.
func enquiries(steps []support.Step) []any {
	last := steps[len(steps)-1]
	for _, s := range steps {
		if s.Kind == support.StepCall {
			last = s
		}
	}
	return []any{
		render.Moment(steps[0].At), last.Kind, render.Counted(len(steps), "step") + " of enquiries", render.OrDash(last.Outcome), "-",
		"the last at " + render.Moment(steps[len(steps)-1].At) + "; `--json` has each",
	}
}

// enquires reports whether the step is a part of an enquiry: the event, or the call.
func enquires(s support.Step) bool {
	return s.Name == string(checkout.EventCollectionEnquired) ||
		s.Kind == support.StepCall && slices.ContainsFunc(s.Facts, func(f support.Fact) bool { return f.Name == "enquiry" })
}

// step returns the row of a step.
func (v view) step(s support.Step) []any {
	took := "-"
	if s.Kind == support.StepCall || s.Kind == support.StepDelivery {
		if took = s.Took.String(); s.Took == 0 {
			took = "<1ms"
		}
	}
	more := render.Mapped(s.Facts, func(f support.Fact) string { return f.Name + " " + f.Value })
	if s.DestinationID != "" {
		more = append([]string{"to " + v.endpoint(s.DestinationID)}, more...)
	}
	return []any{render.Moment(s.At), s.Kind, s.Name, render.OrDash(s.Outcome), took, render.OrDash(strings.Join(more, ", "))}
}

// sentences say what became of a payment, and who was told.
func (v view) sentences(p support.Payment) []string {
	answer := v.answer(p)
	out := []string{strings.ToUpper(answer[:1]) + answer[1:] + "."}
	for _, line := range v.toldOf(p) {
		out = append(out, line+".")
	}
	return out
}

// answer says what became of a payment, and of other money that came for it, without the end
// of the sentence.
func (v view) answer(p support.Payment) string {
	text := v.verdict(p)
	switch p.Verdict() {
	case support.VerdictPaid, support.VerdictReturned:
		if open := p.MoneyUnderReview(); len(open) > 0 {
			text += "; other money came that does not fit the session; staff decide: " + casesText(open)
		}
	case support.VerdictNotPaid:
		if kept := p.WrittenOff(); len(kept) > 0 {
			text += "; but money was reported for it, and staff closed its case with evidence (write_off): " + casesText(kept)
		}
	case support.VerdictUnderReview, support.VerdictUndecided, support.VerdictInProgress, support.VerdictOpen:
	}
	return text
}

// casesText names the money of cases.
func casesText(list []checkout.Case) string {
	return strings.Join(render.Mapped(list, func(c checkout.Case) string {
		text := fmt.Sprintf("%s of kind %s, opened at %s (case %s", render.Decimal(c.Amount, c.Currency), c.Kind, render.Moment(c.OpenedAt), c.ID)
		if !c.Open() {
			text += ", closed at " + render.Moment(c.ClosedAt)
		}
		return text + ")"
	}), "; ")
}

// givenBack says how much of a payment was given back while the rest stays paid; empty if nothing was.
func givenBack(s checkout.Session) string {
	sum := checkout.Total(s.Dues()) - checkout.Total(s.Kept())
	if sum == 0 {
		return ""
	}
	return "; of it " + render.Decimal(sum, s.Currency) + " were given back"
}

// verdict says what became of the session's own payment.
func (v view) verdict(p support.Payment) string {
	s, c := p.Session, p.Session.Collection
	switch p.Verdict() {
	case support.VerdictPaid:
		late := ""
		if s.Late {
			late = ", late: the session had ended before"
		}
		return "paid: " + v.money(s) + " at " + render.Moment(s.PaidAt()) + late + givenBack(s)
	case support.VerdictReturned:
		text := "the money was given back at " + render.Moment(s.ReversedAt) + " (" + strings.ReplaceAll(string(s.ReversalReason), "_", " ")
		if s.ReversalRef != "" {
			text += ", reference " + s.ReversalRef
		}
		return text + "); it was " + v.money(s)
	case support.VerdictUnderReview:
		return "money came that does not fit the session, which is " + string(s.Status) + "; staff decide: " + casesText(p.MoneyUnderReview())
	case support.VerdictUndecided:
		again := ""
		if !c.NextEnquiryAt.IsZero() {
			again = " and is asked again at " + render.Moment(c.NextEnquiryAt)
		}
		return fmt.Sprintf("the session is %s since %s, but the operator of %s has not decided; it was asked last at %s%s", s.Status, render.Moment(s.EndedAt), c.OfferID, render.MomentOr(c.LastEnquiryAt, render.Moment(c.RequestedAt)), again)
	case support.VerdictInProgress:
		if c.Origin() == checkout.OriginCounter {
			return fmt.Sprintf("not paid yet: clerk %s has reserved it until %s", c.Clerk, render.Moment(c.WindowEndsAt))
		}
		return fmt.Sprintf("not decided yet: %s was asked for %s at %s, and the payer has until %s", c.OfferID, render.Decimal(c.Amount, c.Currency), render.Moment(c.RequestedAt), render.Moment(c.WindowEndsAt))
	case support.VerdictOpen:
		return "not paid: nobody has tried yet; it expires at " + render.Moment(s.ExpiresAt)
	case support.VerdictNotPaid:
	}
	text := "not paid: " + string(s.Status) + " at " + render.Moment(s.EndedAt)
	if s.FailureCode != "" {
		text += ": " + strings.TrimSuffix(s.FailureCode.Message(), ".") + " (" + string(s.FailureCode) + ")"
	}
	return text
}

// money says what was paid, how and by whom.
func (v view) money(s checkout.Session) string {
	c := s.Collection
	if c == nil {
		return render.Decimal(s.Amount, s.Currency)
	}
	text := render.Decimal(c.Amount, c.Currency) + " by " + c.OfferID
	if c.PayerMasked != "" {
		text += " from " + c.PayerMasked
	}
	if c.Clerk != "" {
		text += ", taken by clerk " + c.Clerk
	}
	if c.OperatorRef != "" {
		text += ", operator's reference " + c.OperatorRef
	}
	return text
}

// toldOf says of each delivery whether it was accepted, without the end of the sentence.
func (v view) toldOf(p support.Payment) []string {
	out := render.Mapped(p.Deliveries, func(d deliveries.Delivery) string {
		e := v.to.Of(d)
		to := e.Name
		if e.URL != "" {
			to = e.URL + " (" + e.Owner + ")"
		}
		what := string(d.Kind) + " " + d.Event
		switch d.Kind {
		case webhook.Kind:
			what = "Webhook " + d.Event
		case cashin.Kind:
			what = "Unsigned cash-in webhook " + d.Event
		case erp.Kind:
			what = "The ERP's confirmation"
		}
		return what + " to " + to + " " + v.deliveryText(d)
	})
	slices.Reverse(out) // in the order of the events
	if len(out) == 0 && p.Ended() {
		out = append(out, "No webhook and no confirmation is on record: no endpoint takes the event, none was tried yet, or the event is more than 60 days old")
	}
	return out
}

// deliveryText says whether a delivery was accepted.
func (v view) deliveryText(d deliveries.Delivery) string {
	calls := fmt.Sprintf("calls: %d, last answer %s", d.Attempts, display.AnswerText(d.HTTPStatus, d.Reason))
	switch {
	case d.State == deliveries.StateDelivered:
		return "was accepted at " + render.Moment(d.LastOutcomeAt)
	case !d.NextAttemptAt.IsZero() && d.Suspended:
		return "is not accepted (" + calls + "); its endpoint is suspended, and it is sent when somebody resumes it"
	case !d.NextAttemptAt.IsZero() && !d.NextCall().After(v.now):
		return "is not accepted (" + calls + "); the next call is due now"
	case !d.NextAttemptAt.IsZero():
		return "is not accepted (" + calls + "); the next call is at " + render.Moment(d.NextCall())
	case d.State == deliveries.StateQueued:
		return "is being sent (" + calls + ")"
	}
	return "is not accepted (" + calls + "), and nobody calls again; when the cause is mended, `quittance deliveries retry " + d.ID + "` does"
}
