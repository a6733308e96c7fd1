package display

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/notify"
	"quittance/internal/registry"
)

// DeliveryJSON is a delivery as --json prints it. The endpoint is the id of a webhook
// endpoint, or the name of an ERP such as impots/test.
func DeliveryJSON(d deliveries.Delivery, to Destinations) render.Object {
	e := to.Of(d)
	return render.Object{
		"id", d.ID, "kind", d.Kind, "endpoint", e.Name, "owner?", e.Owner, "url?", e.URL, "event_id", d.EventID, "event", d.Event,
		"application_id", d.ApplicationID, "tenant_id", d.TenantID, "session_id", d.SessionID, "mode", registry.Mode(d.Live),
		"occurred_at", d.OccurredAt, "state", d.State, "attempts", d.Attempts, "first_attempt_at", d.FirstAttemptAt,
		"last_outcome_at", d.LastOutcomeAt, "next_attempt_at", d.NextCall(), "http_status", render.OrNull(d.HTTPStatus), "reason?", d.Reason,
	}
}

// Destinations are the present destinations of all kinds by id.
type Destinations map[string]deliveries.Entry

// DestinationsOf returns the destinations of all kinds in a directory.
func DestinationsOf(dir registry.Directory) Destinations {
	out := Destinations{}
	for _, e := range roles.DeliveryKinds(nil).Entries(dir) {
		out[e.ID] = e
	}
	return out
}

// Of returns the destination of a delivery. One that is not configured, such as a person's, or
// not any more has only its id, and the delivery's own address.
func (to Destinations) Of(d deliveries.Delivery) deliveries.Entry {
	if e, ok := to[d.DestinationID]; ok {
		return e
	}
	return deliveries.Entry{Kind: d.Kind, ID: d.DestinationID, Name: d.DestinationID, URL: d.URL}
}

// AnswerText returns the status of a call, or the reason why there is none.
func AnswerText(status int, reason string) string {
	switch {
	case status != 0:
		return strconv.Itoa(status)
	case reason != "":
		return reason
	}
	return "-"
}

// Reports are what providers report of the messages of deliveries, by the messages' ids.
type Reports map[string]notify.Reported

// Reported reads the reports on the messages among deliveries.
func Reported(ctx context.Context, m *cli.Meta, list ...deliveries.Delivery) (Reports, error) {
	var ids []string
	for _, d := range list {
		if d.Kind == notify.DeliveryKind {
			ids = append(ids, d.EventID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return notify.NewReports(m.Pool).Of(ctx, ids)
}

// Json returns the member of a delivery's JSON; none without a report.
func (r Reports) Json(d deliveries.Delivery) render.Object {
	one, ok := r[d.EventID]
	if !ok {
		return nil
	}
	return render.Object{"report", render.Object{"state", string(one.State), "reason?", one.Reason, "sent_at", one.SentAt, "reported_at", one.At}}
}

// Text returns the state, and the provider's code; empty without a report.
func (r Reports) Text(d deliveries.Delivery) string {
	one, ok := r[d.EventID]
	switch {
	case !ok:
		return ""
	case one.Reason != "":
		return string(one.State) + ":" + one.Reason
	}
	return string(one.State)
}

// TextWithTime returns the text with the time of the report.
func (r Reports) TextWithTime(d deliveries.Delivery) string {
	if at := r[d.EventID].At; !at.IsZero() {
		return r.Text(d) + ", " + render.Moment(at)
	}
	return r.Text(d)
}

// NextCall says when a delivery is sent next; empty for one that nobody sends by itself.
func NextCall(d deliveries.Delivery, now time.Time) string {
	at := d.NextCall()
	switch {
	case !d.NextAttemptAt.IsZero() && d.Suspended:
		return "when it is resumed"
	case at.IsZero():
		return ""
	case !at.After(now):
		return "now"
	}
	return render.Moment(at)
}

// SayDeliveries adds a table of deliveries, or the line none when there are none.
// Where providers report on some of them, it has their reports. now is the service's clock.
func SayDeliveries(p *render.Page, none string, list []deliveries.Delivery, to Destinations, reported Reports, now time.Time) {
	columns := "ID,OCCURRED,EVENT,STATE,CALLS,LAST ANSWER,NEXT CALL,ENDPOINT,OWNER,URL"
	if len(reported) > 0 {
		columns += ",REPORT"
	}
	p.Table(none, columns, render.Mapped(list, func(d deliveries.Delivery) []any {
		e := to.Of(d)
		row := []any{
			d.ID, render.Moment(d.OccurredAt), d.Event, d.State, d.Attempts, AnswerText(d.HTTPStatus, d.Reason), cmp.Or(NextCall(d, now), "-"),
			e.Name, render.OrDash(e.Owner), render.OrDash(e.URL),
		}
		if len(reported) > 0 {
			row = append(row, render.OrDash(reported.Text(d)))
		}
		return row
	}))
}
