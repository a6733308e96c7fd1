package crash_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/checkout"
	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
	"quittance/internal/cases"
	"quittance/internal/kafka"
	"quittance/reconciliation/audit"
	"quittance/reconciliation/chain"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/harness"
)

// statementsWithin bounds the imports and closes of all agencies, of which atOnce are worked on at the
// same time.
const (
	statementsWithin = 8 * time.Minute
	atOnce           = 4
)

// clerkOfBooks imports the statements of the load's days, and closes these days, while the programs
// that do the work are killed. An import is killed too, and repeated.
type clerkOfBooks struct {
	w      *witness
	people *staff
	seed   uint64
	dir    string

	kills   atomic.Int64 // of roles
	imports atomic.Int64 // that were killed
	again   atomic.Int64 // closes that were proposed again
}

// books are what the statements say.
type books struct {
	closes, payments, proved int
	wrong                    []string
}

// reconcile closes the days of so many agencies, and proves payments.
func (w *witness) reconcile(ctx context.Context, people *staff, seed uint64, begun time.Time, agencies, sample int) (b books, c *clerkOfBooks, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementsWithin)
	defer cancel()
	c = &clerkOfBooks{w: w, people: people, seed: seed, dir: w.stack.Dir}
	of := w.stack.Ledgers[:agencies]
	days, err := c.nextDays(ctx, begun)
	if err != nil {
		return b, c, err
	}
	killing, stop := context.WithCancel(ctx)
	var killer sync.WaitGroup
	killer.Go(func() { c.kill(killing) })
	g, working := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, agency := range of {
		g.Go(func() error { return c.close(working, agency, days) })
	}
	err = g.Wait()
	stop()
	killer.Wait()
	for _, p := range w.stack.Fleet {
		err = errors.Join(err, p.Start())
	}
	if err != nil {
		return b, c, err
	}
	for _, agency := range of {
		if err := c.verify(ctx, agency, (sample+agencies-1)/agencies, &b); err != nil {
			return b, c, err
		}
	}
	return b, c, nil
}

// cutoff is the hour of the accounts' cut-off: what is paid later is paid out on the next day.
const cutoff = 17

// nextDays moves the service's clock until all days of the load are over and its payouts are at the
// bank. It returns the days of the statements: from the first payment to the last payout. A later
// statement of the operator would have no line, and so say nothing of its day.
func (c *clerkOfBooks) nextDays(ctx context.Context, begun time.Time) (days []string, err error) {
	wat := time.FixedZone("WAT", 3600)
	last := time.Now().In(wat)
	if last.Hour() >= cutoff {
		last = last.AddDate(0, 0, 1)
	}
	for at := begun.In(wat); at.Format(time.DateOnly) <= last.Format(time.DateOnly); at = at.AddDate(0, 0, 1) {
		days = append(days, at.Format(time.DateOnly))
	}
	if _, err := c.w.control(ctx, http.MethodPost, "/control/clock", `{"advance": "48h"}`); err != nil {
		return nil, err
	}
	// The simulators follow the clock. Until then they refuse the statement of a day that has not begun.
	next := last.AddDate(0, 0, 1).Format(time.DateOnly)
	return days, c.patiently(ctx, func() error {
		_, err := c.w.control(ctx, http.MethodGet, "/control/statements/mtn?"+url.Values{"agency": {c.w.stack.Ledgers[0].Slug}, "day": {next}}.Encode(), "")
		return err
	})
}

// slower is how much longer each pause between two kills is than the one before. On a busy machine a
// program needs many seconds until it works, so the work ends only if the kills become rare.
const slower = 1.3

// kill kills one of the programs that the statements pass through, again and again.
func (c *clerkOfBooks) kill(ctx context.Context) {
	random := rand.New(rand.NewPCG(c.seed, 7))
	var restarts sync.WaitGroup
	defer restarts.Wait()
	among := slices.DeleteFunc(slices.Clone(c.w.stack.Fleet), func(p *program.Process) bool {
		role, _, _ := strings.Cut(p.Name, "-")
		return !slices.Contains([]string{"match", "journal", "cases"}, role)
	})
	for pause := 1.0; measure.Pause(ctx, time.Duration(pause*float64(time.Second))); pause *= slower {
		victim := among[random.IntN(len(among))]
		wait := time.Duration(random.Int64N(int64(time.Second)))
		if victim.Kill() {
			c.kills.Add(1)
			restarts.Go(func() { time.Sleep(wait); _ = victim.Start() }) // reconcile starts it after an error
		}
	}
}

// close imports the statements of an agency and closes its accounts.
func (c *clerkOfBooks) close(ctx context.Context, agency harness.Application, days []string) error {
	accounts := []string{"mtn", "banque"}
	for _, account := range accounts {
		for _, day := range days {
			if err := c.take(ctx, agency, account, day); err != nil {
				return err
			}
		}
	}
	// The operator's lines name no batch, so people say which of them a payout has.
	if err := c.patiently(ctx, func() error { return c.match(ctx, agency) }); err != nil {
		return fmt.Errorf("matching the payouts of %s: %w", agency.Slug, err)
	}
	for _, account := range accounts {
		if err := c.closeUntil(ctx, agency, account, days[len(days)-1]); err != nil {
			return err
		}
	}
	return nil
}

// match agrees to the proposals about payouts of an agency. It returns nil when the matcher has carried
// them out.
func (c *clerkOfBooks) match(ctx context.Context, agency harness.Application) error {
	list, err := c.people.cases.List(ctx, nil, cases.Filter{Kind: cases.KindProposal, AgencyID: agency.Tenant})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("there is no proposal yet")
	}
	for _, one := range list {
		if one.Resolution != "" {
			continue
		}
		err := c.people.agree(ctx, cases.Request{CaseID: one.ID, Resolution: cases.ResolutionMatch, Reason: "crash test"})
		return cmp.Or(err, errors.New("the proposal is not carried out yet"))
	}
	lines, err := c.w.clickhouse(ctx, "SELECT countIf(state = 'open') FROM matches FINAL WHERE hop = 'settlement' AND tenant_id = '"+agency.Tenant+"'")
	if err == nil && lines[0][0] == "0" {
		err = errors.New("the matcher has not carried the proposal out")
	}
	return err
}

// A program does not end within startsWithin: it has to connect to its servers first.
const startsWithin = 20 * time.Millisecond

// take imports the statement of a day. The first try is killed while the program starts, so that each
// run of the test has one, and the next two at any moment.
func (c *clerkOfBooks) take(ctx context.Context, agency harness.Application, account, day string) error {
	text, err := c.w.control(ctx, http.MethodGet, "/control/statements/"+account+"?"+url.Values{"agency": {agency.Slug}, "day": {day}}.Encode(), "")
	if err != nil {
		return err
	}
	file := filepath.Join(c.dir, agency.Slug+"-"+account+"-"+day)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	args := []string{"statements", "import", "--agency", agency.Slug, "--mode", "test", "--account", account, file}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(filepath.Base(file))) // another moment for each file
	random := rand.New(rand.NewPCG(c.seed, hash.Sum64()))
	for _, within := range []time.Duration{startsWithin, 500 * time.Millisecond, 750 * time.Millisecond} {
		dying, cancel := context.WithTimeout(ctx, time.Duration(random.Int64N(int64(within))))
		err := c.people.program.Run(dying, args...)
		cancel()
		if err == nil {
			return nil
		}
		c.imports.Add(1)
	}
	return c.patiently(ctx, func() error { return c.people.program.Run(ctx, args...) })
}

// patiently repeats what fails while programs are being killed.
func (c *clerkOfBooks) patiently(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		if !measure.Pause(ctx, 500*time.Millisecond) {
			return err
		}
	}
}

// closeUntil proposes to close an account until a day as one person, and approves it as the other,
// until a close is carried out. One whose account has changed meanwhile is refused, and proposed again.
func (c *clerkOfBooks) closeUntil(ctx context.Context, agency harness.Application, account, day string) error {
	for {
		if err := c.patiently(ctx, func() error {
			err := c.people.program.Run(ctx, "periods", "close", "--agency", agency.Slug, "--mode", "test", "--account", account, "--day", day, "--reason", "crash test")
			if open, listed := c.openCloses(ctx, agency); listed == nil && len(open) > 0 {
				return nil // its answer may have been lost
			}
			return err
		}); err != nil {
			return fmt.Errorf("closing %s of %s: %w", account, agency.Slug, err)
		}
		open, err := c.openCloses(ctx, agency)
		if err != nil {
			return err
		}
		for _, one := range open {
			if err := c.patiently(ctx, func() error {
				detail, err := c.people.cases.Show(ctx, &c.people.people[1].Staff, one.ID, time.Now())
				if err != nil {
					return err
				}
				last := detail.Proposals[len(detail.Proposals)-1]
				if last.State != cases.ProposalOpen {
					return nil
				}
				// The service's clock was moved: an approval of this machine's time would be before its proposal.
				_, err = c.people.cases.Approve(ctx, c.people.people[1], one.ID, len(detail.Proposals), last.ProposedAt.Add(time.Second))
				return err
			}); err != nil {
				return err
			}
			state, err := c.carriedOut(ctx, one.ID)
			switch {
			case err != nil:
				return fmt.Errorf("the close %s of %s, %s: %w", one.ID, agency.Slug, account, err)
			case state == "closed":
				return nil
			}
			c.again.Add(1)
		}
	}
}

func (c *clerkOfBooks) openCloses(ctx context.Context, agency harness.Application) ([]cases.Case, error) {
	return c.people.cases.List(ctx, nil, cases.Filter{State: cases.StateOpen, Kind: cases.KindClose, AgencyID: agency.Tenant})
}

// carriedOut waits for the record of a close, and returns its state.
func (c *clerkOfBooks) carriedOut(ctx context.Context, caseID string) (state string, err error) {
	err = c.patiently(ctx, func() error {
		lines, err := c.w.clickhouse(ctx, "SELECT state FROM closes FINAL WHERE case_id = '"+caseID+"'")
		if err == nil && len(lines) == 0 {
			err = errors.New("the matcher has written no record")
		}
		if err == nil {
			state = lines[0][0]
		}
		return err
	})
	return state, err
}

// verify computes the closes of an agency again, from Kafka alone, and compares them with the payments
// that the log has and with their identities.
func (c *clerkOfBooks) verify(ctx context.Context, agency harness.Application, sample int, b *books) error {
	wrong := func(format string, args ...any) {
		b.wrong = append(b.wrong, agency.Slug+": "+fmt.Sprintf(format, args...))
	}
	cfg := kafka.Config{Brokers: []string{c.w.stack.Kafka.Addr()}, Prefix: harness.Prefix}
	cl, err := cfg.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	topology, err := kafka.Load(ctx, cfg, cl)
	if err != nil {
		return err
	}
	book, err := audit.Read(ctx, audit.Source{Kafka: cfg, Topology: topology, Codec: c.w.Codec}, agency.Tenant, false)
	if err != nil {
		return err
	}
	if got := book.Accounts(); !slices.Equal(got, []string{"banque", "mtn"}) || book.Unreadable > 0 {
		wrong("closes of %q, %d records cannot be read", got, book.Unreadable)
	}
	defer func() { _ = book.Close() }()
	of := map[string]audit.Close{}
	if err := book.Each(func(k *audit.Close) error {
		b.closes++
		if !k.Holds() {
			wrong("%s: %q", k.Account, k.Faults)
		}
		if k.SourcesStartAmount+k.SourcesNewAmount-k.SourcesMatchedAmount-k.SourcesResolvedAmount != k.SourcesEndAmount ||
			k.LinesStartAmount+k.LinesNewAmount-k.LinesMatchedAmount-k.LinesResolvedAmount != k.LinesEndAmount || k.SourcesMatchedAmount != k.LinesMatchedAmount {
			wrong("%s: the roll-forward does not hold: %+v", k.Account, k.Close)
		}
		of[k.Account] = *k
		return nil
	}); err != nil {
		return err
	}
	if len(of) < 2 {
		return nil
	}
	paid, err := c.paid(ctx, agency)
	if err != nil {
		return err
	}
	b.payments += len(paid)
	if n := of["mtn"].SourcesMatched; n < int64(len(paid)) {
		wrong("%d payments, of which %d are matched", len(paid), n)
	}
	ids := slices.Sorted(maps.Keys(paid))
	rand.New(rand.NewPCG(c.seed, 9)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids[:min(sample, len(ids))] {
		for account, k := range of {
			var rows []chain.Row // of the payment: money that was given back has the same reference
			for _, entry := range book.Entries(paid[id]) {
				proofs, err := k.Proofs(entry)
				if err != nil {
					return err
				}
				for _, p := range proofs {
					if p.Row.Gross > 0 {
						rows = append(rows, p.Row)
					}
				}
			}
			if len(rows) == 0 || !strings.Contains(rows[0].OperatorLine, "/mtn/"+paid[id]+"#") || account == "banque" && rows[0].BankLine == "" {
				wrong("session %s, operator's reference %s: the close of %s proves %+v", id, paid[id], account, rows)
			}
		}
		b.proved++
	}
	return nil
}

// paid returns the operator's references of the agency's completed payments by mobile money, by
// session, as the log has them.
func (c *clerkOfBooks) paid(ctx context.Context, agency harness.Application) (map[string]string, error) {
	r, err := c.w.Read(ctx, schemas.TopicEvents)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := map[string]string{}
	err = r.Next(ctx, func(rec *kgo.Record) error {
		var e record.Event
		if err := c.w.Codec.Decode(rec.Value, &e); err != nil {
			return err
		}
		s := e.Session
		if e.Type == kindCompleted && s.TenantID == agency.Tenant && s.Collection.Channel == string(checkout.ChannelMobileMoney) && !s.Late {
			out[e.SessionID] = s.Collection.OperatorRef
		}
		return nil
	})
	return out, err
}

// falseMatches returns how many matches join a payment and a line with different references of the
// operator, or lines that are counted twice.
func (w *witness) falseMatches(ctx context.Context) (n int, err error) {
	lines, err := w.clickhouse(ctx, `SELECT count() FROM (
			SELECT arrayJoin(any(sources)) AS source, arrayJoin(any(lines)) AS line FROM matches FINAL WHERE hop = 'receipt' AND stage = 'operator_ref'
			GROUP BY finding_id, part HAVING argMax(state, source_offset) = 'open') AS m
		INNER JOIN (SELECT concat(toString(local_date), '/', toString(entry_id)) AS id, operator_ref, gross FROM expected_money FINAL WHERE NOT withdrawn) AS e ON e.id = m.source
		INNER JOIN (SELECT concat(toString(local_day), '/', line_id, '#', lower(trim(LEADING '0' FROM hex(content)))) AS id, operator_ref, amount FROM statement_lines FINAL) AS l ON l.id = m.line
		WHERE e.operator_ref != l.operator_ref OR e.gross != l.amount`)
	if err != nil {
		return 0, err
	}
	counts, err := integers(lines[0])
	if err != nil {
		return 0, err
	}
	return int(counts[0]), nil
}
