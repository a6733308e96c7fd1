package operations

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/ingress/staff"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
)

// endpointsView is the list of destinations.
type endpointsView struct {
	view
	Grid  staff.Grid
	Empty string
}

// endpoints is GET /ops/endpoints.
func (v *visit) endpoints() {
	to, status, err := v.readEndpoints()
	if err != nil {
		v.Unavailable("listing endpoints", err)
		return
	}
	w := v.w.Endpoints
	out := &endpointsView{view: v.page(w.Title, "ops/endpoints")}
	out.Command, out.Tagged = "quittance endpoints list", true
	out.Grid = staff.Grid{Caption: w.Title, Heads: []string{w.Name, w.Owner, w.Address, w.State, w.Waiting, w.Oldest}}
	for _, e := range to {
		s := status[e.key()]
		out.Grid.Rows = append(out.Grid.Rows, []staff.Cell{
			{Text: e.Name, URL: v.endpointURL(e.Kind, e.ID), More: said(v.w.DeliveryKinds, e.Kind)},
			{Text: e.Owner},
			{Text: dash(e.URL), Class: "code"},
			{Text: v.endpointState(e, s)},
			{Text: v.waiting(s)},
			{Text: v.At(s.Oldest)},
		})
	}
	if len(to) == 0 {
		out.Empty = w.None
	}
	v.Write(http.StatusOK, "endpoints", out)
}

// target is a destination with its key among statuses.
type target struct{ deliveries.Entry }

func (t target) key() string { return string(t.Kind) + " " + t.ID }

// readEndpoints returns the destinations in use, and their status.
func (v *visit) readEndpoints() (to []target, status map[string]deliveries.DestinationStatus, err error) {
	dir, err := v.o.cfg.Directory(v.Context())
	if err != nil {
		return nil, nil, err
	}
	list, err := v.o.cfg.Deliveries.Statuses(v.Context())
	if err != nil {
		return nil, nil, err
	}
	status = map[string]deliveries.DestinationStatus{}
	for _, s := range list {
		status[string(s.Kind)+" "+s.DestinationID] = s
	}
	for _, e := range v.o.cfg.Deliveries.Kinds().Entries(dir) {
		s := status[target{e}.key()]
		if e.RemovedAt.IsZero() || s.Waiting+s.Queued+s.NeedsOperator > 0 {
			to = append(to, target{e})
		}
	}
	return to, status, nil
}

// endpointState says whether a destination takes what is sent to it.
func (v *visit) endpointState(e target, s deliveries.DestinationStatus) string {
	w := v.w.Endpoints
	switch {
	case !e.RemovedAt.IsZero():
		return fmt.Sprintf(w.Removed, v.At(e.RemovedAt))
	case !s.SuspendedAt.IsZero():
		return fmt.Sprintf(w.Suspended, v.At(s.SuspendedAt), said(w.Reasons, s.SuspendedReason))
	case !s.RefusedSince.IsZero():
		return fmt.Sprintf(w.Refusing, v.At(s.RefusedSince))
	case !s.FailingSince.IsZero():
		return fmt.Sprintf(w.Failing, v.At(s.FailingSince))
	}
	return w.Well
}

// held says until when nothing is sent to a destination that fails, and what happens then; empty for no hold.
func (v *visit) held(s deliveries.DestinationStatus) string {
	if s.HoldUntil.IsZero() {
		return ""
	}
	return fmt.Sprintf(v.w.Endpoints.HeldText, v.At(s.HoldUntil))
}

// waiting says how many deliveries a destination has not accepted.
func (v *visit) waiting(s deliveries.DestinationStatus) string {
	w := v.w.Endpoints
	out := strconv.FormatInt(s.Waiting+s.Queued, 10)
	if s.NeedsOperator > 0 {
		out += fmt.Sprintf(w.AndNeeds, s.NeedsOperator)
	}
	return out
}

// endpointView is the record of a destination.
type endpointView struct {
	view
	Facts      []staff.Fact
	Deliveries staff.Grid
	Empty      string
	Actions    []action
	Recover    *againForm // nil if the person may not
}

// action is a form with one button, and the command that does the same. Hidden are further fields of the form.
type action struct {
	URL, Label, Command, Class string
	Hidden                     map[string]string
}

// target returns the destination that the address names; false after an answer.
func (v *visit) target() (e target, s deliveries.DestinationStatus, ok bool) {
	to, status, err := v.readEndpoints()
	if err != nil {
		v.Unavailable("reading an endpoint", err)
		return e, s, false
	}
	id, err := url.PathUnescape(v.Param("destination"))
	for _, e := range to {
		if err == nil && string(e.Kind) == v.Param("kind") && e.ID == id {
			return e, status[e.key()], true
		}
	}
	v.Unknown()
	return e, s, false
}

// endpoint is GET /ops/endpoints/{kind}/{destination}.
func (v *visit) endpoint() { v.writeEndpoint(http.StatusOK, "") }

func (v *visit) writeEndpoint(status int, refused string) {
	e, s, ok := v.target()
	if !ok {
		return
	}
	list, err := v.o.cfg.Deliveries.List(v.Context(), deliveries.Filter{Kind: e.Kind, DestinationID: e.ID, Limit: pageSize})
	if err != nil {
		v.Failed("listing deliveries", err)
		return
	}
	w := v.w.Endpoints
	out := &endpointView{view: v.page(fmt.Sprintf(w.One, e.Name), "ops/endpoints/"+string(e.Kind)+"/"+url.PathEscape(e.ID))}
	out.BackURL, out.BackText = v.URL("ops/endpoints"), w.Title
	out.Command, out.Tagged = "quittance endpoints show "+staff.Argument(e.Name), refused == ""
	if n := v.Query("done"); n != "" {
		out.Notice = said(w.Done, n)
	}
	if refused != "" {
		out.Fault("", refused, "")
	}
	out.Facts = []staff.Fact{
		{Label: w.Owner, Value: e.Owner},
		{Label: w.Kind, Value: said(v.w.DeliveryKinds, e.Kind)},
		{Label: w.Address, Value: e.URL, Code: true},
		{Label: w.Events, Value: strings.Join(e.Events, ", "), Code: true},
		{Label: w.Modes, Value: strings.Join(e.Modes, ", ")},
		{Label: w.State, Value: v.endpointState(e, s)},
		{Label: w.Waiting, Value: v.waiting(s)},
		{Label: w.Oldest, Value: v.at(s.Oldest)},
		{Label: w.HoldUntil, Value: v.held(s)},
		{Label: w.ID, Value: e.ID, Code: true},
	}
	out.Deliveries = v.deliveryGrid(w.Newest, list)
	if len(list) == 0 {
		out.Empty = w.NoDeliveries
	}
	out.Actions = v.actions(e, s)
	if s.SuspendedAt.IsZero() {
		out.Recover = v.recovers(e.Entry)
	}
	v.Write(status, "endpoint", out)
}

// deliveryGrid returns a list of deliveries, each with the page of its payment.
func (v *visit) deliveryGrid(caption string, list []deliveries.Delivery) staff.Grid {
	w := v.w.Endpoints
	g := staff.Grid{Caption: caption, Heads: []string{w.Occurred, w.Event, w.State, w.Calls, w.LastAnswer}}
	for _, d := range list {
		first := staff.Cell{Text: v.At(d.OccurredAt)}
		if strings.HasPrefix(d.SessionID, checkout.PrefixSession) { // not a batch
			first.URL = v.paymentURL(d.SessionID)
		}
		g.Rows = append(g.Rows, []staff.Cell{first, {Text: d.Event, Class: "code", More: said(v.w.DeliveryKinds, d.Kind)}, {Text: said(v.w.DeliveryStates, d.State)}, {Text: strconv.Itoa(d.Attempts)}, {Text: dash(v.answer(d))}})
	}
	return g
}

// actions are what the person may do with a destination now.
func (v *visit) actions(e target, s deliveries.DestinationStatus) (out []action) {
	if v.Acting.May(identity.MayManageEndpoints, "") != nil {
		return nil
	}
	w := v.w.Endpoints
	path := "ops/endpoints/" + string(e.Kind) + "/" + url.PathEscape(e.ID)
	reg, err := v.o.cfg.Deliveries.Kinds().Of(e.Kind)
	suspended := !s.SuspendedAt.IsZero()
	if !suspended {
		for _, state := range []string{deliveries.StateNeedsOperator, deliveries.StateExhausted} {
			n := s.NeedsOperator
			if state == deliveries.StateExhausted {
				n = s.Exhausted
			}
			if n > 0 && v.Acting.May(identity.MayRetry, "") == nil {
				out = append(out, action{
					URL: v.URL("ops/jobs"), Label: fmt.Sprintf(w.RetryAll, n, said(v.w.DeliveryStates, state)), Command: staff.Command("quittance jobs start", "endpoint", e.Name, "state", state),
					Hidden: map[string]string{fieldJob: uuid.Must(uuid.NewV7()).String(), byKind: string(e.Kind), byEndpoint: e.ID, byState: state},
				})
			}
		}
	}
	if suspended || !s.HoldUntil.IsZero() || !s.RefusedSince.IsZero() {
		out = append(out, action{URL: v.URL(path + "/resume"), Label: w.Resume, Command: "quittance endpoints resume " + staff.Argument(e.Name)})
	}
	if !suspended && err == nil && reg.Suspends {
		out = append(out, action{URL: v.URL(path + "/suspend"), Label: w.Suspend, Command: "quittance endpoints suspend " + staff.Argument(e.Name), Class: "bad"})
	}
	return out
}

// acted does something with a destination, and leads back to its page.
func (v *visit) acted(done string, do func(e target) error) {
	e, _, ok := v.target()
	if !ok {
		return
	}
	if err := do(e); err != nil {
		v.refusedOr(err, "acting on an endpoint", v.writeEndpoint)
		return
	}
	v.See("ops/endpoints/"+string(e.Kind)+"/"+url.PathEscape(e.ID), "done", done)
}

// suspend is POST /ops/endpoints/{kind}/{destination}/suspend.
func (v *visit) suspend() {
	v.acted("suspended", func(e target) error {
		_, _, err := v.o.cfg.Deliveries.Suspend(v.Context(), v.Acting.Actor, e.Kind, e.ID, v.Now)
		return err
	})
}

// resume is POST /ops/endpoints/{kind}/{destination}/resume.
func (v *visit) resume() {
	v.acted("resumed", func(e target) error {
		_, _, err := v.o.cfg.Deliveries.Resume(v.Context(), v.Acting.Actor, e.Kind, e.ID, v.Now, nil)
		return err
	})
}

// undecidedAfter is how long a payment may be undecided before it is on the page of what nobody gets on with.
const undecidedAfter = 24 * time.Hour
