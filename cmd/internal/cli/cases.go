package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/commands"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/sessions"
	"quittance/money"
	"quittance/schemas"
)

// carriedOutWithin is how long `cases approve` waits for the processor.
const carriedOutWithin = 5 * time.Second

func casesCommand() Command {
	return Command{
		Use: "cases", Short: "Resolve operator cases: late, mismatched, orphaned and undecided money, refunds, breaks of reconciliation, poison",
		Commands: []Command{listCases(), showCase(), openCase(), proposeCase(), approveCase(), rejectCase()},
	}
}

// whichCase is the error when the argument CASE is missing.
const whichCase = "say which case: {usage}; `quittance cases list` shows the ids"

// person returns the person whose key is in the environment.
func (m *Meta) person(ctx context.Context) (cases.By, error) {
	e, err := identity.AuthenticateStaff(ctx, m.pool, staffKey(), m.now)
	origin, _ := os.Hostname()
	return cases.By{Staff: e.Staff, Origin: origin}, err
}

// viewer returns the person who looks at cases; nil without a key in the environment.
// Whoever has the database's password may look at all cases.
func (m *Meta) viewer(ctx context.Context) (*identity.Staff, error) {
	if staffKey() == "" {
		return nil, nil //nolint:nilnil // nobody
	}
	by, err := m.person(ctx)
	return &by.Staff, err
}

// caseJSON is a case as `cases list --json` prints it. Amount and currency are null for
// poison.
func caseJSON(c cases.Case) object {
	var amount any
	if c.Currency != "" {
		amount = c.Amount
	}
	return object{
		"id", c.ID, "kind", c.Kind, "state", c.State(), "session_id", orNone(c.SessionID), "order_id", orNone(c.OrderID),
		"amount", amount, "currency", orNone(c.Currency), "opened_at", c.OpenedAt,
	}
}

// detailJSON is a case as the other commands print it. The agency is a slug.
func detailJSON(d cases.Detail, agency string) object {
	return append(caseJSON(d.Case),
		"agency", orNone(agency), "application_id", orNone(d.ApplicationID), "mode", orNone(d.Mode), "collection_id", orNone(d.CollectionID),
		"operator_ref", orNone(d.OperatorRef), "reason", orNone(d.Reason), "opened_by", orNone(d.By), "clerks", d.Clerks, "evidence", d.Evidence,
		"resolution", orNone(string(d.Resolution)), "reference", orNone(d.Reference), "closed_by", orNone(d.ClosedBy), "closed_at", d.ClosedAt,
		"proposals", mapped(d.Proposals, func(p cases.Proposal) object {
			return object{
				"number", p.Number, "state", p.State, "resolution", p.Resolution, "reference", orNone(p.Reference), "reason", p.Reason,
				"proposed_by", p.Proposer, "proposed_at", p.ProposedAt, "decided_by", orNone(p.Decider), "decided_at", p.DecidedAt,
				"rejection", orNone(p.Decision), "refusal", orNone(p.Refusal), "finished_at", p.FinishedAt,
			}
		}))
}

// slugs returns the slugs of agencies by id.
func (m *Meta) slugs(ctx context.Context) (map[string]string, registry.Directory, error) {
	dir, err := registry.ReadDirectory(ctx, m.pool, m.SimulatorURL, m.now)
	out := map[string]string{}
	for _, a := range dir.Agencies {
		out[a.ID] = a.Slug
	}
	return out, dir, err
}

func listCases() Command {
	var kind, agency, state string
	return Command{
		Use: "list", Short: "List cases, open ones first; an agency's staff see those of the agency", JSON: "the list",
		Examples: []string{"cases list --state open", "cases list --kind late_payment --agency impots --json"},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			takesChoice(f, &kind, "kind", texts(cases.Catalog().Kinds), "")
			f.StringVar(&agency, "agency", "", "cases of this agency, by slug or id")
			takesChoice(f, &state, "state", texts(cases.States()), "")
		},
		Operate: func(ctx context.Context, m *Meta) error {
			viewer, err := m.viewer(ctx)
			if err != nil {
				return err
			}
			slugs, dir, err := m.slugs(ctx)
			if err != nil {
				return err
			}
			filter := cases.Filter{Kind: casework.Kind(kind), State: cases.State(state)}
			if agency != "" {
				a, ok := dir.Agency(agency)
				if !ok {
					return operation.Refuse("agency.unknown", "agency", operation.Args{"agencies": slices.Sorted(maps.Values(slugs))})
				}
				filter.AgencyID = a.ID
			}
			list, err := cases.NewStore(m.pool).List(ctx, viewer, filter)
			if err != nil {
				return err
			}
			return m.show(mapped(list, caseJSON), func(p *page) {
				p.table("there are no such cases", "ID,KIND,STATE,AMOUNT,AGENCY,ORDER,OPENED", mapped(list, func(c cases.Case) []any {
					return []any{c.ID, c.Kind, c.State(), sum(c), slugs[c.AgencyID], c.OrderID, moment(c.OpenedAt)}
				}))
			})
		},
	}
}

func texts[T ~string](list []T) []string { return mapped(list, func(v T) string { return string(v) }) }

// sum returns the money of a case for people.
func sum(c cases.Case) string {
	if c.Currency == "" {
		return "-"
	}
	return decimal(c.Amount, c.Currency)
}

// decimal returns an amount in minor units for people.
func decimal(amount int64, currency string) string {
	if known, ok := money.Lookup(currency); ok {
		return known.Decimal(amount) + " " + currency
	}
	return fmt.Sprintf("%d %s", amount, currency)
}

// showDetail prints a case with its proposals.
func (m *Meta) showDetail(ctx context.Context, d cases.Detail) error {
	slugs, _, err := m.slugs(ctx)
	if err != nil {
		return err
	}
	return m.show(detailJSON(d, slugs[d.AgencyID]), func(p *page) { p.caseDetail(d, slugs[d.AgencyID]) })
}

func (p *page) caseDetail(d cases.Detail, agency string) {
	p.facts([][2]string{
		{"ID", d.ID},
		{"Kind", string(d.Kind)},
		{"State", string(d.State())},
		{"Amount", sum(d.Case)},
		{"Agency", agency},
		{"Mode", d.Mode},
		{"Session", d.SessionID},
		{"Order", d.OrderID},
		{"Collection", d.CollectionID},
		{"Operator's reference", d.OperatorRef},
		{"Reason", d.Reason},
		{"Opened by", d.By},
		{"Clerks", strings.Join(d.Clerks, ", ")},
		{"Opened", moment(d.OpenedAt)},
		{"Resolution", string(d.Resolution)},
		{"Reference", d.Reference},
		{"Closed by", d.ClosedBy},
		{"Closed", momentOr(d.ClosedAt, "")},
	}, mapped(slices.DeleteFunc(slices.Sorted(maps.Keys(d.Evidence)), shownAbove), func(name string) [2]string { return [2]string{"Evidence, " + name, d.Evidence[name]} }))
	if len(d.Proposals) > 0 {
		p.say("")
		p.table("", "PROPOSAL,RESOLUTION,REFERENCE,BY,AT,STATE,REASON", mapped(d.Proposals, func(v cases.Proposal) []any {
			return []any{v.Number, v.Resolution, orDash(v.Reference), v.Proposer, moment(v.ProposedAt), proposalSaid(v), v.Reason}
		}))
	}
	p.nextStep(d)
}

// shownAbove reports whether the page has an evidence among the facts of all cases.
func shownAbove(evidence string) bool {
	return evidence == cases.EvidenceTenant || evidence == cases.EvidenceFound
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// proposalSaid returns the state of a proposal for people.
func proposalSaid(p cases.Proposal) string {
	switch p.State {
	case cases.ProposalApproved, cases.ProposalCarriedOut:
		return string(p.State) + ", approved by " + p.Decider
	case cases.ProposalRefused:
		return "refused: " + p.Refusal
	case cases.ProposalRejected:
		return "rejected by " + p.Decider + ": " + p.Decision
	case cases.ProposalOpen, cases.ProposalLapsed, cases.ProposalVoid:
	}
	return string(p.State)
}

// nextStep says what to type next.
func (p *page) nextStep(d cases.Detail) {
	if !d.Open() {
		return
	}
	for _, v := range d.Proposals {
		switch v.State {
		case cases.ProposalOpen:
			which := ""
			if len(d.Proposals) > 1 {
				which = fmt.Sprintf(" --proposal %d", v.Number)
			}
			p.say("\nAnother person approves it with `quittance cases approve %s%s`, or ends it with `quittance cases reject %[1]s --reason TEXT`.", d.ID, which)
			return
		case cases.ProposalApproved:
			p.say("\nThe sink cases carries it out; `quittance cases show %s` tells the outcome.", d.ID)
			return
		case cases.ProposalCarriedOut, cases.ProposalRefused, cases.ProposalRejected, cases.ProposalLapsed, cases.ProposalVoid:
		}
	}
	if d.Kind == cases.KindBreak || d.Kind == cases.KindProposal {
		p.say("\n`quittance chain %s` shows its rows with their amounts and what proves them.", d.ID)
	}
	p.say("\n`quittance cases propose %s RESOLUTION` proposes one of: %s.", d.ID, strings.Join(texts(cases.Catalog().Allowed(d.Kind)), ", "))
}

func showCase() Command {
	return Command{
		Use: "show CASE", Short: "Show a case with its evidence and its proposals", JSON: "it", Missing: whichCase,
		Examples: []string{"cases show case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e"},
		Operate: func(ctx context.Context, m *Meta) error {
			viewer, err := m.viewer(ctx)
			if err != nil {
				return err
			}
			d, err := cases.NewStore(m.pool).Show(ctx, viewer, m.args[0], m.now)
			if err != nil {
				return err
			}
			return m.showDetail(ctx, d)
		},
	}
}

func proposeCase() Command {
	var req cases.Request
	return Command{
		Use: "propose CASE RESOLUTION", Short: "Propose how to resolve a case: " + strings.Join(texts(cases.Catalog().Resolutions()), ", "), JSON: "the case",
		Examples: []string{
			`cases propose case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e honour --reason "the citizen waits for the certificate"`,
			`cases propose case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e refund --reason "paid twice" --reference "MTN 918273, 2026-11-22"`,
			`cases propose case_7k2m9q4s6u8w0y1a3c5e7g9i1k3m5o7q match_by_hand --reason "the bank shortened the reference" --reference case_0b2d4f6h8j0l2n4p6r8t0v2x4z6b8d0f`,
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("say which case and how to resolve it: `%s CASE RESOLUTION`; `quittance cases show CASE` says which resolutions it allows", cmd.CommandPath())
			}
			return nil
		},
		Valid: texts(cases.Catalog().Resolutions()),
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.StringVar(&req.Reason, "reason", "", "why; it is recorded")
			f.StringVar(&req.Reference, "reference", "", "what proves it: reference and date of the refund, the operator's letter, the ERP's reference; of match_by_hand the cases of the other breaks, separated by commas")
		},
		Operate: func(ctx context.Context, m *Meta) error {
			by, err := m.person(ctx)
			if err != nil {
				return err
			}
			req.CaseID, req.Resolution = m.args[0], casework.Resolution(m.args[1])
			d, err := cases.NewStore(m.pool).Propose(ctx, by, req, m.now)
			if err != nil {
				return asArgument(err, "resolution", "RESOLUTION")
			}
			return m.carriedOut(ctx, by, d)
		},
	}
}

// asArgument names the argument of a refusal whose field is no flag.
func asArgument(err error, field, argument string) error {
	var refused *operation.Error
	if errors.As(err, &refused) && refused.Field == field {
		return errors.New(argument + ": " + inWords(err).Error())
	}
	return err
}

func approveCase() Command {
	var number int
	return Command{
		Use: "approve CASE", Short: "Approve another person's proposal, which is then carried out", JSON: "the case", Missing: whichCase,
		Examples: []string{"cases approve case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e", "cases approve case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e --proposal 2"},
		Flags: func(f *pflag.FlagSet, _ *Meta) {
			f.IntVar(&number, "proposal", 0, "number of the proposal; needed when the case has had more than one")
		},
		Check: func(m *Meta) error {
			if m.cmd.Flags().Changed("proposal") && number < 1 {
				return usage("--proposal: must be 1 or more")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *Meta) error {
			by, err := m.person(ctx)
			if err != nil {
				return err
			}
			d, err := cases.NewStore(m.pool).Approve(ctx, by, m.args[0], number, m.now)
			if err != nil {
				return err
			}
			return m.carriedOut(ctx, by, d)
		},
	}
}

// carriedOut shows a case. When a proposal was approved just now, it waits a moment for
// the processor's answer and for the event that closes the case.
func (m *Meta) carriedOut(ctx context.Context, by cases.By, d cases.Detail) error {
	waiting := func() bool {
		last := d.Proposals[len(d.Proposals)-1]
		return last.State == cases.ProposalApproved || last.State == cases.ProposalCarriedOut && d.Open()
	}
	for until := time.Now().Add(carriedOutWithin); waiting() && time.Now().Before(until) && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
			now, err := cases.NewStore(m.pool).Show(ctx, &by.Staff, d.ID, m.now)
			if err != nil {
				return err
			}
			d = now
		}
	}
	return m.showDetail(context.WithoutCancel(ctx), d)
}

func rejectCase() Command {
	var reason string
	return Command{
		Use: "reject CASE", Short: "End the open proposal of a case; whoever proposed it may withdraw it", JSON: "the case", Missing: whichCase,
		Examples: []string{`cases reject case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e --reason "the refund is not in the statement"`},
		Flags:    func(f *pflag.FlagSet, _ *Meta) { f.StringVar(&reason, "reason", "", "why; it is recorded") },
		Operate: func(ctx context.Context, m *Meta) error {
			by, err := m.person(ctx)
			if err != nil {
				return err
			}
			d, err := cases.NewStore(m.pool).Reject(ctx, by, m.args[0], reason, m.now)
			if err != nil {
				return err
			}
			return m.showDetail(ctx, d)
		},
	}
}

func openCase() Command {
	var reason string
	return Command{
		Use: "open SESSION", Short: "Open a case about a completed payment that is to be given back", JSON: "the ids of the case and the session",
		Missing:  "say which session: {usage}, the chs_ id of a completed payment",
		Examples: []string{`cases open chs_0000000000000000000000000000 --reason "the wrong taxpayer paid"`},
		Flags:    func(f *pflag.FlagSet, _ *Meta) { f.StringVar(&reason, "reason", "", "why; it is recorded") },
		Operate: func(ctx context.Context, m *Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			by, err := m.person(ctx)
			if err != nil {
				return err
			}
			id, err := m.requestRefund(ctx, by, reason)
			if err != nil {
				return err
			}
			return m.show(object{"id", id, "session_id", m.args[0]}, func(p *page) {
				p.say("Case %s is open. `quittance cases propose %s refund --reason TEXT --reference REF` records that the money was given back.", id, id)
			})
		},
	}
}

// requestRefund opens a refund request through the processor.
func (m *Meta) requestRefund(ctx context.Context, by cases.By, reason string) (caseID string, err error) {
	err = m.withProcessor(ctx, func(ctx context.Context, processor *commands.Checkout, reader *sessions.Reader) error {
		session, err := reader.ByID(ctx, m.args[0])
		switch {
		case errors.Is(err, sessions.ErrNotFound):
			return operation.Refuse("case.session_unknown", "id", nil)
		case errors.Is(err, sessions.ErrBehind):
			return errBehind
		case err != nil:
			return err
		}
		caseID, err = cases.NewStore(m.pool).OpenRefundRequest(ctx, by, processor, session, reason, m.now)
		if errors.Is(err, commands.ErrUnavailable) {
			return errors.New("the processor did not answer in time; the case may be open: give the command again, which opens no second one")
		}
		return err
	})
	return caseID, err
}

// withProcessor opens the processor of checkout sessions and the read model, and calls do.
func (m *Meta) withProcessor(ctx context.Context, do func(ctx context.Context, processor *commands.Checkout, reader *sessions.Reader) error) error {
	return m.withReader(ctx, func(ctx context.Context, r *readModel) (err error) {
		processor, err := commands.New(ctx, commands.Config[checkout.Command, checkout.Answer]{
			Kafka: m.KafkaConfig(), Topology: r.topology, Family: schemas.Checkout, Protocol: commands.CheckoutProtocol(r.codec, r.topology), Log: r.log, Metrics: prometheus.NewRegistry(),
		})
		if err != nil {
			return err
		}
		running, stop := context.WithCancel(ctx)
		var g errgroup.Group
		g.Go(func() error { return processor.Run(running) })
		defer func() { stop(); err = errors.Join(err, g.Wait()) }()
		return do(ctx, processor, r.sessions)
	})
}
