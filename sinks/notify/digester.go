package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/cases"
	"quittance/internal/connector"
	"quittance/internal/deliveries"
	"quittance/internal/digests"
	"quittance/internal/erp"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/internal/registry"
	"quittance/money/localtime"
	"quittance/schemas"
	"quittance/schemas/record"
)

// DigesterGroup is the consumer group of the digester, which reads the calls of operators.
const DigesterGroup = "notify-digester"

const (
	// digestGlance is the pause between two looks at the clock and at digests that wait.
	digestGlance = 5 * time.Second
	// countPause is the time between two counts of the staff who wait.
	countPause = time.Minute
	// digestWithin bounds the making or the sending of digests, and the record of a batch of calls.
	digestWithin = time.Minute
	// erpAway is how long an ERP accepts nothing before it is away.
	erpAway = 15 * time.Minute
	// oldCalls is the age of calls that say nothing about now. A new installation of the group
	// reads the calls of 90 days.
	oldCalls = 2 * time.Hour
	// mostListed is the greatest length of a list in a message, in bytes, and mostLines of its
	// lines. A variable of a message has an end.
	mostListed = 700
	mostLines  = 8
)

// Outcomes of digests.
const (
	digestSent     = "sent"     // Kafka has the message
	digestWithheld = "withheld" // the person has had as many as a day allows; the next one says it
	digestNobody   = "nobody"   // the person has no address any more, or is revoked
	digestUnusable = "unusable" // the address or the message is not usable
	digestFailed   = "failed"   // it is tried again
)

// DigestSender writes messages, and lets messages reach an address again: notify.Sender.
type DigestSender interface {
	Sender
	Reached(ctx context.Context, channel provider.Channel, to string, at time.Time) error
}

// Registry is the part of the registry that digests need. It answers from memory.
type Registry interface {
	Agency(id string) (registry.Agency, bool)
	ERP(agencyID string, live bool) (registry.ERPSettings, bool)
}

// DigesterConfig configures a Digester. All fields are required.
type DigesterConfig struct {
	Kafka kafka.Config
	Codec *schemas.Codec
	// Digests remembers what was said.
	Digests *digests.Store
	// Staff lists all staff.
	Staff func(ctx context.Context) ([]identity.StaffEntry, error)
	// Awaiting returns the proposals that can be approved: cases.Store.AwaitingApproval.
	Awaiting func(ctx context.Context, now time.Time) ([]cases.Awaiting, error)
	// FailingERPs returns the ERPs that do not accept confirmations: deliveries.Store.Failing.
	FailingERPs func(ctx context.Context) ([]deliveries.Failing, error)
	Registry    Registry
	// Keys open the addresses of staff.
	Keys    identity.Opener
	Sender  DigestSender
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Digester tells staff what waits for a person, at most once in each window of 15 minutes
// (internal/digests says what is said when). It also records which operators answer. Any number
// of them share the work: one makes the digests of a window.
type Digester struct {
	cfg      DigesterConfig
	consumer *consume.Consumer
	digests  *prometheus.CounterVec // outcome
	oldest   prometheus.Gauge
	waiting  prometheus.Gauge
	made     time.Time // the last window that this instance knows to be made
	swept    time.Time
	counted  time.Time // when members of staff who wait were last counted
}

// NewDigester makes a digester. It connects when it runs.
func NewDigester(cfg DigesterConfig) (*Digester, error) {
	if cfg.Codec == nil || cfg.Digests == nil || cfg.Staff == nil || cfg.Awaiting == nil || cfg.FailingERPs == nil || cfg.Registry == nil || cfg.Keys == nil || cfg.Sender == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("digester: Codec, Digests, Staff, Awaiting, FailingERPs, Registry, Keys, Sender, Now, Log and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	d := &Digester{
		cfg: cfg,
		digests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_staff_digests_total", Help: "Digests of staff, by outcome. One that failed is tried again and counted again.",
		}, []string{"outcome"}),
		waiting: with.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_staff_waiting", Help: "Members of staff who were made on the command line for a group that has had people before, and who are neither approved nor revoked. Every instance reports the same.",
		}),
		oldest: with.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_staff_digests_oldest_seconds", Help: "Age of the oldest digest of staff that is made and not sent; 0 when there is none. Every instance reports the same.",
		}),
	}
	for _, o := range []string{digestSent, digestWithheld, digestNobody, digestUnusable, digestFailed} {
		d.digests.WithLabelValues(o)
	}
	var err error
	d.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: DigesterGroup, Topics: []string{schemas.TopicCalls, schemas.TopicPayoutCalls}, Poison: schemas.TopicPoisonDeliveries,
		Timeout: digestWithin, Wait: time.Second, Log: cfg.Log,
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_staff_digests_poison_total", Help: "Calls of operators that cannot be decoded, so that digests do not know of them.",
		}),
		Failures: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_staff_digests_failures_total", Help: "Batches of calls of operators that could not be recorded and that were read again.",
		}),
	})
	return d, err
}

// RunCalls records which operators answer until ctx ends, then returns nil. While Kafka or
// Postgres is away it waits. It returns an error only when it could not begin.
func (d *Digester) RunCalls(ctx context.Context) error {
	return consume.Batch(ctx, d.consumer, d.decode, d.note)
}

// decode reads a call. The zero value is one that says nothing of its operator.
func (d *Digester) decode(rec *kgo.Record) (digests.Call, error) {
	var out digests.Call
	var outcome, fault string
	if rec.Topic == d.cfg.Kafka.Prefix+schemas.TopicPayoutCalls {
		var c record.PayoutCall
		if err := d.cfg.Codec.Decode(rec.Value, &c); err != nil {
			return digests.Call{}, err
		}
		out, outcome, fault = digests.Call{Operator: c.Operator, Live: c.Livemode, Payouts: true, AgencyID: c.TenantID, At: c.At}, c.Outcome, c.Fault
	} else {
		var c record.Call
		if err := d.cfg.Codec.Decode(rec.Value, &c); err != nil {
			return digests.Call{}, err
		}
		out, outcome, fault = digests.Call{Operator: c.Operator, Live: c.Livemode, AgencyID: c.TenantID, At: c.At}, c.Outcome, c.Fault
	}
	switch connector.FaultKind(outcome) {
	case connector.FaultNetwork, connector.FaultTimeout, connector.FaultServer:
		if strings.HasPrefix(fault, connector.DoingOpenPayer+":") || strings.HasPrefix(fault, connector.DoingOpenLine+":") {
			return digests.Call{}, nil // the operator was not called
		}
	case connector.FaultBusy, connector.FaultCredentials, connector.FaultMalformed:
		return digests.Call{}, nil // of one account, or of the protocol: neither an outage nor its end
	default:
		out.Answered = true
	}
	return out, nil
}

// note records the calls of a batch.
func (d *Digester) note(ctx context.Context, read []digests.Call, _ []consume.Move) error {
	now := d.cfg.Now()
	calls := make([]digests.Call, 0, len(read))
	for _, c := range read {
		if c.Operator != "" && now.Sub(c.At) < oldCalls {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return d.cfg.Digests.Note(ctx, calls)
}

// Run makes and sends digests until ctx ends, then returns nil. While Postgres or Kafka is away
// it tries again.
func (d *Digester) Run(ctx context.Context) error {
	for failing := false; ; {
		err := d.work(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			d.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "staff are not told what waits for them; it is tried again", slog.Any("error", err))
		}
		failing = err != nil
		if !consume.Sleep(ctx, digestGlance) {
			return nil
		}
	}
}

// work makes the digests of the present window, unless they are made, and sends those that wait.
func (d *Digester) work(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, digestWithin)
	defer cancel()
	var errs []error
	if window := digests.Window(d.cfg.Now()); window.After(d.made) {
		done, err := d.cfg.Digests.Make(ctx, window, d.find)
		if err == nil {
			d.made = window
			d.digests.WithLabelValues(digestWithheld).Add(float64(done.Withheld))
		}
		errs = append(errs, err)
	}
	_, err := d.cfg.Digests.Tell(ctx, d.cfg.Now, d.send)
	errs = append(errs, err)
	now := d.cfg.Now()
	if now.Sub(d.counted) >= countPause {
		errs = append(errs, d.countWaiting(ctx, now))
	}
	oldest, err := d.cfg.Digests.OldestUnsent(ctx, now)
	if errs = append(errs, err); err == nil {
		age := 0.0
		if !oldest.IsZero() {
			age = now.Sub(oldest).Seconds()
		}
		d.oldest.Set(age)
	}
	if now.Sub(d.swept) >= sweepPause {
		if err = d.cfg.Digests.Sweep(ctx, now); err == nil {
			d.swept = now
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// countWaiting counts the members of staff who wait to be approved on the command line.
func (d *Digester) countWaiting(ctx context.Context, now time.Time) error {
	staff, err := d.cfg.Staff(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, s := range staff {
		if s.State() == identity.StaffStateWaiting {
			n++
		}
	}
	d.waiting.Set(float64(n))
	d.counted = now
	return nil
}

// find returns everything that waits for each member of staff with an address.
func (d *Digester) find(ctx context.Context) (map[string][]digests.Item, error) {
	now := d.cfg.Now()
	staff, err := d.cfg.Staff(ctx)
	if err != nil {
		return nil, err
	}
	waiting, err := d.cfg.Awaiting(ctx, now)
	if err != nil {
		return nil, err
	}
	erps, err := d.cfg.FailingERPs(ctx)
	if err != nil {
		return nil, err
	}
	operators, err := d.cfg.Digests.Outages(ctx, now)
	if err != nil {
		return nil, err
	}
	out := map[string][]digests.Item{}
	for _, s := range staff {
		if !s.InForce() || s.Contact.Email == "" {
			continue
		}
		var items []digests.Item
		for _, w := range waiting {
			if w.MayApprove(s.Staff) {
				items = append(items, d.caseItem(w))
			}
		}
		for _, f := range erps {
			agencyID, live, ok := erp.ParseID(f.DestinationID)
			if _, configured := d.cfg.Registry.ERP(agencyID, live); !ok || !configured || !s.ActsFor(agencyID) || now.Sub(f.Since) < erpAway {
				continue
			}
			agency, _ := d.cfg.Registry.Agency(agencyID)
			items = append(items, digests.Item{Topic: digests.TopicERP, Subject: erp.ID(agency.Slug, live), Since: f.Since.UTC()})
		}
		for _, o := range operators {
			if !s.Operations() && !slices.Contains(o.AgencyIDs, s.AgencyID) {
				continue
			}
			items = append(items, digests.Item{Topic: digests.TopicOperator, Subject: o.Name(), Since: o.Since})
		}
		if len(items) > 0 {
			out[s.ID] = items
		}
	}
	return out, nil
}

// caseItem returns what is said of a case: its id, its kind, its agency, and that it is a test.
func (d *Digester) caseItem(w cases.Awaiting) digests.Item {
	detail := []string{string(w.Kind)}
	if a, ok := d.cfg.Registry.Agency(w.AgencyID); ok {
		detail = append(detail, a.Slug)
	}
	if w.Mode == registry.Mode(false) {
		detail = append(detail, w.Mode)
	}
	return digests.Item{Topic: digests.TopicCase, Subject: w.CaseID, Detail: strings.Join(detail, ", "), Since: w.ProposedAt}
}

// send sends a digest. After a nil error it is not sent again.
func (d *Digester) send(ctx context.Context, g digests.Digest) error {
	outcome, err := d.tell(ctx, g)
	d.digests.WithLabelValues(outcome).Inc()
	return err
}

func (d *Digester) tell(ctx context.Context, g digests.Digest) (outcome string, err error) {
	staff, err := d.cfg.Staff(ctx)
	if err != nil {
		return digestFailed, err
	}
	var s identity.StaffEntry
	for _, one := range staff {
		if one.ID == g.StaffID {
			s = one
		}
	}
	// Whoever is suspended is told of new passkeys, too: somebody may have suspended all others before.
	suspended := s.State() == identity.StaffStateSuspended && !s.Forged && g.Items[0].Topic == digests.TopicPasskeys
	if !s.InForce() && !suspended || s.Contact.Email == "" {
		return digestNobody, nil
	}
	to, err := s.Contact.Open(d.cfg.Keys)
	if err != nil {
		return digestFailed, err // another master key may open it
	}
	if g.SentBefore.Before(s.Contact.SetAt) {
		// Somebody has given the address since: it may exist now.
		if err := d.cfg.Sender.Reached(ctx, provider.ChannelEmail, to.Text(), d.cfg.Now()); err != nil {
			return digestFailed, err
		}
	}
	m := message(g, s, to.Text())
	switch g.Items[0].Topic {
	case digests.TopicStaff:
		m = people(notify.StaffAdded, identity.StaffWait, g, s, to.Text(), staff)
	case digests.TopicPasskeys:
		m = people(notify.StaffPasskeys, identity.ApprovesAfter, g, s, to.Text(), staff)
	case digests.TopicOutage:
		m = outage(g, s, to.Text())
	case digests.TopicCase, digests.TopicERP, digests.TopicOperator:
	}
	err = d.cfg.Sender.Send(ctx, m)
	var wrong *notify.FieldError
	switch {
	case errors.As(err, &wrong):
		d.cfg.Log.LogAttrs(ctx, slog.LevelError, "a member of staff gets no digest", slog.String("staff_id", s.ID), slog.Any("error", err))
		return digestUnusable, nil
	case err != nil:
		return digestFailed, fmt.Errorf("sending the digest of %s: %w", s.ID, err)
	}
	return digestSent, nil
}

// message returns the message of a digest. Its id is that of the person and the window.
func message(g digests.Digest, s identity.StaffEntry, to string) notify.Message {
	m := notify.Message{
		Kind: notify.StaffDigest, Channel: provider.ChannelEmail, To: to, Locale: string(s.Contact.Language), AgencyID: s.AgencyID, Live: true, At: g.Window,
		Variables: map[string]string{notify.VariableDate: localMinute(g.Window)},
	}
	for topic, names := range map[digests.Topic][2]string{
		digests.TopicCase:     {notify.VariableCases, notify.VariableCaseList},
		digests.TopicERP:      {notify.VariableERPs, notify.VariableERPList},
		digests.TopicOperator: {notify.VariableOperators, notify.VariableOperatorList},
	} {
		n, list := listed(g.Items, topic)
		m.Variables[names[0]], m.Variables[names[1]] = strconv.Itoa(n), list
	}
	m.ID = notify.MessageID(m.Kind, m.Channel, g.StaffID, g.Window.Format(time.RFC3339))
	return m
}

// people returns the message of a kind about people, with the time after which what it tells has effect. Items that are told
// at once are never in one digest with others.
func people(kind notify.Kind, after time.Duration, g digests.Digest, s identity.StaffEntry, to string, staff []identity.StaffEntry) notify.Message {
	var lines []string
	for _, i := range g.Items {
		for _, one := range staff {
			if one.ID == i.Subject {
				lines = append(lines, one.Name+" ("+i.Detail+") - "+one.ID)
			}
		}
	}
	return notify.Message{
		ID:   notify.MessageID(kind, provider.ChannelEmail, g.StaffID, g.Window.Format(time.RFC3339Nano)),
		Kind: kind, Channel: provider.ChannelEmail, To: to, Locale: string(s.Contact.Language), AgencyID: s.AgencyID, Live: true, At: g.Window,
		Variables: map[string]string{notify.VariableDate: localMinute(g.Window.Add(after)), notify.VariablePeople: strings.Join(lines, "\n")},
	}
}

// outage returns the message that passkeys alone sign in, until the last end among the items.
func outage(g digests.Digest, s identity.StaffEntry, to string) notify.Message {
	var lines []string
	var until time.Time
	for _, i := range g.Items {
		lines = append(lines, i.Subject)
		if end, err := time.Parse(time.RFC3339, i.Detail); err == nil && end.After(until) {
			until = end
		}
	}
	return notify.Message{
		ID:   notify.MessageID(notify.StaffOutage, provider.ChannelEmail, g.StaffID, g.Window.Format(time.RFC3339Nano)),
		Kind: notify.StaffOutage, Channel: provider.ChannelEmail, To: to, Locale: string(s.Contact.Language), AgencyID: s.AgencyID, Live: true, At: g.Window,
		Variables: map[string]string{notify.VariableDate: localMinute(until), notify.VariableIssuers: strings.Join(lines, "\n")},
	}
}

// listed returns the items of a topic as lines, in no language. Those that do not fit are a
// number in the last line.
func listed(items []digests.Item, topic digests.Topic) (n int, list string) {
	var lines []string
	size := 0
	for _, i := range items {
		if i.Topic != topic {
			continue
		}
		n++
		line := i.Subject
		if i.Detail != "" {
			line += " (" + i.Detail + ")"
		}
		line += " - " + localMinute(i.Since)
		if len(lines) == n-1 && n <= mostLines && size+len(line) < mostListed {
			lines, size = append(lines, line), size+len(line)+1
		}
	}
	switch {
	case n == 0:
		return 0, "-"
	case len(lines) < n:
		lines = append(lines, "+ "+strconv.Itoa(n-len(lines)))
	}
	return n, strings.Join(lines, "\n")
}

// localMinute returns a time in Brazzaville.
func localMinute(t time.Time) string { return localtime.In(t).Format("02/01/2006 15:04") }
