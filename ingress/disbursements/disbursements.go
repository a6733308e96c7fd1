package disbursements

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"quittance/disbursement"
	"quittance/ingress/staff"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/money"
)

//go:embed templates
var templates embed.FS

// Approvals have a person's passkey sign a statement: identity.Desk.
type Approvals interface {
	ChallengeOver(ctx context.Context, a identity.Acting, statement [32]byte, among [][32]byte) (json.RawMessage, error)
	Sign(ctx context.Context, a identity.Acting, response []byte, statement [32]byte) (disbursement.Signed, error)
}

// Book has the names and passkeys of people: identity.Book.
type Book interface {
	Read(ctx context.Context, now time.Time) (identity.People, error)
}

// Config of the pages. All fields are required.
type Config struct {
	Batches   *disbursements.Store
	Lines     disbursements.Opener
	Processor disbursements.Asker
	Approvals Approvals
	Book      Book
	Papers    Papers
	// Importer makes batches of files, and Accounts returns the payout accounts that a template is for, with the revision of the
	// registry that has them.
	Importer Importer
	Accounts func(tenantID string, live bool) ([]disbursements.Account, int64)
	// URL is where staff reach the pages; the first people of an agency are enrolled with its origin.
	URL string
}

// Disbursements are the pages. Safe for concurrent use.
type Disbursements struct {
	cfg     Config
	uploads *uploads
}

// New makes the pages.
func New(cfg Config) (*Disbursements, error) {
	if cfg.Batches == nil || cfg.Lines == nil || cfg.Processor == nil || cfg.Approvals == nil || cfg.Book == nil || cfg.Papers == nil || cfg.Importer == nil || cfg.Accounts == nil || cfg.URL == "" {
		return nil, errors.New("disbursements: every field of the configuration is required")
	}
	cfg.URL = strings.TrimSuffix(cfg.URL, "/")
	return &Disbursements{cfg, newUploads()}, nil
}

// Roots of the addresses.
const (
	rootBatches = "agency/batches"
	rootPeople  = "agency/batches/people"

	rootImport   = "agency/batches/import"
	rootTemplate = "agency/batches/template"
)

// Part returns the pages for the frame of the portals.
func (d *Disbursements) Part() staff.Part {
	labels := map[money.Language]string{}
	for lang, w := range texts {
		labels[lang] = w.Title
	}
	route := func(method, path string, may identity.Permission, do func(*visit)) staff.Route {
		return staff.Route{Method: method, Path: "/" + path, May: may, Agency: true, Do: func(v *staff.Visit) { do(&visit{v, d, texts.In(v.Lang)}) }}
	}
	part := staff.Part{Files: templates, Nav: []staff.Link{{Path: "/" + rootBatches, Labels: labels}}}
	part.Routes = append(
		part.Routes,
		route(http.MethodGet, rootBatches, identity.MaySeeBatches, (*visit).list),
		route(http.MethodGet, rootPeople, identity.MaySeeBatches, (*visit).showPeople),
		route(http.MethodPost, rootPeople+"/propose/begin", identity.MayManageBatches, (*visit).beginProposal),
		route(http.MethodPost, rootPeople+"/propose", identity.MayManageBatches, (*visit).propose),
		route(http.MethodPost, rootPeople+"/confirm/begin", identity.MayManageBatches, (*visit).beginConfirmation),
		route(http.MethodPost, rootPeople+"/confirm", identity.MayManageBatches, (*visit).confirm),
		route(http.MethodPost, rootPeople+"/drop", identity.MayManageBatches, (*visit).drop),
		route(http.MethodPost, rootPeople+"/revoke", identity.MayManageBatches, (*visit).revoke),
		route(http.MethodGet, rootImport, identity.MayPrepareBatches, (*visit).showImport),
		route(http.MethodGet, rootTemplate, identity.MayPrepareBatches, (*visit).template),
		route(http.MethodPost, rootBatches+"/{batch}/seal", identity.MayPrepareBatches, (*visit).seal),
		route(http.MethodPost, rootBatches+"/{batch}/discard", identity.MayPrepareBatches, (*visit).discard),
		route(http.MethodGet, rootBatches+"/{batch}"+pathCertificate, identity.MaySeeBatches, (*visit).certificate),
		route(http.MethodGet, rootBatches+"/{batch}/lines/{line}"+pathAdvice, identity.MaySeeLines, (*visit).advice),
		route(http.MethodGet, rootBatches+"/{batch}", identity.MaySeeBatches, (*visit).showBatch),
		route(http.MethodPost, rootBatches+"/{batch}/hold", identity.MayManageBatches, (*visit).hold),
		route(http.MethodPost, rootBatches+"/{batch}/stop", identity.MayManageBatches, (*visit).stop),
		route(http.MethodPost, rootBatches+"/{batch}/accounts/{account}/try", identity.MayManageBatches, (*visit).tryAccount),
		route(http.MethodPost, rootBatches+"/{batch}/recall", identity.MayPrepareBatches, (*visit).recall),
		route(http.MethodGet, rootBatches+"/{batch}/lines/{line}", identity.MaySeeLines, (*visit).showLine),
		route(http.MethodPost, rootBatches+"/{batch}/lines/{line}/settle/begin", identity.MayManageBatches, (*visit).beginSettle),
		route(http.MethodPost, rootBatches+"/{batch}/lines/{line}/settle", identity.MayManageBatches, (*visit).takeSettle),
		route(http.MethodPost, rootBatches+"/{batch}/lines/{line}/settle/drop", identity.MayManageBatches, (*visit).dropSettle),
	)
	for name, of := range actsOnLine {
		part.Routes = append(part.Routes, route(http.MethodPost, rootBatches+"/{batch}/lines/{line}/"+name, identity.MayManageBatches, func(v *visit) { v.actOnLine(name, of) }))
	}
	upload := route(http.MethodPost, rootImport, identity.MayPrepareBatches, (*visit).importFile)
	upload.Upload = maxUpload
	part.Routes = append(part.Routes, upload)
	for _, s := range steps {
		part.Routes = append(
			part.Routes,
			route(http.MethodPost, rootBatches+"/{batch}/"+string(s.verdict)+"/begin", s.may, func(v *visit) { v.beginStep(s) }),
			route(http.MethodPost, rootBatches+"/{batch}/"+string(s.verdict), s.may, func(v *visit) { v.takeStep(s) }),
		)
	}
	return part
}

// visit is one request of a member of an agency's staff.
type visit struct {
	*staff.Visit
	d *Disbursements
	w *words
}

// view is what all pages show.
type view struct {
	staff.View
	W *words
	// Beside is what a page of a batch has beside what is signed; nil for other pages.
	Beside *beside
}

func (v *visit) page(title, path string, query ...string) view {
	return view{v.View(title, path, query...), v.w, v.beside()}
}

// agency is the id of the person's agency. It is not empty: the frame refuses the service's people.
func (v *visit) agency() string { return v.Acting.Person.AgencyID }

// may reports whether the person has a permission.
func (v *visit) may(p identity.Permission) bool { return v.Acting.May(p, v.agency()) == nil }

// batch reads a batch of the person's agency. After false the request is answered: another agency's as nothing.
func (v *visit) batch() (b disbursements.Batch, ok bool) {
	b, err := v.read(v.Param("batch"))
	switch {
	case errors.Is(err, disbursements.ErrUnknown):
		v.Unknown()
	case err != nil:
		v.Failed("reading a batch", err)
	}
	return b, err == nil
}

func (v *visit) read(id string) (disbursements.Batch, error) {
	if v.agency() == "" {
		return disbursements.Batch{}, disbursements.ErrUnknown
	}
	return v.d.cfg.Batches.Batch(v.Context(), disbursements.Scope{TenantID: v.agency()}, id)
}

// send sends a command about the person's agency. It may be sent again after commands.ErrUnavailable: all commands of these
// pages may be decided twice. What has changed something is in the audit table.
func (v *visit) send(live bool, batch string, do disbursement.Action) (disbursement.Answer, error) {
	cmd := disbursement.Command{At: v.Now, TenantID: v.agency(), Live: live, Batch: batch, Do: do}
	a, err := v.d.cfg.Processor.Ask(v.Context(), cmd)
	if e, ok := disbursements.Audited(cmd, a, err); ok {
		err = errors.Join(err, v.Note(e))
	}
	return a, err
}

const (
	// patience is how long a page waits until the read model has what a command has changed.
	patience = 4 * time.Second
	// lookEvery is the time between two looks.
	lookEvery = 50 * time.Millisecond
)

// until waits until a condition holds, or patience is over.
func (v *visit) until(holds func(ctx context.Context) bool) {
	ctx, cancel := context.WithTimeout(v.Context(), patience)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// untilShown waits until the read model has a batch as an answer has it.
func (v *visit) untilShown(b *disbursement.Batch) {
	if b == nil {
		return
	}
	v.until(func(context.Context) bool {
		now, err := v.read(b.ID)
		return err != nil || now.Sequence >= b.Sequence
	})
}

// sum returns an amount as people read it.
func (v *visit) sum(minor int64, currency string) string {
	if c, ok := money.Lookup(currency); ok {
		return c.Format(v.Lang, minor)
	}
	return "–"
}

// number writes a whole number for people.
func (v *visit) number(n int) string { return money.Number(v.Lang, n) }

// mode returns the name of a mode.
func (v *visit) mode(live bool) string {
	if live {
		return v.w.Live
	}
	return v.w.Test
}

// Modes in addresses and forms.
const (
	fieldMode = "mode"
	modeLive  = "live"
	modeTest  = "test"
)
