package operatorcase

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/casework"
	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/display"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/cases"
	"quittance/internal/commands"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/sessions"
)

// Time that `cases approve` waits for the processor's answer, and for the matcher's, which looks every 5 s
// for what it has to carry out, after the journal has the approval.
var (
	answeredWithin = 10 * time.Second
	storedWithin   = 10 * time.Second
	matchedWithin  = 45 * time.Second
)

// Command returns the command `cases`.
func Command() cli.Command {
	return cli.Command{
		Use: "cases", Short: "Resolve operator cases: late, mismatched, orphaned and undecided money, refunds, breaks of reconciliation, poison",
		Commands: []cli.Command{listCases(), showCase(), openCase(), proposeCase(), approveCase(), rejectCase()},
		Words:    words,
	}
}

// whichCase is the error when the argument CASE is missing.
const whichCase = "say which case: {usage}; `quittance cases list` shows the ids"

func listCases() cli.Command {
	var kind, agency, state, mode, after string
	var limit int
	return cli.Command{
		Use: "list", Short: "List cases, open ones first; an agency's staff see those of the agency", JSON: "the list",
		Examples: []string{"cases list --state open", "cases list --kind late_payment --agency impots --json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			cli.TakesChoice(f, &kind, "kind", render.Texts(cases.Catalog().Kinds), "")
			f.StringVar(&agency, "agency", "", "cases of this agency, by slug or id")
			cli.TakesChoice(f, &state, "state", render.Texts(cases.States()), "")
			cli.TakesMode(f, &mode)
			f.StringVar(&after, "after", "", "go on after the list whose last case has this cursor (--json); repeat the other flags")
			f.IntVar(&limit, "limit", 1000, "number of cases at most")
		},
		Check: func(*cli.Meta) error {
			if limit < 1 {
				return cli.Usage("--limit: must be 1 or more")
			}
			if mode == "" {
				return nil
			}
			return cli.NeedsMode(mode)
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
			filter := cases.Filter{Kind: casework.Kind(kind), State: cases.State(state), Mode: mode, After: after, Limit: limit}
			if agency != "" {
				a, ok := dir.Agency(agency)
				if !ok {
					return operation.Refuse("agency.unknown", "agency", operation.Args{"agencies": slices.Sorted(maps.Values(slugs))})
				}
				filter.AgencyID = a.ID
			}
			list, err := cases.NewStore(m.Pool).List(ctx, viewer, filter)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(list, func(c cases.Case) render.Object {
				return append(display.CaseJSON(c), "cursor", filter.Cursor(viewer, c))
			}), func(p *render.Page) {
				p.Table("there are no such cases", "ID,KIND,STATE,AMOUNT,EXPECTED,AGENCY,MODE,ORDER,OPENED", render.Mapped(list, func(c cases.Case) []any {
					return []any{c.ID, c.Kind, c.State(), display.CaseSum(c), render.OrDash(display.CaseOwed(c)), slugs[c.AgencyID], render.OrDash(c.Mode), c.OrderID, render.Moment(c.OpenedAt)}
				}))
			})
		},
	}
}

// showDetail prints a case with its proposals.
func showDetail(ctx context.Context, m *cli.Meta, d cases.Detail) error {
	slugs, _, err := access.Slugs(ctx, m)
	if err != nil {
		return err
	}
	var waiting any
	if d.AboutERP() {
		if waiting, err = access.Deliveries(m).ConfirmationsWaiting(ctx, d.AgencyID, d.Mode == registry.Mode(true)); err != nil {
			return err
		}
	}
	return m.Show(append(display.DetailJSON(d, slugs[d.AgencyID]), "confirmations_waiting", waiting), func(p *render.Page) {
		sayDetail(p, d, slugs[d.AgencyID], waiting)
	})
}

func sayDetail(p *render.Page, d cases.Detail, agency string, waiting any) {
	behind := ""
	if waiting != nil {
		behind = fmt.Sprint(waiting)
	}
	p.Facts([][2]string{
		{"ID", d.ID},
		{"Kind", string(d.Kind)},
		{"State", string(d.State())},
		{"Amount", display.CaseSum(d.Case)},
		{"Expected", display.CaseOwed(d.Case)},
		{"Agency", agency},
		{"Mode", d.Mode},
		{"Session", d.SessionID},
		{"Order", d.OrderID},
		{"Collection", d.CollectionID},
		{"Operator's reference", d.OperatorRef},
		{"Reason", d.Reason},
		{"Confirmations that wait", behind},
		{"Opened by", d.By},
		{"Clerks", strings.Join(d.Clerks, ", ")},
		{"Opened", render.Moment(d.OpenedAt)},
		{"Resolution", string(d.Resolution)},
		{"Refused because", refusal(d.EndedReason)},
		{"Reference", d.Reference},
		{"Closed by", d.ClosedBy},
		{"Approved by", d.ApprovedBy()},
		{"Closed", render.MomentOr(d.ClosedAt, "")},
	}, render.Mapped(slices.DeleteFunc(slices.Sorted(maps.Keys(d.Evidence)), shownAbove), func(name string) [2]string { return [2]string{"Evidence, " + name, d.Evidence[name]} }))
	if len(d.Proposals) > 0 {
		p.Say("")
		p.Table("", "PROPOSAL,RESOLUTION,REFERENCE,BY,AT,STATE,REASON", render.Mapped(d.Proposals, func(v cases.Proposal) []any {
			return []any{v.Number, v.Resolution, render.OrDash(v.Reference), v.Proposer, render.Moment(v.ProposedAt), display.ProposalSaid(v), v.Reason}
		}))
	}
	sayNextStep(p, d)
}

// carrier is who carries out what people agree on.
func carrier(c cases.Case) string {
	if cases.ByMatcher(c.Kind) {
		return "`quittance sink match`"
	}
	return "`quittance sink cases`"
}

// shownAbove reports whether the page has an evidence among the facts of all cases.
func shownAbove(evidence string) bool {
	switch evidence {
	case cases.EvidenceTenant, cases.EvidenceFound, cases.EvidenceOwed, cases.EvidenceOwedCurrency:
		return true
	}
	return false
}

// sayNextStep says what to type next.
func sayNextStep(p *render.Page, d cases.Detail) {
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
			p.Say("\nAnother person approves it with `quittance cases approve %s%s`, or ends it with `quittance cases reject %[1]s --reason TEXT`.", d.ID, which)
			return
		case cases.ProposalApproved:
			p.Say("\nIts outcome is not known yet: %s carries it out or refuses it; `quittance cases show %s` tells.", carrier(d.Case), d.ID)
			return
		case cases.ProposalCarriedOut, cases.ProposalRefused, cases.ProposalRejected, cases.ProposalLapsed, cases.ProposalVoid:
		}
	}
	if d.Kind == cases.KindBreak || d.Kind == cases.KindProposal {
		p.Say("\n`quittance chain %s` shows its rows with their amounts and what proves them.", d.ID)
	}
	p.Say("\n`quittance cases propose %s RESOLUTION` proposes one of: %s.", d.ID, strings.Join(render.Texts(cases.Catalog().Allowed(d.Kind)), ", "))
}

func showCase() cli.Command {
	return cli.Command{
		Use: "show CASE", Short: "Show a case with its evidence and its proposals", JSON: "it", Missing: whichCase,
		Examples: []string{"cases show case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			viewer, err := access.Viewer(ctx, m)
			if err != nil {
				return err
			}
			d, err := cases.NewStore(m.Pool).Show(ctx, viewer, m.Args[0], m.Now)
			if err != nil {
				return err
			}
			return showDetail(ctx, m, d)
		},
	}
}

func proposeCase() cli.Command {
	var req cases.Request
	return cli.Command{
		Use: "propose CASE RESOLUTION", Short: "Propose how to resolve a case: " + strings.Join(render.Texts(cases.Catalog().Resolutions()), ", "), JSON: "the case",
		Examples: []string{
			`cases propose case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e honour --reason "the citizen waits for the certificate"`,
			`cases propose case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e refund --reason "paid twice" --reference "MTN 918273, 2026-11-22"`,
			`cases propose case_7k2m9q4s6u8w0y1a3c5e7g9i1k3m5o7q match_by_hand --reason "the bank shortened the reference" --reference case_0b2d4f6h8j0l2n4p6r8t0v2x4z6b8d0f`,
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usage("say which case and how to resolve it: `%s CASE RESOLUTION`; `quittance cases show CASE` says which resolutions it allows", cmd.CommandPath())
			}
			return nil
		},
		Valid: render.Texts(cases.Catalog().Resolutions()),
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&req.Reason, "reason", "", "why; it is recorded")
			f.StringVar(&req.Reference, "reference", "", "what proves it: reference and date of the refund, the operator's letter, the ERP's reference; of match_by_hand the cases of the other breaks, separated by commas")
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			req.CaseID, req.Resolution = m.Args[0], casework.Resolution(m.Args[1])
			storing, done := uninterrupted(ctx)
			defer done()
			d, err := cases.NewStore(m.Pool).Verifying(m.Keys).Propose(storing, by, req, m.Now)
			if err != nil {
				return m.AsArgument(err, "resolution", "RESOLUTION")
			}
			return carriedOut(ctx, m, by, d)
		},
	}
}

const approveHelp = `Approve a proposal of another person. The command waits for the outcome: up to 10 s for the processor, up to 45 s for the matcher, which carries out closes and the resolutions of breaks and proposals.

The exit code is 0 if it was carried out. It is 1 if it was refused, with the reason, and also if the outcome is not known yet: the approval stands then, and ` + "`quittance cases show`" + ` tells the outcome.`

func approveCase() cli.Command {
	var number int
	return cli.Command{
		Use: "approve CASE", Short: "Approve another person's proposal, which is then carried out or refused", JSON: "the case", Missing: whichCase,
		Long:     approveHelp,
		Examples: []string{"cases approve case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e", "cases approve case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e --proposal 2"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.IntVar(&number, "proposal", 0, "number of the proposal; needed when the case has had more than one")
		},
		Check: func(m *cli.Meta) error {
			if m.Changed("proposal") && number < 1 {
				return cli.Usage("--proposal: must be 1 or more")
			}
			return nil
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			storing, done := uninterrupted(ctx)
			defer done()
			d, err := cases.NewStore(m.Pool).Verifying(m.Keys).Approve(storing, by, m.Args[0], number, m.Now)
			if err != nil {
				return err
			}
			return carriedOut(ctx, m, by, d)
		},
	}
}

// uninterrupted returns the context in which a step is stored. An interruption must not end it: the step may be stored
// then, and the command would say that it failed.
func uninterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storedWithin)
}

// carriedOut shows a case. When a proposal was approved just now, it waits a moment for the answer and for
// the event that closes the case. An interruption, or an error of reading, changes nothing of what was
// approved: its outcome is not known yet then. The error says that the resolution was refused and why, or that its
// outcome is not known yet.
func carriedOut(ctx context.Context, m *cli.Meta, by cases.By, d cases.Detail) error {
	within := answeredWithin
	if cases.ByMatcher(d.Kind) {
		within = matchedWithin
	}
	for until := time.Now().Add(within); waits(d) && time.Now().Before(until) && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
			now, err := cases.NewStore(m.Pool).Show(ctx, &by.Staff, d.ID, m.Now)
			if err != nil && ctx.Err() == nil {
				return errors.Join(outcome(d), err)
			}
			if err == nil {
				d = now
			}
		}
	}
	return errors.Join(outcome(d), showDetail(context.WithoutCancel(ctx), m, d))
}

// outcome returns nil unless the last proposal of a case was refused or has no answer yet.
func outcome(d cases.Detail) error {
	switch p := d.Proposals[len(d.Proposals)-1]; p.State {
	case cases.ProposalRefused:
		return fmt.Errorf("%s was approved and then refused; nothing was done: %s", p.Resolution, refusal(p.Refusal))
	case cases.ProposalApproved:
		return fmt.Errorf("%s is approved, and its outcome is not known yet: `quittance cases show %s` tells it", p.Resolution, d.ID)
	case cases.ProposalOpen, cases.ProposalCarriedOut, cases.ProposalRejected, cases.ProposalLapsed, cases.ProposalVoid:
	}
	return nil
}

// waits reports whether the last proposal of a case is to be carried out, or its answer to close the case.
func waits(d cases.Detail) bool {
	switch d.Proposals[len(d.Proposals)-1].State {
	case cases.ProposalApproved:
		return true
	case cases.ProposalCarriedOut:
		return d.Open()
	case cases.ProposalRefused:
		return d.Open() && d.EndedAs != ""
	case cases.ProposalOpen, cases.ProposalRejected, cases.ProposalLapsed, cases.ProposalVoid:
	}
	return false
}

func rejectCase() cli.Command {
	var reason string
	return cli.Command{
		Use: "reject CASE", Short: "End the open proposal of a case; whoever proposed it may withdraw it", JSON: "the case", Missing: whichCase,
		Examples: []string{`cases reject case_3c9u8n5l0sr7q2jd7m1k4t6v8a0b2c4e --reason "the refund is not in the statement"`},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { f.StringVar(&reason, "reason", "", "why; it is recorded") },
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			storing, done := uninterrupted(ctx)
			defer done()
			d, err := cases.NewStore(m.Pool).Verifying(m.Keys).Reject(storing, by, m.Args[0], reason, m.Now)
			if err != nil {
				return err
			}
			return showDetail(ctx, m, d)
		},
	}
}

func openCase() cli.Command {
	var reason string
	var dues []string
	return cli.Command{
		Use: "open SESSION", Short: "Open a case about a completed payment that is to be given back, wholly or some of its dues", JSON: "the ids of the case and the session",
		Missing:  "say which session: {usage}, the chs_ id of a completed payment",
		Examples: []string{`cases open chs_0000000000000000000000000000 --reason "the wrong taxpayer paid"`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&reason, "reason", "", "why; it is recorded")
			f.StringSliceVar(&dues, "due", nil, "transaction id of a due that is to be given back; repeat it for several; default all")
		},
		Keyed: true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Need("kafka", "schema-registry"); err != nil {
				return err
			}
			by, err := access.Person(ctx, m)
			if err != nil {
				return err
			}
			id, err := requestRefund(ctx, m, by, dues, reason)
			if err != nil {
				return err
			}
			return m.Show(render.Object{"id", id, "session_id", m.Args[0]}, func(p *render.Page) {
				p.Say("Case %s is open. `quittance cases propose %s refund --reason TEXT --reference REF` records that the money was given back.", id, id)
			})
		},
	}
}

// requestRefund opens a refund request through the processor.
func requestRefund(ctx context.Context, m *cli.Meta, by cases.By, dues []string, reason string) (caseID string, err error) {
	err = access.WithProcessor(ctx, m, func(ctx context.Context, processor *commands.Checkout, reader *sessions.Reader) error {
		session, err := reader.ByID(ctx, m.Args[0])
		switch {
		case errors.Is(err, sessions.ErrNotFound):
			return operation.Refuse("case.session_unknown", "id", nil)
		case errors.Is(err, sessions.ErrBehind):
			return access.ErrBehind
		case err != nil:
			return err
		}
		caseID, err = cases.NewStore(m.Pool).Verifying(m.Keys).OpenRefundRequest(ctx, by, processor, session, dues, reason, m.Now)
		if errors.Is(err, commands.ErrUnavailable) {
			return errors.New("the processor did not answer in time; the case may be open: give the command again, which opens no second one")
		}
		return err
	})
	return caseID, err
}
