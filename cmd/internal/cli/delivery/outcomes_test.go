package delivery_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/delivery"
	"quittance/cmd/internal/cli/replay"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/cashin"
	"quittance/sinks/erp"
	"quittance/sinks/schedule"
	"quittance/sinks/webhook"
	"quittance/test/backoffice"
	deliverytest "quittance/test/deliveries"
	"quittance/test/registries"
	"quittance/test/servers"
	"quittance/test/topics"
)

// post is an installation with the pages of staff and a running schedule. The test is the planners and the workers: it says what
// the destinations answer.
type post struct {
	*backoffice.World
	t     *testing.T
	on    topics.Topics
	adm   *kadm.Client
	kinds deliveries.Kinds
	stop  func() // of the schedule
	olive *backoffice.Browser
	args  []string
}

// everywhere is a directory that knows every destination.
type everywhere struct{}

// Destinations implements deliveries.Directory.
func (everywhere) Destinations(*record.Notification) []string { return nil }

// Destination implements deliveries.Directory.
func (everywhere) Destination(string) (deliveries.Destination, bool) {
	return deliveries.Destination{MaxInFlight: 100}, true
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{World: backoffice.New(t), t: t, on: topics.Make(t, 2), kinds: deliveries.Kinds{webhook.Registration(nil), erp.Registration(nil), cashin.Registration(nil)}}
	p.MoveTo(time.Now().UTC())
	p.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	p.olive = p.Enter(t, "Olive")
	p.adm = kadm.NewClient(p.on.Client)
	for i := range p.kinds {
		p.kinds[i].Directory = everywhere{}
	}
	s, err := schedule.New(schedule.Config{
		Kafka: p.on.Kafka, Codec: p.on.Codec, Deliveries: deliveries.NewStore(p.Pool, p.kinds), Outcomes: deliverytest.Outcomes(), Now: time.Now, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(), Poll: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.stop = deliverytest.Start(t, s)
	t.Setenv("QUITTANCE_POSTGRES", p.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", p.Keys.Reveal())
	p.args = []string{"--kafka", p.on.Kafka.Brokers[0], "--topic-prefix", p.on.Kafka.Prefix, "--schema-registry", servers.SchemaRegistry(t)}
	p.Exec(t, `SELECT make_delivery_day($1)`, time.Now().UTC())
	return p
}

// delivered is a delivery in the database, of an event to a destination.
type delivered struct {
	kind               deliveries.Kind
	event, destination string
}

func (d delivered) id() string { return deliveries.ID(d.kind, d.event, d.destination) }

// put stores a delivery in a state. One that is accepted or superseded has no body any more.
func (p *post) put(d delivered, state string) {
	p.t.Helper()
	p.Exec(p.t, `INSERT INTO deliveries (occurred_on, delivery_id, kind, destination_id, event_id, event, application_id, tenant_id, session_id, livemode, occurred_at, state, attempts, round, last_outcome_at, http_status, body)
		SELECT now()::date, $1, $2, $3, $4, 'checkout.completed', $5, $6, 'chs_' || $4::text, false, date_trunc('milliseconds', now()), $7::text, 4, 0, now(), 503, CASE WHEN $7::text IN ('delivered', 'superseded') THEN NULL ELSE 'body'::bytea END`,
		d.id(), string(d.kind), d.destination, d.event, registries.AppA, registries.AgencyA, state)
	p.Exec(p.t, `INSERT INTO delivery_destinations (kind, destination_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, string(d.kind), d.destination)
}

// run runs a command with the words of all commands about deliveries.
func (p *post) run(args ...string) (code int, stdout, stderr string) {
	p.t.Helper()
	return clitest.RunAll(p.t, []cli.Command{delivery.Endpoints(), delivery.Deliveries(), replay.Replay()}, args...)
}

// shownDelivery is a delivery as --json prints it.
type shownDelivery struct {
	State  string
	Status int `json:"http_status"`
	Reason string
	Calls  []struct{ Outcome, Reason string }
}

// stateWords are those of the list of deliveries in both languages.
var stateWords = map[string][2]string{
	deliveries.StateWaiting: {"En attente", "Waiting"}, deliveries.StateQueued: {"En cours d’envoi", "Being sent"}, deliveries.StateDelivered: {"Accepté", "Accepted"},
	deliveries.StateNeedsOperator: {"À reprendre", "Needs a person"}, deliveries.StateSuperseded: {"Remplacé", "Superseded"}, deliveries.StateExhausted: {"Abandonné", "Given up"},
}

// stands checks that a delivery is in a state, with an answer of its destination, in `deliveries show`, `deliveries list` and on the
// page of deliveries, and that the audit table has a number of rows about its retries.
func (p *post) stands(d delivered, state string, status, retried int) {
	p.t.Helper()
	var shown shownDelivery
	if _, out, errs := p.run("deliveries", "show", d.id(), "--json"); json.Unmarshal([]byte(out), &shown) != nil || shown.State != state || shown.Status != status {
		p.t.Errorf("%+v: `deliveries show --json` %s%s, want %s and %d", d, out, errs, state, status)
	}
	if _, out, errs := p.run("deliveries", "list", "--event-id", d.event, "--state", state); !strings.Contains(out, d.id()) {
		p.t.Errorf("%+v: `deliveries list --state %s` %s%s", d, state, out, errs)
	}
	for i, lang := range []string{"fr", "en"} {
		page := p.olive.Get("/ops/deliveries?lang=" + lang + "&endpoint=" + d.destination + "&kind=" + string(d.kind))
		text := html.UnescapeString(page.Body.String())
		if word := stateWords[state][i]; page.Code != http.StatusOK || !strings.Contains(text, ">"+word+"<") || status != 0 && !strings.Contains(text, fmt.Sprint(status)) {
			p.t.Errorf("%+v: the page in %s is %d and lacks %q or %d:\n%s", d, lang, page.Code, word, status, text)
		}
	}
	if n := p.audited("delivery.retry", d.id()); n != retried {
		p.t.Errorf("%+v: %d rows in the audit table, want %d", d, n, retried)
	}
}

// audited counts rows of the audit table.
func (p *post) audited(action, subject string) (n int) {
	p.t.Helper()
	if err := p.Pool.QueryRow(p.t.Context(), `SELECT count(*) FROM audit WHERE action = $1 AND subject = $2`, action, subject).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

// answered writes the outcome of a call, as the worker of the kind does, and waits until the schedule has applied it.
func (p *post) answered(d delivered, outcome deliveries.Outcome, status int, reason string) {
	p.t.Helper()
	a := &record.Attempt{Outcome: string(outcome), At: time.Now().UTC(), HTTPStatus: int32(status), Reason: reason}
	a.Delivery = record.Delivery{DeliveryID: d.id(), Kind: string(d.kind), DestinationID: d.destination, EventID: d.event, Event: "checkout.completed", ApplicationID: registries.AppA, TenantID: registries.AgencyA, SessionID: "chs_" + d.event, Attempt: 5, Body: []byte("body")}
	if err := p.Pool.QueryRow(p.t.Context(), `SELECT occurred_at, round FROM deliveries WHERE delivery_id = $1`, d.id()).Scan(&a.Delivery.OccurredAt, &a.Delivery.Round); err != nil {
		p.t.Fatal(err)
	}
	p.write(schemas.TopicAttempts, a, func(r *kgo.Record) { deliverytest.SignOutcome(r, string(d.kind)) })
}

func (p *post) write(topic string, r record.Record, signs ...func(*kgo.Record)) {
	p.t.Helper()
	value, err := p.on.Codec.Encode(r)
	if err != nil {
		p.t.Fatal(err)
	}
	rec := &kgo.Record{Topic: p.on.Topology.Name(topic), Key: []byte("key"), Value: value}
	for _, sign := range signs {
		sign(rec)
	}
	if err := p.on.Client.ProduceSync(p.t.Context(), rec).FirstErr(); err != nil {
		p.t.Fatal(err)
	}
}

// becomes waits until a delivery is in a state.
func (p *post) becomes(d delivered, state string) {
	p.t.Helper()
	deliverytest.Eventually(p.t, fmt.Sprintf("%+v is %s", d, state), func() bool {
		var is string
		err := p.Pool.QueryRow(p.t.Context(), `SELECT state FROM deliveries WHERE delivery_id = $1`, d.id()).Scan(&is)
		return err == nil && is == state
	})
}

// retries has the command send a delivery again, as text and as JSON in turn, and checks what it says.
func (p *post) retries(d delivered, result, code, text string) {
	p.t.Helper()
	exit := 0
	if code != "" {
		exit = 1
	}
	var list []struct{ ID, Result, Code, Refusal string }
	got, out, errs := p.run("deliveries", "retry", d.id(), "--json")
	if got != exit || json.Unmarshal([]byte(out), &list) != nil || len(list) != 1 || list[0].Result != result || list[0].Code != code || (list[0].Refusal == "") != (code == "") || (errs == "") != (exit == 0) {
		p.t.Errorf("%+v: `deliveries retry --json` ends with %d: %s%s, want %s %q", d, got, out, errs, result, code)
	}
	if result == "due" {
		return // once more it is another round
	}
	if got, out, errs := p.run("deliveries", "retry", d.id()); got != exit || !strings.Contains(out+errs, text) || strings.Contains(out+errs, code+" ") && code != "" {
		p.t.Errorf("%+v: `deliveries retry` ends with %d: %s%s, want %q", d, got, out, errs, text)
	}
}

// `deliveries redeliver` said that webhooks were sent while their endpoint was suspended, ended well when it had sent nothing, and hid
// what it had made due when it broke off; a refusal in JSON had no code. Sending again by each command ends in each way: done, refused
// and why, or not known yet, and commands, the page of deliveries, the audit table and the outcomes in Kafka say the same.
func TestOutcomesOfRetries(t *testing.T) {
	p := newPost(t)
	for _, kind := range []deliveries.Kind{webhook.Kind, erp.Kind, cashin.Kind} {
		p.decided(kind)
		p.refused(kind)
	}
	p.redelivered()
	p.replayed()
	p.behind()
}

// decided walks from a retry, whose outcome is not known while the destination has not answered, to each answer.
func (p *post) decided(kind deliveries.Kind) {
	p.t.Helper()
	for name, end := range map[string]struct {
		outcome deliveries.Outcome
		state   string
		status  int
	}{
		"yes": {deliveries.OutcomeDelivered, deliveries.StateDelivered, 200},
		"no":  {deliveries.OutcomeNeedsOperator, deliveries.StateNeedsOperator, 422},
	} {
		d := delivered{kind, "evt_" + string(kind) + name, p.configured(kind)}
		p.put(d, deliveries.StateNeedsOperator)
		// The destination may have failed for days before.
		p.Exec(p.t, `UPDATE delivery_destinations SET failing_since = NULL, hold_until = NULL, suspended_at = NULL, suspended_reason = NULL WHERE kind = $1 AND destination_id = $2`, string(kind), d.destination)
		p.retries(d, "due", "", "due now")
		p.becomes(d, deliveries.StateQueued)
		p.stands(d, deliveries.StateQueued, 503, 1) // not known: the answer of the call before
		p.retries(d, "on_its_way", "", "on its way already")
		p.answered(d, end.outcome, end.status, "")
		p.becomes(d, end.state)
		p.stands(d, end.state, end.status, 1)
		if end.state == deliveries.StateDelivered {
			p.retries(d, "refused", deliveries.CodeAccepted, "was accepted at")
			p.stands(d, end.state, end.status, 1)
		}
	}
}

// refused walks through the refusals of a retry.
func (p *post) refused(kind deliveries.Kind) {
	p.t.Helper()
	texts := map[string]string{
		deliveries.CodeUnknown: "no delivery has this id", deliveries.CodeAccepted: "was accepted at", deliveries.CodeSuperseded: "later webhook of the same payment",
		deliveries.CodeBodyGone: "is no longer kept", deliveries.CodeSuspended: "the endpoint is suspended since", deliveries.CodeRemoved: "the endpoint was removed",
	}
	states := map[string]string{deliveries.CodeAccepted: deliveries.StateDelivered, deliveries.CodeSuperseded: deliveries.StateSuperseded, deliveries.CodeBodyGone: deliveries.StateExhausted}
	for i, code := range deliveries.RetryRefusals() {
		d, state := delivered{kind, fmt.Sprint("evt_", kind, i), p.configured(kind)}, states[code]
		if state == "" {
			state = deliveries.StateNeedsOperator
		}
		if code != deliveries.CodeUnknown {
			p.put(d, state)
		}
		switch code {
		case deliveries.CodeBodyGone:
			p.Exec(p.t, `UPDATE deliveries SET body = NULL WHERE delivery_id = $1`, d.id())
		case deliveries.CodeSuspended, deliveries.CodeRemoved:
			why := map[string]string{deliveries.CodeSuspended: deliveries.SuspendedOperator, deliveries.CodeRemoved: deliveries.SuspendedRemoved}[code]
			p.Exec(p.t, `UPDATE delivery_destinations SET suspended_at = now(), suspended_reason = $3 WHERE kind = $1 AND destination_id = $2`, string(kind), d.destination, why)
		}
		p.retries(d, "refused", code, texts[code])
		if code != deliveries.CodeUnknown {
			p.stands(d, state, 503, 0)
		}
		p.Exec(p.t, `UPDATE delivery_destinations SET suspended_at = NULL, suspended_reason = NULL WHERE kind = $1 AND destination_id = $2`, string(kind), d.destination)
	}
	// The registry file does not have the destination any more: nothing can be sent, and the command said that it was due.
	left := delivered{kind, "evt_left" + string(kind), "left-the-registry"}
	p.put(left, deliveries.StateNeedsOperator)
	p.retries(left, "refused", deliveries.CodeRemoved, texts[deliveries.CodeRemoved])
	p.stands(left, deliveries.StateNeedsOperator, 503, 0)
}

// configured returns a destination of a kind that the registry has.
func (p *post) configured(kind deliveries.Kind) string {
	return map[deliveries.Kind]string{webhook.Kind: p.Endpoint, erp.Kind: registries.AgencyA + "/test", cashin.Kind: registries.AppA}[kind]
}

// happened writes the notification of an event, which the planner has planned.
func (p *post) happened(event, called string) {
	p.t.Helper()
	p.write(schemas.TopicWebhooks, &record.Notification{
		EventID: event, Event: called, ApplicationID: registries.AppA, TenantID: registries.AgencyA, SessionID: "chs_" + event, OccurredAt: time.Now().UTC().Truncate(time.Millisecond), Body: []byte(`{}`),
	})
	p.settle(schemas.TopicWebhooks, p.kinds[0].Planning().Group)
}

// settle has a group read a topic to its end.
func (p *post) settle(topic, group string) {
	p.t.Helper()
	ends, err := p.adm.ListEndOffsets(p.t.Context(), p.on.Topology.Name(topic))
	if err == nil {
		_, err = p.adm.CommitOffsets(p.t.Context(), p.on.Kafka.Prefix+group, ends.Offsets())
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// again is what `deliveries redeliver --json` says.
type again struct {
	Events, Made, Superseded, Unaddressed int
	Due                                   int `json:"made_due"`
	UnderWay                              int `json:"under_way"`
	Held                                  int
	Refused                               []string
}

// redelivers has the command send an event again, and checks what it says.
func (p *post) redelivers(event string, exit int, want again, text string) {
	p.t.Helper()
	var got again
	code, out, errs := p.run(append([]string{"deliveries", "redeliver", "--event", event, "--json"}, p.args...)...)
	if json.Unmarshal([]byte(out), &got) != nil && out != "" || code != exit || !strings.Contains(errs, text) || (text == "") != (errs == "") {
		p.t.Errorf("`deliveries redeliver --event %s` ends with %d: %s%s", event, code, out, errs)
	}
	refused := len(got.Refused)
	if got.Refused = nil; fmt.Sprint(got) != fmt.Sprint(want) || (refused > 0) != strings.Contains(text, "is not sent") {
		p.t.Errorf("`deliveries redeliver --event %s` says %+v and %d refused, want %+v", event, got, refused, want)
	}
	if rows := p.audited("delivery.retry", delivered{webhook.Kind, event, p.Endpoint}.id()) + p.replays(event); rows != want.Made+want.Due {
		p.t.Errorf("the redelivery of %s has %d rows in the audit table, want %d", event, rows, want.Made+want.Due)
	}
}

// replays counts rows of the audit table about replays of an event.
func (p *post) replays(event string) (n int) {
	p.t.Helper()
	if err := p.Pool.QueryRow(p.t.Context(), `SELECT count(*) FROM audit WHERE action = 'delivery.replay' AND detail ->> 'event' = $1`, event).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

// redelivered walks through the ends of `deliveries redeliver`, to the endpoint that takes the event.
func (p *post) redelivered() {
	p.t.Helper()
	at := func(event string) delivered { return delivered{webhook.Kind, event, p.Endpoint} }
	for event, state := range map[string]string{
		"evt_accepted": deliveries.StateDelivered, "evt_parked": deliveries.StateNeedsOperator, "evt_gone": deliveries.StateExhausted, "evt_queued": deliveries.StateQueued, "evt_older": deliveries.StateSuperseded, "evt_held": deliveries.StateDelivered,
	} {
		p.happened(event, "checkout.completed")
		p.put(at(event), state)
	}
	p.Exec(p.t, `UPDATE deliveries SET body = NULL WHERE event_id = 'evt_gone'`)
	p.Exec(p.t, `UPDATE deliveries SET lease_until = now() + interval '1 hour' WHERE event_id = 'evt_queued'`)
	p.happened("evt_nobody", "checkout.nobody_takes_it")
	p.settle(schemas.TopicWebhooksDeliveries, p.kinds[0].Sending().Group)

	p.redelivers("evt_parked", 0, again{Events: 1, Due: 1}, "")
	p.redelivers("evt_accepted", 0, again{Events: 1, Made: 1}, "")
	p.redelivers("evt_queued", 0, again{Events: 1, UnderWay: 1}, "")
	p.redelivers("evt_gone", 1, again{Events: 1}, "1 webhook is not sent")
	p.redelivers("evt_older", 1, again{Events: 1, Superseded: 1}, "nothing was sent: the partner has accepted a later webhook")
	p.redelivers("evt_nobody", 1, again{Events: 1, Unaddressed: 1}, "nothing was sent: no endpoint takes the event")
	p.redelivers("evt_unknown", 1, again{}, "nothing was sent: no webhook of the last")
	if code, out, errs := p.run("endpoints", "suspend", p.Endpoint); code != 0 {
		p.t.Fatal(out, errs)
	}
	p.redelivers("evt_held", 0, again{Events: 1, Made: 1, Held: 1}, "")
	if _, out, _ := p.run("deliveries", "list", "--event-id", "evt_held", "--state", "waiting"); !strings.Contains(out, "when it is resumed") {
		p.t.Errorf("what waits for a suspended endpoint:\n%s", out)
	}
	if code, out, errs := p.run("endpoints", "resume", p.Endpoint); code != 0 {
		p.t.Fatal(out, errs)
	}
}

// replayed walks through the ends of `replay`.
func (p *post) replayed() {
	p.t.Helper()
	p.happened("evt_missing", "checkout.completed")
	replays := func(event string, more ...string) (code int, made, accepted int, said string) {
		p.t.Helper()
		args := slices.Concat([]string{"replay", schemas.TopicWebhooks, "--to", "webhook", "--since", "1h", "--event-id", event, "--json"}, more, p.args)
		var got struct{ Made, Accepted int }
		code, out, errs := p.run(args...)
		_ = json.Unmarshal([]byte(out), &got) // a refusal prints none
		return code, got.Made, got.Accepted, out + errs
	}
	for i, want := range []struct {
		more                 []string
		made, accepted, rows int
	}{{[]string{"--dry-run"}, 1, 0, 0}, {nil, 1, 0, 1}, {nil, 0, 0, 1}} {
		if code, made, accepted, said := replays("evt_missing", want.more...); code != 0 || made != want.made || accepted != want.accepted || p.replays("evt_missing") != want.rows {
			p.t.Errorf("replay %d ends with %d, %d rows in the audit table: %s", i, code, p.replays("evt_missing"), said)
		}
	}
	p.becomes(delivered{webhook.Kind, "evt_missing", p.Endpoint}, deliveries.StateQueued)
	p.answered(delivered{webhook.Kind, "evt_missing", p.Endpoint}, deliveries.OutcomeDelivered, 200, "")
	p.becomes(delivered{webhook.Kind, "evt_missing", p.Endpoint}, deliveries.StateDelivered)
	p.settle(schemas.TopicWebhooksDeliveries, p.kinds[0].Sending().Group)
	if code, made, accepted, said := replays("evt_missing"); code != 0 || made != 0 || accepted != 1 || p.replays("evt_missing") != 1 {
		p.t.Errorf("a replay of what was accepted ends with %d: %s", code, said)
	}
	// A replay into the read model changes rows, and nothing said who had asked for it.
	for i, more := range [][]string{{"--dry-run"}, nil} {
		if code, out, errs := p.run(slices.Concat([]string{"replay", schemas.TopicEvents, "--to", "readmodel", "--since", "1h"}, more, p.args)...); code != 0 || p.audited("readmodel.replay", schemas.TopicEvents) != i {
			p.t.Errorf("a replay into the read model ends with %d, %d rows in the audit table, want %d: %s%s", code, p.audited("readmodel.replay", schemas.TopicEvents), i, out, errs)
		}
	}
	for topic, why := range map[string]string{schemas.TopicWebhooksDeliveries: "is not replayed: it would send accepted webhooks again", "nothing": "no topic is called"} {
		if code, out, errs := p.run(append([]string{"replay", topic, "--to", "webhook", "--since", "1h"}, p.args...)...); code == 0 || out != "" || !strings.Contains(errs, why) {
			p.t.Errorf("replay %s ends with %d: %s%s", topic, code, out, errs)
		}
	}
}

// behind has the schedule be away: what is accepted is not known, and nothing that may have been is sent. What was made due before is
// said.
func (p *post) behind() {
	p.t.Helper()
	for _, event := range []string{"evt_late", "evt_lost"} {
		p.happened(event, "checkout.completed")
	}
	late := delivered{webhook.Kind, "evt_late", p.Endpoint}
	p.put(late, deliveries.StateNeedsOperator)
	p.stop()
	p.answered(late, deliveries.OutcomeFailed, 500, "")
	const why = "the schedule has not applied all outcomes"
	var wg sync.WaitGroup
	type said struct {
		code      int
		out, errs string
	}
	var redelivered, replayed said
	wg.Go(func() {
		redelivered.code, redelivered.out, redelivered.errs = p.run(append([]string{"deliveries", "redeliver", "--event", "evt_late"}, p.args...)...)
	})
	wg.Go(func() {
		replayed.code, replayed.out, replayed.errs = p.run(append([]string{"replay", schemas.TopicWebhooks, "--to", "webhook", "--since", "1h", "--event-id", "evt_lost"}, p.args...)...)
	})
	wg.Wait()
	if s := redelivered; s.code != 1 || s.out != "" || !strings.Contains(s.errs, why) || !strings.Contains(s.errs, "before that, 1 delivery became due") {
		p.t.Errorf("`deliveries redeliver` without a schedule: %+v", s)
	}
	if s := replayed; s.code != 1 || s.out != "" || !strings.Contains(s.errs, why) || strings.Contains(s.errs, "before that") {
		p.t.Errorf("`replay` without a schedule: %+v", s)
	}
	if retried, replays := p.audited("delivery.retry", late.id()), p.replays("evt_late")+p.replays("evt_lost"); retried != 1 || replays != 0 {
		p.t.Errorf("the audit table has %d retries and %d replays, want 1 and 0", retried, replays)
	}
	p.stands(late, deliveries.StateWaiting, 503, 1)
}
