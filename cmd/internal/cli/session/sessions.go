package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/checkout"
	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/display"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/internal/support"
	"quittance/money/localtime"
)

// Command returns the command `sessions`.
func Command() cli.Command {
	return cli.Command{
		Use: "sessions", Short: "Say what became of a payment, for whoever answers a call about it",
		Commands: []cli.Command{listSessions(), findSessions(), showSession()},
	}
}

func findSessions() cli.Command {
	return cli.Command{
		Use: "find TERM", Short: "Find payments by order, payment reference, session or operator's reference, and say what became of them", JSON: "the payments",
		Examples: []string{"sessions find DOSSIER-17", `sessions find "1234 5678 9012 3456"`},
		Missing:  "say what to look for: {usage}, an order, a payment reference, a session (chs_…) or the reference of an operator",
		Check:    cli.Quiet,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return withDesk(ctx, m, func(ctx context.Context, d *support.Desk, dir registry.Directory) error {
				found, err := d.Find(ctx, m.Args[0])
				if err != nil {
					return sessionError(err)
				}
				v := view{dir: dir, to: display.DestinationsOf(dir), now: m.Now}
				var sent []deliveries.Delivery
				ids := make([]string, len(found.Payments))
				for i, one := range found.Payments {
					sent, ids[i] = append(sent, one.Deliveries...), one.ID
				}
				// The term is not recorded: people type telephone numbers there.
				if err := m.Audit(ctx, "session.find", "", map[string]any{"sessions": ids[:min(len(ids), 20)], "found": len(ids), "cases": len(found.Cases)}); err != nil {
					return err
				}
				if v.reported, err = display.Reported(ctx, m, sent...); err != nil {
					return err
				}
				if len(found.Payments) == 1 && len(found.Cases) == 0 && !m.AsJSON {
					whole, err := d.Page(ctx, found.Payments[0].ID)
					if err != nil {
						return sessionError(err)
					}
					whole.Missing = append(whole.Missing, found.Missing...)
					return m.Show(nil, func(p *render.Page) { v.page(p, whole) })
				}
				if err := m.Show(v.foundJSON(found), func(p *render.Page) { v.found(p, found) }); err != nil || len(found.Payments)+len(found.Cases) > 0 {
					return err
				}
				return nothingFound(m.Args[0])
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

func showSession() cli.Command {
	return cli.Command{
		Use: "show SESSION", Short: "Show everything about a payment: commands, events, calls to operators, deliveries, cases", JSON: "it",
		Examples: []string{"sessions show chs_0000000000000000000000000000"},
		Missing:  "say which session: {usage}, a chs_ id; `quittance sessions find TERM` finds it",
		Check:    cli.Quiet,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return withDesk(ctx, m, func(ctx context.Context, d *support.Desk, dir registry.Directory) error {
				whole, err := d.Page(ctx, m.Args[0])
				if err != nil {
					return sessionError(err)
				}
				if err := m.Audit(ctx, "session.read", whole.ID, nil); err != nil {
					return err
				}
				v := view{dir: dir, to: display.DestinationsOf(dir), now: m.Now}
				if v.reported, err = display.Reported(ctx, m, whole.Deliveries...); err != nil {
					return err
				}
				return m.Show(v.pageJSON(whole), func(p *render.Page) { v.page(p, whole) })
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
		return access.ErrBehind
	}
	return err
}

// withDesk opens what is known of payments and calls do. Without ClickHouse the journal is
// missing.
func withDesk(ctx context.Context, m *cli.Meta, do func(context.Context, *support.Desk, registry.Directory) error) error {
	if err := m.Need("kafka", "schema-registry"); err != nil {
		return err
	}
	viewer, err := access.Viewer(ctx, m)
	if err != nil {
		return err
	}
	_, dir, err := access.Slugs(ctx, m)
	if err != nil {
		return err
	}
	return access.WithReader(ctx, m, func(ctx context.Context, r *access.ReadModel) error {
		cfg := support.Config{
			Sessions: r.Sessions, Deliveries: access.Deliveries(m), Cases: cases.NewStore(m.Pool), Kafka: m.KafkaConfig(), Topology: r.Topology, Codec: r.Codec,
			Machine: m.Machine, Now: m.Now, ApplicationIDs: access.ApplicationIDs(dir, viewer), Viewer: viewer,
		}
		conn, err := access.OpenJournal(ctx, m)
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

// listAtMost is the number of payments of a page of `sessions list`.
const listAtMost = 50

func listSessions() cli.Command {
	var order, status, agency, day, mode, after string
	return cli.Command{
		Use: "list", Short: "List payments, newest first, 50 at a time", JSON: "the payments, and after which the next page begins", Args: cobra.NoArgs,
		Examples: []string{"sessions list --mode live --status completed --day 2026-11-29", "sessions list --mode test --agency impots --json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			cli.TakesMode(f, &mode)
			f.StringVar(&order, "order", "", "payments of this order")
			cli.TakesChoice(f, &status, "status", render.Texts(checkout.Statuses()), "")
			f.StringVar(&agency, "agency", "", "payments of this agency, by slug or id")
			f.StringVar(&day, "day", "", "payments that were made on this day in Brazzaville, such as 2026-11-29")
			f.StringVar(&after, "after", "", "continue after a page: `next` of its --json")
		},
		Check: func(m *cli.Meta) error {
			if _, err := localtime.Begin(day); day != "" && err != nil {
				return cli.Usage("--day: must be a date such as 2026-11-29")
			}
			if err := cli.NeedsMode(mode); err != nil {
				return err
			}
			return cli.Quiet(m)
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			viewer, err := access.Viewer(ctx, m)
			if err != nil {
				return err
			}
			slugs, dir, err := access.Slugs(ctx, m)
			if err != nil {
				return err
			}
			q := sessions.PageQuery{Live: mode == registry.Mode(true), OrderID: order, Status: checkout.Status(status), After: after, Size: listAtMost}
			if day != "" {
				q.MadeFrom, _ = localtime.Begin(day) // Check has read it
				q.MadeTo = q.MadeFrom.AddDate(0, 0, 1)
			}
			chosen, known := dir.Agency(agency)
			if agency != "" && !known {
				return operation.Refuse("agency.unknown", "agency", operation.Args{"agencies": slices.Sorted(maps.Values(slugs))})
			}
			for _, a := range dir.Applications {
				if (viewer == nil || viewer.ActsFor(a.AgencyID)) && (agency == "" || a.AgencyID == chosen.ID) {
					q.TenantIDs, q.ApplicationIDs = append(q.TenantIDs, a.AgencyID), append(q.ApplicationIDs, a.ID)
				}
			}
			return access.WithReader(ctx, m, func(ctx context.Context, r *access.ReadModel) error {
				page, err := r.Sessions.Page(ctx, q)
				if err != nil {
					return sessionError(err)
				}
				v := view{dir: dir}
				return m.Show(render.Object{"payments", render.Mapped(page.Items, func(s checkout.Session) render.Object {
					return render.Object{
						"id", s.ID, "order_id", s.OrderID, "agency", v.agency(s.TenantID), "application", v.application(s.ApplicationID), "status", s.Status, "amount", s.Amount, "currency", s.Currency,
						"payment_ref", s.PaymentRef, "created_at", s.CreatedAt,
					}
				}), "next?", page.Next}, func(p *render.Page) {
					p.Table("there are no such payments", "CREATED,ORDER,AGENCY,AMOUNT,STATUS,PAYMENT REFERENCE", render.Mapped(page.Items, func(s checkout.Session) []any {
						return []any{render.Moment(s.CreatedAt), s.OrderID, v.agency(s.TenantID), render.Decimal(s.Amount, s.Currency), s.Status, s.PaymentRef}
					}))
					if page.Next != "" {
						p.Say("\nThere are more: `--after %s` goes on.", page.Next)
					}
				})
			})
		},
	}
}
