package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/disbursement"
	"quittance/disbursement/paper"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/registry"
)

// Command returns the command `batches`.
func Command() cli.Command {
	return cli.Command{
		Use: "batches", Short: "Disbursement batches, by which agencies pay people: prepare, show, hold and stop them",
		Commands: []cli.Command{importBatch(), pullBatch(), templateFile(), listBatches(), showBatch(), showLines(), showPeople(), holdBatch(), tryAccount(), stopBatch(), recallBatch(), discardBatch(), retryLine(), cancelLine(), acknowledgeLine(), verifyBatch(), exportBatch(), certificateOf(), advicesOf()},
		Words:    words,
	}
}

const whichBatch = "say which batch: {usage}; `quittance batches list` shows the ids"

// scope is what the person of the key in the environment may see.
func scope(ctx context.Context, m *cli.Meta) (disbursements.Scope, error) {
	viewer, err := access.Viewer(ctx, m)
	if err != nil || viewer == nil {
		return disbursements.Scope{}, err
	}
	return disbursements.Scope{TenantID: viewer.AgencyID}, nil
}

// open opens the read model of batches.
func open(ctx context.Context, m *cli.Meta) (*disbursements.Store, error) {
	codec, err := m.OpenSchemas(ctx, false)
	if err != nil {
		return nil, err
	}
	return disbursements.NewStore(m.Pool, codec), nil
}

// find returns a batch that the person may see.
func find(ctx context.Context, m *cli.Meta, store *disbursements.Store, id string) (disbursements.Batch, error) {
	in, err := scope(ctx, m)
	if err != nil {
		return disbursements.Batch{}, err
	}
	b, err := store.Batch(ctx, in, id)
	if errors.Is(err, disbursements.ErrUnknown) {
		err = operation.Refuse("batch.unknown", "batch", nil)
	}
	return b, err
}

// named opens the read model and returns the batch that the command names.
func named(ctx context.Context, m *cli.Meta) (*disbursements.Store, disbursements.Batch, error) {
	store, err := open(ctx, m)
	if err != nil {
		return nil, disbursements.Batch{}, err
	}
	b, err := find(ctx, m, store, m.Args[0])
	return store, b, err
}

func listBatches() cli.Command {
	var agency, mode, status, ref, before string
	var held, cases bool
	var limit int
	return cli.Command{
		Use: "list", Short: "List batches, the newest first; an agency's staff see those of the agency", JSON: "the list",
		Examples: []string{"batches list --mode live", "batches list --mode live --agency impots --held --json", "batches list --mode live --cases"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			cli.TakesMode(f, &mode)
			f.StringVar(&agency, "agency", "", "batches of this agency, by slug or id")
			cli.TakesChoice(f, &status, "status", render.Texts(disbursement.Statuses()), "")
			f.StringVar(&ref, "batch-ref", "", "the revisions of this batch_ref")
			f.BoolVar(&held, "held", false, "only batches that are held")
			f.BoolVar(&cases, "cases", false, "only batches with a line that needs a decision")
			f.StringVar(&before, "before", "", "go on after the list whose last batch has this id")
			f.IntVar(&limit, "limit", 50, "number of batches at most, up to 200")
		},
		Check: func(*cli.Meta) error {
			if limit < 1 || limit > 200 {
				return cli.Usage("--limit: must be 1 to 200")
			}
			return cli.NeedsMode(mode)
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			in, err := scope(ctx, m)
			if err != nil {
				return err
			}
			slugs, dir, err := access.Slugs(ctx, m)
			if err != nil {
				return err
			}
			if agency != "" {
				a, ok := dir.Agency(agency)
				if !ok || in.TenantID != "" && in.TenantID != a.ID {
					return operation.Refuse("batch.agency_unknown", "agency", nil)
				}
				in.TenantID = a.ID
			}
			store, err := open(ctx, m)
			if err != nil {
				return err
			}
			list, err := store.List(ctx, in, disbursements.Query{
				Live: mode == registry.Mode(true), Status: disbursement.Status(status), BatchRef: ref, Held: held, Cases: cases, Before: before, Size: limit,
			})
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(list, func(b disbursement.Batch) render.Object { return batchJSON(b, slugs[b.TenantID]) }), func(p *render.Page) {
				p.Table("there are no such batches", "ID,AGENCY,REF,REV,STATUS,HELD,DATE,LINES,SUM,PAID,REFUSED", render.Mapped(list, func(b disbursement.Batch) []any {
					return []any{
						b.ID, slugs[b.TenantID], b.BatchRef, b.Revision, b.Status, render.OrDash(heldText(b)), b.Date, b.Count, render.Decimal(b.Sum, b.Currency),
						b.Lines.Paid.Count, b.Lines.Refused.Count,
					}
				}))
			})
		},
	}
}

func heldText(b disbursement.Batch) string {
	if b.Held() {
		return "held"
	}
	return ""
}

// totalsJSON are the lines by status.
func totalsJSON(b disbursement.Batch) render.Object {
	out := render.Object{}
	for _, s := range disbursement.LineStatuses() {
		t := b.Lines.Of(s)
		out = append(out, string(s), render.Object{"count", t.Count, "sum", t.Sum})
	}
	return out
}

func batchJSON(b disbursement.Batch, agency string) render.Object {
	return render.Object{
		"batch", b.ID, "agency", agency, "mode", registry.Mode(b.Live), "batch_ref", b.BatchRef, "revision", b.Revision, "status", string(b.Status),
		"held", b.Held(), "hold_reason", render.OrNone(b.Hold.Reason), "hold_since", b.Hold.Since, "source", string(b.Source), "date", b.Date, "currency", b.Currency, "count", b.Count, "sum", b.Sum,
		"largest", b.Largest, "maker", b.Maker, "lines", totalsJSON(b), "opened_at", b.OpenedAt, "sealed_at", b.SealedAt, "erp_asked_at", b.AskedAt, "released_at", b.ReleasedAt, "ended_at", b.EndedAt,
		"approve_until", b.ApproveUntil, "pay_until", render.OrNone(b.PayUntil), "sequence", b.Sequence,
	}
}

func showBatch() cli.Command {
	return cli.Command{
		Use: "show BATCH", Short: "Show a batch: what is approved, who is missing, what became of its lines, and its steps with their places in Kafka", JSON: "the batch",
		Missing: whichBatch, Examples: []string{"batches show dsb_06hc5v0q0k1m8f3g2h1j0k9l8m7n6p5q4r"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			store, b, err := named(ctx, m)
			if err != nil {
				return err
			}
			slugs, _, err := access.Slugs(ctx, m)
			if err != nil {
				return err
			}
			steps, err := store.Steps(ctx, b.ID)
			if err != nil {
				return err
			}
			notes, err := store.Notes(ctx, b.ID)
			if err != nil {
				return err
			}
			paused, err := store.PausedAccountsOf(ctx, b.Batch)
			if err != nil {
				return err
			}
			names, err := store.Names(ctx, b.ID)
			if err != nil {
				return err
			}
			who, err := readPeople(ctx, m)
			if err != nil {
				return err
			}
			return m.Show(append(batchJSON(b.Batch, slugs[b.TenantID]),
				"digest", digestText(b), "accounts", accountsJSON(b, paused), "levels", levelsJSON(b), "notes", notesJSON(notes), "names", namesJSON(names), "steps", render.Mapped(steps, stepJSON)),
				func(p *render.Page) { sayBatch(p, b, slugs[b.TenantID], who, notes, names, steps, paused) })
		},
	}
}

func digestText(b disbursements.Batch) any {
	if b.SealedAt.IsZero() {
		return nil
	}
	return b.Digest.String()
}

func accountsJSON(b disbursements.Batch, paused []disbursements.PausedAccount) []render.Object {
	return render.Mapped(b.Accounts, func(f disbursement.Funding) render.Object {
		state, reason, since := accountState(paused, f.Code)
		return render.Object{
			"code", f.Code, "fingerprint", f.Fingerprint, "count", f.Count, "sum", f.Sum, "waiting", f.Tail - f.Head,
			"state", state, "reason", render.OrNone(reason), "since", since,
		}
	})
}

// accountState says whether an account is open, paused until its next line is paid, or closed until a person has it tried.
func accountState(paused []disbursements.PausedAccount, code string) (state, reason string, since time.Time) {
	for _, a := range paused {
		switch {
		case a.Code != code:
		case a.Closed:
			return "closed", a.Reason, a.Since
		default:
			return "paused", a.Reason, a.Since
		}
	}
	return "open", "", time.Time{}
}

func accountText(paused []disbursements.PausedAccount, code string) string {
	state, reason, since := accountState(paused, code)
	if since.IsZero() {
		return state
	}
	return fmt.Sprintf("%s since %s: %s", state, render.Moment(since), render.OrDash(reason))
}

// approvals returns the people who have approved a level, from 1.
func approvals(b disbursements.Batch, level int) (out []string) {
	for _, a := range b.Sealing.Approvals {
		if a.Level == level {
			out = append(out, a.Person)
		}
	}
	return out
}

func levelsJSON(b disbursements.Batch) []render.Object {
	out := []render.Object{}
	for i, l := range b.Sealing.Content.Levels {
		listed := []string{}
		for _, p := range l.Persons {
			listed = append(listed, p.ID)
		}
		out = append(out, render.Object{"level", i + 1, "role", l.Role, "needed", l.Needed, "listed", listed, "approved", append([]string{}, approvals(b, i+1)...)})
	}
	return out
}

func stepJSON(x disbursements.Step) render.Object {
	return render.Object{"sequence", x.Sequence, "type", string(x.Type), "at", x.At, "lines", x.Lines, "detail", x.Detail, "partition", x.Partition, "offset", x.Offset}
}

// people are the names of people by their ids.
type people map[string]string

// readPeople reads the names of all members of staff.
func readPeople(ctx context.Context, m *cli.Meta) (people, error) {
	staff, err := identity.ListStaff(ctx, m.Pool, nil)
	if err != nil {
		return nil, err
	}
	out := people{}
	for _, s := range staff {
		out[s.ID] = s.Name
	}
	return out, nil
}

// of returns the name of a person with the id, and the id alone of somebody who is not known, such as an ERP.
func (n people) of(id string) string {
	if name := n[id]; name != "" {
		return name + " (" + id + ")"
	}
	return id
}

func sayBatch(p *render.Page, b disbursements.Batch, agency string, who people, notes *disbursements.Notes, names disbursements.Names, steps []disbursements.Step, paused []disbursements.PausedAccount) {
	hold := ""
	if b.Held() {
		hold = fmt.Sprintf("since %s, by %s: %s", render.Moment(b.Hold.Since), render.OrDash(who.of(b.Hold.By)), b.Hold.Reason)
	}
	p.Facts([][2]string{
		{"batch", b.ID},
		{"agency", agency + ", " + registry.Mode(b.Live)},
		{"reference", fmt.Sprintf("%s, revision %d", b.BatchRef, b.Revision)},
		{"status", string(b.Status) + asked(b.Batch)},
		{"held", hold},
		{"date", b.Date + until(b.PayUntil)},
		{"lines", fmt.Sprintf("%d, %s in all, the largest %s", b.Count, render.Decimal(b.Sum, b.Currency), render.Decimal(b.Largest, b.Currency))},
		{"made by", who.of(b.Maker) + ofERP(b.Batch)},
		{"names not checked", b.Waiver},
	})
	if b.Status == disbursement.StatusSealed {
		p.Say("approved until %s", render.Moment(b.ApproveUntil))
	}
	if !b.SealedAt.IsZero() {
		p.Say("digest %s", b.Digest)
	}
	p.Say("")
	p.Table("", "ACCOUNT,LINES,SUM,WAITING,STATE", render.Mapped(b.Accounts, func(f disbursement.Funding) []any {
		return []any{f.Code, f.Count, render.Decimal(f.Sum, b.Currency), f.Tail - f.Head, accountText(paused, f.Code)}
	}))
	p.Say("")
	rows := [][]any{}
	for _, s := range disbursement.LineStatuses() {
		if t := b.Lines.Of(s); t.Count > 0 {
			rows = append(rows, []any{s, t.Count, render.Decimal(t.Sum, b.Currency)})
		}
	}
	p.Table("no lines yet", "STATUS,LINES,SUM", rows)
	if levels := b.Sealing.Content.Levels; len(levels) > 0 {
		p.Say("")
		rows = rows[:0]
		for i, l := range levels {
			given := approvals(b, i+1)
			rows = append(rows, []any{i + 1, l.Role, fmt.Sprintf("%d of %d", len(given), l.Needed), render.OrDash(strings.Join(render.Mapped(given, who.of), ", "))})
		}
		p.Table("", "LEVEL,ROLE,APPROVED,BY", rows)
	}
	if notes != nil {
		p.Say("")
		p.Say("what the import found, which nobody signs (after a rotation of master keys payees of before may look new):")
		sayNotes(p, notes, b.Currency)
		sayNames(p, names)
	}
	p.Say("")
	p.Table("nothing has happened", "STEP,AT,EVENT,LINES,DETAIL,PLACE", render.Mapped(steps, func(x disbursements.Step) []any {
		return []any{x.Sequence, render.Moment(x.At), x.Type, x.Lines, render.OrDash(detailText(x.Detail, who)), fmt.Sprintf("disbursement.events/%d@%d", x.Partition, x.Offset)}
	}))
}

// asked says that the release waits for the ERP.
func asked(b disbursement.Batch) string {
	if b.AskedAt.IsZero() {
		return ""
	}
	return ", its release waits for the ERP, asked at " + render.Moment(b.AskedAt)
}

// ofERP says that the lines are those of the ERP.
func ofERP(b disbursement.Batch) string {
	if b.Source == disbursement.SourceERP {
		return ", of the lines of the agency's ERP"
	}
	return ""
}

func until(day string) string {
	if day == "" {
		return ""
	}
	return ", may pay until " + day
}

func detailText(detail map[string]string, who people) string {
	var parts []string
	for name, value := range detail {
		parts = append(parts, name+"="+who.of(value))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func showLines() cli.Command {
	var status string
	var cases bool
	var from, limit int
	return cli.Command{
		Use: "lines BATCH", Short: "Show lines of a batch, without names and account numbers: what became of each, and the reference on statements", JSON: "the lines",
		Missing: whichBatch, Examples: []string{"batches lines BATCH --status refused", "batches lines BATCH --cases --json"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			cli.TakesChoice(f, &status, "status", render.Texts(disbursement.LineStatuses()), "")
			f.BoolVar(&cases, "cases", false, "only lines with an open case")
			f.IntVar(&from, "from", 0, "begin with the line at this position")
			f.IntVar(&limit, "limit", 200, "number of lines at most, up to 1000")
		},
		Check: func(*cli.Meta) error {
			if limit < 1 || limit > 1000 {
				return cli.Usage("--limit: must be 1 to 1000")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			store, b, err := named(ctx, m)
			if err != nil {
				return err
			}
			list, err := store.Lines(ctx, b.ID, disbursements.LineQuery{Status: disbursement.LineStatus(status), Cases: cases, From: from, Size: limit})
			if err != nil {
				return err
			}
			var names map[int]connector.NameVerdict
			if len(list) > 0 {
				if names, err = store.NamesOf(ctx, b.ID, list[0].Position, list[len(list)-1].Position); err != nil {
					return err
				}
			}
			return m.Show(render.Mapped(list, func(l disbursement.Line) render.Object {
				return append(lineJSON(b.Batch, l), "name", render.OrNone(string(names[l.Position])))
			}), func(p *render.Page) {
				p.Table("there are no such lines", "POSITION,LINE_REF,AMOUNT,ACCOUNT,STATUS,NAME,ATTEMPT,PAYOUT_REF,CODE,CASE,SINCE", render.Mapped(list, func(l disbursement.Line) []any {
					return []any{
						l.Position, l.Ref, render.Decimal(l.Amount, b.Currency), b.Accounts[l.Account].Code, statusText(l), render.OrDash(string(names[l.Position])), l.Attempt, render.OrDash(payoutRef(l)),
						render.OrDash(l.Code), render.OrDash(string(l.Case)), render.MomentOr(l.SentAt, "-"),
					}
				}))
			})
		},
	}
}

// statusText adds to the status of a line what a person must know of it.
func statusText(l disbursement.Line) string {
	text := string(l.Status)
	if l.Contested {
		text += ", contested"
	}
	if l.Unproven {
		text += ", unproven"
	}
	return text
}

func payoutRef(l disbursement.Line) string { return paper.PayoutRef(l) }

func lineJSON(b disbursement.Batch, l disbursement.Line) render.Object {
	return render.Object{
		"position", l.Position, "line_ref", l.Ref, "amount", l.Amount, "currency", b.Currency, "account", b.Accounts[l.Account].Code, "status", string(l.Status),
		"attempt", l.Attempt, "payout_ref", render.OrNone(payoutRef(l)), "code", render.OrNone(l.Code), "operator_ref", render.OrNone(l.OperatorRef),
		"contested", l.Contested, "unproven", l.Unproven, "case", render.OrNone(string(l.Case)), "sent_at", l.SentAt, "enquired_at", l.EnquiredAt, "ended_at", l.EndedAt,
		"corrects", render.OrNone(l.CorrectsRef),
	}
}

func showPeople() cli.Command {
	var agency, mode string
	return cli.Command{
		Use: "people", Short: "Show who may approve batches of an agency, and its policy, as the processor has them", JSON: "policy and people",
		Examples: []string{"batches people --agency impots --mode live"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&agency, "agency", "", "the agency, by slug or id")
			cli.TakesMode(f, &mode)
		},
		Check: func(*cli.Meta) error {
			if agency == "" {
				return cli.Usage("--agency: say which agency")
			}
			return cli.NeedsMode(mode)
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			in, err := scope(ctx, m)
			if err != nil {
				return err
			}
			id, err := access.AgencyID(ctx, m, agency)
			if err != nil {
				return err
			}
			if in.TenantID != "" && in.TenantID != id {
				return operation.Refuse("batch.agency_unknown", "agency", nil)
			}
			store, err := open(ctx, m)
			if err != nil {
				return err
			}
			a, roster, err := store.Agency(ctx, id, mode == registry.Mode(true))
			if err != nil {
				return err
			}
			return m.Show(peopleJSON(a, roster, m.Now), func(p *render.Page) { sayPeople(p, a, roster, m.Now) })
		},
	}
}

func peopleJSON(a disbursement.Agency, roster disbursement.Roster, now time.Time) render.Object {
	return render.Object{
		"policy", policyJSON(a.InForce(now)), "next", policyJSON(a.Next), "next_at", a.NextAt, "changes", roster.Changes, "origin", render.OrNone(roster.Origin),
		"people", peopleOf(roster),
	}
}

// changing sends a command about a batch as the person of the key in the environment, and shows the batch after it.
func changing(ctx context.Context, m *cli.Meta, do func(person string) disbursement.Action) error {
	if err := m.Need("kafka", "schema-registry"); err != nil {
		return err
	}
	by, err := access.Person(ctx, m)
	if err != nil {
		return err
	}
	return access.WithBatches(ctx, m, func(processor *commands.Disbursement, _ *kafka.Topology, store *disbursements.Store) error {
		b, err := find(ctx, m, store, m.Args[0])
		if err != nil {
			return err
		}
		cmd := disbursement.Command{At: m.Now.UTC().Truncate(time.Millisecond), TenantID: b.TenantID, Live: b.Live, Batch: b.ID, Do: do(by.Staff.ID)}
		a, err := processor.Ask(ctx, cmd)
		if e, ok := disbursements.Audited(cmd, a, err); ok {
			err = errors.Join(err, noted(ctx, m, e))
		}
		switch {
		case errors.Is(err, commands.ErrUnavailable):
			return fmt.Errorf("the processor has not answered, and may have carried it out; look with `quittance batches show %s`: %w", b.ID, err)
		case err != nil:
			return err
		case a.Refusal != nil:
			return &disbursements.RefusedError{Refusal: *a.Refusal}
		}
		after := b.Batch
		if a.Batch != nil {
			after = *a.Batch
		}
		return m.Show(append(batchJSON(after, b.TenantID), "replayed", a.Replayed), func(p *render.Page) {
			p.Say("%s is %s%s. Lines: %d ready, %d sent, %d paid, %d refused, %d cancelled", after.ID, after.Status, comma(heldText(after)),
				after.Lines.Ready.Count, after.Lines.Sent.Count, after.Lines.Paid.Count, after.Lines.Refused.Count, after.Lines.Cancelled.Count)
		})
	})
}

// noted writes a row of the audit table, also after an interruption: the command is sent.
func noted(ctx context.Context, m *cli.Meta, e operation.Entry) error {
	ctx, cancel := operation.Done(ctx)
	defer cancel()
	return operation.Record(ctx, m.Pool, m.By, m.Now, e)
}

func comma(text string) string {
	if text == "" {
		return ""
	}
	return ", " + text
}

func holdBatch() cli.Command {
	var reason string
	return cli.Command{
		Use: "hold BATCH", Short: "Hold a batch: nothing of it is released or sent until two people of the agency lift the hold on its page", JSON: "the batch", Keyed: true,
		Missing: whichBatch, Examples: []string{`batches hold BATCH --reason "the list is being checked"`},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) { f.StringVar(&reason, "reason", "", "why, for those who lift it") },
		Check: func(*cli.Meta) error {
			if strings.TrimSpace(reason) == "" || len(reason) > disbursement.MaxText {
				return cli.Usage("--reason: say why, in 1 to %d characters", disbursement.MaxText)
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return changing(ctx, m, func(person string) disbursement.Action { return disbursement.SetHold{By: person, Reason: reason} })
		},
	}
}

func tryAccount() cli.Command {
	var account string
	return cli.Command{
		Use: "try-account BATCH", Short: "Have a closed payout account tried again by the next line of a batch, once the operator accepts its settings", JSON: "the batch", Keyed: true,
		Missing: whichBatch, Examples: []string{"batches try-account BATCH --account airtel_payout"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&account, "account", "", "the code of the account, as `batches show` has it")
		},
		Check: func(*cli.Meta) error {
			if account == "" {
				return cli.Usage("--account: name the account, as `quittance batches show BATCH` has it")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return changing(ctx, m, func(person string) disbursement.Action { return disbursement.TryAccount{By: person, Account: account} })
		},
	}
}

func stopBatch() cli.Command {
	return simple("stop BATCH", "Stop a batch that pays: what is not sent is cancelled, for good", func(person string) disbursement.Action { return disbursement.Stop{By: person} })
}

func recallBatch() cli.Command {
	return simple("recall BATCH", "Recall a batch that is not released, as the person who made it; import the next revision then", func(person string) disbursement.Action { return disbursement.Recall{By: person} })
}

func discardBatch() cli.Command {
	return simple("discard BATCH", "End a draft", func(person string) disbursement.Action { return disbursement.Discard{By: person} })
}

// simple is a command about a batch that says nothing but its name.
func simple(use, short string, do func(person string) disbursement.Action) cli.Command {
	return cli.Command{
		Use: use, Short: short, JSON: "the batch", Keyed: true, Missing: whichBatch, Examples: []string{"batches " + use},
		Operate: func(ctx context.Context, m *cli.Meta) error { return changing(ctx, m, do) },
	}
}

func retryLine() cli.Command {
	return ofLine("retry BATCH POSITION", "Try a refused line again, if it is proven that nothing was paid", func(person string, position int) disbursement.Action {
		return disbursement.Retry{By: person, Position: position}
	})
}

func cancelLine() cli.Command {
	return ofLine("cancel BATCH POSITION", "Cancel a line that is ready or refused", func(person string, position int) disbursement.Action {
		return disbursement.Cancel{By: person, Position: position}
	})
}

func acknowledgeLine() cli.Command {
	return ofLine("acknowledge BATCH POSITION", "End a line's case that moves no money; two people decide about the others on the page of the line", func(person string, position int) disbursement.Action {
		return disbursement.Acknowledge{By: person, Position: position}
	})
}

// ofLine is a command about the line at a position.
func ofLine(use, short string, do func(person string, position int) disbursement.Action) cli.Command {
	position := 0
	return cli.Command{
		Use: use, Short: short, JSON: "the batch", Keyed: true, Args: cobra.ExactArgs(2),
		Examples: []string{"batches " + strings.Replace(use, "POSITION", "17", 1)},
		Check: func(m *cli.Meta) (err error) {
			if position, err = strconv.Atoi(m.Args[1]); err != nil || position < 0 || position >= disbursement.MaxLines {
				return cli.Usage("POSITION: must be a number from 0 to %d; `quittance batches lines BATCH` shows the positions", disbursement.MaxLines-1)
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return changing(ctx, m, func(person string) disbursement.Action { return do(person, position) })
		},
	}
}
