package operations

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"quittance/checkout"
	"quittance/ingress/staff"
	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/sessions"
	"quittance/internal/support"
	"quittance/money"
	"quittance/money/localtime"
)

// pageSize is the number of rows of a list.
const pageSize = 50

// Conditions of the list of payments, by their names in the address.
const (
	byMode    = "mode"
	byDay     = "day"
	byStatus  = "status"
	byOffer   = "offer"
	byAgency  = "agency"
	byService = "service"
	byFrom    = "from"
	byTo      = "to"
	byText    = "text"
	byOrder   = "order"
	byAfter   = "after"
)

var paymentConditions = []string{byMode, byDay, byStatus, byOffer, byAgency, byService, byFrom, byTo, byText, byOrder}

// paymentsView is the list of payments.
type paymentsView struct {
	view
	Grid                              staff.Grid
	Chosen                            fields
	Modes, Statuses, Offers, Agencies []staff.Choice
	Count, Looked, Empty              string
	NextURL, FirstURL                 string
	ListPath                          string // of the form with the conditions
	Filtered                          bool
}

// showPayments is GET /ops/payments, also with why there is no file of the list.
func (v *visit) showPayments(status int, refused string) {
	chosen := v.conditions(paymentConditions...)
	live := chosen[byMode] != testMode
	w := v.w.Payments
	out := &paymentsView{view: v.page(w.Title, v.root()+"payments", chosen.query(paymentConditions)...), Chosen: chosen, ListPath: "/" + v.root() + "payments"}
	out.Test = !live
	out.Command = staff.Command("quittance sessions list", "order", chosen[byOrder], "status", chosen[byStatus], "agency", v.slug(chosen[byAgency]), "day", chosen[byDay], "mode", modeOf(live))
	out.Modes = []staff.Choice{{Value: liveMode, Label: v.w.Live, Chosen: live}, {Value: testMode, Label: v.w.Test, Chosen: !live}}
	out.Statuses = choices(w.AnyStatus, chosen[byStatus], v.w.Statuses, checkout.Statuses()...)
	var offers []string
	for _, o := range checkout.Offers {
		offers = append(offers, o.ID)
	}
	out.Offers = choices(w.AnyOffer, chosen[byOffer], v.w.Offers, offers...)
	out.Agencies = v.agencies(chosen[byAgency])
	out.Filtered = len(chosen) > 0 && !(len(chosen) == 1 && chosen[byMode] != "")
	out.FirstURL = v.URL(v.root()+"payments", chosen.query(paymentConditions)...)

	q := v.paymentQuery(&out.view, chosen)
	q.Live, q.After, q.Size = live, v.Query(byAfter), pageSize
	if refused != "" {
		out.Fault("", refused, "")
	}
	if len(out.Faults) > 0 {
		v.Write(max(status, http.StatusUnprocessableEntity), "payments", out)
		return
	}
	found, err := v.o.cfg.Sessions.Page(v.Context(), q)
	if err != nil {
		v.Failed("listing payments", err)
		return
	}
	out.Grid = v.paymentGrid(w.Title, found.Items)
	out.Tagged = true
	if found.Count != nil {
		out.Count = counted(v.w, *found.Count)
	}
	if !found.LookedTo.IsZero() {
		out.Looked = fmt.Sprintf(w.Looked, v.At(found.LookedTo))
	}
	if found.Next != "" {
		out.NextURL = v.URL(v.root()+"payments", chosen.query(paymentConditions, byAfter, found.Next)...)
	}
	if len(found.Items) == 0 {
		out.Empty = w.None
		if out.Filtered {
			out.Empty = w.NoneSo
		}
	}
	if len(found.Items) > 0 {
		out.Files = v.Files("", v.root()+"payments/file", chosen.query(paymentConditions)...)
	}
	v.Write(status, "payments", out)
}

// counted says how many rows a list has, up to what a page counts.
func counted(w *words, n int) string {
	if n > sessions.CountedAtMost {
		return fmt.Sprintf(w.ManyFound, sessions.CountedAtMost)
	}
	return fmt.Sprintf(w.Found, n)
}

// paymentQuery returns the query of the conditions. What is wrong with them is a fault of the page.
func (v *visit) paymentQuery(out *view, chosen fields) sessions.PageQuery {
	w := v.w.Payments
	q := sessions.PageQuery{Status: checkout.Status(chosen[byStatus]), OfferID: chosen[byOffer], ServiceCode: chosen[byService], Text: chosen[byText], OrderID: chosen[byOrder]}
	q.TenantIDs, q.ApplicationIDs = v.scope(chosen[byAgency])
	if q.Status != "" && !slices.Contains(checkout.Statuses(), q.Status) {
		out.Fault(byStatus, w.StatusUnknown, "")
	}
	if day := chosen[byDay]; day != "" {
		begin, err := localtime.Begin(day)
		if err != nil {
			out.Fault(byDay, w.DayMalformed, day)
		}
		q.MadeFrom, q.MadeTo = begin, begin.AddDate(0, 0, 1)
	}
	for name, to := range map[string]**int64{byFrom: &q.AmountFrom, byTo: &q.AmountTo} {
		if text := chosen[name]; text != "" {
			amount, err := amountOf(text)
			if err != nil {
				out.Fault(name, w.AmountMalformed, text)
				continue
			}
			*to = &amount
		}
	}
	return q
}

// amountOf reads an amount of the default currency as people type it, with spaces between digits.
func amountOf(text string) (int64, error) {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	c, _ := money.Lookup(money.Default) // it is known
	return c.ParseDecimal(text)
}

// Names of the modes in addresses.
const (
	liveMode = "live"
	testMode = "test"
)

func modeOf(live bool) string {
	if live {
		return liveMode
	}
	return testMode
}

// slug returns the name of an agency in commands; of one that the person does not see, what the address says.
func (v *visit) slug(agencyID string) string {
	a, ok := v.o.cfg.Registry.Agency(agencyID)
	if !ok || !v.Acting.Sees(agencyID) {
		return agencyID
	}
	return a.Slug
}

// paymentView is the record of a payment.
type paymentView struct {
	view
	Verdict, VerdictClass string
	Facts                 []staff.Fact
	Items                 staff.Grid
	Deliveries            []deliveryView
	NoDeliveries          string
	Cases                 staff.Grid
	NoCases               string
	Timeline              staff.Grid
	Missing               []string
	CommandsURL           string
	Trail                 trail
}

// deliveryView is a delivery of a payment.
type deliveryView struct {
	Title, State, Command string
	Facts                 []staff.Fact
	RetryURL              string // empty if it cannot be sent again, or not by this person
}

// payment is GET /ops/payments/{place}.
func (v *visit) payment() { v.showPayment(http.StatusOK, "") }

// showPayment shows the record of a payment, and what was refused.
func (v *visit) showPayment(status int, refused string) {
	s, err := v.atPlace()
	if err != nil {
		v.Failed("reading a payment", err)
		return
	}
	commands := v.Query("commands") != ""
	desk, err := v.desk(commands)
	if err != nil {
		v.Unavailable("reading a payment", err)
		return
	}
	found, err := desk.PageOf(v.Context(), s)
	if err != nil {
		v.Failed("reading a payment", err)
		return
	}
	to := v.destinations()
	if !v.Record("session.read", found.ID, found.TenantID, nil) {
		return
	}
	path := v.root() + "payments/" + sessions.Place(found.ID)
	w := v.w.Payment
	out := &paymentView{view: v.page(fmt.Sprintf(w.Title, found.OrderID), path), Facts: v.paymentFacts(&found), NoDeliveries: w.NoDeliveries, NoCases: w.NoCases}
	if out.Trail, err = v.trail(found.ID); err != nil {
		v.Unavailable("reading who has looked at a payment", err)
		return
	}
	out.BackURL, out.BackText = v.URL(v.root()+"payments", byMode, modeOf(found.Live)), v.w.Payments.Title
	out.Test, out.Tagged = !found.Live, refused == ""
	out.Command = "quittance sessions find " + staff.Argument(found.PaymentRef)
	if v.Query("done") != "" {
		out.Notice = w.Retried
	}
	if refused != "" {
		out.Fault("", refused, "")
	}
	out.Verdict, out.VerdictClass = v.verdict(found.Payment)
	out.Items = v.items(found.Session)
	for _, d := range found.Deliveries {
		out.Deliveries = append(out.Deliveries, v.delivery(d, to, path))
	}
	var list []cases.Case
	for i := range found.Cases {
		list = append(list, found.Cases[i].Case)
	}
	out.Cases = v.caseGrid(v.w.Cases.Title, list)
	out.Timeline = v.timeline(found.Steps, to)
	for _, m := range found.Missing {
		out.Missing = append(out.Missing, v.missing(m))
	}
	if !commands {
		out.CommandsURL = v.URL(path, "commands", "1") + "#timeline"
	}
	v.Write(status, "payment", out)
}

// atPlace returns the session that the address names.
func (v *visit) atPlace() (checkout.Session, error) {
	_, applications := v.scope("")
	return v.o.cfg.Sessions.AtPlace(v.Context(), v.Param("place"), applications)
}

// verdict says what became of a payment, and how the page sets it.
func (v *visit) verdict(p support.Payment) (text, class string) {
	w := v.w.Verdicts
	s, is := p.Session, p.Verdict()
	text = said(w, is)
	switch is {
	case support.VerdictPaid:
		text, class = fmt.Sprintf(v.w.Payment.PaidAt, v.At(s.PaidAt())), "paid"
	case support.VerdictReturned:
		text, class = fmt.Sprintf(v.w.Payment.ReturnedAt, v.At(s.ReversedAt)), "not"
	case support.VerdictUndecided:
		text, class = fmt.Sprintf(v.w.Payment.UndecidedSince, v.At(s.EndedAt)), "not"
	case support.VerdictUnderReview, support.VerdictNotPaid:
		class = "not"
	case support.VerdictInProgress, support.VerdictOpen:
	}
	return text, class
}

// paymentFacts are what is known of a session and of its collection.
func (v *visit) paymentFacts(p *support.Page) []staff.Fact {
	s, w := p.Session, v.w.Payment
	out := []staff.Fact{
		{Label: w.Order, Value: s.OrderID},
		{Label: w.Agency, Value: v.agency(s.TenantID)},
		{Label: w.Application, Value: v.application(s.ApplicationID)},
		{Label: w.Mode, Value: v.mode(s.Live)},
		{Label: w.Amount, Value: v.sum(s.Amount, s.Currency)},
		{Label: w.Status, Value: said(v.w.Statuses, s.Status)},
		{Label: w.Service, Value: s.ServiceLabel},
		{Label: w.Subject, Value: s.Description},
		{Label: w.Reference, Value: grouped(s.PaymentRef), Code: true},
		{Label: w.Notice, Value: s.NoticeRef, Code: true},
		{Label: w.Transaction, Value: s.TransactionID, Code: true},
		{Label: w.Made, Value: v.at(s.CreatedAt)},
		{Label: w.Expires, Value: v.at(s.ExpiresAt)},
		{Label: w.Ended, Value: v.at(s.EndedAt)},
		{Label: w.Failure, Value: string(s.FailureCode), Code: true},
	}
	if c := s.Collection; c != nil {
		out = append(
			out, staff.Fact{Label: w.Offer, Value: said(v.w.Offers, c.OfferID)}, staff.Fact{Label: w.Payer, Value: c.PayerMasked}, staff.Fact{Label: w.Clerk, Value: c.Clerk},
			staff.Fact{Label: w.Total, Value: fmt.Sprintf(w.WithFee, v.sum(c.Amount, c.Currency), v.sum(c.Fee, c.Currency))}, staff.Fact{Label: w.Collection, Value: c.ID, Code: true},
			staff.Fact{Label: w.OperatorRef, Value: c.OperatorRef, Code: true}, staff.Fact{Label: w.Asked, Value: v.at(c.LastEnquiryAt)},
		)
	}
	return out
}

// items are the dues of a session.
func (v *visit) items(s checkout.Session) staff.Grid {
	w := v.w.Payment
	g := staff.Grid{Caption: w.Dues, Heads: []string{w.Subject, w.DueRef, w.Amount, w.ERP}}
	for _, i := range s.Items {
		g.Rows = append(g.Rows, []staff.Cell{
			{Text: i.Label, More: i.ServiceLabel}, {Text: dash(i.ERPDueRef), Class: "code"}, {Text: v.sum(i.Amount, s.Currency), Class: staff.ClassSum}, {Text: dash(said(v.w.Confirmations, i.Confirmation.Status))},
		})
	}
	return g
}

func dash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// delivery returns what the page of a payment shows of a delivery.
func (v *visit) delivery(d deliveries.Delivery, to destinations, path string) deliveryView {
	w := v.w.Payment
	out := deliveryView{
		Title: fmt.Sprintf(w.DeliveryTo, said(v.w.DeliveryKinds, d.Kind), to.name(d.Kind, d.DestinationID)), State: said(v.w.DeliveryStates, d.State),
		Command: "quittance deliveries retry " + d.ID,
		Facts: []staff.Fact{
			{Label: w.Event, Value: d.Event, Code: true},
			{Label: w.Occurred, Value: v.at(d.OccurredAt)},
			{Label: w.Calls, Value: strconv.Itoa(d.Attempts)},
			{Label: w.LastAnswer, Value: v.answer(d)},
			{Label: w.LastCall, Value: v.at(d.LastOutcomeAt)},
			{Label: w.NextCall, Value: v.at(d.NextAttemptAt)},
			{Label: w.ID, Value: d.ID, Code: true},
		},
	}
	if slices.Contains(deliveries.Retryable, d.State) && d.Sendable && v.Acting.May(identity.MayRetry, d.TenantID) == nil {
		out.RetryURL = v.URL(path + "/deliveries/" + d.ID + "/retry")
	}
	return out
}

// answer says how the last call of a delivery was answered, or why none was made.
func (v *visit) answer(d deliveries.Delivery) string {
	status := ""
	if d.HTTPStatus > 0 {
		status = strconv.Itoa(d.HTTPStatus)
	}
	return strings.TrimSpace(status + " " + said(v.w.Deferrals, d.Reason))
}

// timeline is what happened to a payment, with its places in Kafka.
func (v *visit) timeline(steps []support.Step, to destinations) staff.Grid {
	w := v.w.Payment
	g := staff.Grid{Caption: w.Timeline, Heads: []string{w.At, w.Step, w.Outcome, w.Source}}
	for _, s := range steps {
		var more []string
		if s.DestinationID != "" {
			more = append(more, s.DestinationID)
			for _, e := range to {
				if e.ID == s.DestinationID {
					more[0] = e.Name
				}
			}
		}
		for _, f := range s.Facts {
			more = append(more, f.Name+" "+f.Value)
		}
		outcome := dash(s.Outcome)
		if s.Took > 0 {
			outcome += fmt.Sprintf(" (%s)", s.Took.Round(time.Millisecond))
		}
		g.Rows = append(g.Rows, []staff.Cell{
			{Text: v.At(s.At)}, {Text: said(v.w.Steps, s.Kind) + " " + s.Name, More: strings.Join(more, ", ")}, {Text: outcome}, {Text: place(s.Source), Class: "code"},
		})
	}
	return g
}

// place names a record of Kafka.
func place(s support.Source) string {
	if s.Topic == "" {
		return "–"
	}
	return fmt.Sprintf("%s · %d · %d", s.Topic, s.Partition, s.Offset)
}

// missing says what a page lacks.
func (v *visit) missing(m support.Missing) string {
	part := said(v.w.Parts, m.Part)
	switch m.Code {
	case support.MissingUnread:
		return fmt.Sprintf(v.w.Missing.Unread, part)
	case support.MissingLater:
		return fmt.Sprintf(v.w.Missing.Later, part, v.At(m.Until))
	case support.MissingBeyond:
		return fmt.Sprintf(v.w.Missing.Beyond, part, m.Read)
	case support.MissingBehind:
		return fmt.Sprintf(v.w.Missing.Behind, part, m.Read, m.All)
	case support.MissingExpired:
		return fmt.Sprintf(v.w.Missing.Expired, part, int(m.Kept.Hours()/24))
	}
	return part
}

// retryDelivery is POST /ops/payments/{place}/deliveries/{delivery}/retry.
func (v *visit) retryDelivery() {
	s, err := v.atPlace()
	if err != nil {
		v.Failed("reading a payment", err)
		return
	}
	d, _, err := v.o.cfg.Deliveries.Show(v.Context(), v.Param("delivery"))
	if err == nil && d.SessionID != s.ID {
		err = operation.Refuse(deliveries.CodeUnknown, "id", nil)
	}
	if err != nil {
		v.Failed("reading a delivery", err)
		return
	}
	if err := v.Acting.May(identity.MayRetry, s.TenantID); err != nil {
		v.Failed("retrying a delivery", err)
		return
	}
	dir, err := v.o.cfg.Directory(v.Context())
	if err != nil {
		v.Unavailable("reading destinations", err)
		return
	}
	if _, err := v.o.cfg.Deliveries.Configured(dir).Retry(v.Context(), v.Acting.Actor, d.ID, v.Now); err != nil {
		v.refusedOr(err, "retrying a delivery", v.showPayment)
		return
	}
	v.See(v.root()+"payments/"+v.Param("place"), "done", "retried")
}

// refusedOr shows a page again with what was refused, or says that the service cannot answer.
func (v *visit) refusedOr(err error, doing string, show func(status int, refused string)) {
	var refusal *operation.Error
	if !errors.As(err, &refusal) {
		v.Unavailable(doing, err)
		return
	}
	show(staff.StatusOf(err), v.Refusal(err))
}
