package journeys_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/checkout"
	"quittance/ingress/counter"
	"quittance/ingress/web"
	"quittance/internal/erp"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/papers"
	keyquota "quittance/internal/quota"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/internal/tills"
	"quittance/money"
	"quittance/test/harness"
	"quittance/test/servers"
)

// backroom plays everything behind the counter. It has one session and one answer to all
// commands.
type backroom struct {
	now    time.Time
	found  *checkout.Session
	answer checkout.Answer
	mute   bool // no command is answered
	busy   bool // the key's quota is used up
	away   bool // sessions of clerks cannot be read
	day    sessions.CashDay
	open   bool // c01's till is open
	till   *tills.Till
	// guessed: the key has looked up too many unknown references.
	guessed bool
}

func (b *backroom) Recheck(context.Context, checkout.Session) erp.Recheck {
	return erp.RecheckUnchanged
}

func (b *backroom) Ask(context.Context, checkout.Command) (checkout.Answer, error) {
	if b.mute {
		return checkout.Answer{}, errors.New("no reply")
	}
	return b.answer, nil
}

func (b *backroom) List(context.Context, sessions.Filter) ([]checkout.Session, int64, error) {
	if b.found == nil {
		return nil, 0, nil
	}
	return []checkout.Session{*b.found}, 1, nil
}

func (b *backroom) Cash(_ context.Context, f sessions.CashFilter) (sessions.CashDay, error) {
	if f.Search != "" {
		return sessions.CashDay{Taken: b.day.Taken, Returned: b.day.Returned}, nil
	}
	return b.day, nil
}

func (b *backroom) Admit(context.Context, string, int) (keyquota.Allowance, bool, error) {
	return keyquota.Allowance{Limit: 60, Reset: time.Minute}, !b.busy, nil
}

func (b *backroom) Exhausted(context.Context, string) (time.Duration, bool, error) {
	return time.Hour, b.guessed, nil
}

func (b *backroom) Note(context.Context, string) error { return nil }

func (b *backroom) AuthenticateClerk(key string) (identity.ClerkPrincipal, error) {
	for _, clerk := range counterClerks {
		if clerk.Code == key {
			return clerk, nil
		}
	}
	return identity.ClerkPrincipal{}, identity.ErrKeyUnknown
}

func (b *backroom) Clerk(_, code string) (identity.Clerk, bool) {
	for _, clerk := range counterClerks {
		if clerk.Code == code {
			return clerk.Clerk, true
		}
	}
	return identity.Clerk{}, false
}

// SignInWithPIN refuses every PIN.
func (b *backroom) SignInWithPIN(context.Context, string, string, string) (string, error) {
	return "", identity.ErrPINWrong
}

func (b *backroom) RememberDevice(context.Context, operation.Actor, identity.ClerkPrincipal, string, string, string) (string, error) {
	return "01890000-0000-7000-8000-0000000000d1", nil
}

func (b *backroom) ForgetDevice(context.Context, operation.Actor, identity.ClerkPrincipal) error {
	return nil
}

func (b *backroom) Current(context.Context, tills.Who) (tills.Till, bool, error) {
	t := closedTill()
	t.ClosedAt = time.Time{}
	return t, b.open, nil
}

func (b *backroom) Recent(_ context.Context, who tills.Who) (own, unsigned []tills.Till, err error) {
	if b.till == nil {
		return nil, nil, nil
	}
	signed := *b.till
	signed.SignedBy, signed.SignedAt, signed.Counted = "c02", galleryTime, signed.Expected()
	return []tills.Till{*b.till, signed}, []tills.Till{*b.till}, nil
}

func (b *backroom) Uncounted(context.Context, tills.Who) (taken, returned tills.Sum, err error) {
	if b.till == nil {
		return tills.Sum{}, tills.Sum{}, nil
	}
	return tills.Sum{Count: 2, Amount: 10_100}, tills.Sum{Count: 1, Amount: 5050}, nil
}

func (b *backroom) Report(context.Context, tills.Who, string) (tills.Till, []tills.Movement, error) {
	if b.till == nil {
		t := closedTill()
		t.ClosedAt = time.Time{}
		return t, nil, nil
	}
	return *b.till, []tills.Movement{
		{Kind: checkout.CashTaken, At: galleryTime, Amount: 5050, PaymentRef: counterReference(), ServiceLabel: "Contribution de la patente", Receipt: "R-12"},
		{Kind: checkout.CashReturned, At: galleryTime, Amount: 5050, PaymentRef: counterReference(), TakenBy: "c01"},
	}, nil
}

func (b *backroom) Open(context.Context, operation.Actor, tills.Who, int64) (tills.Till, error) {
	return tills.Till{}, errors.New("no Postgres")
}

func (b *backroom) Count(context.Context, operation.Actor, tills.Who, string, int64, string) (tills.Till, error) {
	return tills.Till{}, operation.Refuse("till.note_required", "note", operation.Args{"difference": int64(-50)})
}

func (b *backroom) Sign(context.Context, operation.Actor, tills.Who, string, string, int64) (tills.Till, error) {
	return tills.Till{}, operation.Refuse("till.count_differs", "counted", nil)
}

// closedTill is a till of c01 with a difference.
func closedTill() tills.Till {
	return tills.Till{
		ID: "01890000-0000-7000-8000-0000000000a1", Clerk: "c01", Number: 3, Counter: "Hall", OpenedAt: galleryTime.Add(-8 * time.Hour), Opening: 20_000, ClosedAt: galleryTime,
		Taken: tills.Sum{Count: 119, Amount: 99_999_999_999_999}, Returned: tills.Sum{Count: 1, Amount: 5050}, Counted: 99_999_999_999_999 + 20_000 - 5050 - 50, Note: "Une pièce manque.",
	}
}

// BeginClerkSession begins a session that has the id of the key.
func (b *backroom) BeginClerkSession(_ context.Context, keyID string) (string, error) {
	return keyID, nil
}

func (b *backroom) ClerkSession(_ context.Context, id string) (identity.ClerkPrincipal, error) {
	switch {
	case b.away:
		return identity.ClerkPrincipal{}, errors.New("no Postgres")
	case b.now.Sub(galleryTime) >= identity.ClerkSessionIdle:
		return identity.ClerkPrincipal{}, identity.ErrSessionEnded
	}
	for _, clerk := range counterClerks {
		if clerk.KeyID == id {
			return clerk, nil
		}
	}
	return identity.ClerkPrincipal{}, identity.ErrSessionEnded
}

func (b *backroom) EndClerkSession(context.Context, string) error {
	if b.away {
		return errors.New("no Postgres")
	}
	return nil
}

func (b *backroom) Receipt(context.Context, papers.Request) (papers.Receipt, error) {
	return papers.Receipt{}, errors.New("no page shows it")
}

func (b *backroom) ApplicationsOf(string) []string { return nil }

// counterClerks have their codes as keys. The third clerk takes live payments.
var counterClerks = []identity.ClerkPrincipal{
	{Clerk: identity.Clerk{AgencyID: "impots", Code: "c01", Name: "Guichet 1", Counter: "Hall"}, AgencyName: "Direction générale des impôts", KeyID: "01890000-0000-7000-8000-000000000001"},
	{Clerk: identity.Clerk{AgencyID: "impots", Code: "c02", Name: "Guichet 2", Counter: "Hall"}, AgencyName: "Direction générale des impôts", KeyID: "01890000-0000-7000-8000-000000000002"},
	{Clerk: identity.Clerk{AgencyID: "impots", Code: "c03", Name: "Guichet 3", Counter: "Annexe"}, AgencyName: "Direction générale des impôts", KeyID: "01890000-0000-7000-8000-000000000003", Live: true},
}

const counterCollection = "7c9e6679-7425-40de-944b-e07fc1f90ae7"

// deskRow is a page of the counter: the request, the backroom and the status of the answer.
type deskRow struct {
	name     string // template[.variant]
	pictured bool
	clerk    string // empty means c01; "nobody" means that no clerk has signed in
	path     string // below /counter; ? stands for the session's reference
	form     url.Values
	status   int // 200 when zero
	backroom
	long bool
	// remembered: the browser is a remembered device.
	remembered bool
}

// deskRows returns the pages of the counter.
func deskRows() []deskRow {
	const (
		held      = checkout.CollectionPending
		taken     = checkout.CollectionApproved
		completed = checkout.StatusCompleted
		cancelled = checkout.StatusCancelled
	)
	// is returns a session with a clerk's cash collection, or without one.
	is := func(status checkout.Status, collection checkout.CollectionStatus, change ...func(*checkout.Session)) *checkout.Session {
		s := &checkout.Session{
			ID: "chs_1", TenantID: "impots", Amount: 5000, Currency: "XAF", ServiceLabel: "Contribution de la patente", Description: "Patente 2026",
			PaymentRef: counterReference(), Status: status,
			Offers: []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75}, {ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50}},
		}
		if collection != "" {
			s.Collection = &checkout.Collection{
				ID: counterCollection, OfferID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Status: collection, Clerk: "c01",
				Amount: 5050, Fee: 50, Currency: "XAF", WindowEndsAt: galleryTime.Add(counter.Window),
			}
			if collection == taken {
				s.Collection.DecidedAt, s.Collection.OperatorRef, s.Collection.Account, s.NoticeRef = galleryTime, "R-12", "Hall", "AV20260123456789"
			}
		}
		for _, c := range change {
			c(s)
		}
		return s
	}
	waits := closedTill()
	till := &waits
	signed := closedTill()
	signed.SignedBy, signed.SignedAt = "c02", galleryTime.Add(time.Hour)
	open := is(checkout.StatusOpen, "")
	mine := is(checkout.StatusOpen, held)
	theirs := is(checkout.StatusOpen, held, func(s *checkout.Session) { s.Collection.Clerk = "c02" })
	paid := is(completed, taken)
	byOwnMeans := func(s *checkout.Session) {
		s.Collection.ID, s.Collection.Channel = "11111111-1111-4111-8111-111111111111", checkout.ChannelMobileMoney
	}
	phone, byPhone := is(checkout.StatusOpen, held, byOwnMeans), is(completed, taken, byOwnMeans)
	noCash := is(checkout.StatusOpen, "", func(s *checkout.Session) { s.Offers = s.Offers[:1] })

	lookUp := url.Values{"payment_ref": {counterReference()}}
	take := url.Values{"collection_id": {counterCollection}, "total": {"5050"}, "receipt": {"R-12"}}
	release := url.Values{"collection_id": {counterCollection}}
	reverse := url.Values{"collection_id": {counterCollection}, "reason": {"erreur"}}
	with := func(form url.Values, field, value string) url.Values {
		out := url.Values{field: {value}}
		for k, v := range form {
			if k != field {
				out[k] = v
			}
		}
		return out
	}
	refused := func(name string, path string, form url.Values, found *checkout.Session, code checkout.Code) deskRow {
		return deskRow{name: name, path: path, form: form, status: http.StatusConflict, backroom: backroom{found: found, answer: checkout.Answer{Code: code, Session: found}}}
	}
	shown := func(name string, found *checkout.Session) deskRow {
		return deskRow{name: name, path: "/?", backroom: backroom{found: found}}
	}
	by := func(clerk string, r deskRow) deskRow { r.clerk = clerk; return r }
	at := func(d time.Duration, r deskRow) deskRow { r.now = galleryTime.Add(d); return r }
	pictured := func(r deskRow) deskRow { r.pictured = true; return r }

	return []deskRow{
		{name: "signin", pictured: true, clerk: "nobody"},
		{name: "signin.refused", pictured: true, clerk: "nobody", path: "/sign-in", form: url.Values{"key": {"x"}}, status: http.StatusUnauthorized},
		at(time.Hour, deskRow{name: "signin.ended"}),
		{name: "signin.pin", pictured: true, clerk: "nobody", remembered: true},
		{name: "signin.pin-wrong", clerk: "nobody", remembered: true, path: "/sign-in/pin", form: url.Values{"code": {"c01"}, "pin": {"1"}}, status: http.StatusUnauthorized},
		{name: "pin", pictured: true, path: "/pin"},
		{name: "pin.faulty", path: "/pin", form: url.Values{"pin": {"123456"}, "again": {"123456"}}, status: http.StatusUnprocessableEntity},
		{name: "till", pictured: true, path: "/till"},
		{name: "till.lists", pictured: true, path: "/till", backroom: backroom{till: till}},
		{name: "till.faulty", path: "/till/open", form: url.Values{"opening": {"1,5"}}, status: http.StatusUnprocessableEntity},
		{name: "till.open", pictured: true, path: "/till", backroom: backroom{open: true}},
		{name: "till.differs", pictured: true, path: "/till/" + till.ID + "/count", form: url.Values{"counted": {"20 000"}}, status: http.StatusUnprocessableEntity, backroom: backroom{open: true}},
		{name: "report", pictured: true, path: "/till/" + till.ID, backroom: backroom{till: till}},
		{name: "report.signed", path: "/till/" + till.ID, backroom: backroom{till: &signed}},
		{name: "report.second", pictured: true, clerk: "c02", path: "/till/" + till.ID, backroom: backroom{till: till}},
		{name: "report.faulty", clerk: "c02", path: "/till/" + till.ID + "/sign", form: url.Values{"counted": {"1"}}, status: http.StatusUnprocessableEntity, backroom: backroom{till: till}},
		{name: "signin.unrecorded", clerk: "nobody", path: "/?/take", form: take, status: http.StatusUnauthorized},

		{name: "away", path: "/?", status: http.StatusServiceUnavailable, backroom: backroom{away: true}},
		{name: "away.sign-out", path: "/sign-out", form: url.Values{}, status: http.StatusServiceUnavailable, backroom: backroom{away: true}},

		{name: "desk", pictured: true},
		{name: "desk.released", pictured: true, path: "?done=released"},
		{name: "desk.mistyped", pictured: true, path: "/look-up", form: url.Values{"payment_ref": {"4821 0933"}}, status: http.StatusUnprocessableEntity},
		{name: "desk.unknown", path: "/look-up", form: lookUp, status: http.StatusNotFound},
		{name: "desk.limited", path: "/look-up", form: lookUp, status: http.StatusTooManyRequests, backroom: backroom{busy: true}},
		{name: "desk.unavailable", path: "/look-up", form: lookUp, status: http.StatusServiceUnavailable, backroom: backroom{found: open, mute: true}},
		pictured(refused("desk.held", "/look-up", lookUp, theirs, checkout.CodeReserved)),
		refused("desk.in-flight", "/look-up", lookUp, phone, checkout.CodeInFlight),
		refused("desk.undecided", "/look-up", lookUp, open, checkout.CodePreviousUndecided),
		refused("desk.order-under-review", "/look-up", lookUp, open, checkout.CodeOrderUnderReview),
		refused("desk.no-cash", "/look-up", lookUp, noCash, checkout.CodeOfferUnknown),
		refused("desk.paid", "/look-up", lookUp, byPhone, checkout.CodeSessionEnded),
		refused("desk.expired", "/look-up", lookUp, is(checkout.StatusExpired, ""), checkout.CodeSessionEnded),
		refused("desk.cancelled", "/look-up", lookUp, is(cancelled, ""), checkout.CodeSessionEnded),
		refused("desk.failed", "/look-up", lookUp, is(checkout.StatusFailed, ""), checkout.CodeSessionEnded),
		refused("desk.changed", "/?/take", take, mine, checkout.CodeTotalChanged),
		refused("desk.too-many", "/?/take", take, mine, checkout.CodeTooMany),
		refused("desk.payment-limit", "/look-up", lookUp, open, checkout.CodePaymentLimit),
		refused("desk.day-limit", "/?/take", take, mine, checkout.CodeDayLimit),
		{name: "desk.guessed", path: "/look-up", form: lookUp, status: http.StatusTooManyRequests, backroom: backroom{guessed: true}},
		refused("desk.taken", "/?/release", release, paid, checkout.CodeSessionEnded),
		refused("desk.not-taken", "/?/release", with(release, "collection_id", phone.Collection.ID), phone, checkout.CodeNotTaken),

		{name: "day.empty", path: "/day"},
		{name: "day", pictured: true, path: "/day", backroom: backroom{day: cashOfDay()}},
		{name: "day.search", path: "/day?q=xyz", backroom: backroom{day: cashOfDay()}},

		pictured(shown("review", mine)),
		pictured(shown("review.cancelled", is(cancelled, held))),
		{
			name: "review.faulty", pictured: true, path: "/?/take", form: with(take, "receipt", strings.Repeat("1", 65)),
			status: http.StatusUnprocessableEntity, backroom: backroom{found: mine},
		},
		{name: "review.long", path: "/?", long: true, backroom: backroom{found: is(checkout.StatusOpen, held, func(s *checkout.Session) {
			s.ServiceLabel = "Contribution de la patente et des licences, régularisation des exercices antérieurs"
			s.Description = "https://guichet.example/demandes/2026/0001f3a8c5e94b0e9a1f5b7d2c6e8a90?exercice=2025-2026"
			s.Amount = 99_999_999_999_999
		})}},

		pictured(shown("receipt", paid)),
		at(5*time.Minute, shown("receipt.again", paid)),
		pictured(by("c02", shown("receipt.second", paid))),
		{
			name: "receipt.faulty", clerk: "c02", path: "/?/reverse", form: with(reverse, "reason", ""),
			status: http.StatusUnprocessableEntity, backroom: backroom{found: paid},
		},
		refused("receipt.own", "/?/reverse", reverse, paid, checkout.CodeSecondPerson),
		by("c02", refused("receipt.day-over", "/?/reverse", reverse, is(completed, taken, func(s *checkout.Session) {
			s.Collection.DecidedAt = galleryTime.Add(-20 * time.Hour)
		}), checkout.CodeReversalLate)),
		pictured(shown("receipt.late", is(cancelled, taken))),
		pictured(shown("receipt.reversed", is(completed, taken, func(s *checkout.Session) { s.Collection.ReversedBy, s.Collection.ReversedAt = "c02", galleryTime }))),
		by("c03", shown("receipt.live", is(completed, taken, func(s *checkout.Session) { s.Live, s.Collection.Clerk = true, "c03" }))),

		pictured(shown("stands", open)),
		shown("stands.held", theirs),
		shown("stands.in-flight", phone),
		pictured(shown("stands.paid", byPhone)),
		shown("stands.expired", is(checkout.StatusExpired, "")),
		shown("stands.cancelled", is(cancelled, "")),
		shown("stands.failed", is(checkout.StatusFailed, "")),
		shown("stands.no-cash", noCash),

		{name: "case", pictured: true, path: "/?/take", form: take, backroom: backroom{found: byPhone, answer: checkout.Answer{Code: checkout.CodeCase, Session: byPhone}}},
		{name: "unsure", pictured: true, path: "/?/take", form: take, status: http.StatusServiceUnavailable, backroom: backroom{found: mine, mute: true}},
	}
}

// cashOfDay is a day with cash of every kind.
func cashOfDay() sessions.CashDay {
	taken := checkout.CashMovement{
		SessionID: "chs_1", CollectionID: counterCollection, Kind: checkout.CashTaken, Clerk: "c01", At: galleryTime, Amount: 5050, PaymentRef: counterReference(),
		NoticeRefs: []string{"AV20260123456789"}, ServiceLabel: "Contribution de la patente", Counter: "Hall", Receipt: "R-12",
	}
	back, large := taken, taken
	back.Kind, back.Receipt, back.ServiceLabel = checkout.CashReturned, "", ""
	large.Amount, large.ServiceLabel = 99_999_999_999_999, "Contribution de la patente et des licences, régularisation des exercices antérieurs"
	return sessions.CashDay{
		Entries: []sessions.CashEntry{{CashMovement: taken}, {CashMovement: back}, {CashMovement: large, ReturnedBy: "c02"}},
		Found:   120, Taken: sessions.CashSum{Count: 119, Amount: 99_999_999_999_999}, Returned: sessions.CashSum{Count: 1, Amount: 5050},
	}
}

// counterReference returns a valid payment reference.
func counterReference() string {
	refs, err := checkout.NewReferences(make([]byte, 32))
	if err != nil {
		panic("a key of zeros is a key: " + err.Error())
	}
	for i := int64(0); ; i++ {
		if ref, ok := refs.PaymentRef(i); ok {
			return ref
		}
	}
}

// counter adds the pages of the clerks' desk.
func (g *gallery) counter(t *testing.T) {
	t.Helper()
	b := &backroom{now: galleryTime}
	desks, err := counter.New(counter.Config{
		Commands: b, Sessions: b, Dues: b, Registry: b, Identities: b, Tills: b, Papers: b, Reads: b, Unknown: b, Keys: secret.GenerateKeys(), Limits: web.Shares(1e6, 1e6), PublicURL: g.base,
		Now: func() time.Time { return b.now }, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	desks.Routes(r)
	g.mux.Handle("GET /counter/assets/", r)

	post := func(path string, form url.Values) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/counter"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return r
	}
	cookies := map[string]*http.Cookie{}
	for _, clerk := range counterClerks {
		w := answerTo(t, r, post("/sign-in", url.Values{"key": {clerk.Code}}), http.StatusSeeOther)
		cookies[clerk.Code] = w.Result().Cookies()[0]
	}
	remember := post("/pin", url.Values{"key": {"c01"}, "pin": {"270419"}, "again": {"270419"}})
	remember.AddCookie(cookies["c01"])
	device := answerTo(t, r, remember, http.StatusSeeOther).Result().Cookies()[0]
	templates, err := os.ReadDir(harness.Root + "/ingress/counter/templates")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, f := range templates {
		missing[strings.TrimSuffix(f.Name(), ".html")] = f.Name() != "parts.html"
	}
	var same [][]byte
	for _, row := range deskRows() {
		template, _, _ := strings.Cut(row.name, ".")
		missing[template] = false
		for _, lang := range money.Languages {
			path, query, _ := strings.Cut(strings.Replace(row.path, "/?", "/"+counterReference(), 1), "?")
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/counter"+path+"?lang="+string(lang)+"&"+query, nil)
			if row.form != nil {
				form := url.Values{"lang": {string(lang)}}
				for name, values := range row.form {
					form[name] = values
				}
				req = post(path, form)
			}
			if cookie := cookies[row.clerk]; cookie != nil {
				req.AddCookie(cookie)
			} else if row.clerk == "" {
				req.AddCookie(cookies["c01"])
			}
			if row.remembered {
				req.AddCookie(device)
			}
			*b = row.backroom
			if b.now.IsZero() {
				b.now = galleryTime
			}
			status := row.status
			if status == 0 {
				status = http.StatusOK
			}
			v := view{name: "counter." + row.name + "-" + string(lang), widths: auditWidths, pictured: row.pictured, page: pageOf(answerTo(t, r, req, status))}
			if row.long {
				v.widths = auditWidths[:1]
			}
			for i, body := range same {
				if bytes.Equal(body, v.page.body) {
					t.Errorf("%s is the same as page %d of the counter", v.name, i+1)
				}
			}
			same = append(same, v.page.body)
			seen := tour{v}
			if row.name == "receipt" || row.name == "report.signed" {
				seen = append(seen, v.in("print"))
			}
			if row.name == "report.signed" { // its button prints
				seen = append(seen,
					view{name: v.name + "-stub", run: `window.print = () => { document.body.dataset.printed = "yes"; }`},
					view{name: v.name + "-pressed", press: "#print", until: "body[data-printed]"})
			}
			g.tours = append(g.tours, seen)
		}
	}
	for template, is := range missing {
		if is {
			t.Errorf("no view shows the counter's page %s", template)
		}
	}
}
