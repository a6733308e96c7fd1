package cli

import (
	"context"
	"errors"
	"strings"

	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/internal/support"
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
