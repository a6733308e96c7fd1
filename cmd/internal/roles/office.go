package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	pages "quittance/ingress/disbursements"
	"quittance/ingress/operations"
	"quittance/ingress/oversight"
	"quittance/ingress/people"
	"quittance/ingress/staff"
	"quittance/ingress/web"
	"quittance/internal/audit"
	"quittance/internal/batchpapers"
	"quittance/internal/batchseal"
	"quittance/internal/build"
	"quittance/internal/cases"
	"quittance/internal/clickhouse"
	"quittance/internal/deliveries"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/jobs"
	"quittance/internal/journal"
	"quittance/internal/kafka/consume"
	"quittance/internal/operation"
	"quittance/internal/personal"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/internal/signed"
	"quittance/internal/support"
	"quittance/reconciliation"
	"quittance/schemas"
)

// officeRole is the pages of staff. It has a process, a host and a login of its own, so that it can stay off the public
// internet.
func officeRole() Role {
	return Role{
		Kind: KindOffice, Name: "office", Short: "the pages of staff: sign-in with passkeys, operations",
		Needs: []Need{NeedPostgres, NeedMasterKeys, NeedRegistry},
		// It opens lines of batches, to compare them with what is signed and to show them, masked; and seals those of files. It signs
		// certificates and payment advices, with keys that are none of receipts.
		Keys: slices.Concat(seals(personal.Label, intake.LabelReading, registry.LabelStaffIssuers), macs(identity.LabelStaffSignIns, disbursements.LabelIDs, disbursements.LabelPayees), signs(secret.LabelOfficeDecisions, secret.LabelStaffRows), signs(batchseal.Labels()...), verifies(secret.LabelDecisions)),
		// It reads the commands of one payment, when somebody asks for them. Its commands about batches bear the signatures of
		// people where they pay.
		Access:    Access{Reads: []string{schemas.TopicCommands, schemas.Disbursement.Replies}, Writes: []string{schemas.Disbursement.Commands}},
		Databases: officeDatabases(),
		Run:       (*Base).office,
	}
}

// officeDatabases is what the pages need. Whoever takes them over can make sessions of staff, reject, and hold
// deliveries back, and put passkeys of its own into an invitation that is open. It can neither propose nor approve: each needs
// the passkey of a person. It asks for changes of people, which the sink cases carries out with the proof of a passkey. It
// changes no configuration, key, person in force, passkey or payment. It reads lines of batches and makes batches, and has one
// paid with signatures of passkeys only, which the processor verifies.
func officeDatabases() Databases {
	return Databases{
		Rows: rows(registryRead, record, sessionsRead, deliveriesRead, batchesRead, may("select", "delivery_attempts"),
			// lines of batches, and first signatures of what two people sign
			may("select", "personal_keys"), may("select insert update delete", "disbursement_signatures"),
			// files of lines, which become drafts
			may("insert", "personal_keys"), batchesImported,
			// people who are signed in
			may("select insert update delete", "staff_sessions", "passkey_challenges"), may("select insert delete", "staff_challenges"),
			may("update(last_used_at,sign_count)", "staff_passkeys"), may("select insert", "decisions"), may("execute", "lock_staff(uuid[])"),
			// people who are at their identity provider, and whom it has signed out
			may("select insert delete", "staff_issuer_sign_ins"), may("select insert", "staff_logout_tokens"),
			// invited people, and what people ask for; who did what to a person
			may("update", "registry_lock"), may("update(accepted_at,email,issuer,passkeys,signature,subject,token_hash)", "staff_invitations"), may("insert update", "staff_manifest"),
			may("insert update(signature)", "staff_requests"), may("select", "audit", "audit_sequence"),
			// health: what operators answered, what is owed to ERPs, what providers of messages did, without the messages
			may("select", "operator_answers", "case_positions"), may("select(accepted_at,completed_at,livemode,session_id,tenant_id,transaction_id)", "erp_confirmations"), may("select(accepted_at,provider,sent_at,state)", "message_reports"),
			// A lock of a case needs a right to update it; nobody decides by this column.
			may("select update(opened_by)", "cases"),
			may("select insert update(alone,decided_at,decided_by,decided_proof,decided_signature,decider,decision,finished_at,state)", "case_proposals"),
			// files of statements: what people ask for and decide; no import and no ledger
			may("select", "statement_imports", "statement_ledgers", "statement_original_parts", "statement_originals", "statements"), statementsDecided,
			may("select insert(id,import_id,reason,requested_at,requested_by,state,verdict) update(decided_at,decided_by,decided_proof,decided_signature,digest,requested_proof,requested_signature,state)", "statement_exits"),
			// A page inserts a withdrawal that is requested: one that is being carried out needs columns that only commands write.
			may("select insert(id,import_id,reason,requested_at,requested_by,state) update(actor,decided_at,decided_by,decided_proof,decided_signature,digest,requested_proof,requested_signature,state)", "statement_withdrawals"),
			may("select insert(id,import_id,reason,requested_at,requested_by) update(approved_at,approved_by,approved_proof,approved_signature,digest,requested_proof,requested_signature)", "statement_original_requests"),
			// what people ask for in bulk, which the sink schedule carries out
			may("select insert(agency_id,conditions,ends_at,id,kind,made_at,maker,maker_group,maker_kind,maker_name,maker_origin,rows_digest,state,total) update(decided_at,decided_by,decided_proof,decided_signature,decider,decider_group,finished_at,proposed_at,proposed_proof,proposed_signature,state,stopped_by)", "jobs"),
			may("select insert(job_id,n,subject)", "job_rows"),
			// deliveries that are sent again, destinations that are suspended and resumed
			may("update(lease_until,next_attempt_at,round,state)", "deliveries"), may("insert update", "delivery_destinations")),
		Journal: append(slices.Clone(journalRead), mayInJournal("SELECT", reportViews...)...),
	}
}

// reportViews are the views that reports read.
var reportViews = []string{"agencies", "cases", "receipts", "reconciliation_days"}

const (
	// officePerClient and officePerInstance are requests without a session in a second. Staff are few.
	officePerClient, officePerInstance = 10, 200
	// officeConnections is the most open connections of the pages of staff.
	officeConnections = 2048
)

// staffHost is where staff reach their pages.
func (b *Base) staffHost() (Host, error) {
	if b.StaffURL == "" && b.Developer() {
		b.StaffURL = "http://" + b.OfficeListen
	}
	if err := b.checkPublicURL("staff-url", b.StaffURL); err != nil {
		return Host{}, err
	}
	return Host{Name: "office", Listen: b.OfficeListen, URL: strings.TrimSuffix(b.StaffURL, "/"), Limits: Limits{Connections: officeConnections, Write: writeTimeout}}, nil
}

// office runs the pages of staff.
func (b *Base) office() error {
	at, err := b.staffHost()
	if err != nil {
		return err
	}
	desk, err := identity.OpenDesk(identity.DeskConfig{Pool: b.Pool, Keys: b.Keys, URL: at.URL, Log: b.Log, Now: b.Now, Loopback: b.Loopback})
	if err != nil {
		return err
	}
	if !desk.Available() {
		return fmt.Errorf("--staff-url %s: browsers allow passkeys for names of hosts only, not for numbers; give the pages of staff a name, such as https://staff.example", at.URL)
	}
	about, err := people.New(people.Config{Book: identity.OpenBook(b.Pool, b.Keys), Approvals: desk, Agencies: b.Registry, URL: at.URL})
	if err != nil {
		return err
	}
	batches, err := b.batchPages(desk, at.URL)
	if err != nil {
		return err
	}
	reader, err := b.sessionReader()
	if err != nil {
		return err
	}
	late := &lateJournal{open: b.officeJournal, log: b.Log}
	b.close = append(b.close, late.close)
	sent, known := deliveries.NewStore(b.Pool, DeliveryKinds(nil)), cases.NewStore(b.Pool).Verifying(b.Keys)
	health, measure := b.health(sent, known, late)
	seen, err := oversight.New(oversight.Config{Audit: audit.NewReader(b.Pool, b.Keys.VerifySignature), Sessions: reader, Registry: b.Registry, Health: health, Reports: b.reportDesk(late, measure)})
	if err != nil {
		return err
	}
	records, err := b.operations(desk, officeReads{reader, sent, known, late}, seen.Trail, about.Waiting, batches.Waiting)
	if err != nil {
		return err
	}
	var demo staff.Demo
	if b.DemoStaff != nil && b.Developer() {
		demo = b.DemoStaff(b, desk)
	}
	site, err := staff.New(staff.Config{
		Demo: demo,
		Desk: desk, Joining: joining{b, desk}, Agencies: b.Registry, Limits: web.Shares(officePerClient, officePerInstance), URL: at.URL, Now: b.Now, Log: b.Log, Metrics: b.Metrics,
		Record: func(ctx context.Context, actor operation.Actor, at time.Time, e operation.Entry) error {
			return operation.Record(ctx, b.Pool, actor, at, e)
		},
	}, records.Part(), about.Part(), batches.Part(), seen.Part())
	if err != nil {
		return err
	}
	r, err := b.router(at)
	if err != nil {
		return err
	}
	site.Routes(r)
	b.watchOutages()
	return b.Serve(at.Name, at.Listen, r, at.Limits)
}

// watchOutages exposes outages of identity providers, while which a passkey alone signs in.
func (b *Base) watchOutages() {
	outages := promauto.With(b.Metrics).NewGauge(prometheus.GaugeOpts{
		Name: "quittance_staff_outages", Help: "Groups of staff whose people sign in with a passkey alone, because an outage of their identity provider is declared. Every instance reports the same.",
	})
	verifier := signed.NewVerifier(b.Keys)
	b.Run("outages of identity providers", func(ctx context.Context) error {
		for {
			open, err := identity.CountOutages(ctx, b.Pool, verifier, b.Now())
			if err == nil {
				outages.Set(float64(open))
			} else if ctx.Err() == nil {
				b.Log.LogAttrs(ctx, slog.LevelWarn, "outages of identity providers are not watched; it is tried again", slog.Any("error", err))
			}
			if !consume.Sleep(ctx, stateEvery) {
				return nil
			}
		}
	})
}

// batchPages makes the pages on which an agency's people approve batches of disbursements.
func (b *Base) batchPages(desk *identity.Desk, url string) (*pages.Disbursements, error) {
	processor, err := b.disbursements(officeRole())
	if err != nil {
		return nil, err
	}
	payees, err := disbursements.NewPayees(b.Pool, b.Keys)
	if err != nil {
		return nil, err
	}
	ids, err := disbursements.NewIDs(b.Keys)
	if err != nil {
		return nil, err
	}
	store := disbursements.NewStore(b.Pool, b.Codec)
	accounts := func(tenantID string, live bool) ([]disbursements.Account, int64) {
		list, revision, err := b.ImportAccounts(tenantID, live)
		if err != nil {
			b.Log.LogAttrs(b.ctx, slog.LevelError, "the operators of payouts cannot be opened: no file is imported", slog.Any("error", err))
		}
		return list, revision
	}
	signer, err := batchseal.NewSigner(b.Keys)
	if err != nil {
		return nil, err
	}
	papers, err := batchpapers.New(batchpapers.Config{Batches: store, Lines: b.Personal, Agency: b.Registry.Agency, Signer: signer, Address: strings.TrimSuffix(b.CheckoutURL, "/")})
	if err != nil {
		return nil, err
	}
	return pages.New(pages.Config{
		Papers: papers, Batches: store, Lines: b.Personal, Processor: processor, Approvals: desk, Book: identity.OpenBook(b.Pool, b.Keys), URL: url, Accounts: accounts,
		Importer: &disbursements.Importer{
			Processor: processor, Personal: b.Personal, Batches: store, Payees: payees, IDs: ids, Partition: b.Topology.Partition, Now: b.Now, Accounts: accounts,
		},
	})
}

// joining is the invitations of people, for their page.
type joining struct {
	b    *Base
	desk *identity.Desk
}

// Accept implements staff.Joining.
func (j joining) Accept(ctx context.Context, link secret.Text, origin string) (identity.InvitationEntry, secret.Text, error) {
	return identity.AcceptInvitation(ctx, j.b.Pool, j.b.Keys, link, origin, j.b.Now())
}

// Invitation implements staff.Joining.
func (j joining) Invitation(ctx context.Context, browser secret.Text) (identity.InvitationEntry, error) {
	return identity.InvitationOf(ctx, j.b.Pool, j.b.Keys, browser, j.b.Now())
}

// Begin implements staff.Joining.
func (j joining) Begin(ctx context.Context, browser secret.Text) (json.RawMessage, error) {
	return identity.BeginInvitedPasskey(ctx, j.b.Pool, j.b.Keys, j.desk.Party(), browser, j.b.Now())
}

// Add implements staff.Joining.
func (j joining) Add(ctx context.Context, browser secret.Text, name string, response []byte, origin string) (identity.InvitationEntry, error) {
	return identity.AddInvitedPasskey(ctx, j.b.Pool, j.b.Keys, j.desk.Party(), browser, name, response, origin, j.b.Now())
}

// officeReads is what several parts of the pages read.
type officeReads struct {
	reader *sessions.Reader
	sent   *deliveries.Store
	known  *cases.Store
	late   *lateJournal
}

// operations makes the pages on which the service's people look after payments.
func (b *Base) operations(desk *identity.Desk, of officeReads, trail operations.Trail, waits ...operations.Waits) (*operations.Operations, error) {
	imports, err := intake.New(intake.Config{
		Pool: b.Pool, Keys: b.Keys, Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec,
		Closed: func(ctx context.Context, key registry.StatementAccountKey) (string, error) {
			closes, err := of.late.store(ctx)
			if err != nil {
				return "", err
			}
			return closes.ClosedTo(ctx, key.AgencyID, key.Live, key.Code)
		},
	})
	if err != nil {
		return nil, err
	}
	bulk, err := jobs.NewStore(jobs.Config{Pool: b.Pool, Keys: b.Keys, Deliveries: of.sent})
	if err != nil {
		return nil, err
	}
	return operations.New(operations.Config{
		Program: b.Program, Version: build.Read().Version(),
		Jobs:     bulk,
		Sessions: of.reader, Deliveries: of.sent, Cases: of.known, Imports: imports, Registry: b.Registry, Signer: b.Keys, Approvals: desk, Waits: waits, Trail: trail,
		Directory: func(ctx context.Context) (registry.Directory, error) {
			return registry.ReadDirectory(ctx, b.Pool, b.SimulatorURL, b.Now())
		},
		Support: func(ctx context.Context, cfg support.Config) (*support.Desk, error) {
			cfg.Sessions, cfg.Deliveries, cfg.Cases = of.reader, of.sent, of.known
			cfg.Kafka, cfg.Topology, cfg.Codec, cfg.Machine = b.KafkaConfig(), b.Topology, b.Codec, b.Machine
			cfg.Journal, cfg.NoJournal = of.late.store(ctx)
			return support.New(cfg)
		},
	})
}

// officeJournal connects to ClickHouse with the rights of the role.
func (b *Base) officeJournal(ctx context.Context) (clickhouse.Conn, error) {
	if err := b.Need("clickhouse"); err != nil {
		return nil, err
	}
	conn, err := clickhouse.Open(ctx, b.ClickHouse)
	if err != nil {
		return nil, err
	}
	if err = reconciliation.Check(ctx, conn); err == nil {
		err = b.CheckJournal(ctx, conn, officeRole().Name)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

const (
	// journalWithin bounds a connection to ClickHouse, for which a page waits.
	journalWithin = 2 * time.Second
	// journalAgain is how long pages go without the journal after a connection has failed.
	journalAgain = 15 * time.Second
)

// lateJournal is the journal of a role that runs without ClickHouse, too: its first reader connects. Safe for concurrent
// use.
type lateJournal struct {
	open func(context.Context) (clickhouse.Conn, error)
	log  *slog.Logger

	mu    sync.Mutex
	conn  clickhouse.Conn
	why   error
	tried time.Time
}

// store returns the journal, or why there is none.
func (l *lateJournal) store(ctx context.Context) (*journal.Store, error) {
	conn, err := l.connection(ctx)
	if err != nil {
		return nil, err
	}
	return journal.NewStore(conn), nil
}

// connection returns the connection to ClickHouse, or why there is none.
func (l *lateJournal) connection(ctx context.Context) (clickhouse.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil && (l.tried.IsZero() || time.Since(l.tried) > journalAgain) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), journalWithin)
		defer cancel()
		l.conn, l.why = l.open(ctx)
		l.tried = time.Now()
		if l.why != nil {
			l.log.LogAttrs(ctx, slog.LevelWarn, "the journal cannot be read: pages of payments lack their timeline, and there are no reports", slog.Any("error", l.why))
		}
	}
	if l.conn == nil {
		return nil, l.why
	}
	return l.conn, nil
}

func (l *lateJournal) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
	}
}
