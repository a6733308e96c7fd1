package operations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/ingress/staff"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/report"
	"quittance/internal/sessions"
	"quittance/money/localtime"
)

const (
	// exportedAtMost is the largest number of rows of a file of a list.
	exportedAtMost = 5000
	// exportedAtOnce is the number of rows that are read at once for it.
	exportedAtOnce = sessions.SizeAtMost
	// exportWithin bounds the time of reading them, within that of an answer.
	exportWithin = 25 * time.Second
)

// listed is a list as a file. Its rows are those of the page, without what people type freely, phone numbers and ids of sessions.
type listed struct {
	name    string
	columns []string
	rows    [][]any
}

// add adds a row, and reports whether the list has room for more.
func (l *listed) add(row ...any) bool {
	for i, value := range row {
		if at, ok := value.(time.Time); ok {
			row[i] = moment(at)
		}
	}
	l.rows = append(l.rows, row)
	return len(l.rows) <= exportedAtMost
}

// moment is a time as files have it: in Brazzaville, empty for none.
func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return localtime.In(at).Format(time.DateTime)
}

// errNoFile says that a list is too long for a file, or reading it takes too long.
var errNoFile = errors.New("the list is too long for a file")

// file makes the route of the file of a list below a root.
func (o *Operations) file(root, list string, do func(*visit)) staff.Route {
	return staff.Route{Method: http.MethodGet, Path: "/" + root + list + "/file", May: identity.MayExport, Service: root == serviceRoot, Agency: root == agencyRoot, Do: o.with(do)}
}

// sendFile answers with a list as a file, after read has filled it. show answers with the page of the list and why there is no file.
func (v *visit) sendFile(l *listed, chosen fields, mode string, read func(ctx context.Context) error, show func(status int, refused string)) {
	format, ok := v.Format()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(v.Context(), exportWithin)
	defer cancel()
	err := read(ctx)
	switch {
	case errors.Is(err, errNoFile), errors.Is(ctx.Err(), context.DeadlineExceeded):
		show(http.StatusUnprocessableEntity, fmt.Sprintf(v.w.TooManyForFile, exportedAtMost))
		return
	case err != nil:
		v.Failed("reading a list for a file", err)
		return
	}
	agencyID := chosen[byAgency]
	if !v.Acting.Service() {
		agencyID = v.Acting.Person.AgencyID
	}
	stamp := report.Stamp{Report: l.name, Agency: v.slug(agencyID), Mode: mode, At: time.Now().UTC(), Program: v.o.cfg.Program, Version: v.o.cfg.Version}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		if name != byAgency && name != byMode {
			stamp.Of = append(stamp.Of, report.Fact{Name: name, Text: strings.Join(strings.Fields(chosen[name]), " ")})
		}
	}
	stamp.Of = append(stamp.Of, report.Fact{Name: "times", Text: "Africa/Brazzaville (UTC+1)"})
	t := report.Table{Name: l.name, Stamp: stamp, Rows: l.rows}
	for i, c := range l.columns {
		column := report.Column{Name: c}
		if len(l.rows) > 0 {
			_, column.Number = l.rows[0][i].(int64)
		}
		t.Columns = append(t.Columns, column)
	}
	noted := maps.Clone(chosen)
	if _, typed := noted[byText]; typed {
		noted[byText] = "…" // people type what they look for, a name as well
	}
	parts := slices.DeleteFunc([]string{"quittance", mode, v.slug(agencyID), l.name, localtime.Day(v.Now)}, func(s string) bool { return s == "" })
	v.SendTable(t, format, strings.Join(parts, "-"), operation.Entry{
		Action: l.name + ".download", AgencyID: agencyID, Detail: map[string]any{"conditions": noted, "rows": len(l.rows)},
	})
}

// paymentsFile is GET /ops/payments/file and /agency/payments/file.
func (v *visit) paymentsFile() {
	chosen := v.conditions(paymentConditions...)
	live := chosen[byMode] != testMode
	faults := v.page(v.w.Payments.Title, v.root()+"payments")
	q := v.paymentQuery(&faults, chosen)
	if len(faults.Faults) > 0 {
		v.showPayments(http.StatusUnprocessableEntity, "")
		return
	}
	l := &listed{name: "payments", columns: []string{
		"created_at", "agency", "order_id", "payment_ref", "service", "status", "offer_id", "operator_ref", "amount_minor", "fee_minor", "currency", "completed_at", "reversed_at", "reversal_reason",
	}}
	q.Live, q.Size = live, exportedAtOnce
	v.sendFile(l, chosen, modeOf(live), func(ctx context.Context) error {
		for {
			found, err := v.o.cfg.Sessions.Page(ctx, q)
			if err != nil {
				return err
			}
			for _, s := range found.Items {
				if !l.add(v.paymentCells(s)...) {
					return errNoFile
				}
			}
			if q.After = found.Next; q.After == "" {
				return nil
			}
		}
	}, v.showPayments)
}

// paymentCells are the values of a payment in a file. Offer and fee are those of the last attempt to pay it.
func (v *visit) paymentCells(s checkout.Session) []any {
	var offer, operatorRef string
	var fee int64
	if c := s.Collection; c != nil {
		offer, operatorRef, fee = c.OfferID, c.OperatorRef, c.Fee
	}
	var completed time.Time
	if s.Status == checkout.StatusCompleted {
		completed = s.EndedAt
	}
	return []any{s.CreatedAt, v.slug(s.TenantID), s.OrderID, s.PaymentRef, s.ServiceCode, string(s.Status), offer, operatorRef, s.Amount, fee, s.Currency, completed, s.ReversedAt, string(s.ReversalReason)}
}

// casesFile is GET /ops/cases/file and /agency/cases/file.
func (v *visit) casesFile() {
	chosen := v.conditions(caseConditions...)
	l := &listed{name: "cases", columns: []string{
		"opened_at", "agency", "mode", "case_id", "kind", "order_id", "operator_ref", "amount_minor", "currency", "state", "resolution", "reference", "closed_by", "closed_at",
	}}
	f := v.caseFilter(chosen)
	f.Limit = exportedAtOnce
	v.sendFile(l, chosen, chosen[byMode], func(ctx context.Context) error {
		for {
			found, err := v.o.cfg.Cases.List(ctx, v.viewer(), f)
			if err != nil {
				return err
			}
			for _, c := range found {
				if !l.add(c.OpenedAt, v.slug(c.AgencyID), c.Mode, c.ID, string(c.Kind), c.OrderID, c.OperatorRef, c.Amount, c.Currency, string(c.State()), string(c.Resolution), c.Reference, c.ClosedBy, c.ClosedAt) {
					return errNoFile
				}
			}
			if len(found) < f.Limit {
				return nil
			}
			f.After = f.Cursor(v.viewer(), found[len(found)-1])
		}
	}, v.showCases)
}

// deliveriesFile is GET /ops/deliveries/file and /agency/deliveries/file.
func (v *visit) deliveriesFile() {
	chosen := v.conditions(deliveryConditions...)
	filter, err := v.deliveryFilter(chosen)
	if err != nil {
		v.showDeliveries(http.StatusUnprocessableEntity, "")
		return
	}
	to := v.destinations()
	l := &listed{name: "deliveries", columns: []string{
		"occurred_at", "agency", "mode", "kind", "event", "event_id", "destination", "state", "calls", "first_at", "last_at", "next_at", "http_status", "reason", "delivery_id",
	}}
	filter.Kind, filter.DestinationID = to.named(filter.Kind, chosen[byEndpoint])
	filter.Limit = exportedAtOnce
	v.sendFile(l, chosen, "", func(ctx context.Context) error {
		for after := ""; ; {
			found, next, err := v.o.cfg.Deliveries.Page(ctx, filter, after)
			if err != nil {
				return err
			}
			for _, d := range found {
				if !l.add(v.deliveryCells(d, to)...) {
					return errNoFile
				}
			}
			if after = next; after == "" {
				return nil
			}
		}
	}, v.showDeliveries)
}

// deliveryCells are the values of a delivery in a file.
func (v *visit) deliveryCells(d deliveries.Delivery, to destinations) []any {
	return []any{
		d.OccurredAt, v.slug(d.TenantID), modeOf(d.Live), string(d.Kind), d.Event, d.EventID, to.name(d.Kind, d.DestinationID), d.State, int64(d.Attempts), d.FirstAttemptAt, d.LastOutcomeAt, d.NextCall(), int64(d.HTTPStatus), d.Reason, d.ID,
	}
}
