package ministry

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/readmodel"
	"quittance/internal/registry"
)

func (a *API) get(w http.ResponseWriter, r *http.Request, p registry.Principal) error {
	q := newQuery(r)
	tenantID := q.uuid("tenant_id")
	if err := q.err(); err != nil {
		return err
	}
	apps, err := a.scope(p, tenantID)
	if err != nil {
		return err
	}
	if _, err := checkout.SessionPartition(r.PathValue("id")); err != nil || len(apps) == 0 {
		return notFound()
	}
	s, err := a.cfg.Sessions.Session(r.Context(), readmodel.Query{ID: r.PathValue("id"), ApplicationIDs: apps, Live: p.Live})
	if errors.Is(err, readmodel.ErrNotFound) {
		return notFound()
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, toSession(s, a.cfg.CheckoutURL))
}

func (a *API) list(w http.ResponseWriter, r *http.Request, p registry.Principal) error {
	q := newQuery(r)
	f := readmodel.Filter{
		Live:       p.Live,
		OrderID:    q.text("order_id", 200),
		Status:     checkout.Status(q.enum("status", checkout.Statuses())),
		CustomerID: q.text("customer_id", 200),
		PaymentRef: q.text("payment_ref", 16),
		Page:       q.integer("page", 1, 1, 1_000_000),
		PageSize:   q.integer("page_size", a.pageSize(p), 1, 100),
	}
	tenantID := q.uuid("tenant_id")
	if err := q.err(); err != nil {
		return err
	}
	var err error
	if f.ApplicationIDs, err = a.scope(p, tenantID); err != nil {
		return err
	}
	out := page{Items: []session{}, Page: f.Page, PageSize: f.PageSize}
	if len(f.ApplicationIDs) > 0 {
		var items []checkout.Session
		if items, out.Total, err = a.cfg.Sessions.List(r.Context(), f); err != nil {
			return err
		}
		for _, s := range items {
			out.Items = append(out.Items, toSession(s, a.cfg.CheckoutURL))
		}
	}
	return writeJSON(w, http.StatusOK, out)
}

func (a *API) pageSize(p registry.Principal) int {
	if app, ok := a.cfg.Registry.Application(p.ApplicationID); ok {
		return app.PageSize
	}
	return registry.DefaultPageSize
}

// query takes parameters and collects what is wrong: also those nobody asked
// for, or given twice.
type query struct {
	values    url.Values
	malformed bool
	known     []string
	faults    []problem.Fault
}

func newQuery(r *http.Request) *query {
	_, err := url.ParseQuery(r.URL.RawQuery)
	return &query{values: r.URL.Query(), malformed: err != nil}
}

func (q *query) fault(name, rule, message string) {
	q.faults = append(q.faults, problem.Fault{Field: name, Rule: rule, Message: name + " " + message + "."})
}

func (q *query) take(name string) (string, bool) {
	q.known = append(q.known, name)
	v := q.values[name]
	if len(v) > 1 {
		q.fault(name, "repeated", "must be given once")
		return "", false
	}
	if len(v) == 0 {
		return "", false
	}
	return v[0], true
}

func (q *query) text(name string, longest int) string {
	v, ok := q.take(name)
	if n := utf8.RuneCountInString(v); ok && (n < 1 || n > longest || !utf8.ValidString(v) || slices.Contains([]byte(v), 0)) {
		q.fault(name, "length", "must have 1 to "+strconv.Itoa(longest)+" characters of UTF-8")
		return ""
	}
	return v
}

func (q *query) uuid(name string) string {
	v, ok := q.take(name)
	if !ok {
		return ""
	}
	id, err := uuid.Parse(v)
	if err != nil || len(v) != 36 {
		q.fault(name, "format", "must be a UUID")
		return ""
	}
	return id.String()
}

func (q *query) enum(name string, values []checkout.Status) string {
	v, ok := q.take(name)
	if ok && !slices.Contains(values, checkout.Status(v)) {
		q.fault(name, "enum", "must be open, completed, expired, cancelled or failed")
		return ""
	}
	return v
}

func (q *query) integer(name string, otherwise, least, most int) int {
	v, ok := q.take(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most || strconv.Itoa(n) != v {
		q.fault(name, "range", "must be an integer from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
		return otherwise
	}
	return n
}

// err is the problem of all faults together, nil when there are none.
func (q *query) err() error {
	if q.malformed {
		q.fault("query", "format", "string is malformed: percent-encode what it holds")
	}
	names := make([]string, 0, len(q.values))
	for name := range q.values {
		if !slices.Contains(q.known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		q.fault(shorten(name), "unknown", "is not a parameter of this request")
	}
	if len(q.faults) > 0 {
		return badQuery(q.faults)
	}
	return nil
}
