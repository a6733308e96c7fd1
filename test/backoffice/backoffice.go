// Package backoffice gives tests the pages of staff with real parts: the desk of package office with its people, payments
// in the read model, cases and deliveries in Postgres, and Kafka.
package backoffice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/casework"
	"quittance/checkout"
	"quittance/disbursement"
	batchpages "quittance/ingress/disbursements"
	"quittance/ingress/operations"
	"quittance/ingress/oversight"
	"quittance/ingress/people"
	"quittance/ingress/problem"
	"quittance/ingress/staff"
	"quittance/ingress/web"
	"quittance/internal/audit"
	"quittance/internal/batchpapers"
	"quittance/internal/batchseal"
	"quittance/internal/cases"
	"quittance/internal/clickhouse"
	"quittance/internal/commands"
	"quittance/internal/contact"
	"quittance/internal/deliveries"
	"quittance/internal/digests"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/jobs"
	"quittance/internal/kafka"
	"quittance/internal/notify"
	"quittance/internal/operation"
	"quittance/internal/personal"
	"quittance/internal/registry"
	"quittance/internal/report"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/internal/statements"
	"quittance/internal/support"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/sinks/erp"
	"quittance/sinks/webhook"
	"quittance/test/office"
	"quittance/test/registries"
	"quittance/test/servers"
	"quittance/test/topics"
)

// World is the pages of staff and what they show.
type World struct {
	office.Office
	// Handler answers as the host of the pages, Site has their routes.
	Handler http.Handler
	Site    *staff.Site
	Cases   *cases.Store
	Metrics *prometheus.Registry
	// Paid, Open, Undecided and Trial are payments: the last one of test mode.
	Paid, Open, Undecided, Trial checkout.Session
	// Endpoint is the id of a webhook endpoint, Parked the id of a delivery to it that needs a person.
	Endpoint, Parked string

	// Jobs are what people ask for in bulk, as commands do.
	Jobs *jobs.Store
	// Importer imports files of statements, as commands do.
	Importer *intake.Store
	// Batches are the read model of disbursement batches, Lines seal their lines. Processor takes the commands about them;
	// without one the pages say that nobody answers. The pages open lines with Opener, which is Lines at first.
	Batches   *disbursements.Store
	Opener    disbursements.Opener
	Lines     *personal.Store
	Processor disbursements.Asker
	// Files makes batches of files, which are paid from the account mtn in XAF. Its Partition is zero until it is set.
	Files *disbursements.Importer
	Codec *schemas.Codec
	// Kafka has the topics of the world, which are empty.
	Kafka kafka.Config
	// Lag and Models are what the page of health says of Kafka; nothing at first.
	Lag    func(context.Context) ([]oversight.Lag, error)
	Models []oversight.Model
	// ClickHouse is the address of the journal; empty at first, as if ClickHouse were away. Its positions are not compared with Kafka.
	ClickHouse string

	// Sink carries out what people ask for on the page about people. It is held while somebody holds Held.
	Sink *identity.Book
	Held sync.Mutex

	serve func(*testing.T, web.Limits, *prometheus.Registry)
}

// Ids of cases.
const (
	LateCase, OrphanCase, PoisonCase = "case_late", "case_orphan", "case_poison"
	// PaidOrder is the order of World.Paid, Contact a phone number that no page may show.
	PaidOrder, Contact = "DOSSIER-17", "242066000001"
)

// New makes a world whose pages are at office.URL, without people. The pages use what as returns in place of the rights of
// a superuser and of the master keys, if it is given.
func New(t *testing.T, as ...func(registries.House) (*pgxpool.Pool, *secret.Keys)) *World {
	t.Helper()
	w := &World{Office: office.Open(t, "", nil), Metrics: prometheus.NewRegistry()}
	pool, keys := w.Pool, w.Keys
	if len(as) > 0 {
		pool, keys = as[0](w.House)
		var err error
		if w.Desk, err = identity.OpenDesk(identity.DeskConfig{Pool: pool, Keys: keys, URL: office.URL, Log: servers.Logger(t), Now: w.Now, Loopback: true}); err != nil {
			t.Fatal(err)
		}
	}
	w.Cases = cases.NewStore(w.Pool).Verifying(w.Keys)
	reader, cfg, topology, codec := w.read(t, pool)
	w.fill(t, codec)
	instance := w.House.Open(t)
	known := cases.NewStore(pool).Verifying(keys)
	sent := deliveries.NewStore(pool, deliveries.Kinds{webhook.Registration(nil), erp.Registration(nil)})
	about, err := people.New(people.Config{Book: identity.OpenBook(pool, keys), Approvals: w.Desk, Agencies: instance.Registry, URL: office.URL})
	if err != nil {
		t.Fatal(err)
	}
	if w.Lines, err = personal.New(personal.Config{Pool: pool, Keys: keys, Now: w.Now}); err != nil {
		t.Fatal(err)
	}
	w.Codec, w.Kafka, w.Batches, w.Opener = codec, cfg, disbursements.NewStore(pool, codec), w.Lines
	if w.Files, err = w.files(pool, keys); err != nil {
		t.Fatal(err)
	}
	printed := w.papers(t, keys, instance.Registry.Agency)
	batches, err := batchpages.New(batchpages.Config{Papers: printed, Batches: w.Batches, Lines: opener{w}, Processor: asker{w}, Approvals: w.Desk, Book: identity.OpenBook(pool, keys), URL: office.URL, Importer: w.Files, Accounts: w.Files.Accounts})
	if err != nil {
		t.Fatal(err)
	}
	w.Sink = identity.OpenBook(w.Pool, w.Keys)
	w.carryOut(t)
	imports, err := intake.New(intake.Config{Pool: pool, Keys: keys, Kafka: cfg, Topology: topology, Codec: codec, Closed: w.closed})
	if err != nil {
		t.Fatal(err)
	}
	if w.Importer, err = intake.New(intake.Config{Pool: w.Pool, Keys: w.Keys, Kafka: cfg, Topology: topology, Codec: codec, Closed: w.closed}); err != nil {
		t.Fatal(err)
	}
	seen, err := oversight.New(oversight.Config{Audit: audit.NewReader(pool, keys.VerifySignature), Sessions: reader, Registry: instance.Registry, Health: w.health(pool, sent, known, instance.Registry), Reports: w.reports(t)})
	if err != nil {
		t.Fatal(err)
	}
	bulk, err := jobs.NewStore(jobs.Config{Pool: pool, Keys: keys, Deliveries: sent})
	if err != nil {
		t.Fatal(err)
	}
	if w.Jobs, err = jobs.NewStore(jobs.Config{Pool: w.Pool, Keys: w.Keys, Deliveries: deliveries.NewStore(w.Pool, sent.Kinds())}); err != nil {
		t.Fatal(err)
	}
	pages, err := operations.New(operations.Config{
		Program: "quittance", Version: "test",
		Jobs:     bulk,
		Sessions: reader, Deliveries: sent, Cases: known, Imports: imports, Registry: instance.Registry, Signer: keys, Approvals: w.Desk, Waits: []operations.Waits{about.Waiting, batches.Waiting}, Trail: seen.Trail,
		Directory: func(ctx context.Context) (registry.Directory, error) {
			return registry.ReadDirectory(ctx, pool, "", w.Now())
		},
		Support: func(_ context.Context, c support.Config) (*support.Desk, error) {
			c.Sessions, c.Deliveries, c.Cases, c.NoJournal = reader, sent, known, errors.New("no ClickHouse")
			c.Kafka, c.Topology, c.Codec = cfg, topology, codec
			c.Machine = func(_ context.Context, at time.Time) (time.Time, error) { return at, nil }
			return support.New(c)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.serve = func(t *testing.T, limits web.Limits, metrics *prometheus.Registry) {
		t.Helper()
		w.Site, err = staff.New(staff.Config{
			Desk: w.Desk, Joining: joining{w, pool, keys}, Agencies: instance.Registry, Limits: limits, URL: office.URL, Now: w.Now, Log: servers.Logger(t), Metrics: metrics,
			Record: func(ctx context.Context, actor operation.Actor, at time.Time, e operation.Entry) error {
				return operation.Record(ctx, pool, actor, at, e)
			},
		}, pages.Part(), about.Part(), batches.Part(), seen.Part())
		if err != nil {
			t.Fatal(err)
		}
		r := chi.NewRouter()
		r.Use(web.ClientAddress(nil), problem.WithRequestID, web.Head)
		w.Site.Routes(r)
		w.Handler = r
	}
	w.serve(t, web.Multiples(1e6), w.Metrics)
	return w
}

// Statement is an operator's file of a day of February with lines of these amounts, after an opening balance. It has the name
// of a payer.
func Statement(day, opening int, amounts ...int) string {
	var b strings.Builder
	b.WriteString("Id,External id,Status,Type,Date,Amount,Fee,Currency,From,To,Balance\n")
	for n, amount := range amounts {
		opening += amount
		fmt.Fprintf(&b, "310000%05d,,Successful,Payment,2026-02-%02d %02d:00:00,%d,10,XAF,\"MABIALA, Jeanne\",46733123454,%d\n", day*10+n, day, 8+n, amount+10, opening)
	}
	return b.String()
}

// Import imports a file into the account mtn of the agency, as a command does, and returns the id of its import.
func (w *World) Import(t *testing.T, text string, want statements.Verdict) string {
	t.Helper()
	s, err := registry.Read(t.Context(), w.Pool)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.FindStatementAccount(registries.AgencyA, false, "mtn")
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Importer.Import(t.Context(), intake.Request{Account: a, File: strings.NewReader(text), Actor: registries.Actor, Now: w.Now()})
	if err != nil || r.State != want {
		t.Fatalf("%+v, %v, want %s", r, err, want)
	}
	return r.ImportID
}

// closed says that no period of an account is closed.
func (w *World) closed(context.Context, registry.StatementAccountKey) (string, error) { return "", nil }

// health is what the page of health reads, with the rights of the pages.
func (w *World) health(pool *pgxpool.Pool, sent *deliveries.Store, known *cases.Store, of *registry.Registry) oversight.Health {
	w.Lag = func(context.Context) ([]oversight.Lag, error) { return nil, nil }
	return oversight.Health{
		Operators: digests.NewStore(pool), Batches: w.Batches, Deliveries: sent, Messages: notify.NewReports(pool), Cases: known, RegistryAge: of.Age, Stuck: func() error { return nil },
		Directory: func(ctx context.Context) (registry.Directory, error) {
			return registry.ReadDirectory(ctx, pool, "", w.Now())
		},
		Lag:    func(ctx context.Context) ([]oversight.Lag, error) { return w.Lag(ctx) },
		Models: func(context.Context) []oversight.Model { return w.Models },
	}
}

// reports makes reports of the journal at w.ClickHouse.
func (w *World) reports(t *testing.T) *report.Desk {
	t.Helper()
	return &report.Desk{
		Open: func(ctx context.Context) (clickhouse.Conn, error) {
			if w.ClickHouse == "" {
				return nil, errors.New("no ClickHouse")
			}
			conn, err := clickhouse.Open(ctx, w.ClickHouse)
			if err == nil {
				t.Cleanup(func() { _ = conn.Close() })
			}
			return conn, err
		},
		Committed: func(context.Context) (kadm.OffsetResponses, error) { return nil, errors.New("no Kafka") },
		Program:   "quittance", Version: "test", Now: w.Now,
	}
}

// asker sends commands about batches to the processor of the world.
type asker struct{ w *World }

// Ask implements disbursements.Asker.
func (a asker) Ask(ctx context.Context, cmd disbursement.Command) (disbursement.Answer, error) {
	if a.w.Processor == nil {
		return disbursement.Answer{}, commands.ErrUnavailable
	}
	return a.w.Processor.Ask(ctx, cmd)
}

// opener opens lines of batches with that of the world.
type opener struct{ w *World }

// Lines implements disbursements.Opener.
func (o opener) Lines(ctx context.Context, lines []personal.SealedLine) ([]json.RawMessage, error) {
	return o.w.Opener.Lines(ctx, lines)
}

// joining is the invitations of the world.
type joining struct {
	w    *World
	pool *pgxpool.Pool
	keys *secret.Keys
}

func (j joining) Accept(ctx context.Context, link secret.Text, origin string) (identity.InvitationEntry, secret.Text, error) {
	return identity.AcceptInvitation(ctx, j.pool, j.keys, link, origin, j.w.Now())
}

func (j joining) Invitation(ctx context.Context, browser secret.Text) (identity.InvitationEntry, error) {
	return identity.InvitationOf(ctx, j.pool, j.keys, browser, j.w.Now())
}

func (j joining) Begin(ctx context.Context, browser secret.Text) (json.RawMessage, error) {
	return identity.BeginInvitedPasskey(ctx, j.pool, j.keys, j.w.Party(), browser, j.w.Now())
}

func (j joining) Add(ctx context.Context, browser secret.Text, name string, response []byte, origin string) (identity.InvitationEntry, error) {
	return identity.AddInvitedPasskey(ctx, j.pool, j.keys, j.w.Party(), browser, name, response, origin, j.w.Now())
}

// carryOut does what the sink cases does with what people ask for.
func (w *World) carryOut(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; {
			w.Held.Lock()
			ids, _, err := w.Sink.Waiting(ctx)
			for _, id := range ids {
				if _, failed := w.Sink.CarryOut(ctx, id, w.Now()); failed != nil {
					err = failed
				}
			}
			w.Held.Unlock()
			if err != nil && strings.Contains(err.Error(), "closed pool") {
				return // the test is over
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("carrying out what people ask for: %v", err)
			}
			select {
			case <-ctx.Done():
				tick.Stop()
			case <-tick.C:
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// Limit starts the pages again with limits of requests without a session.
func (w *World) Limit(t *testing.T, limits web.Limits) {
	t.Helper()
	w.serve(t, limits, prometheus.NewRegistry())
}

// papers makes certificates and payment advices, with the keys of the pages.
func (w *World) papers(t *testing.T, keys *secret.Keys, agency func(id string) (registry.Agency, bool)) *batchpapers.Maker {
	t.Helper()
	signer, err := batchseal.NewSigner(keys)
	if err != nil {
		t.Fatal(err)
	}
	m, err := batchpapers.New(batchpapers.Config{Batches: w.Batches, Lines: opener{w}, Agency: agency, Signer: signer, Address: "https://pay.example"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// files makes what imports files, with the rights of the pages.
func (w *World) files(pool *pgxpool.Pool, keys *secret.Keys) (*disbursements.Importer, error) {
	payees, err := disbursements.NewPayees(pool, keys)
	if err != nil {
		return nil, err
	}
	ids, err := disbursements.NewIDs(keys)
	if err != nil {
		return nil, err
	}
	account := disbursements.Account{
		Account: lines.Account{Code: "mtn", Currency: "XAF", Modes: []string{"mobile_money"}, Phone: func(text string) (string, error) { return contact.MobileOf(text, "06") }, Country: "242"}, Fingerprint: "f-mtn", PerSecond: 10,
	}
	return &disbursements.Importer{
		Processor: asker{w}, Personal: w.Lines, Batches: w.Batches, Payees: payees, Partition: func(string, string) int32 { return 0 }, Now: w.Now,
		IDs:      ids,
		Accounts: func(string, bool) ([]disbursements.Account, int64) { return []disbursements.Account{account}, 1 },
	}, nil
}

// read starts the reader of an empty read model, beside an empty Kafka.
func (w *World) read(t *testing.T, pool *pgxpool.Pool) (*sessions.Reader, kafka.Config, *kafka.Topology, *schemas.Codec) {
	t.Helper()
	on := topics.Make(t, 2)
	reader, err := sessions.New(sessions.Config{Pool: pool, Kafka: on.Kafka, Topology: on.Topology, Codec: on.Codec, Log: servers.Logger(t), Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { _ = reader.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return reader, on.Kafka, on.Topology, on.Codec
}

// payment is a session of the agency.
func payment(n int, order string, live bool) checkout.Session {
	at := registries.Epoch.Add(time.Duration(n-60) * time.Hour)
	return checkout.Session{
		ID: checkout.NewSessionID(at, schemas.PartitionOf(registries.AgencyA, 2), [16]byte{byte(n & 0xff), 7}), ApplicationID: registries.AppA, TenantID: registries.AgencyA, Live: live, OrderID: order,
		Amount: 5000, Currency: "XAF", Mode: checkout.ModeHosted, ServiceCode: "patente", ServiceLabel: "Contribution de la patente", Description: "Patente 2026",
		PaymentRef: fmt.Sprintf("%016d", n), NoticeRef: "AV20260123456789", TransactionID: fmt.Sprintf("T%015d", n), CreatedAt: at, ExpiresAt: at.Add(time.Hour), Status: checkout.StatusOpen, Sequence: 1,
		Customer: &checkout.Customer{Name: "Awa", Phone: Contact, Email: "awa@example.org"},
	}
}

// fill writes payments, cases and deliveries.
func (w *World) fill(t *testing.T, codec *schemas.Codec) {
	t.Helper()
	w.Paid, w.Open, w.Undecided, w.Trial = payment(40, PaidOrder, true), payment(59, "DOSSIER-18", true), payment(10, "DOSSIER-19", true), payment(58, "ESSAI-1", false)
	collection := checkout.Collection{ID: uuid.NewString(), OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Amount: 5075, Fee: 75, Currency: "XAF", PayerMasked: "06 6•• •• 01", RequestedAt: w.Paid.CreatedAt}
	paid, lost := collection, collection
	paid.Status, paid.OperatorRef, paid.DecidedAt = checkout.CollectionApproved, "MP260301.1200.A1", w.Paid.CreatedAt.Add(time.Minute)
	w.Paid.Collection, w.Paid.Status, w.Paid.EndedAt = &paid, checkout.StatusCompleted, w.Paid.CreatedAt.Add(time.Minute)
	w.Paid.Items = []checkout.Item{{ERPDueRef: "DUE-1", Label: "Patente 2026", Amount: 5000, TransactionID: w.Paid.TransactionID, Confirmation: checkout.Confirmation{Status: checkout.ConfirmationAccepted}}}
	lost.Status = checkout.CollectionUndecided
	w.Undecided.Collection, w.Undecided.Status, w.Undecided.EndedAt = &lost, checkout.StatusFailed, w.Undecided.CreatedAt.Add(time.Hour)
	var rows []sessions.Snapshot
	for _, s := range []checkout.Session{w.Paid, w.Open, w.Undecided, w.Trial} {
		value, err := codec.Encode(mapping.FromEvent(checkout.Event{ID: "evt_" + s.OrderID, Type: checkout.EventCreated, SessionID: s.ID, Sequence: s.Sequence, OccurredAt: s.CreatedAt, Session: s}))
		if err != nil {
			t.Fatal(err)
		}
		_, row, err := sessions.Read(codec, value)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, *row)
	}
	if err := sessions.NewStore(w.Pool).Apply(t.Context(), rows, nil); err != nil {
		t.Fatal(err)
	}
	opened := registries.Epoch.Add(-time.Hour)
	if err := w.Cases.Apply(t.Context(), []cases.Case{
		{
			Case: casework.Case{ID: LateCase, Kind: checkout.CaseLatePayment, Amount: 7500, Currency: "XAF", OpenedAt: opened}, CollectionID: paid.ID, OperatorRef: "MP260301.1300.B2", InSession: true, Sequence: 4,
			SessionID: w.Undecided.ID, AgencyID: registries.AgencyA, ApplicationID: registries.AppA, OrderID: w.Undecided.OrderID, Mode: "live", Clerks: []string{}, Evidence: map[string]string{cases.EvidenceOwed: "5075", cases.EvidenceOwedCurrency: "XAF"},
		},
		{Case: casework.Case{ID: OrphanCase, Kind: checkout.CaseOrphan, Amount: 70, Currency: "XAF", OpenedAt: opened}, CollectionID: "x", OperatorRef: "UNKNOWN-1", SessionID: "chs_unknown", Mode: "live", Clerks: []string{}, Evidence: map[string]string{}},
		{Case: casework.Case{ID: PoisonCase, Kind: cases.KindPoison, Reason: "undecodable", OpenedAt: opened}, Clerks: []string{}, Evidence: map[string]string{cases.EvidenceTopic: "checkout.events", cases.EvidencePartition: "1", cases.EvidenceOffset: "42"}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	dir, err := registry.ReadDirectory(t.Context(), w.Pool, "", w.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range dir.Endpoints {
		if strings.HasSuffix(e.URL, "/inbox/guichet") {
			w.Endpoint = e.ID
		}
	}
	w.Parked = "dlv_parked"
	w.Exec(t, `SELECT make_delivery_day('2026-02-28')`)
	w.Exec(t, `INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at, http_status, body)
		VALUES ('2026-02-28', $1, 'webhook', $2, 'evt_1', 'checkout.completed', $3, $4, $5, true, '2026-02-28T16:01:00Z', 'needs_operator', 4, 0, '2026-02-28T18:00:00Z', 400, 'body')`,
		w.Parked, w.Endpoint, registries.AppA, registries.AgencyA, w.Paid.ID)
	w.Exec(t, `INSERT INTO delivery_destinations (kind, destination_id, failing_since) VALUES ('webhook', $1, '2026-02-28T16:01:01Z')`, w.Endpoint)
}

// Browser is a browser that may be signed in. It is not safe for concurrent use.
type Browser struct {
	w       *World
	cookies map[string]string
	// Header are further headers of each request.
	Header http.Header
}

// NewBrowser returns a browser without cookies.
func (w *World) NewBrowser() *Browser {
	return &Browser{w: w, cookies: map[string]string{}, Header: http.Header{"Sec-Fetch-Site": {"same-origin"}, "Accept-Language": {"fr"}}}
}

// Enter returns a browser in which a person has signed in.
func (w *World) Enter(t *testing.T, name string) *Browser {
	t.Helper()
	b := w.NewBrowser()
	if answer := b.Prove(t, name, "/sign-in/begin", nil, "/sign-in/finish"); answer.Code != http.StatusOK {
		t.Fatalf("%s cannot sign in: %d %s", name, answer.Code, answer.Body)
	}
	return b
}

// Prove does what the script of a page does with a form: it sends the fields, has a person's passkey answer the options,
// and sends the answer.
func (b *Browser) Prove(t *testing.T, name, begin string, fields url.Values, finish string) *httptest.ResponseRecorder {
	t.Helper()
	options := b.Post(begin, fields)
	if options.Code != http.StatusOK {
		return options
	}
	answer, err := b.w.Devices[name][0].Answer(options.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return b.Send(finish, answer)
}

// Press does what the script of a page does with a form that has fields: they go beside the answer of the passkey.
func (b *Browser) Press(t *testing.T, name, begin string, fields url.Values, finish string) *httptest.ResponseRecorder {
	t.Helper()
	options := b.Post(begin, fields)
	if options.Code != http.StatusOK || bytes.HasPrefix(options.Body.Bytes(), []byte(`{"next"`)) {
		return options
	}
	answer, err := b.w.Devices[name][0].Answer(options.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return b.Send(finish, Pressed(t, fields, answer))
}

// Answer has a person's passkey answer the options for a form.
func (b *Browser) Answer(t *testing.T, name, begin string, fields url.Values) []byte {
	t.Helper()
	answer, err := b.w.Devices[name][0].Answer(b.Post(begin, fields).Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// Pressed is what the script of a page sends of a form that has fields, with the answer of a passkey.
func Pressed(t *testing.T, fields url.Values, answer []byte) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]string{"form": fields.Encode(), "answer": string(answer)})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Send sends what a passkey answers.
func (b *Browser) Send(path string, answer []byte) *httptest.ResponseRecorder {
	return b.do(http.MethodPost, path, "application/json", answer)
}

// Get asks for a page.
func (b *Browser) Get(path string) *httptest.ResponseRecorder {
	return b.do(http.MethodGet, path, "", nil)
}

// Post sends a form.
func (b *Browser) Post(path string, fields url.Values) *httptest.ResponseRecorder {
	return b.do(http.MethodPost, path, "application/x-www-form-urlencoded", []byte(fields.Encode()))
}

// Upload sends a form with a file.
func (b *Browser) Upload(path string, fields url.Values, file []byte) *httptest.ResponseRecorder {
	return b.SlowUpload(path, fields, file, nil)
}

// SlowUpload is Upload whose body does not end before wait is closed. begun, which may be nil, is called when the server begins to
// read.
func (b *Browser) SlowUpload(path string, fields url.Values, file []byte, wait <-chan struct{}, begun ...func()) *httptest.ResponseRecorder {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name := range fields {
		_ = form.WriteField(name, fields.Get(name)) // a buffer takes everything
	}
	part, _ := form.CreateFormFile("file", "lines.csv")
	_, _ = part.Write(file)
	_ = form.Close()
	return b.send(http.MethodPost, path, form.FormDataContentType(), &slowBody{Reader: &body, wait: wait, begun: begun})
}

// slowBody is a body that waits before its end.
type slowBody struct {
	io.Reader
	wait  <-chan struct{}
	begun []func()
}

func (s *slowBody) Read(p []byte) (int, error) {
	for _, f := range s.begun {
		f()
	}
	s.begun = nil
	n, err := s.Reader.Read(p)
	if errors.Is(err, io.EOF) && s.wait != nil {
		<-s.wait
	}
	return n, err
}

func (b *Browser) do(method, path, contentType string, body []byte) *httptest.ResponseRecorder {
	return b.send(method, path, contentType, bytes.NewReader(body))
}

func (b *Browser) send(method, path, contentType string, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), method, path, body)
	for name, values := range b.Header {
		r.Header[name] = values
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value}) //nolint:gosec // a request has no attributes
	}
	w := httptest.NewRecorder()
	b.w.Handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return w
}

// Cookies returns the browser's cookies, for a copy of it.
func (b *Browser) Cookies() map[string]string { return b.cookies }

// Want checks the status of an answer and parts of its page.
func Want(t *testing.T, a *httptest.ResponseRecorder, status int, parts ...string) {
	t.Helper()
	if a.Code != status {
		t.Errorf("status %d, want %d: %s", a.Code, status, a.Header().Get("Location"))
	}
	for _, part := range parts {
		if !strings.Contains(a.Body.String(), part) {
			t.Errorf("the page lacks %q:\n%.5000s", part, a.Body)
		}
	}
}

// Lacks checks that a page has none of the parts.
func Lacks(t *testing.T, a *httptest.ResponseRecorder, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(a.Body.String(), part) {
			t.Errorf("the page has %q:\n%.5000s", part, a.Body)
		}
	}
}
