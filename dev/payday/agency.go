package payday

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/xuri/excelize/v2"
	"golang.org/x/sync/errgroup"

	"quittance/dev/bench/measure"
	"quittance/dev/clock"
	"quittance/dev/stack/program"
	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/internal/commands"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/money"
	"quittance/money/localtime"
	"quittance/schemas"
)

// The senders of commands that payday speaks as.
const (
	operator = "operator"
	office   = "office"
)

// answerSoon bounds the wait for the answer to one try.
const answerSoon = 30 * time.Second

// answerWithin bounds the wait for one answer of the processor. Kills and restarts of the broker take up to a minute.
const answerWithin = 2 * time.Minute

// Config configures a Payday. All fields are required.
type Config struct {
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
	Pool     *pgxpool.Pool
	// Keys are the master keys of the installation.
	Keys *secret.Keys
	// Program runs commands as an operator of the installation does.
	Program *program.Program
	// Simulator is the URL of the simulators.
	Simulator string
	Log       *slog.Logger
}

// Payday sends the commands of agencies' people. Make one with New, and call Run until nothing is sent any more. It is safe for concurrent use.
type Payday struct {
	cfg     Config
	clock   *clock.Clock
	clients map[string]*commands.Disbursement
}

// New connects to an installation.
func New(ctx context.Context, cfg Config) (*Payday, error) {
	p := &Payday{cfg: cfg, clients: map[string]*commands.Disbursement{}}
	var err error
	if p.clock, err = clock.Follow(ctx, cfg.Pool, cfg.Log); err != nil {
		return nil, err
	}
	for _, from := range []string{operator, office} {
		signer, err := commands.NewSigner(cfg.Keys, from)
		if err != nil {
			return nil, err
		}
		p.clients[from], err = commands.New(ctx, commands.Config[disbursement.Command, disbursement.Answer]{
			Kafka: cfg.Kafka, Topology: cfg.Topology, Signer: signer, Family: schemas.Disbursement,
			Protocol: commands.DisbursementProtocol(cfg.Codec, cfg.Topology), Timeout: answerSoon, Log: cfg.Log, Metrics: prometheus.NewRegistry(),
		})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Run receives answers and follows the clock until ctx ends, then returns nil.
func (p *Payday) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.clock.Run(ctx) })
	for _, c := range p.clients {
		g.Go(func() error { return c.Run(ctx) })
	}
	return g.Wait()
}

// Now is the time of the installation's clock, in UTC and whole milliseconds.
func (p *Payday) Now() time.Time { return p.clock.Now().UTC().Truncate(time.Millisecond) }

// Advance moves the installation's clock forward, and returns when all followers that reach Postgres have read it. It tries again
// while Postgres is away, which tests kill: then the clock may move by d more than once.
func (p *Payday) Advance(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	for {
		_, err := clock.Advance(ctx, p.cfg.Pool, d)
		if err == nil {
			clock.Reached(ctx)
			return nil
		}
		if errors.Is(err, clock.ErrAdvance) || !measure.Pause(ctx, time.Second) {
			return err
		}
	}
}

// Agency is an agency whose people pay.
type Agency struct {
	ID, Slug string

	maker, chief person
	key          secret.Text // of the maker, at the command line
}

// Found makes two people of each agency, who enrol, and a policy by which the second of them approves and releases what
// the first prepares. The clock moves by two days, since people and policies work after one.
func (p *Payday) Found(ctx context.Context, agencies ...*Agency) error {
	const beyondADay = 25 * time.Hour
	for _, a := range agencies {
		if err := p.enrol(ctx, a); err != nil {
			return fmt.Errorf("enrolling the people of %s: %w", a.Slug, err)
		}
	}
	if err := p.Advance(ctx, beyondADay); err != nil {
		return err
	}
	for _, a := range agencies {
		set := disbursement.SetPolicy{Policy: policy.Policy{
			Currency: money.Default, Tiers: []policy.Tier{{Rules: []policy.Rule{{Role: "chief", Needed: 1}}}}, ApproveWithin: 72 * time.Hour, PayWithinDays: 5,
			NameCheck: policy.CheckOff, Release: policy.ReleaseManual,
		}}
		for _, by := range []person{a.maker, a.chief} {
			signed, err := by.change(a.ID, 2, set.Content(false))
			if err != nil {
				return err
			}
			set.Confirmed = append(set.Confirmed, signed)
		}
		if _, err := p.ask(ctx, office, a, "", set); err != nil {
			return fmt.Errorf("setting the policy of %s: %w", a.Slug, err)
		}
	}
	return p.Advance(ctx, beyondADay)
}

func (p *Payday) enrol(ctx context.Context, a *Agency) error {
	actor := operation.Actor{Kind: operation.ActorCommandLine, Name: "payday"}
	maker, err := identity.AddStaff(ctx, p.cfg.Pool, p.cfg.Keys, actor, "", identity.StaffRequest{Name: "Maker of " + a.Slug, Agency: a.Slug}, p.Now())
	if err != nil {
		return err
	}
	a.key = maker.Secret
	if a.maker, err = newPerson(maker.ID); err != nil {
		return err
	}
	if a.chief, err = newPerson("chief-of-" + a.Slug); err != nil {
		return err
	}
	_, err = p.ask(ctx, operator, a, "", disbursement.Enrol{People: []disbursement.Enrolled{a.maker.enrolled("maker"), a.chief.enrolled("chief")}, RPID: rpID, Origin: origin})
	var refused *disbursements.RefusedError
	if errors.As(err, &refused) && p.enrolled(ctx, a) {
		return nil
	}
	return err
}

// enrolled reports whether the first two people of an agency are in its roster. The processor takes them once: a command whose answer
// was lost is sent again and refused, although it was carried out.
func (p *Payday) enrolled(ctx context.Context, a *Agency) bool {
	ctx, cancel := context.WithTimeout(ctx, answerSoon)
	defer cancel()
	store := disbursements.NewStore(p.cfg.Pool, p.cfg.Codec)
	for {
		_, roster, err := store.Agency(ctx, a.ID, false)
		if err == nil {
			_, maker := roster.Find(a.maker.id)
			_, chief := roster.Find(a.chief.id)
			if maker && chief {
				return true
			}
		}
		if !measure.Pause(ctx, 100*time.Millisecond) {
			return false
		}
	}
}

// Prove proves a batch from the events in Kafka.
func (p *Payday) Prove(ctx context.Context, b Batch) (disbursements.Proof, error) {
	return disbursements.Prove(ctx, p.cfg.Kafka, p.cfg.Topology, p.cfg.Codec, b.Agency.ID, b.ID)
}

// ask sends a command until it is answered. Commands that are decided twice change nothing the second time; the
// first enrolment is refused then.
func (p *Payday) ask(ctx context.Context, from string, a *Agency, batch string, do disbursement.Action) (disbursement.Batch, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	for {
		answer, err := p.clients[from].Ask(ctx, disbursement.Command{At: p.Now(), TenantID: a.ID, Batch: batch, Do: do})
		switch {
		case errors.Is(err, commands.ErrUnavailable) && ctx.Err() == nil:
			continue
		case err != nil:
			return disbursement.Batch{}, err
		case answer.Refusal != nil:
			return disbursement.Batch{}, &disbursements.RefusedError{Refusal: *answer.Refusal}
		case answer.Batch == nil:
			return disbursement.Batch{}, nil
		}
		return *answer.Batch, nil
	}
}

// Batch is a sealed batch.
type Batch struct {
	Agency *Agency
	ID     string
	Lines  int
	digest digest.Hash
}

// Import imports a file of lines as a batch of today, and seals it, by the program's command.
func (p *Payday) Import(ctx context.Context, a *Agency, ref, file string) (b Batch, used *os.ProcessState, err error) {
	out, used, err := p.cfg.Program.With("QUITTANCE_STAFF_KEY="+a.key.Reveal()).Output(ctx, "batches", "import", file, "--json",
		"--agency", a.Slug, "--mode", "test", "--batch-ref", ref, "--date", localtime.Day(p.Now()))
	if err != nil {
		return b, used, err
	}
	var said struct {
		Batch, Digest string
		Count         int
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return b, used, fmt.Errorf("reading what the import says: %w", err)
	}
	b = Batch{Agency: a, ID: said.Batch, Lines: said.Count}
	sum, err := hex.DecodeString(said.Digest)
	if err != nil || len(sum) != len(b.digest) {
		return b, used, fmt.Errorf("the import says the digest %q", said.Digest)
	}
	copy(b.digest[:], sum)
	return b, used, nil
}

// Approval is what the chief sends to approve a batch.
func (b Batch) Approval() (disbursement.Approve, error) {
	signed, err := b.Agency.chief.step(b.digest, 1, digest.Approve)
	return disbursement.Approve{Level: 1, Signed: signed}, err
}

// Rejection is what the chief sends to reject a batch.
func (b Batch) Rejection() (disbursement.Reject, error) {
	signed, err := b.Agency.chief.step(b.digest, 0, digest.Reject)
	return disbursement.Reject{Reason: "the list is wrong", Signed: signed}, err
}

// Start is what the chief sends to release a batch that was held so many times.
func (b Batch) Start(holds int) (disbursement.Release, error) {
	signed, err := b.Agency.chief.step(b.digest, holds, digest.Release)
	return disbursement.Release{Signed: signed}, err
}

// Hold is what the maker sends to hold a batch.
func (b Batch) Hold() disbursement.SetHold {
	return disbursement.SetHold{By: b.Agency.maker.id, Reason: "the list is looked at again"}
}

// Recall is what the maker sends to take a batch back.
func (b Batch) Recall() disbursement.Recall { return disbursement.Recall{By: b.Agency.maker.id} }

// Lift is what both people send to lift the hold of a batch that was held so many times.
func (b Batch) Lift(holds int) (lift disbursement.Lift, err error) {
	for i, by := range []person{b.Agency.maker, b.Agency.chief} {
		if lift.Signed[i], err = by.step(b.digest, holds, digest.Resume); err != nil {
			return lift, err
		}
	}
	return lift, nil
}

// Once sends a command about a batch once. Errors are those of commands.Client.Ask: without an answer the command may be
// carried out later.
func (p *Payday) Once(ctx context.Context, b Batch, do disbursement.Action) (disbursement.Answer, error) {
	return p.clients[office].Ask(ctx, disbursement.Command{At: p.Now(), TenantID: b.Agency.ID, Batch: b.ID, Do: do})
}

// Approve has the chief approve a batch.
func (p *Payday) Approve(ctx context.Context, b Batch) error {
	do, err := b.Approval()
	if err != nil {
		return err
	}
	_, err = p.ask(ctx, office, b.Agency, b.ID, do)
	return err
}

// Release has the chief release an approved batch that was never held: it pays from now on.
func (p *Payday) Release(ctx context.Context, b Batch) error {
	do, err := b.Start(0)
	if err != nil {
		return err
	}
	_, err = p.ask(ctx, office, b.Agency, b.ID, do)
	return err
}

// HoldAndLift holds a batch, and has both people lift the hold. A batch that is done is left as it is.
func (p *Payday) HoldAndLift(ctx context.Context, b Batch) error {
	held, err := p.ask(ctx, office, b.Agency, b.ID, b.Hold())
	if refused := (*disbursements.RefusedError)(nil); errors.As(err, &refused) {
		return nil
	}
	if err != nil {
		return err
	}
	lift, err := b.Lift(held.Holds)
	if err != nil {
		return err
	}
	_, err = p.ask(ctx, office, b.Agency, b.ID, lift)
	if refused := (*disbursements.RefusedError)(nil); errors.As(err, &refused) && refused.Code == disbursement.CodeNotHeld {
		return nil // a try without an answer has lifted it
	}
	return err
}

// Line is a line of a file.
type Line struct {
	Ref    string
	Amount int64 // XAF
	// Mode is the payment mode: mtn or airtel.
	Mode string
	// Phone is the payee's number, as people write it.
	Phone string
}

// header is that of the files.
const header = "line_ref,name,amount,currency,payment_mode,msisdn\n"

// WriteCSV writes a file of lines.
func WriteCSV(w io.Writer, lines []Line) error {
	if _, err := io.WriteString(w, header); err != nil {
		return fmt.Errorf("writing a file of lines: %w", err)
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(w, "%s,Payee %s,%d,%s,%s,%s\n", l.Ref, l.Ref, l.Amount, money.Default, l.Mode, l.Phone); err != nil {
			return fmt.Errorf("writing a file of lines: %w", err)
		}
	}
	return nil
}

// WriteXLSX writes a workbook of lines, whose cells are texts.
func WriteXLSX(w io.Writer, lines []Line) (err error) {
	book := excelize.NewFile()
	defer func() { err = errors.Join(err, book.Close()) }()
	rows, err := book.NewStreamWriter(book.GetSheetName(0))
	if err != nil {
		return fmt.Errorf("writing a workbook of lines: %w", err)
	}
	row := func(n int, cells ...string) {
		if err != nil {
			return
		}
		values := make([]any, len(cells))
		for i, c := range cells {
			values[i] = c
		}
		err = rows.SetRow("A"+strconv.Itoa(n), values)
	}
	row(1, strings.Split(strings.TrimSpace(header), ",")...)
	for i, l := range lines {
		row(i+2, l.Ref, "Payee "+l.Ref, strconv.FormatInt(l.Amount, 10), money.Default, l.Mode, l.Phone)
	}
	if err == nil {
		err = rows.Flush()
	}
	if err == nil {
		err = book.Write(w)
	}
	if err != nil {
		return fmt.Errorf("writing a workbook of lines: %w", err)
	}
	return nil
}
