package batch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/batch"
	"quittance/disbursement"
	"quittance/internal/commands"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	processor "quittance/processors/disbursement"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/test/approvals"
	"quittance/test/await"
	"quittance/test/backoffice"
	"quittance/test/payouts"
	"quittance/test/registries"
	"quittance/test/servers"
)

// again is a line that a person pays again, by the command and on the page.
type again struct {
	*approvals.World
	t       *testing.T
	id      string // of the batch
	person  string // whose key the command has
	args    []string
	auditor *backoffice.Browser
}

// Lines of the batch. Of the others the processor is said to refuse a new try.
const (
	byCommand = iota // tried again
	byPage           // tried again
	unansweredCommand
	unansweredPage
	interrupted
	stillSent
	notProven
	refusable // the first of those, one for each refusal
)

func newAgain(t *testing.T) *again {
	t.Helper()
	a := &again{t: t, id: "dsb_1"}
	a.World = approvals.New(t, func(w *backoffice.World) {
		m, err := identity.AddStaff(t.Context(), w.Pool, w.Keys, registries.Actor, "", identity.StaffRequest{Name: "Mireille", Agency: "impots", Roles: []identity.Role{identity.RolePreparer}}, registries.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		a.person = m.ID
		for name, value := range map[string]string{"STAFF_KEY": m.Secret.Reveal(), "MASTER_KEYS": w.Keys.Reveal(), "POSTGRES": w.DSN} {
			t.Setenv("QUITTANCE_"+name, value)
		}
	})
	a.SignIn(t, -77*time.Hour) // commands have the machine's time, and changes of people and policy work after a day
	a.Agency(t)
	n := refusable + len(disbursement.RetryRefusals())
	a.Sealed(t, a.id, n)
	path := "/agency/batches/" + a.id
	a.Press(t, "Ben", path, "agency/batches/"+a.id+"/approve")
	a.Press(t, "Cleo", path, "agency/batches/"+a.id+"/release")
	await.Until(t, "sent lines", func() bool { return a.Batch(t, a.id).Lines.Sent.Count == n })
	var last disbursement.Batch
	for position := range n {
		if position != stillSent {
			last = a.Installation.OK(processor.SenderDisburse, a.id, disbursement.Word{
				Position: position, Attempt: 1, Source: disbursement.FromEnquiry, Currency: "XAF", Kind: disbursement.WordRefused, Unproven: position == notProven, Code: "E-18",
			})
		}
	}
	a.Shows(t, last)
	a.args = []string{"--kafka", a.Installation.Kafka.Brokers[0], "--topic-prefix", a.Installation.Kafka.Prefix, "--schema-registry", servers.SchemaRegistry(t)}
	a.Add(t, "", []identity.Role{identity.RoleAuditor}, "Odile")
	a.auditor = a.Enter(t, "Odile")
	return a
}

// said is what a command has said.
type said struct {
	code           int
	stdout, stderr string
}

// types has the person type the command about a line.
func (a *again) types(ctx context.Context, position int, more ...string) said {
	var out, errs bytes.Buffer
	args := append(append([]string{"batches", "retry", a.id, fmt.Sprint(position)}, more...), a.args...)
	code := cli.Program{Name: "quittance", Groups: []cli.Group{{Commands: []cli.Command{batch.Command()}}}}.Run(ctx, args, &out, &errs)
	return said{code, out.String(), errs.String()}
}

// presses has Ben press "Pay again" on the page of a line, in a language.
func (a *again) presses(position int, lang string) (status int, leads, text string) {
	page := a.Browsers["Ben"].Post(fmt.Sprintf("/agency/batches/%s/lines/%d/retry?lang=%s", a.id, position+1, lang), map[string][]string{"lang": {lang}})
	return page.Code, page.Header().Get("Location"), html.UnescapeString(page.Body.String())
}

// audited are the rows of the audit table about new tries of a line, with who and what is known of the outcome.
func (a *again) audited(position int) (out []string) {
	a.t.Helper()
	if err := a.Pool.QueryRow(a.t.Context(), `SELECT coalesce(array_agg(actor || ' ' || coalesce(detail ->> 'outcome', 'done') ORDER BY id), '{}') FROM audit WHERE action = 'batch.retry_line' AND subject = $1 AND detail ->> 'position' = $2::text`,
		a.id, fmt.Sprint(position)).Scan(&out); err != nil {
		a.t.Fatal(err)
	}
	return out
}

// retried are who has had lines tried again, by position, as the events have it.
func (a *again) retried() map[int]string {
	a.t.Helper()
	out := map[int]string{}
	if _, err := a.Installation.Kafka.ReadAll(a.t.Context(), a.Installation.Topology.Name(schemas.Disbursement.Events), func(r *kgo.Record) error {
		var e record.DisbursementEvent
		if err := a.Installation.Codec.Decode(r.Value, &e); err != nil {
			return err
		}
		if event := batches.ToEvent(&e); event.Type == disbursement.EventLineRetried {
			out[event.Lines[0].Position] = event.Detail["by"]
		}
		return nil
	}); err != nil {
		a.t.Fatal(err)
	}
	return out
}

// shows checks that the page of the audit table says of a line's rows that the outcome is not known, or does not.
func (a *again) shows(position int, unknown bool) {
	a.t.Helper()
	text := html.UnescapeString(a.auditor.Get("/admin/audit?lang=en&action=batch.retry_line").Body.String())
	for row := range strings.SplitSeq(text, "<tr") {
		if strings.Contains(row, fmt.Sprintf("position %d<", position)) || strings.Contains(row, fmt.Sprintf("position %d;", position)) {
			if strings.Contains(row, "Line to be paid again: asked for, outcome not known") != unknown || strings.Contains(row, "Line paid again") {
				a.t.Errorf("line %d on the page of the audit table, not known %v:\n%s", position, unknown, row)
			}
			return
		}
	}
	a.t.Errorf("the page of the audit table has no row of line %d:\n%s", position, text)
}

// The audit table said of a line that was tried again that it was paid again, also while the processor had not answered; and had no
// row at all when the person had interrupted the command, or closed the page. `batches retry`, "Pay again" on the page, the audit
// table, its page and the events say the same: done, refused and why, or not known yet.
func TestOutcomesOfLineRetries(t *testing.T) {
	a := newAgain(t)
	a.done()
	a.refused()
	a.StopProcessor()
	a.Processor = impatient{a.Installation.Client(processor.SenderOffice)}
	a.unknown()
	a.refusals()
}

// done checks lines that the processor makes ready.
func (a *again) done() {
	a.t.Helper()
	var b struct {
		Batch string
		Lines map[string]struct{ Count int }
	}
	if s := a.types(a.t.Context(), byCommand, "--json"); s.code != 0 || s.stderr != "" || json.Unmarshal([]byte(s.stdout), &b) != nil || b.Batch != a.id || b.Lines["ready"].Count != 1 {
		a.t.Errorf("`batches retry` ends with %d: %s%s", s.code, s.stdout, s.stderr)
	}
	if status, leads, text := a.presses(byPage, "en"); status != http.StatusSeeOther || !strings.Contains(leads, "done=retry") {
		a.t.Errorf("the page: %d %s %s", status, leads, text)
	}
	if by := a.retried(); !maps.Equal(by, map[int]string{byCommand: a.person, byPage: a.IDs["Ben"]}) {
		a.t.Errorf("events: %v", by)
	}
	for position, who := range map[int]string{byCommand: a.person, byPage: a.IDs["Ben"]} {
		if rows := a.audited(position); !slices.Equal(rows, []string{who + " done"}) {
			a.t.Errorf("line %d is audited as %q", position, rows)
		}
		a.shows(position, false)
	}
}

// refused checks lines that the processor does not make ready: nothing is in the audit table, and there is no event.
func (a *again) refused() {
	a.t.Helper()
	before := a.retried()
	for position, code := range map[int]disbursement.Code{stillSent: disbursement.CodeLineStatus, notProven: disbursement.CodeUnproven} {
		if s := a.types(a.t.Context(), position); s.code != 1 || s.stdout != "" || !strings.Contains(s.stderr, "("+string(code)+")") {
			a.t.Errorf("%s: `batches retry` ends with %d: %s%s", code, s.code, s.stdout, s.stderr)
		}
		if status, leads, text := a.presses(position, "fr"); status != http.StatusConflict || leads != "" || !strings.Contains(text, "Ligne\u00a0: ") {
			a.t.Errorf("%s: the page %d %s", code, status, text)
		}
		if rows := a.audited(position); len(rows) > 0 {
			a.t.Errorf("%s: audited as %q", code, rows)
		}
	}
	if s := a.types(a.t.Context(), 99999); s.code != 1 || !strings.Contains(s.stderr, "("+string(disbursement.CodeLineUnknown)+")") {
		a.t.Errorf("a line that is not there: %d %s", s.code, s.stderr)
	}
	if now := a.retried(); !maps.Equal(now, before) {
		a.t.Errorf("events: %v, then %v", before, now)
	}
}

// impatient waits half a second for an answer.
type impatient struct{ *commands.Disbursement }

// Ask implements disbursements.Asker.
func (i impatient) Ask(ctx context.Context, cmd disbursement.Command) (disbursement.Answer, error) {
	return i.AskWithin(ctx, cmd, 500*time.Millisecond)
}

// unknown checks what is said while nobody answers, also to a person who does not wait, and that the processor may carry it out
// afterwards: then the line says so.
func (a *again) unknown() {
	a.t.Helper()
	ctx, interrupt := context.WithCancel(a.t.Context())
	var g errgroup.Group
	var answers [2]said
	g.Go(func() error { answers[0] = a.types(a.t.Context(), unansweredCommand); return nil })
	g.Go(func() error { answers[1] = a.types(ctx, interrupted); return nil })
	sent := func() bool {
		positions := commandsOf(a.t, a.Installation)
		return slices.Contains(positions, interrupted)
	}
	await.Until(a.t, "the command is sent", sent)
	interrupt()
	_ = g.Wait() // never an error
	for i, s := range answers {
		if s.code != 1 || s.stdout != "" || !strings.Contains(s.stderr, "may have carried it out; look with `quittance batches show "+a.id+"`") {
			a.t.Errorf("`batches retry` %d ends with %d: %s%s", i, s.code, s.stdout, s.stderr)
		}
	}
	if status, leads, text := a.presses(unansweredPage, "en"); status != http.StatusServiceUnavailable || leads != "" || !strings.Contains(text, "it is not known whether the request was carried out") {
		a.t.Errorf("the page: %d %s %s", status, leads, text)
	}
	if status, _, text := a.presses(unansweredPage, "fr"); status != http.StatusServiceUnavailable || !strings.Contains(text, "on ne sait pas si") {
		a.t.Errorf("the page in French: %d %s", status, text)
	}
	if by := a.retried(); len(by) != 2 {
		a.t.Errorf("events while nobody answers: %v", by)
	}
	who := map[int]string{unansweredCommand: a.person, interrupted: a.person, unansweredPage: a.IDs["Ben"]}
	for position, by := range who {
		if rows := slices.Compact(a.audited(position)); !slices.Equal(rows, []string{by + " " + disbursements.OutcomeUnknown}) {
			a.t.Errorf("line %d is audited as %q", position, rows)
		}
		a.shows(position, true)
	}
	stop := a.Installation.Process()
	await.Until(a.t, "the lines are tried again", func() bool { return len(a.retried()) == 5 })
	for position, by := range who {
		if got := a.retried()[position]; got != by {
			a.t.Errorf("line %d is tried again by %q", position, got)
		}
		if s := a.types(a.t.Context(), position); s.code != 1 || !strings.Contains(s.stderr, "("+string(disbursement.CodeLineStatus)+")") {
			a.t.Errorf("once more: %d %s", s.code, s.stderr)
		}
	}
	stop()
}

// commandsOf are the positions of all lines that the processor is asked to try again.
func commandsOf(t *testing.T, i *payouts.Installation) (out []int) {
	t.Helper()
	if _, err := i.Kafka.ReadAll(t.Context(), i.Topology.Name(schemas.Disbursement.Commands), func(r *kgo.Record) error {
		if cmd, ok := commandOf(i, r); ok {
			out = append(out, cmd.Do.(disbursement.Retry).Position) //nolint:forcetypeassert // commandOf
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// commandOf returns the command of a record if it has a line tried again.
func commandOf(i *payouts.Installation, r *kgo.Record) (disbursement.Command, bool) {
	var c record.DisbursementCommand
	if err := i.Codec.Decode(r.Value, &c); err != nil {
		return disbursement.Command{}, false
	}
	cmd, err := batches.ToCommand(&c)
	_, retries := cmd.Do.(disbursement.Retry)
	return cmd, err == nil && retries
}

// refusal is what the processor of refusals answers about a line.
func refusal(position int) disbursement.Answer {
	code := disbursement.RetryRefusals()[position-refusable]
	field := "position"
	if code == disbursement.CodeNotInForce {
		field = "batch"
	}
	return disbursement.Answer{Refusal: &disbursement.Refusal{Code: code, Field: field, Mend: "mend of " + string(code)}}
}

// refuser answers as the processor does, with the refusal of each line.
type refuser struct{}

// Ask implements disbursements.Asker.
func (refuser) Ask(_ context.Context, cmd disbursement.Command) (disbursement.Answer, error) {
	return refusal(cmd.Do.(disbursement.Retry).Position), nil //nolint:forcetypeassert // the test sends no others
}

// answers answers commands in Kafka as the refuser does, until the returned function is called.
func (a *again) answers() (stop func()) {
	a.t.Helper()
	i := a.Installation
	cl, err := i.Kafka.Client(kgo.ConsumeTopics(i.Topology.Name(schemas.Disbursement.Commands)), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(a.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				cmd, ok := commandOf(i, r)
				if !ok || cmd.ReplyTo == nil || cmd.Do.(disbursement.Retry).Position < refusable || cmd.Do.(disbursement.Retry).Position == 99999 { //nolint:forcetypeassert // commandOf
					return
				}
				value, err := i.Codec.Encode(batches.Reply(*cmd.ReplyTo, refusal(cmd.Do.(disbursement.Retry).Position))) //nolint:forcetypeassert // commandOf
				if err == nil {
					err = i.Producer.ProduceSync(ctx, &kgo.Record{Topic: i.Topology.Name(schemas.Disbursement.Replies), Partition: cmd.ReplyTo.Partition, Key: []byte(cmd.ReplyTo.CorrelationID), Value: value}).FirstErr()
				}
				if err != nil && ctx.Err() == nil {
					a.t.Error(err)
				}
			})
		}
	})
	return func() { cancel(); wg.Wait(); cl.Close() }
}

// refusals walks through all refusals: the command and the page say each one with its reason, and in its own words.
func (a *again) refusals() {
	a.t.Helper()
	a.Processor = refuser{}
	stop := a.answers()
	defer stop()
	words := map[string]disbursement.Code{}
	for n, code := range disbursement.RetryRefusals() {
		position := refusable + n
		if s := a.types(a.t.Context(), position); s.code != 1 || s.stdout != "" || !strings.Contains(s.stderr, "mend of "+string(code)+" ("+string(code)+")") {
			a.t.Errorf("%s: `batches retry` ends with %d: %s%s", code, s.code, s.stdout, s.stderr)
		}
		for _, lang := range []string{"fr", "en"} {
			status, leads, text := a.presses(position, lang)
			_, alert, _ := strings.Cut(text, `role="alert"`)
			alert, _, _ = strings.Cut(alert, "</div>")
			if status != http.StatusConflict || leads != "" || alert == "" || strings.Contains(alert, string(code)) {
				a.t.Errorf("%s: the page in %s is %d and has no words:\n%s", code, lang, status, alert)
			}
			if other := words[alert]; other != "" {
				a.t.Errorf("the page says the same of %s and %s", code, other)
			}
			words[alert] = code
		}
		if rows := a.audited(position); len(rows) > 0 {
			a.t.Errorf("%s: audited as %q", code, rows)
		}
	}
	if by := a.retried(); len(by) != 5 {
		a.t.Errorf("events: %v", by)
	}
}
