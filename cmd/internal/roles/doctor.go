package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"quittance/dev/stack"
	"quittance/dev/stack/chdb"
	"quittance/internal/clickhouse"
	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/reconciliation"
	"quittance/schemas"
	"quittance/sinks/erp"
)

// check is one thing that a role needs.
type check struct {
	name string
	// do returns what was found, or what is missing and how to mend it.
	do func(ctx context.Context) (found string, err error)
}

func doctor() *cobra.Command {
	s := &Settings{}
	var broker, registryFile string
	names := append([]string{"up", "ingress", "processor"}, sinkNames()...)
	cmd := command("doctor [ROLE]", "Check every part that a role needs, and say how to mend what is missing", s, func(cmd *cobra.Command, args []string) error {
		role := "up"
		if len(args) > 0 {
			role = args[0]
		}
		if !slices.Contains(names, role) {
			return fmt.Errorf("no role is called %q; the roles are %s", role, strings.Join(names, ", "))
		}
		var checks []check
		if role == "up" {
			checks = (&developer{Settings: *s, broker: broker, registry: registryFile}).checks()
		} else {
			if err := s.locate(); err != nil {
				return err
			}
			checks = s.checks(role)
		}
		bad := 0
		for _, c := range checks {
			ctx, cancel := context.WithTimeout(cmd.Context(), 10*time.Second)
			found, err := c.do(ctx)
			cancel()
			mark := "ok  "
			if err != nil {
				mark, found = "FAIL", err.Error()
				bad++
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s  %-16s %s\n", mark, c.name, found)
		}
		if bad > 0 {
			return fmt.Errorf("%d of %d checks for %s did not pass", bad, len(checks), role)
		}
		return nil
	})
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.Flags().StringVar(&broker, "broker", brokerEmbedded, "what up will be given")
	cmd.Flags().StringVar(&registryFile, "registry", "deploy/dev/registry.yaml", "what up will be given")
	return cmd
}

// needs are the parts of each role besides broker and schemas.
var needs = map[string][]string{
	"ingress": {"postgres", "master keys"}, "collect": {"postgres", "master keys"}, "webhook": {"postgres", "master keys"},
	"erp": {"postgres", "master keys"}, "schedule": {"postgres", "master keys"}, "readmodel": {"postgres"}, "journal": {"clickhouse"},
}

func (s *Settings) checks(role string) []check {
	parts := map[string]func(context.Context) (string, error){
		"postgres": s.checkPostgres, "clickhouse": s.checkClickHouse,
		"master keys": func(context.Context) (string, error) {
			_, err := s.masterKeys()
			return configured(s.MasterKeys), err
		},
	}
	out := []check{{"kafka", s.checkKafka}, {"schema registry", s.checkSchemas}}
	for _, n := range needs[role] {
		out = append(out, check{n, parts[n]})
	}
	if role == "erp" {
		out = append(out, check{"erps", s.checkERPs}, check{"confirmations", s.checkOwed})
	}
	if s.Developer && !slices.Contains(needs[role], "postgres") {
		out = append(out, check{"postgres", s.checkPostgres}) // the movable clock lies there
	}
	return out
}

func (s *Settings) checkKafka(ctx context.Context) (string, error) {
	if err := s.need("kafka"); err != nil {
		return "", err
	}
	cl, err := s.kafkaConfig().Client()
	if err != nil {
		return "", err
	}
	defer cl.Close()
	if err := cl.Ping(ctx); err != nil {
		return "", fmt.Errorf("no broker answers at %s: %w; check the address and that the broker runs", s.Kafka, err)
	}
	space, err := kafka.Load(ctx, s.kafkaConfig(), cl)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %d partitions of %s", s.Kafka, space.Count(schemas.TopicCommands), space.Name(schemas.TopicCommands)), nil
}

func (s *Settings) checkSchemas(ctx context.Context) (string, error) {
	if err := s.need("schema-registry"); err != nil {
		return "", err
	}
	reg, err := schemas.NewClient(s.SchemaRegistry)
	if err != nil {
		return "", err
	}
	if _, err := schemas.NewCodec(ctx, reg, false); err != nil {
		return "", err
	}
	return withoutPassword(s.SchemaRegistry) + ", all schemas registered", nil
}

func (s *Settings) checkPostgres(ctx context.Context) (string, error) {
	if err := s.need("postgres"); err != nil {
		return "", err
	}
	pool, err := postgres.Open(ctx, s.Postgres)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	n, err := postgres.Pending(ctx, pool)
	if err != nil {
		return "", err
	}
	if n > 0 {
		return "", fmt.Errorf("%d migrations are pending; run `quittance migrate`", n)
	}
	return withoutPassword(s.Postgres) + ", up to date", nil
}

func (s *Settings) checkClickHouse(ctx context.Context) (string, error) {
	if err := s.need("clickhouse"); err != nil {
		return "", err
	}
	conn, err := clickhouse.Open(ctx, s.ClickHouse)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := reconciliation.Check(ctx, conn); err != nil {
		return "", fmt.Errorf("%w; run `quittance migrate`", err)
	}
	return withoutPassword(s.ClickHouse) + ", up to date", nil
}

// checkERPs asks each agency's ERP how it is.
func (s *Settings) checkERPs(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b, err := openBase(ctx, *s, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer func() { cancel(); _ = b.wait() }()
	if err := b.openRegistry(); err != nil {
		return "", err
	}
	prober, err := b.erpProber()
	if err != nil {
		return "", err
	}
	var well, ill []string
	for _, h := range prober.Probe(ctx) {
		if h.Result.OK() {
			well = append(well, fmt.Sprintf("%s in %d ms", h.Name(), h.Result.Duration.Milliseconds()))
		} else {
			ill = append(ill, h.Name()+" ("+h.Result.Reason()+")")
		}
	}
	slices.Sort(well)
	slices.Sort(ill)
	switch {
	case len(ill) > 0:
		return "", fmt.Errorf("GET /health does not succeed at: %s; check base_url, auth and networks of these agencies' ERPs, and that they run", strings.Join(ill, ", "))
	case len(well) == 0:
		return "no agency has one", nil
	}
	return "answer: " + strings.Join(well, ", "), nil
}

const (
	owedShown = 5
	// owedPatience is how long a payment may have no attempt on record: it is on
	// its way.
	owedPatience = time.Minute
)

// checkOwed is the standing query for completed payments that an ERP has not
// accepted: none, or each with its reason (delivery.md, "ERP"). What waits for its
// next attempt is explained; what nothing will send is not.
func (s *Settings) checkOwed(ctx context.Context) (found string, err error) {
	err = s.onPostgres(ctx, func(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
		owed, err := deliveries.OwedConfirmations(ctx, pool, now)
		if err != nil {
			return err
		}
		var explained, stuck []string
		for _, o := range owed {
			switch said := owedSaid(o); {
			case o.Parked(), o.DeliveryID == "" && now.Sub(o.CompletedAt) > owedPatience:
				stuck = append(stuck, said)
			default:
				explained = append(explained, said)
			}
		}
		if len(stuck) > 0 {
			return fmt.Errorf("%d completed payments are not accepted, and nothing sends them: %s", len(stuck), listed(stuck))
		}
		if found = "every completed payment is accepted"; len(explained) > 0 {
			found = fmt.Sprintf("%d completed payments are on their way: %s", len(explained), listed(explained))
		}
		return nil
	})
	return found, err
}

func listed(said []string) string {
	if len(said) > owedShown {
		said = append(slices.Clone(said[:owedShown]), "and more")
	}
	return strings.Join(said, "; ")
}

// owedSaid is a payment that an ERP has not accepted, and why.
func owedSaid(o deliveries.Owed) string {
	what := fmt.Sprintf("transaction %s of %s, completed at %s", o.TransactionID, erp.DestinationID(o.Agency, o.Live), moment(o.CompletedAt))
	switch {
	case o.DeliveryID == "":
		return what + ": no attempt is on record; if it was completed before the agency had an ERP, `quittance replay erp.confirmations --to erp` sends it"
	case o.Parked():
		return fmt.Sprintf("%s: needs an operator (%s), `quittance deliveries retry %s` when that is mended", what, o.Reason, o.DeliveryID)
	case !o.NextAttemptAt.IsZero():
		return fmt.Sprintf("%s: %d calls (%s), the next at %s", what, o.Attempts, o.Reason, moment(o.NextAttemptAt))
	}
	return what + ": " + o.State
}

// checks of developer mode: what `up` starts, before it does.
func (u *developer) checks() []check {
	if u.Port == 0 {
		u.Port = defaultPort
	}
	out := []check{
		{"registry file", func(context.Context) (string, error) {
			if _, err := os.Stat(u.registry); err != nil {
				return "", fmt.Errorf("%w; name the file with --registry", err)
			}
			return u.registry, nil
		}},
		{"data folder", func(context.Context) (string, error) {
			dir, err := filepath.Abs(u.Data)
			if err != nil {
				return "", err
			}
			return dir, stack.CheckPostgresDir(dir)
		}},
		{"postgres", func(context.Context) (string, error) { return stack.FindPostgres("") }},
		{"clickhouse", func(context.Context) (string, error) { return chdb.FindLibrary() }},
	}
	if u.broker == brokerKafka {
		out = append(out,
			check{"kafka", func(context.Context) (string, error) { return stack.FindKafkaLibs("") }},
			check{"java", func(context.Context) (string, error) {
				java, err := exec.LookPath("java")
				if err != nil {
					return "", errors.New("no java on the PATH; run `make deps/test`, which installs it or names the command that does")
				}
				return java, nil
			}})
	}
	ports := map[string]int{
		"service": 0, "simulators": portSimulators, "broker": portBroker, "postgres": portPostgres, "clickhouse": portClickHouse,
		"schema registry": portSchemaRegistry, "health": portHealth,
	}
	return append(out, check{"ports", func(ctx context.Context) (string, error) {
		var taken []string
		for name, offset := range ports {
			l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", local(u.Port+offset))
			if err != nil {
				taken = append(taken, fmt.Sprintf("%d (%s)", u.Port+offset, name))
				continue
			}
			_ = l.Close()
		}
		slices.Sort(taken)
		if len(taken) > 0 {
			return "", fmt.Errorf("in use: %s; is an `up` running already? Choose another --port", strings.Join(taken, ", "))
		}
		return fmt.Sprintf("%d to %d are free", u.Port, u.Port+portHealth), nil
	}})
}
