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
	// Registry answers from memory.
	Registry *registry.Registry
	// Directory reads the destinations of deliveries.
	Directory func(ctx context.Context) (registry.Directory, error)
	// Support returns what is known of payments, in the scope of a person. It sets the fields of the journal, of
	// Kafka and of the stores.
	Support func(ctx context.Context, scope support.Config) (*support.Desk, error)
	// Signer signs proposals.
	Signer decisions.Signer
	// Approvals have a person's passkey sign an approval.
	Approvals Approvals
	// People returns what waits about people for the person, and what the person has begun.
	People func(ctx context.Context, v *staff.Visit) (mine, own staff.Grid, err error)
}

// Approvals are identity.Desk.
type Approvals interface {
	Challenge(ctx context.Context, a identity.Acting, s identity.Statement) (json.RawMessage, error)
	Answered(ctx context.Context, a identity.Acting, response []byte) (identity.Acting, error)
}

// Operations are the pages. Safe for concurrent use.
type Operations struct{ cfg Config }

// New makes the pages.
func New(cfg Config) (*Operations, error) {
	if cfg.Sessions == nil || cfg.Deliveries == nil || cfg.Cases == nil || cfg.Registry == nil || cfg.Directory == nil || cfg.Support == nil || cfg.Signer == nil || cfg.Approvals == nil || cfg.People == nil {
		return nil, errors.New("operations: every field of the configuration is required")
	}
	return &Operations{cfg}, nil
}

const searchPath = "/ops/search"

// Part returns the pages for the frame of the portals.
func (o *Operations) Part() staff.Part {
	see := func(path string, do func(*visit)) staff.Route {
		return staff.Route{Method: http.MethodGet, Path: path, May: identity.MaySeePayments, Service: true, Do: o.with(do)}
	}
	act := func(path string, may identity.Permission, do func(*visit)) staff.Route {
		return staff.Route{Method: http.MethodPost, Path: path, May: may, Service: true, Do: o.with(do)}
	}
	link := func(path string, label func(*words) string) staff.Link {
		labels := map[money.Language]string{}
		for lang, w := range texts {
			labels[lang] = label(w)
		}
		return staff.Link{Path: path, Labels: labels}
	}
	return staff.Part{
		Files: templates, SearchPath: searchPath,
		Nav: []staff.Link{
			link("/work", func(w *words) string { return w.Work.Title }), link("/ops/payments", func(w *words) string { return w.Payments.Title }),
			link("/ops/cases", func(w *words) string { return w.Cases.Title }), link("/ops/endpoints", func(w *words) string { return w.Endpoints.Title }),
			link("/ops/stuck", func(w *words) string { return w.Stuck.Title }),
		},
		Routes: []staff.Route{
			{Method: http.MethodGet, Path: "/work", Do: o.with((*visit).work)},
			see(searchPath, (*visit).showSearch),
			see("/ops/payments", (*visit).payments),
			see("/ops/payments/{place}", (*visit).payment),
			see("/ops/cases", (*visit).cases),
			see("/ops/cases/{case}", (*visit).showCase),
			see("/ops/endpoints", (*visit).endpoints),
			see("/ops/endpoints/{kind}/{destination}", (*visit).endpoint),
			see("/ops/stuck", (*visit).stuck),
			act(searchPath, identity.MaySeePayments, (*visit).search),
			act("/ops/payments/{place}/deliveries/{delivery}/retry", identity.MayRetry, (*visit).retryDelivery),
			act("/ops/cases/{case}/propose", identity.MayPropose, (*visit).propose),
			act("/ops/cases/{case}/reject", identity.MayPropose, (*visit).reject),
			act("/ops/cases/{case}/approve/begin", identity.MayApprove, (*visit).beginApproval),
			act("/ops/cases/{case}/approve/{number:[0-9]{1,4}}", identity.MayApprove, (*visit).approve),
			act("/ops/endpoints/{kind}/{destination}/suspend", identity.MayManageEndpoints, (*visit).suspend),
			act("/ops/endpoints/{kind}/{destination}/resume", identity.MayManageEndpoints, (*visit).resume),
			act("/ops/endpoints/{kind}/{destination}/retry", identity.MayManageEndpoints, (*visit).retryAll),
		},
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
