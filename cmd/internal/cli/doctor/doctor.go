package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/call"
	"quittance/internal/clickhouse"
	"quittance/internal/deliveries"
	"quittance/internal/digests"
	"quittance/internal/disbursements"
	"quittance/internal/erp"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/signed"
	"quittance/reconciliation"
	"quittance/schemas"
)

// Check is one thing that a role needs.
type Check struct {
	Name string
	// Do returns what it found, or an error that says how to mend it.
	Do func(ctx context.Context) (found string, err error)
}

// Role is a further role that `doctor` can check.
type Role struct {
	Name string
	// Flags declares the flags of its checks.
	Flags func(f *pflag.FlagSet)
	// Checks returns the checks, after the command line has been parsed.
	Checks func(s roles.Settings, f *pflag.FlagSet) []Check
}

// Command makes the command; more are roles beside those of the service, the first of which is the default.
func Command(more []Role) cli.Command {
	table := roles.Table()
	names := append(render.Mapped(more, func(r Role) string { return r.Name }), roles.Names(table)...)
	return cli.Command{
		Use: "doctor [ROLE]", Short: "Check every part that a role needs, and show how to mend faults", JSON: "the checks", Examples: []string{"doctor erp"},
		Args: cobra.MaximumNArgs(1), Valid: names, LocatesItself: true, // further roles need no addresses
		Flags: func(f *pflag.FlagSet, m *cli.Meta) {
			m.RiskFlags(f)
			m.ProviderFlags(f)
			for _, r := range more {
				r.Flags(f)
			}
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			role := "all"
			if len(more) > 0 {
				role = more[0].Name
			}
			role = m.Argument(role)
			if i := slices.IndexFunc(more, func(r Role) bool { return r.Name == role }); i >= 0 {
				return diagnose(ctx, m, role, more[i].Checks(m.Settings, m.Flags()))
			}
			needs, group, known := map[roles.Need]bool{}, "", role == "all"
			if known {
				group = roles.DeliveryKinds(nil)[0].Planning().Group // one of them
			}
			for _, r := range table {
				if role == "all" || role == r.Name || role == string(r.Kind) && r.Kind != roles.KindSink {
					known = true
					for _, n := range r.Needs {
						needs[n] = true
					}
				}
				if role == r.Name && len(r.Groups) > 0 {
					group = r.Groups[0].Name
				}
			}
			if !known {
				return cli.Usage("no role is called %q; the roles are %s", role, strings.Join(names, ", "))
			}
			if err := m.Locate(); err != nil {
				return err
			}
			return diagnose(ctx, m, role, slices.Concat(examination{m}.checks(role, needs), examination{m}.checkSecurity(role), examination{m}.checkFailover(group)))
		},
	}
}

// examination is a run of `doctor`.
type examination struct{ *cli.Meta }

// checkSecurity says how connections are protected, and whether the users of Kafka and of the databases have the
// rights of a role, and no others.
func (m examination) checkSecurity(role string) []Check {
	out := []Check{{"connections", func(context.Context) (string, error) {
		var found []string
		for _, c := range m.Connections() {
			text := c.Flag + ": " + c.How
			if c.Exposed {
				text = "WARNING: " + text + ", whoever controls the network reads and changes payments"
			}
			found = append(found, text)
		}
		return strings.Join(found, "; "), nil
	}}}
	if role == string(roles.KindProcessor) {
		role = roles.OfKind(roles.KindProcessor)[0].Name
	}
	out = append(out, m.checkDatabaseRights(role)...)
	if m.KafkaConfig().Security.Anonymous() || !slices.ContainsFunc(roles.KafkaClients(), func(c roles.KafkaClient) bool { return c.Name == role }) {
		return out
	}
	return append(out, Check{"rights", func(ctx context.Context) (string, error) {
		err := m.CheckRights(ctx, role)
		if errors.Is(err, kafka.ErrRights) {
			// Whoever types the command may not be the role.
			return fmt.Sprintf("WARNING: not those of the role %s: %v", role, err), nil
		}
		return fmt.Sprintf("%s has those of the role %s", m.KafkaConfig().Security.Principal(), role), err
	}})
}

// checkDatabaseRights says whether the users of Postgres and ClickHouse have the rights of a role, and, in production, no
// others; nothing of a database in which the role has none.
func (m examination) checkDatabaseRights(role string) (out []Check) {
	clients := roles.DatabaseClients(m.Options)
	i := slices.IndexFunc(clients, func(c roles.DatabaseClient) bool { return c.Name == role })
	if i < 0 {
		return nil
	}
	// Whoever types the command may not be the role.
	tell := func(err error) (string, error) {
		for _, is := range []error{postgres.ErrRights, postgres.ErrExcess, clickhouse.ErrRights, clickhouse.ErrExcess} {
			if errors.Is(err, is) {
				return fmt.Sprintf("WARNING: not those of the role %s: %v", role, err), nil
			}
		}
		return "the user has those of the role " + role, err
	}
	if len(clients[i].Rows) > 0 && m.Postgres != "" {
		out = append(out, Check{"postgres rights", func(ctx context.Context) (string, error) {
			pool, err := m.OpenPostgres(ctx)
			if err != nil {
				return "", err
			}
			defer pool.Close()
			return tell(m.CheckDatabase(ctx, pool, role))
		}})
	}
	if len(clients[i].Journal) > 0 && m.ClickHouse != "" {
		out = append(out, Check{"clickhouse rights", func(ctx context.Context) (string, error) {
			conn, err := clickhouse.Open(ctx, m.ClickHouse)
			if err != nil {
				return "", err
			}
			defer func() { _ = conn.Close() }()
			return tell(m.CheckJournal(ctx, conn, role))
		}})
	}
	return out
}

// checkFailover says how long the work of a killed member of the group waits; nothing without a group.
func (m examination) checkFailover(group string) []Check {
	if group == "" {
		return nil
	}
	return []Check{{"failover", func(ctx context.Context) (string, error) {
		session, err := kafka.GroupSession(ctx, m.KafkaConfig(), group)
		switch {
		case kafka.IsDenied(err):
			return "not known: " + m.KafkaConfig().Security.Principal() + " may not join the group " + group, nil
		case err != nil:
			return "", err
		case session > kafka.QuickSession:
			return fmt.Sprintf("the work of a killed instance waits %v; with group.min.session.timeout.ms=1000 at all brokers it waits %v", session, kafka.QuickSession), nil
		}
		return fmt.Sprintf("the work of a killed instance waits %v", session), nil
	}}}
}

// diagnose runs checks and prints the result of each.
func diagnose(ctx context.Context, m *cli.Meta, role string, checks []Check) error {
	bad, list := 0, []render.Object{}
	for _, c := range checks {
		timed, cancel := context.WithTimeout(ctx, 10*time.Second)
		found, err := c.Do(timed)
		cancel()
		mark := "ok  "
		if err != nil {
			mark, found = "FAIL", err.Error()
			bad++
		}
		list = append(list, render.Object{"check", c.Name, "ok", err == nil, "found", found})
		if !m.AsJSON { // a check may take seconds: each is shown when it is done
			_, _ = fmt.Fprintf(m.Out, "%s  %-16s %s\n", mark, c.Name, found)
		}
	}
	if m.AsJSON {
		if err := m.Show(render.Object{"role", role, "ok", bad == 0, "checks", list}, nil); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %s for %s did not pass", bad, render.Counted(len(checks), "check"), role)
	}
	return nil
}

// checks returns the checks of the needs of a role, and of those that all roles have.
func (m examination) checks(role string, needs map[roles.Need]bool) []Check {
	out := []Check{{"kafka", m.checkKafka}, {"topics", m.checkTopics}, {"schema registry", m.checkSchemas}}
	if needs[roles.NeedPostgres] || m.Options.Clock != nil { // the movable clock is in Postgres
		out = append(out, Check{"postgres", m.checkPostgres})
	}
	if needs[roles.NeedMasterKeys] {
		out = append(out, Check{"master keys", func(context.Context) (string, error) {
			keys, err := m.OpenKeys()
			if err == nil && keys.Role() != "" {
				err = m.CheckKeysOf(role, keys)
			}
			return m.MasterKeysState(), err
		}})
		if needs[roles.NeedPostgres] {
			out = append(out, Check{"rows", m.checkRows})
		}
	}
	if needs[roles.NeedRegistry] && !m.PlainSecrets {
		out = append(out, Check{"demo secrets", m.checkDemoSecrets})
	}
	if needs[roles.NeedReferenceKey] {
		out = append(out, Check{"reference key", func(context.Context) (string, error) {
			_, err := m.OpenReferenceKey()
			return m.ReferenceKeyState(), err
		}})
	}
	if needs[roles.NeedClickHouse] {
		out = append(out, Check{"clickhouse", m.checkClickHouse})
	}
	if needs[roles.NeedChannels] {
		out = append(out, Check{"channels", m.checkChannels})
	}
	if needs[roles.NeedProviders] {
		out = append(out, Check{"providers", m.CheckProviders})
	}
	if needs[roles.NeedDues] {
		out = append(out, Check{"sink erp", m.checkAnswers})
	}
	if needs[roles.NeedERPs] {
		out = append(out, Check{"erps", m.checkERPs}, Check{"dues", m.checkDues}, Check{"confirmations", m.checkConfirmations})
	}
	if needs[roles.NeedOperators] {
		out = append(out, Check{"operators", func(ctx context.Context) (string, error) { return m.checkOperators(ctx, false) }})
	}
	if needs[roles.NeedPayouts] {
		out = append(out, Check{"payouts", func(ctx context.Context) (string, error) { return m.checkOperators(ctx, true) }}, Check{"payout accounts", m.checkPayoutAccounts})
	}
	if needs[roles.NeedOperators] || needs[roles.NeedPayouts] {
		out = append(out, Check{"notices", m.checkNotices})
	}
	return out
}

func (m examination) checkKafka(ctx context.Context) (string, error) {
	if err := m.Need("kafka"); err != nil {
		return "", err
	}
	cl, err := m.KafkaConfig().Client()
	if err != nil {
		return "", err
	}
	defer cl.Close()
	if err := cl.Ping(ctx); err != nil {
		if refused := m.KafkaConfig().Security.Refused(err); refused != nil {
			return "", refused
		}
		return "", fmt.Errorf("no broker answers at %s: %w; check the address and that the broker runs", m.Kafka, err)
	}
	topology, err := kafka.Load(ctx, m.KafkaConfig(), cl)
	if err != nil {
		return "", err
	}
	found := fmt.Sprintf("%s, %s of %s", m.Kafka, render.Counted(int(topology.Count(schemas.TopicCommands)), "partition"), topology.Name(schemas.TopicCommands))
	warning, err := kafka.Warning(ctx, cl)
	if err != nil {
		return "", err
	}
	if warning != "" {
		found += "; WARNING: " + warning
	}
	return found, nil
}

// checkTopics says how safe the records of the topics are.
func (m examination) checkTopics(ctx context.Context) (string, error) {
	if err := m.Need("kafka"); err != nil {
		return "", err
	}
	cl, err := m.KafkaConfig().Client()
	if err != nil {
		return "", err
	}
	defer cl.Close()
	if _, err := kafka.Load(ctx, m.KafkaConfig(), cl); err != nil {
		return "", err
	}
	is, err := kafka.CheckDurability(ctx, m.KafkaConfig(), cl, m.AcceptsOneReplica())
	if err != nil {
		return "", err
	}
	found := fmt.Sprintf("at least %d replicas, %d of them have a record before it is acknowledged", is.Replicas, is.InSync)
	if is.Replicas < schemas.Replicas {
		found += "; WARNING: one lost disk loses payments"
	}
	return found, nil
}

func (m examination) checkSchemas(ctx context.Context) (string, error) {
	if err := m.Need("schema-registry"); err != nil {
		return "", err
	}
	codec, err := m.OpenSchemas(ctx, false)
	if err != nil {
		return "", err
	}
	if err := m.checkKeys(ctx, codec); err != nil {
		return "", err
	}
	return roles.WithoutPassword(m.SchemaRegistry) + ", all schemas registered", nil
}

// checkKeys refuses topics that an earlier release wrote under another key. checkKafka
// reports missing topics.
func (m examination) checkKeys(ctx context.Context, codec *schemas.Codec) error {
	cl, err := m.KafkaConfig().Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	topology, err := kafka.Load(ctx, m.KafkaConfig(), cl)
	if err != nil {
		return nil //nolint:nilerr // reported by checkKafka
	}
	return kafka.CheckKeys(ctx, m.KafkaConfig(), topology, codec)
}

func (m examination) checkPostgres(ctx context.Context) (string, error) {
	if err := m.Need("postgres"); err != nil {
		return "", err
	}
	if err := postgres.CheckSessions(ctx, m.Postgres); err != nil {
		return "", err
	}
	pool, err := m.OpenPostgres(ctx)
	if err != nil {
		return "", err
	}
	pool.Close()
	return roles.WithoutPassword(m.Postgres) + ", up to date", nil
}

func (m examination) checkClickHouse(ctx context.Context) (string, error) {
	if err := m.Need("clickhouse"); err != nil {
		return "", err
	}
	conn, err := clickhouse.Open(ctx, m.ClickHouse)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := reconciliation.Check(ctx, conn); err != nil {
		return "", fmt.Errorf("%w; run `quittance migrate`", err)
	}
	if _, _, err := access.Whole(ctx, m.Meta, conn); err != nil {
		return "", err
	}
	return roles.WithoutPassword(m.ClickHouse) + ", up to date", nil
}

// checkRows names the rows that decide and are not as they were signed.
func (m examination) checkRows(ctx context.Context) (string, error) {
	keys, err := m.OpenKeys()
	if err != nil {
		return "", err
	}
	pool, err := m.OpenPostgres(ctx)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	f, err := registry.LookAtRows(ctx, pool, keys)
	if err == nil {
		err = f.Err()
	}
	if err != nil {
		return "", err
	}
	if len(f.Rows)+len(f.Lost) == 0 {
		return "all that decide are as they were signed", nil
	}
	var found []string
	if len(f.Rows) > 0 {
		names := render.Mapped(f.Rows, func(r signed.Row) string { return r.ID.String() })
		found = append(found, "not as they were signed, and not used: "+render.Some(names))
	}
	if len(f.Lost) > 0 {
		found = append(found, "tables from which signed rows were deleted, or in which some were put back: "+strings.Join(f.Lost, ", "))
	}
	return "", fmt.Errorf("%s; `%s rows list` shows them and says what to do", strings.Join(found, "; "), m.Program)
}

// checkDemoSecrets refuses a database with secrets of the demo registry, as roles do.
func (m examination) checkDemoSecrets(ctx context.Context) (string, error) {
	return "none in the database", m.onRegistry(ctx, func(context.Context, *roles.Base) error { return nil })
}

// onRegistry opens the registry, without a log, and calls do. The registry does not open if
// the database holds secrets of the demo registry.
func (m examination) onRegistry(ctx context.Context, do func(context.Context, *roles.Base) error) error {
	return m.WithBase(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, b *roles.Base) error {
		if err := b.OpenRegistry(); err != nil {
			return err
		}
		return do(ctx, b)
	})
}

// checkOperators says which operators do not answer calls about payouts, or about collections, as the digests of staff do.
func (m examination) checkOperators(ctx context.Context, payouts bool) (found string, err error) {
	err = m.WithBase(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, b *roles.Base) error {
		if err := b.OpenPostgres(); err != nil {
			return err
		}
		away, err := digests.NewStore(b.Pool).Outages(ctx, b.Now())
		if err != nil {
			return err
		}
		away = slices.DeleteFunc(away, func(o digests.Outage) bool { return o.Payouts != payouts })
		accounts := "merchant accounts (`connectors` in a registry file)"
		if payouts {
			accounts = "payout accounts (`payouts` in a registry file)"
		}
		if found = "none is away, which would be five minutes of calls without an answer"; len(away) > 0 {
			names := render.Mapped(away, func(o digests.Outage) string { return o.Name() + " since " + render.Moment(o.Since) })
			found = "WARNING: without an answer: " + strings.Join(names, ", ") + "; calls are repeated until the operator answers. If it is well, check the address and the secrets of the agencies' " + accounts
		}
		return nil
	})
	return found, err
}

// checkPayoutAccounts warns of payout accounts that are paused or closed: nobody is paid from them.
func (m examination) checkPayoutAccounts(ctx context.Context) (found string, err error) {
	err = m.onRegistry(ctx, func(ctx context.Context, b *roles.Base) error {
		paused, err := disbursements.NewStore(b.Pool, nil).PausedAccounts(ctx, disbursements.Scope{})
		if err != nil {
			return err
		}
		if found = "none is paused or closed"; len(paused) > 0 {
			names := render.Mapped(paused, func(a disbursements.PausedAccount) string {
				state, agency := "paused", a.TenantID
				if a.Closed {
					state = "closed"
				}
				if known, ok := b.Registry.Agency(a.TenantID); ok {
					agency = known.Slug
				}
				return fmt.Sprintf("%s of %s/%s, %s since %s (%s)", a.Code, agency, registry.Mode(a.Live), state, render.Moment(a.Since), a.Reason)
			})
			found = "WARNING: nobody is paid from " + render.Some(names) + ". What pauses an account is tried again by itself; a closed one is tried by `quittance batches try-account BATCH --account CODE`, once its cause is mended"
		}
		return nil
	})
	return found, err
}

// checkChannels warns of applications with a key but without a way to be paid. That is no
// fault of the installation: keys are made before an agency is ready.
func (m examination) checkChannels(ctx context.Context) (found string, err error) {
	err = m.onRegistry(ctx, func(ctx context.Context, b *roles.Base) error {
		without, err := b.WithoutChannel(ctx)
		if err != nil {
			return err
		}
		if found = "every application that has a key can be paid"; len(without) > 0 {
			found = fmt.Sprintf("WARNING: creations of %s are refused with checkout.no_channel: give the agency a merchant account of that mode (`connectors` in a registry file), or a clerk with `quittance clerks add`", render.Some(without))
		}
		return nil
	})
	return found, err
}

// checkERPs calls GET /health of each agency's ERP.
func (m examination) checkERPs(ctx context.Context) (string, error) {
	well, ill, without, err := m.probe(ctx, func(ctx context.Context, b *roles.Base) ([]erp.Health, error) {
		return b.ERPs().Probe(ctx, b.Registry), nil
	})
	ill = append(ill, without...)
	switch {
	case err != nil:
		return "", err
	case len(ill) > 0:
		return "", fmt.Errorf("GET /health fails at: %s; check base_url, auth and networks of these agencies' ERPs, and that they run", strings.Join(ill, ", "))
	case len(well) == 0:
		return "no agency has one", nil
	}
	return "answer: " + strings.Join(well, ", "), nil
}

// checkDues calls GET /dues of each agency's ERP with a subject that does not exist. An
// agency needs it for the citizens' portal only.
func (m examination) checkDues(ctx context.Context) (string, error) {
	well, ill, without, err := m.probe(ctx, func(ctx context.Context, b *roles.Base) ([]erp.Health, error) {
		return erp.ProbeDues(ctx, b.ERPs(), b.Registry), nil
	})
	if err != nil {
		return "", err
	}
	if len(ill) > 0 {
		return "", fmt.Errorf("GET /dues of an unknown subject, which is answered 200 with an empty list, fails at: %s; `quittance erp check` says what is wrong with an ERP", strings.Join(ill, ", "))
	}
	var found []string
	if len(well) > 0 {
		found = append(found, "answer: "+strings.Join(well, ", "))
	}
	if len(without) > 0 {
		found = append(found, "WARNING: without GET /dues, so that citizens see no dues of: "+strings.Join(without, ", "))
	}
	return cmp.Or(strings.Join(found, "; "), "no agency has an ERP"), nil
}

// checkAnswers has `sink erp` ask each agency's ERP for the dues of a subject that does not exist, as ingress and sink
// notify do. What an ERP answers is no fault of those.
func (m examination) checkAnswers(ctx context.Context) (string, error) {
	var answered, silent []string
	err := m.onRegistry(ctx, func(ctx context.Context, b *roles.Base) error {
		asker, err := b.AskERPs()
		if err != nil {
			return err
		}
		for _, h := range erp.ProbeDues(ctx, asker, b.Registry) {
			took := fmt.Sprintf("%s in %d ms", h.Name(), h.Result.Duration.Milliseconds())
			switch {
			case h.Result.Fault == erp.FaultUnanswered, h.Result.Fault == call.FaultInterrupted:
				silent = append(silent, h.Name())
			case h.Result.OK():
				answered = append(answered, took)
			default:
				answered = append(answered, took+" ("+h.Result.Reason()+")")
			}
		}
		return nil
	})
	slices.Sort(answered)
	slices.Sort(silent)
	switch {
	case err != nil:
		return "", err
	case len(silent) > 0:
		return "", fmt.Errorf("`quittance sink erp`, which asks the agencies' ERPs for dues, does not answer for: %s; start it, and see its log; whether these ERPs are well, `quittance doctor erp` says where it runs", strings.Join(silent, ", "))
	case len(answered) == 0:
		return "no agency has an ERP", nil
	}
	return "asks the ERPs: " + strings.Join(answered, ", "), nil
}

// unknownPath are the statuses of a system that does not know the path.
var unknownPath = map[int]bool{http.StatusNotFound: true, http.StatusMethodNotAllowed: true, http.StatusNotImplemented: true}

// probe probes all ERPs. The third list has those that do not know the path.
func (m examination) probe(ctx context.Context, ask func(context.Context, *roles.Base) ([]erp.Health, error)) (well, ill, without []string, err error) {
	err = m.onRegistry(ctx, func(ctx context.Context, b *roles.Base) error {
		answers, err := ask(ctx, b)
		if err != nil {
			return err
		}
		for _, h := range answers {
			switch {
			case h.Result.OK():
				well = append(well, fmt.Sprintf("%s in %d ms", h.Name(), h.Result.Duration.Milliseconds()))
			case unknownPath[h.Result.Status]:
				without = append(without, h.Name()+" ("+h.Result.Reason()+")")
			default:
				ill = append(ill, h.Name()+" ("+h.Result.Reason()+")")
			}
		}
		return nil
	})
	for _, list := range [][]string{well, ill, without} {
		slices.Sort(list)
	}
	return well, ill, without, err
}

const (
	outstandingShown = 5
	// outstandingPatience is how long a completed payment may have no attempt on record.
	outstandingPatience = time.Minute
)

// checkConfirmations lists the completed payments that an ERP has not accepted, with the reason of
// each (docs/design/delivery.md, "ERP"). It is an error if one of them has no next attempt.
func (m examination) checkConfirmations(ctx context.Context) (found string, err error) {
	err = m.OnDatabase(ctx, func(ctx context.Context, m *cli.Meta) error {
		outstanding, err := access.Deliveries(m).OutstandingConfirmations(ctx, m.Now)
		if err != nil {
			return err
		}
		var explained, stuck []string
		for _, o := range outstanding {
			switch said := outstandingText(o, m.Now); {
			case o.Parked(), o.DeliveryID == "" && m.Now.Sub(o.CompletedAt) > outstandingPatience:
				stuck = append(stuck, said)
			default:
				explained = append(explained, said)
			}
		}
		if len(stuck) > 0 {
			return fmt.Errorf("not accepted and without a next attempt: %s: %s", render.Counted(len(stuck), "completed payment"), listed(stuck))
		}
		if found = "every completed payment is accepted"; len(explained) > 0 {
			found = fmt.Sprintf("%s on the way: %s", render.CountedIs(len(explained), "completed payment"), listed(explained))
		}
		return nil
	})
	return found, err
}

func listed(said []string) string {
	if len(said) > outstandingShown {
		said = append(slices.Clone(said[:outstandingShown]), "and more")
	}
	return strings.Join(said, "; ")
}

// outstandingText describes a payment that an ERP has not accepted, with the reason.
func outstandingText(o deliveries.Outstanding, now time.Time) string {
	what := fmt.Sprintf("transaction %s of %s, completed at %s", o.TransactionID, erp.ID(o.Agency, o.Live), render.Moment(o.CompletedAt))
	switch {
	case o.DeliveryID == "":
		return what + ": no attempt is on record; if it was completed before the agency had an ERP, `quittance replay checkout.events --to erp --since TIME` sends it"
	case o.Parked():
		return fmt.Sprintf("%s: needs an operator (%s); when that is mended, `quittance deliveries retry %s` sends it", what, o.Reason, o.DeliveryID)
	case !o.NextAttemptAt.IsZero() && !o.NextAttemptAt.After(now):
		return fmt.Sprintf("%s: %s (%s), the next is due now", what, render.Counted(o.Attempts, "call"), o.Reason)
	case !o.NextAttemptAt.IsZero():
		return fmt.Sprintf("%s: %s (%s), the next at %s", what, render.Counted(o.Attempts, "call"), o.Reason, render.Moment(o.NextAttemptAt))
	}
	return what + ": " + o.State
}
