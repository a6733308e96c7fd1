package journeys_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/ingress/citizen"
	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/drafts"
	"quittance/internal/erp"
	"quittance/internal/form"
	"quittance/internal/notify"
	"quittance/internal/provider"
	keyquota "quittance/internal/quota"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/test/harness"
	"quittance/test/servers"
)

const (
	taxes   = "018f0000-0000-7000-8000-000000000001"
	customs = "018f0000-0000-7000-8000-000000000002"
	town    = "018f0000-0000-7000-8000-000000000003"

	taxpayer = "P2024000123456K"
	importer = "RCCM-CG-BZV-01-2019-B12-00345"
)

// townHall plays everything behind the portal but the accounts, which are in Postgres. What
// agencies are owed, and the payments, are those of the row.
type townHall struct {
	owed     map[string]erp.Answer // by subject
	claims   []checkout.Session
	payments []checkout.Session
	total    int64
	code     checkout.Code // of all commands
	away     bool          // sessions cannot be read
	noOffers bool
}

func (h *townHall) Send(context.Context, notify.Message) error { return nil }

func (h *townHall) Reached(context.Context, provider.Channel, string, time.Time) error { return nil }

func (h *townHall) Agency(id string) (registry.Agency, bool) {
	for _, a := range h.Agencies() {
		if a.ID == id {
			return a, true
		}
	}
	return registry.Agency{}, false
}

func (h *townHall) Agencies() []registry.Agency {
	return []registry.Agency{
		{ID: taxes, Slug: "impots", Name: "Direction générale des impôts et des domaines"},
		{ID: customs, Slug: "douanes", Name: "Douanes"},
		{ID: town, Slug: "mairie", Name: "Mairie de Pointe-Noire"},
	}
}

func (h *townHall) PortalOf(agencyID string) (registry.Application, bool) {
	return registry.Application{ID: agencyID, AgencyID: agencyID, Active: true, Portal: true, Offers: []string{checkout.OfferMomo}, SessionLifetime: time.Hour}, true
}

func (h *townHall) Takes(string, bool, string, string) bool { return true }

func (h *townHall) HasChannel(string, bool, string, string) bool { return !h.noOffers }

func (h *townHall) ERP(string, bool) (registry.ERPSettings, bool) {
	return registry.ERPSettings{}, true
}

func (h *townHall) Fee(string, checkout.Channel, string) (money.Schedule, bool) {
	return money.Schedule{}, false
}

func (h *townHall) AskWithin(context.Context, checkout.Command, time.Duration) (checkout.Answer, error) {
	return checkout.Answer{Code: h.code}, nil
}

func (h *townHall) PaymentRef() (string, error) { return counterReference(), nil }

func (h *townHall) NoticeRef() (string, error) { return "AV20260123456789", nil }

func (h *townHall) PaymentID() (int64, error) { return 1, nil }

func (h *townHall) SealCustomer(context.Context, string, checkout.Customer) ([]byte, error) {
	return []byte("sealed"), nil
}

func (h *townHall) Forget(context.Context, string) error { return nil }

func (h *townHall) Adopt(context.Context, string, string) error { return nil }

func (h *townHall) Admit(context.Context, string, int) (keyquota.Allowance, bool, error) {
	return keyquota.Allowance{Limit: 20, Reset: time.Minute}, true, nil
}

func (h *townHall) List(_ context.Context, _ string, _ bool, subject string) (erp.Answer, error) {
	if a, ok := h.owed[subject]; ok {
		return a, nil
	}
	return erp.Answer{Status: erp.SourceOK, AsOf: galleryTime}, nil
}

func (h *townHall) Fresh(ctx context.Context, agencyID string, live bool, subject string) (erp.Answer, error) {
	return h.List(ctx, agencyID, live, subject)
}

func (h *townHall) Claimants(context.Context, string, bool, []string) ([]checkout.Session, error) {
	if h.away {
		return nil, context.DeadlineExceeded
	}
	return h.claims, nil
}

func (h *townHall) PaidBy(context.Context, sessions.CitizenFilter) ([]checkout.Session, int64, error) {
	return h.payments, max(h.total, int64(len(h.payments))), nil
}

// holder is a person with an account.
type holder struct {
	typed   string // the phone number
	id      string
	session *http.Cookie
}

// portalRow is a page of the portal.
type portalRow struct {
	name     string // page[.variant]
	pictured bool
	townHall
	who        string // "" for the person with references, "new", or "nobody"
	path       string
	form       url.Values // of a POST; nil for a GET
	choose     []string   // erp_due_refs of the cart
	status     int        // 200 if zero
	passkey    string     // the cookie of a browser with passkeys; later unless set
	revealed   bool       // what the script shows in a browser with passkeys
	widthsLess bool       // of a variant with the layout of another row
}

// day returns a date at 0:00 UTC.
func day(month time.Month, d int) time.Time { return time.Date(2026, month, d, 0, 0, 0, 0, time.UTC) }

// everyDue has a due of the taxpayer in each state.
func everyDue() townHall {
	due := func(ref, label string, outstanding int64, change ...func(*erp.Due)) erp.Due {
		d := erp.Due{Ref: ref, Label: label, Amount: outstanding, Outstanding: outstanding, Original: outstanding, Currency: "XAF", DueDate: day(time.December, 15)}
		for _, c := range change {
			c(&d)
		}
		return d
	}
	item := func(ref string) checkout.Item {
		return checkout.Item{ERPDueRef: ref, SubjectRef: taxpayer, Label: "Droits", Amount: 15_000, Outstanding: 15_000}
	}
	open := checkout.Session{ID: "chs_1", TenantID: taxes, ERP: true, Status: checkout.StatusOpen, Items: []checkout.Item{item("OWN")}}
	other, recording := open, open
	other.ID, other.CitizenID, other.Items = "chs_2", "somebody", []checkout.Item{item("TAKEN")}
	other.Collection = &checkout.Collection{ID: counterCollection, Status: checkout.CollectionPending}
	recording.ID, recording.Status, recording.Items = "chs_3", checkout.StatusCompleted, []checkout.Item{item("RECORDING")}
	recording.Items[0].Confirmation = checkout.Confirmation{Status: checkout.ConfirmationAwaited, Since: galleryTime}
	return townHall{
		claims: []checkout.Session{open, other, recording},
		owed: map[string]erp.Answer{
			taxpayer: {
				Status: erp.SourceOK, AsOf: galleryTime,
				Dues: []erp.Due{
					due("OVERDUE", "Impôt foncier 2025, parcelle 12, section B, Makélékélé", 1_250_000, func(d *erp.Due) { d.DueDate = day(time.October, 31) }),
					due("PARTS", "Patente 2026", 33_000, func(d *erp.Due) {
						d.Original, d.AllowPartial, d.Minimum, d.Service.Label = 66_000, true, 5_000, "Contribution de la patente"
					}),
					due("OWN", "Taxe d’occupation", 15_000),
					due("TAKEN", "Taxe immobilière", 15_000),
					due("RECORDING", "Droits de timbre", 15_000),
					due("PAID", "Redevance audiovisuelle", 0, func(d *erp.Due) { d.Original, d.Amount = 5_000, 0 }),
					due("NO-DATE", "Amende forfaitaire", 99_999_999_999_999, func(d *erp.Due) { d.DueDate = time.Time{} }),
				},
				Refused: []erp.Refused{
					{Position: 7, Ref: "ODD", Label: "Taxe de roulage", Faults: []form.Fault{{Field: "outstanding_minor", Rule: "range"}, {Field: "currency", Rule: "enum"}}},
					{Position: 8, Faults: []form.Fault{{Field: "label", Rule: "required"}}},
				},
			},
			importer: {Status: erp.SourceUnavailable, AsOf: galleryTime.Add(-50 * time.Hour)},
		},
	}
}

// portalRows are the pages of the portal in all their states.
func portalRows() []portalRow {
	all := everyDue()
	silent := everyDue()
	silent.owed[taxpayer] = erp.Answer{Status: erp.SourceUnavailable}
	changed := everyDue()
	changed.owed[taxpayer].Dues[1].Outstanding = 28_000
	claimed, noOffers, stopped := everyDue(), everyDue(), everyDue()
	claimed.code, noOffers.noOffers, stopped.away = checkout.CodeDueInPayment, true, true

	paid := checkout.Session{
		ID: "chs_4", TenantID: taxes, ERP: true, Status: checkout.StatusCompleted, PaymentRef: counterReference(), Amount: 1_283_000, Currency: "XAF", EndedAt: galleryTime,
		Items: []checkout.Item{
			{ERPDueRef: "A", Label: "Impôt foncier 2025, parcelle 12, section B, Makélékélé", Amount: 1_250_000, Confirmation: checkout.Confirmation{Status: checkout.ConfirmationAwaited}},
			{ERPDueRef: "B", Label: "Patente 2026", ServiceLabel: "Contribution de la patente", Amount: 33_000, Confirmation: checkout.Confirmation{Status: checkout.ConfirmationAccepted, SettledAt: galleryTime}},
		},
	}
	reversed := paid
	reversed.ReversedAt, reversed.Amount, reversed.Items = galleryTime, 33_000, paid.Items[1:]

	link := func(agency, subject, code string) url.Values {
		return url.Values{"tenant_id": {agency}, "subject_ref": {subject}, "link_code": {code}}
	}
	const wrong = http.StatusUnprocessableEntity
	return []portalRow{
		{name: "signin", pictured: true, who: "nobody"},
		{name: "signin.faulty", pictured: true, who: "nobody", path: "/sign-in", form: url.Values{"address": {"06 12"}}, status: wrong},
		{name: "signin.out", who: "nobody", path: "?done=signed-out"},
		{name: "signin.ended", who: "nobody", path: "/references", form: link(taxes, taxpayer, ""), status: http.StatusUnauthorized},
		{name: "code", pictured: true, who: "nobody", path: "/sign-in", form: url.Values{"address": {"06 612 34 56"}}},
		{name: "code.email", who: "nobody", path: "/sign-in", form: url.Values{"address": {"service.comptabilite.fournisseurs@entreprise-generale-de-construction.example"}}},
		{name: "code.faulty", pictured: true, who: "nobody", path: "/verify", form: url.Values{"address": {"06 612 34 56"}, "code": {"12"}}, status: wrong},
		{name: "code.missing", who: "nobody", path: "/verify", form: url.Values{"address": {"06 612 34 56"}}, status: wrong, widthsLess: true},

		{name: "references", pictured: true, path: "/references?done=linked"},
		{name: "references.none", pictured: true, who: "new", path: "/references"},
		{name: "references.faulty", pictured: true, who: "new", path: "/references", form: link("", "", ""), status: wrong},
		{name: "references.refused", who: "new", path: "/references", form: link(taxes, taxpayer, "AAAAA-AAAAA"), status: wrong},

		{name: "dues", pictured: true, townHall: all},
		{name: "dues.none", pictured: true, who: "new"},
		{name: "dues.silent", townHall: silent},
		{name: "dues.paid"},
		{name: "dues.down", townHall: stopped, status: http.StatusServiceUnavailable},

		{name: "cart", pictured: true, townHall: all, path: "/cart", choose: []string{"OVERDUE", "PARTS", "NO-DATE"}},
		{name: "cart.faulty", pictured: true, townHall: all, path: "/checkout", choose: []string{"PARTS"}, form: url.Values{"key": {"k"}, "amount-0": {"2 000"}}, status: wrong},
		{name: "cart.changed", pictured: true, townHall: changed, path: "/cart", choose: []string{"PARTS", "PAID"}, status: http.StatusConflict},
		{name: "cart.replace", pictured: true, townHall: all, path: "/cart", choose: []string{"OWN", "PARTS"}},
		{name: "cart.in-payment", townHall: claimed, path: "/checkout", choose: []string{"OVERDUE"}, form: url.Values{"key": {"k"}}, status: http.StatusConflict},
		{name: "cart.no-channel", townHall: noOffers, path: "/checkout", choose: []string{"OVERDUE"}, form: url.Values{"key": {"k"}}, status: http.StatusConflict},
		{name: "cart.nothing", townHall: all, path: "/cart", form: url.Values{}, status: wrong},
		{name: "cart.gone", townHall: all, path: "/cart", choose: []string{"PAID"}, status: http.StatusConflict, widthsLess: true},

		{name: "payments", pictured: true, townHall: townHall{payments: []checkout.Session{paid, reversed}, total: 60}, path: "/payments?page=2"},
		{name: "payments.none", path: "/payments"},

		{name: "reminders", pictured: true, path: "/reminders?done=reminders"},
		{name: "reminders.none", pictured: true, who: "new", path: "/reminders"},
		{name: "reminders.faulty", who: "new", path: "/reminders", form: url.Values{"reminders": {"letter"}}, status: wrong},

		{name: "security", pictured: true, who: "keyed", path: "/security?done=passkey-added", passkey: "used", revealed: true},
		{name: "security.none", pictured: true, who: "new", path: "/security"},
		{name: "signin.passkey", pictured: true, who: "nobody", passkey: "used", revealed: true},
		{name: "signin.key", who: "nobody", revealed: true},
		{name: "signin.again", pictured: true, who: "keyed", path: "/security/again", passkey: "used", revealed: true},
		{name: "prove", pictured: true, who: "keyed", path: "/security/prove"},
		{name: "references.offer", pictured: true, who: "new", path: "/references", passkey: "none", revealed: true},
		{name: "dues.offer", passkey: "none", revealed: true},
	}
}

// portal adds the pages of the citizen portal.
func (g *gallery) portal(t *testing.T) {
	t.Helper()
	_, pool := servers.Database(t)
	now := func() time.Time { return galleryTime }
	keys := secret.GenerateKeys()
	accounts, err := citizens.New(citizens.Config{Pool: pool, Keys: keys, Reference: secret.GenerateReferenceKey(), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	h := &townHall{}
	drafted, err := drafts.New(drafts.Config{
		Commands: h, References: h, Personal: h, Keys: secret.GenerateKeys(), IDs: checkout.NewIDs(secret.GenerateReferenceKey().MAC("ids")),
		Partition: func(string) int32 { return 0 }, RequestID: problem.RequestID, Log: servers.Logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	service, err := citizen.NewService(citizen.Config{
		Citizens: accounts, Messages: h, Registry: h, Dues: h, Sessions: h, Drafts: drafted, Quotas: h,
		PublicURL: g.base, Now: now, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := citizen.NewPortal(service, web.Multiples(1e6))
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	pages.Routes(r)
	g.mux.Handle("GET /portal/assets/", r)
	people := map[string]holder{"": {typed: "06 600 00 01"}, "new": {typed: "06 600 00 02"}, "other": {typed: "06 600 00 03"}, "keyed": {typed: "06 600 00 04"}}
	for name, p := range people {
		people[name] = signIn(t, accounts, p)
	}
	for _, l := range []struct{ who, agency, subject string }{{"", taxes, taxpayer}, {"", customs, importer}, {"other", taxes, taxpayer}} {
		subject := citizens.Subject{AgencyID: l.agency, Ref: l.subject}
		code, err := accounts.LinkCode(t.Context(), subject)
		if err == nil {
			_, err = accounts.Prove(t.Context(), people[l.who].id, subject, code)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := accounts.ChooseReminders(t.Context(), people[""].id, contact.Phone); err != nil {
		t.Fatal(err)
	}
	keyed := people["keyed"].id
	for n, used := range []int{-3, 0} {
		if _, err := pool.Exec(t.Context(), `INSERT INTO citizen_passkeys (id, name, citizen_id, credential, created_at, used_at) VALUES ($1, gen_random_uuid(), $2, $3, $4, $5)`,
			[]byte{byte(n)}, keyed, fmt.Sprintf(`{"flags": {"backupState": %t}}`, n == 0), galleryTime.AddDate(0, -4+n, 0), galleryTime.AddDate(0, 0, used)); err != nil {
			t.Fatal(err)
		}
	}
	// Passkeys are proved as those of an installation of before are.
	for _, table := range citizens.ProvedTables() {
		if _, err := pool.Exec(t.Context(), `UPDATE `+table+` SET mac = NULL`); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := citizens.ProveAll(t.Context(), pool, keys); err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	templates, err := os.ReadDir(harness.Root + "/ingress/citizen/templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range templates {
		missing[strings.TrimSuffix(f.Name(), ".html")] = true
	}
	delete(missing, "parts")
	for _, row := range portalRows() {
		template, _, _ := strings.Cut(row.name, ".")
		delete(missing, template)
		if row.status >= 500 || row.name == "cart.gone" {
			delete(missing, "explain")
		}
		for _, lang := range money.Languages {
			*h = row.townHall
			h.own(people[""].id)
			w := answerTo(t, r, row.request(t, people[row.who], lang), max(row.status, http.StatusOK))
			if size := packed(w.Body.Bytes()); size > mostPacked {
				t.Errorf("the portal's page %s has %d bytes, want at most %d", row.name, size, mostPacked)
			}
			if row.revealed {
				shown := regexp.MustCompile(`(<(?:form|section) id="passkey[^>]*) hidden>`).ReplaceAll(w.Body.Bytes(), []byte("$1>"))
				if len(shown) == w.Body.Len() {
					t.Errorf("the portal's page %s has nothing for browsers with passkeys", row.name)
				}
				w.Body = bytes.NewBuffer(regexp.MustCompile(`<p id="passkey-without".*</p>`).ReplaceAll(shown, nil))
			}
			v := view{name: "portal." + row.name + "-" + string(lang), widths: auditWidths, pictured: row.pictured, page: pageOf(w)}
			if row.widthsLess {
				v.widths = auditWidths[:1]
			}
			g.tours = append(g.tours, tour{v})
		}
	}
	for template := range missing {
		t.Errorf("no view shows the portal's page %s", template)
	}
}

// own makes the first open session the person's.
func (h *townHall) own(id string) {
	if len(h.claims) > 0 {
		h.claims[0].CitizenID = id
	}
}

// signIn opens a session for a person with a new account.
func signIn(t *testing.T, accounts *citizens.Store, p holder) holder {
	t.Helper()
	browser := secret.NewText("gallery")
	address, err := contact.ParsePhone(p.typed)
	if err != nil {
		t.Fatal(err)
	}
	code, _, err := accounts.Begin(t.Context(), citizens.Request{Address: address, Browser: browser, Client: "203.0.113.7"})
	if err != nil {
		t.Fatal(err)
	}
	session, who, err := accounts.Enter(t.Context(), address, browser, code.Reveal(), money.French)
	if err != nil {
		t.Fatal(err)
	}
	p.id, p.session = who.ID, &http.Cookie{Name: "quittance_citizen", Value: session.Reveal()}
	return p
}

// request returns the request of a row. The dues of a cart are chosen on the page of dues.
func (row portalRow) request(t *testing.T, who holder, lang money.Language) *http.Request {
	t.Helper()
	path, query, _ := strings.Cut(row.path, "?")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/portal"+path+"?lang="+string(lang)+"&"+query, nil)
	if row.form != nil || row.choose != nil {
		values := url.Values{"lang": {string(lang)}}
		for name, of := range row.form {
			values[name] = of
		}
		for _, ref := range row.choose {
			values.Add("due", chosenDue(ref))
		}
		r = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/portal"+path, strings.NewReader(values.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if passkey := cmp.Or(row.passkey, "later"); passkey != "none" {
		r.AddCookie(&http.Cookie{Name: "quittance_passkey", Value: passkey})
	}
	if who.session != nil {
		r.AddCookie(who.session)
	}
	return r
}

// chosenDue is the value of a due's checkbox, as the page showed it before anything changed.
func chosenDue(ref string) string {
	due, _ := everyDue().owed[taxpayer].Find(ref)
	text := fmt.Sprintf(`{"t":%q,"s":%q,"r":%q,"o":%d,"c":%q}`, taxes, taxpayer, ref, due.Outstanding, due.Currency)
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// mostPacked is the budget of a page's HTML, compressed.
const mostPacked = 8_000

func packed(body []byte) int {
	var b bytes.Buffer
	w := brotli.NewWriterLevel(&b, brotli.DefaultCompression)
	_, _ = w.Write(body)
	_ = w.Close()
	return b.Len()
}
