package oversight

import (
	"context"
	"embed"
	"errors"
	"net/http"

	"quittance/checkout"
	"quittance/ingress/staff"
	"quittance/internal/audit"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/money"
)

//go:embed templates
var templates embed.FS

// Config of the pages. All fields are required.
type Config struct {
	// Audit reads the audit table.
	Audit *audit.Reader
	// Sessions find the session at a place of one of the applications: sessions.Reader, which must run.
	Sessions Sessions
	// Registry answers from memory.
	Registry *registry.Registry
	// Health is what the page of health reads.
	Health Health
	// Reports makes reports.
	Reports Reports
}

// Sessions is sessions.Reader.
type Sessions interface {
	AtPlace(ctx context.Context, place string, applicationIDs []string) (checkout.Session, error)
}

// Oversight are the pages. Safe for concurrent use.
type Oversight struct {
	cfg Config
	// reports has a place for each report that is being made.
	reports chan struct{}
}

// New makes the pages.
func New(cfg Config) (*Oversight, error) {
	if cfg.Audit == nil || cfg.Sessions == nil || cfg.Registry == nil || !cfg.Health.whole() || cfg.Reports == nil {
		return nil, errors.New("oversight: every field of the configuration is required")
	}
	return &Oversight{cfg, make(chan struct{}, reportsAtOnce)}, nil
}

// Roots of the addresses of the audit table: of the service's people, who see all agencies, and of an agency's.
const (
	adminRoot  = "admin/"
	opsRoot    = "ops/"
	agencyRoot = "agency/"
)

// Part returns the pages for the frame of the portals.
func (o *Oversight) Part() staff.Part {
	link := func(path string, label func(*words) string) staff.Link {
		labels := map[money.Language]string{}
		for lang, w := range texts {
			labels[lang] = label(w)
		}
		return staff.Link{Path: "/" + path, Labels: labels}
	}
	part := staff.Part{Files: templates}
	for _, root := range []string{adminRoot, agencyRoot} {
		part.Nav = append(part.Nav, link(root+"audit", func(w *words) string { return w.Audit.Title }))
		part.Routes = append(
			part.Routes,
			o.route(http.MethodGet, root, "audit", identity.MaySeeAudit, (*visit).audit),
			o.route(http.MethodPost, root, "audit", identity.MaySeeAudit, (*visit).chooseAudit),
		)
	}
	for _, root := range []string{opsRoot, agencyRoot} {
		part.Nav = append(part.Nav, link(root+"reports", func(w *words) string { return w.Reports.Title }))
		part.Routes = append(
			part.Routes,
			o.route(http.MethodGet, root, "reports", identity.MaySeePayments, (*visit).showReport),
			o.route(http.MethodGet, root, "reports/file", identity.MayExport, (*visit).reportFile),
		)
	}
	part.Nav = append(part.Nav, link(opsRoot+"health", func(w *words) string { return w.Health.Title }))
	part.Routes = append(part.Routes, o.route(http.MethodGet, opsRoot, "health", identity.MaySeePayments, (*visit).health))
	return part
}

// route is a page or a form below a root.
func (o *Oversight) route(method, root, path string, may identity.Permission, do func(*visit)) staff.Route {
	return staff.Route{Method: method, Path: "/" + root + path, May: may, Service: root != agencyRoot, Agency: root == agencyRoot, Do: o.with(do)}
}

// visit is one request.
type visit struct {
	*staff.Visit
	o *Oversight
	w *words
}

func (o *Oversight) with(do func(*visit)) func(*staff.Visit) {
	return func(v *staff.Visit) { do(o.visit(v)) }
}

func (o *Oversight) visit(v *staff.Visit) *visit { return &visit{v, o, texts.In(v.Lang)} }

// root is agencyRoot for an agency's people, else the one given.
func (v *visit) root(service string) string {
	if v.Acting.Service() {
		return service
	}
	return agencyRoot
}

// applications are those whose payments the person sees.
func (v *visit) applications() []string {
	out := []string{} // never nil, which may be all
	for _, a := range v.o.cfg.Registry.Agencies() {
		if v.Acting.Sees(a.ID) {
			out = append(out, v.o.cfg.Registry.ApplicationsOf(a.ID)...)
		}
	}
	return out
}

// agency returns the name of an agency; a dash for none.
func (v *visit) agency(id string) string {
	if id == "" {
		return "–"
	}
	if a, ok := v.o.cfg.Registry.Agency(id); ok {
		return a.Name
	}
	return id
}

// slug returns the name of an agency in commands; of one that the person does not see, what the address says.
func (v *visit) slug(id string) string {
	if a, ok := v.o.cfg.Registry.Agency(id); ok && v.Acting.Sees(id) {
		return a.Slug
	}
	return id
}

// agencies returns the options of a select of agencies; none for an agency's people, who see one.
func (v *visit) agencies(chosen string) []staff.Choice {
	if !v.Acting.Service() {
		return nil
	}
	out := []staff.Choice{{Label: v.w.AllAgencies, Chosen: chosen == ""}}
	for _, a := range v.o.cfg.Registry.Agencies() {
		out = append(out, staff.Choice{Value: a.ID, Label: a.Name, Chosen: a.ID == chosen})
	}
	return out
}

// view is what all pages show.
type view struct {
	staff.View
	W *words
}

func (v *visit) page(title, path string, query ...string) view {
	return view{v.View(title, path, query...), v.w}
}
