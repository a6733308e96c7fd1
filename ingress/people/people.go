package people

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"quittance/ingress/staff"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/money"
)

//go:embed templates
var templates embed.FS

// Book is identity.Book.
type Book interface {
	Read(ctx context.Context, now time.Time) (identity.People, error)
	History(ctx context.Context, personID string, most int) ([]identity.PeopleStep, error)
	Prepare(ctx context.Context, a identity.Acting, r identity.PeopleRequest, now time.Time) (identity.Statement, error)
	Ask(ctx context.Context, a identity.Acting, r identity.PeopleRequest, now time.Time) (identity.PeopleRequest, secret.Text, error)
	Request(ctx context.Context, personID, id string) (identity.PeopleRequest, error)
}

// Approvals have a person's passkey sign: identity.Desk.
type Approvals interface {
	Challenge(ctx context.Context, a identity.Acting, s identity.Statement) (json.RawMessage, error)
	Answered(ctx context.Context, a identity.Acting, response []byte) (identity.Acting, error)
}

// Agencies name the agencies: registry.Registry. They answer from memory.
type Agencies interface {
	Agency(id string) (registry.Agency, bool)
	Agencies() []registry.Agency
}

// Config of the pages. All fields are required.
type Config struct {
	Book      Book
	Approvals Approvals
	Agencies  Agencies
	// URL is where staff reach the pages, for the link of an invitation.
	URL string
}

// People are the pages. Safe for concurrent use.
type People struct{ cfg Config }

// New makes the pages.
func New(cfg Config) (*People, error) {
	if cfg.Book == nil || cfg.Approvals == nil || cfg.Agencies == nil || cfg.URL == "" {
		return nil, errors.New("people: every field of the configuration is required")
	}
	return &People{cfg}, nil
}

// Part returns the pages for the frame of the portals.
func (p *People) Part() staff.Part {
	route := func(method, path string, may identity.Permission, do func(*visit)) staff.Route {
		return staff.Route{Method: method, Path: path, May: may, Do: p.with(do)}
	}
	manage := func(method, path string, do func(*visit)) staff.Route {
		return route(method, path, identity.MayManagePeople, do)
	}
	link := func(path string, label func(*words) string) staff.Link {
		labels := map[money.Language]string{}
		for lang, w := range texts {
			labels[lang] = label(w)
		}
		return staff.Link{Path: path, Labels: labels}
	}
	return staff.Part{
		Files: templates,
		Nav:   []staff.Link{link("/people", func(w *words) string { return w.Title }), link("/passkeys", func(w *words) string { return w.OwnPasskeys })},
		Routes: []staff.Route{
			manage(http.MethodGet, "/people", (*visit).list),
			manage(http.MethodGet, "/people/invite", (*visit).showInvite),
			manage(http.MethodGet, "/people/{person}", (*visit).showPerson),
			manage(http.MethodGet, "/people/{person}/{act}", (*visit).showAct),
			manage(http.MethodGet, "/people/invitations/{invitation}", (*visit).showInvitation),
			manage(http.MethodGet, "/people/changes/{change}", (*visit).showChange),
			manage(http.MethodPost, "/people/ask/begin", (*visit).begin),
			manage(http.MethodPost, "/people/ask", (*visit).ask),
			manage(http.MethodPost, "/people/end", (*visit).end),
			route(http.MethodGet, "/requests/{request}", "", (*visit).showRequest),
			route(http.MethodGet, "/passkeys", "", (*visit).passkeys),
			route(http.MethodPost, "/passkeys/begin", "", (*visit).beginRemoval),
			route(http.MethodPost, "/passkeys/remove", "", (*visit).remove),
		},
	}
}

// visit is one request.
type visit struct {
	*staff.Visit
	p *People
	w *words
}

func (p *People) with(do func(*visit)) func(*staff.Visit) {
	return func(v *staff.Visit) { do(&visit{v, p, texts.In(v.Lang)}) }
}

// view is what all pages show.
type view struct {
	staff.View
	W *words
}

func (v *visit) page(title, path string, query ...string) view {
	return view{v.View(title, path, query...), v.w}
}

// group returns the name of a group: that of an agency, or of the service.
func (v *visit) group(agencyID string) string {
	if a, ok := v.p.cfg.Agencies.Agency(agencyID); ok {
		return a.Name
	}
	return v.w.Service
}

// slug returns the name of an agency for a command.
func (v *visit) slug(agencyID string) string {
	a, _ := v.p.cfg.Agencies.Agency(agencyID)
	return a.Slug
}

// sees reports whether the person sees the people of a group: those of the own, and the service's people those of all.
func (v *visit) sees(agencyID string) bool {
	return v.Acting.Service() || agencyID == v.Acting.Person.AgencyID
}

// decides reports whether the person decides about the people of a group: those of the own, and the service's people those
// of an agency that has no two people who do.
func (v *visit) decides(all identity.People, agencyID string) bool {
	own := v.Acting.Person.AgencyID
	return agencyID == own || v.Acting.Service() && all.Managers(agencyID) < identity.MinManagers
}

// refusing returns a command that refuses once two people of a group decide on pages: none then.
func refusing(all identity.People, agencyID, command string) string {
	if all.Managers(agencyID) >= identity.MinManagers {
		return ""
	}
	return command
}
