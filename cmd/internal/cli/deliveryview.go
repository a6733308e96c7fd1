package cli

import (
	"context"
	"strconv"

	"quittance/cmd/internal/roles"
	"quittance/internal/deliveries"
	"quittance/internal/notify"
	"quittance/internal/registry"
)

// deliveryJSON is a delivery as --json prints it. The endpoint is the id of a webhook
// endpoint, or the name of an ERP such as impots/test.
func deliveryJSON(d deliveries.Delivery, to destinations) object {
	e := to.of(d)
	return object{
		"id", d.ID, "kind", d.Kind, "endpoint", e.Name, "owner?", e.Owner, "url?", e.URL, "event_id", d.EventID, "event", d.Event,
		"application_id", d.ApplicationID, "tenant_id", d.TenantID, "session_id", d.SessionID, "mode", registry.Mode(d.Live),
		"occurred_at", d.OccurredAt, "state", d.State, "attempts", d.Attempts, "first_attempt_at", d.FirstAttemptAt,
		"last_outcome_at", d.LastOutcomeAt, "next_attempt_at", d.NextAttemptAt, "http_status", orNull(d.HTTPStatus), "reason?", d.Reason,
	}
}

// destinations are the present destinations of all kinds by id.
type destinations map[string]deliveries.Entry

func destinationsOf(dir registry.Directory) destinations {
	out := destinations{}
	for _, e := range roles.DeliveryKinds(nil).Entries(dir) {
		out[e.ID] = e
	}
	return out
}

// of returns the destination of a delivery. One that is not configured, such as a person's, or
// not any more has only its id, and the delivery's own address.
func (to destinations) of(d deliveries.Delivery) deliveries.Entry {
	if e, ok := to[d.DestinationID]; ok {
		return e
	}
	return deliveries.Entry{Kind: d.Kind, ID: d.DestinationID, Name: d.DestinationID, URL: d.URL}
}

// answerText returns the status of a call, or the reason why there is none.
func answerText(status int, reason string) string {
	switch {
	case status != 0:
		return strconv.Itoa(status)
	case reason != "":
		return reason
	}
	return "-"
}

// reports are what providers report of the messages of deliveries, by the messages' ids.
type reports map[string]notify.Reported

// reported reads the reports on the messages among deliveries.
func (m *Meta) reported(ctx context.Context, list ...deliveries.Delivery) (reports, error) {
	var ids []string
	for _, d := range list {
		if d.Kind == notify.DeliveryKind {
			ids = append(ids, d.EventID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return notify.NewReports(m.pool).Of(ctx, ids)
}

// json returns the member of a delivery's JSON; none without a report.
func (r reports) json(d deliveries.Delivery) object {
	one, ok := r[d.EventID]
	if !ok {
		return nil
	}
	return object{"report", object{"state", string(one.State), "reason?", one.Reason, "sent_at", one.SentAt, "reported_at", one.At}}
}

// text returns the state, and the provider's code; empty without a report.
func (r reports) text(d deliveries.Delivery) string {
	one, ok := r[d.EventID]
	switch {
	case !ok:
		return ""
	case one.Reason != "":
		return string(one.State) + ":" + one.Reason
	}
	return string(one.State)
}

// textWithTime returns the text with the time of the report.
func (r reports) textWithTime(d deliveries.Delivery) string {
	if at := r[d.EventID].At; !at.IsZero() {
		return r.text(d) + ", " + moment(at)
	}
	return r.text(d)
}
