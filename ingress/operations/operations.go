package operations

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"net/http"

	"quittance/ingress/staff"
	"quittance/internal/cases"
	"quittance/internal/decisions"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/jobs"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/internal/support"
	"quittance/money"
)

//go:embed templates
var templates embed.FS

// Config of the pages. All fields are required.
type Config struct {
	// Sessions must run.
	Sessions   *sessions.Reader
	Deliveries *deliveries.Store
	// Cases verify the rows of agencies (cases.Store.Verifying).
	Cases *cases.Store
	// Imports are those of statements.
	Imports *intake.Store
	// Jobs are what people ask for in bulk.
	Jobs *jobs.Store
	// Registry answers from memory.
	Registry *registry.Registry
	// Directory reads the destinations of deliveries.
	Directory func(ctx context.Context) (registry.Directory, error)
	// Support returns what is known of payments, in the scope of a person. It sets the fields of the journal, of
	// Kafka and of the stores.
	Support func(ctx context.Context, scope support.Config) (*support.Desk, error)
	// Signer signs proposals and approvals.
	Signer decisions.Signer
	// Approvals have a person's passkey sign a proposal or an approval.
	Approvals Approvals
	// Waits are those of other parts.
	Waits []Waits
	// Trail is that of another part.
	Trail Trail
	// Program and Version name what makes the files.
	Program, Version string
}

// Trail returns who has read and changed what has an id, the address of more, and whether the person may see it.
type Trail = func(v *staff.Visit, subject string) (g staff.Grid, more string, allowed bool, err error)

// Waits return what waits in a part for the person, and what the person has begun there.
type Waits = func(ctx context.Context, v *staff.Visit) (mine, own staff.Grid, err error)

// Approvals are identity.Desk.
type Approvals interface {
	Challenge(ctx context.Context, a identity.Acting, s identity.Statement) (json.RawMessage, error)
	Answered(ctx context.Context, a identity.Acting, response []byte) (identity.Acting, error)
}

// Operations are the pages. Safe for concurrent use.
type Operations struct{ cfg Config }

// New makes the pages.
func New(cfg Config) (*Operations, error) {
	if cfg.Sessions == nil || cfg.Deliveries == nil || cfg.Cases == nil || cfg.Imports == nil || cfg.Jobs == nil || cfg.Registry == nil || cfg.Directory == nil || cfg.Support == nil || cfg.Signer == nil || cfg.Approvals == nil || len(cfg.Waits) == 0 || cfg.Trail == nil || cfg.Program == "" || cfg.Version == "" {
		return nil, errors.New("operations: every field of the configuration is required")
	}
	return &Operations{cfg}, nil
}

// Roots of the addresses: of the service's people, who see all agencies, and of an agency's.
const (
	serviceRoot = "ops/"
	agencyRoot  = "agency/"
)

// Part returns the pages for the frame of the portals.
func (o *Operations) Part() staff.Part {
	link := func(path string, label func(*words) string) staff.Link {
		labels := map[money.Language]string{}
		for lang, w := range texts {
			labels[lang] = label(w)
		}
		return staff.Link{Path: path, Labels: labels}
	}
	part := staff.Part{
		Files: templates, SearchPaths: []string{"/" + serviceRoot + "search", "/" + agencyRoot + "search"},
		Nav:    []staff.Link{link("/work", func(w *words) string { return w.Work.Title })},
		Routes: []staff.Route{{Method: http.MethodGet, Path: "/work", Do: o.with((*visit).work)}},
	}
	for _, root := range []string{serviceRoot, agencyRoot} {
		part.Nav = append(part.Nav, link("/"+root+"payments", func(w *words) string { return w.Payments.Title }), link("/"+root+"cases", func(w *words) string { return w.Cases.Title }),
			link("/"+root+"imports", func(w *words) string { return w.Imports.Title }),
			link("/"+root+"deliveries", func(w *words) string { return w.Deliveries.Title }), link("/"+root+"jobs", func(w *words) string { return w.Jobs.Title }))
		part.Routes = append(append(append(part.Routes, o.records(root)...), o.importRoutes(root)...), o.jobRoutes(root)...)
	}
	part.Nav = append(part.Nav, link("/ops/endpoints", func(w *words) string { return w.Endpoints.Title }), link("/ops/stuck", func(w *words) string { return w.Stuck.Title }))
	see, act := o.routes(serviceRoot)
	part.Routes = append(
		part.Routes,
		see("endpoints", (*visit).endpoints),
		see("endpoints/{kind}/{destination}", (*visit).endpoint),
		see("stuck", (*visit).stuck),
		act("endpoints/{kind}/{destination}/suspend", identity.MayManageEndpoints, (*visit).suspend),
		act("endpoints/{kind}/{destination}/resume", identity.MayManageEndpoints, (*visit).resume),
	)
	return part
}

// routes make pages and forms below a root.
func (o *Operations) routes(root string) (see func(path string, do func(*visit)) staff.Route, act func(path string, may identity.Permission, do func(*visit)) staff.Route) {
	route := func(method, path string, may identity.Permission, do func(*visit)) staff.Route {
		return staff.Route{Method: method, Path: "/" + root + path, May: may, Service: root == serviceRoot, Agency: root == agencyRoot, Do: o.with(do)}
	}
	see = func(path string, do func(*visit)) staff.Route {
		return route(http.MethodGet, path, identity.MaySeePayments, do)
	}
	act = func(path string, may identity.Permission, do func(*visit)) staff.Route {
		return route(http.MethodPost, path, may, do)
	}
	return see, act
}

// records are the pages of payments and cases, which are the same for the service's people and for an agency's.
func (o *Operations) records(root string) []staff.Route {
	see, act := o.routes(root)
	return []staff.Route{
		see("search", (*visit).showSearch),
		see("payments", func(v *visit) { v.showPayments(http.StatusOK, "") }),
		o.file(root, "payments", (*visit).paymentsFile),
		see("payments/{place}", (*visit).payment),
		see("cases", func(v *visit) { v.showCases(http.StatusOK, "") }),
		o.file(root, "cases", (*visit).casesFile),
		see("cases/{case}", (*visit).showCase),
		act("search", identity.MaySeePayments, (*visit).search),
		act("payments/{place}/deliveries/{delivery}/retry", identity.MayRetry, (*visit).retryDelivery),
		act("cases/{case}/propose/begin", identity.MayPropose, (*visit).beginProposal),
		act("cases/{case}/propose", identity.MayPropose, (*visit).propose),
		act("cases/{case}/reject", identity.MayDecide, (*visit).reject),
		act("cases/{case}/approve/begin", identity.MayDecide, (*visit).beginApproval),
		act("cases/{case}/approve/{number:[0-9]{1,4}}", identity.MayDecide, (*visit).approve),
	}
}

// visit is one request.
type visit struct {
	*staff.Visit
	o *Operations
	w *words
}

func (o *Operations) with(do func(*visit)) func(*staff.Visit) {
	return func(v *staff.Visit) { do(&visit{v, o, texts.In(v.Lang)}) }
}

// root is the root of the addresses of payments and cases for the person.
func (v *visit) root() string {
	if v.Acting.Service() {
		return serviceRoot
	}
	return agencyRoot
}

// trail is the part of a record that says who has read and changed it.
type trail struct {
	Grid    staff.Grid
	MoreURL string
	Shown   bool
}

// trail returns who has read and changed what has an id.
func (v *visit) trail(subject string) (out trail, err error) {
	out.Grid, out.MoreURL, out.Shown, err = v.o.cfg.Trail(v.Visit, subject)
	return out, err
}

// scope returns the agencies and applications that the person sees.
func (v *visit) scope(agencyID string) (agencies, applications []string) {
	applications = []string{} // never nil, which may be all
	for _, a := range v.o.cfg.Registry.Agencies() {
		if v.Acting.Sees(a.ID) && (agencyID == "" || agencyID == a.ID) {
			agencies = append(agencies, a.ID)
			applications = append(applications, v.o.cfg.Registry.ApplicationsOf(a.ID)...)
		}
	}
	return agencies, applications
}

// desk answers what is known of payments in the person's scope.
func (v *visit) desk(commands bool) (*support.Desk, error) {
	_, applications := v.scope("")
	return v.o.cfg.Support(v.Context(), support.Config{Now: v.Now, ApplicationIDs: applications, Viewer: v.viewer(), WithoutCommands: !commands})
}

// viewer is the person as nouns know one who reads.
func (v *visit) viewer() *identity.Staff { return &v.Acting.Person }
