package cli

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"quittance/internal/cases"
	"quittance/internal/clickhouse"
	"quittance/internal/deliveries"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/internal/support"
	"quittance/reconciliation"
	"quittance/schemas"
)

func sessionsCommand() Command {
	return Command{
		Use: "sessions", Short: "Say what became of a payment, for whoever answers a call about it",
		Commands: []Command{findSessions(), showSession()},
	}
}

func findSessions() Command {
	return Command{
		Use: "find TERM", Short: "Find payments by order, payment reference, session or operator's reference, and say what became of them", JSON: "the payments",
		Examples: []string{"sessions find DOSSIER-17", `sessions find "1234 5678 9012 3456"`},
		Missing:  "say what to look for: {usage}, an order, a payment reference, a session (chs_…) or the reference of an operator",
		Check:    quiet,
		Operate: func(ctx context.Context, m *Meta) error {
			return m.withDesk(ctx, func(ctx context.Context, d *support.Desk, dir registry.Directory) error {
				found, err := d.Find(ctx, m.args[0])
				if err != nil {
					return sessionError(err)
				}
				v := view{dir: dir, to: destinationsOf(dir)}
				var sent []deliveries.Delivery
				for _, one := range found.Payments {
					sent = append(sent, one.Deliveries...)
				}
				if v.reported, err = m.reported(ctx, sent...); err != nil {
					return err
				}
				if len(found.Payments) == 1 && len(found.Cases) == 0 && !m.asJSON {
					whole, err := d.Page(ctx, found.Payments[0].ID)
					if err != nil {
						return sessionError(err)
					}
					whole.Missing = append(whole.Missing, found.Missing...)
					return m.show(nil, func(p *page) { v.page(p, whole) })
				}
				if err := m.show(v.foundJSON(found), func(p *page) { v.found(p, found) }); err != nil || len(found.Payments)+len(found.Cases) > 0 {
					return err
				}
				return nothingFound(m.args[0])
			})
		},
	}
}

// nothingFound is the error of a search without a result. It does not repeat the term.
func nothingFound(term string) error {
	text := "nothing has this order, payment reference, session or operator's reference; orders are compared exactly, with capital and small letters"
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, term)
	if len(digits) == 16 && support.PaymentRef(term) == "" {
		text += "; its 16 digits are no payment reference, because the check digits do not fit: a digit is mistyped"
	}
	return errors.New(text)
}

func showSession() Command {
	return Command{
		Use: "show SESSION", Short: "Show everything about a payment: commands, events, calls to operators, deliveries, cases", JSON: "it",
		Examples: []string{"sessions show chs_0000000000000000000000000000"},
		Missing:  "say which session: {usage}, a chs_ id; `quittance sessions find TERM` finds it",
		Check:    quiet,
		Operate: func(ctx context.Context, m *Meta) error {
			return m.withDesk(ctx, func(ctx context.Context, d *support.Desk, dir registry.Directory) error {
				whole, err := d.Page(ctx, m.args[0])
				if err != nil {
					return sessionError(err)
				}
				v := view{dir: dir, to: destinationsOf(dir)}
				if v.reported, err = m.reported(ctx, whole.Deliveries...); err != nil {
					return err
				}
				return m.show(v.pageJSON(whole), func(p *page) { v.page(p, whole) })
			})
		},
	}
}

// sessionError returns the text for an error of a search.
func sessionError(err error) error {
	switch {
	case errors.Is(err, sessions.ErrNotFound):
		return operation.Refuse("case.session_unknown", "id", nil)
	case errors.Is(err, sessions.ErrBehind):
		return errBehind
	}
	return err
}

// errBehind is the error of commands that need the read model.
var errBehind = errors.New("the sink readmodel has not applied all events, so that the session is not known; check that `quittance sink readmodel` runs, then try again")

// withDesk opens what is known of payments and calls do. Without ClickHouse the journal is
// missing.
func (m *Meta) withDesk(ctx context.Context, do func(context.Context, *support.Desk, registry.Directory) error) error {
	if err := m.Need("kafka", "schema-registry"); err != nil {
		return err
	}
	viewer, err := m.viewer(ctx)
	if err != nil {
		return err
	}
	_, dir, err := m.slugs(ctx)
	if err != nil {
		return err
	}
	return m.withReader(ctx, func(ctx context.Context, r *readModel) error {
		cfg := support.Config{
			Sessions: r.sessions, Deliveries: m.deliveries(), Cases: cases.NewStore(m.pool), Kafka: m.KafkaConfig(), Topology: r.topology, Codec: r.codec,
			Machine: m.machine, Now: m.now, ApplicationIDs: applicationIDs(dir), Viewer: viewer,
		}
		conn, err := m.openJournal(ctx)
		if err != nil {
			cfg.NoJournal = err
		} else {
			defer func() { _ = conn.Close() }()
			cfg.Journal = journal.NewStore(conn)
		}
		d, err := support.New(cfg)
		if err != nil {
			return err
		}
		return do(ctx, d, dir)
	})
}

// openJournal opens ClickHouse.
func (m *Meta) openJournal(ctx context.Context) (clickhouse.Conn, error) {
	if err := m.Need("clickhouse"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, journalPatience)
	defer cancel()
	conn, err := clickhouse.Open(ctx, m.ClickHouse)
	if err != nil {
		return nil, err
	}
	if err := reconciliation.Check(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// openTopics reads how the topics are partitioned, and the schemas of their records.
func (m *Meta) openTopics(ctx context.Context) (*kafka.Topology, *schemas.Codec, error) {
	cl, err := m.KafkaConfig().Client()
	if err != nil {
		return nil, nil, err
	}
	defer cl.Close()
	topology, err := kafka.Load(ctx, m.KafkaConfig(), cl)
	if err != nil {
		return nil, nil, err
	}
	codec, err := m.OpenSchemas(ctx, false)
	return topology, codec, err
}

// agencyID returns the id of an agency by its slug or id, and the empty text for the empty text.
func (m *Meta) agencyID(ctx context.Context, which string) (string, error) {
	if which == "" {
		return "", nil
	}
	s, err := registry.Read(ctx, m.pool)
	if err != nil {
		return "", err
	}
	a, err := s.FindAgency(which)
	return a.ID, err
}

// journalPatience is how long a caller waits for ClickHouse.
const journalPatience = 5 * time.Second

// readModel is the read model, and what else reads Kafka.
type readModel struct {
	log      *slog.Logger
	topology *kafka.Topology
	codec    *schemas.Codec
	sessions *sessions.Reader
}

// withReader opens the read model and calls do.
func (m *Meta) withReader(ctx context.Context, do func(ctx context.Context, r *readModel) error) (err error) {
	r := &readModel{}
	if r.log, err = m.Logger(m.Err); err != nil {
		return err
	}
	if r.topology, r.codec, err = m.openTopics(ctx); err != nil {
		return err
	}
	if r.sessions, err = sessions.New(sessions.Config{Pool: m.pool, Kafka: m.KafkaConfig(), Topology: r.topology, Codec: r.codec, Log: r.log}); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return r.sessions.Run(running) })
	defer func() { stop(); err = errors.Join(err, g.Wait()) }()
	return do(ctx, r)
}
