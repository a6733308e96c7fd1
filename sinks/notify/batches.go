package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/disbursement"
	"quittance/disbursement/policy"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/notify"
	"quittance/internal/notify/payment"
	"quittance/internal/provider"
	"quittance/money"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
)

// BatchesGroup is the consumer group of what staff are told of disbursement batches.
const BatchesGroup = "notify-disbursement"

// BatchesConfig configures a Batches. All fields are required.
type BatchesConfig struct {
	Kafka kafka.Config
	Codec *schemas.Codec
	// Store has the policies, with those whom they name, and what a held batch was sealed with.
	Store *disbursements.Store
	// Staff lists all staff.
	Staff func(ctx context.Context) ([]identity.StaffEntry, error)
	// Keys open the addresses of staff.
	Keys   identity.Opener
	Sender Sender
	// Agency finds an agency by its id.
	Agency  func(id string) (payment.Agency, bool)
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Batches tells staff by e-mail what happens to batches, to their rules and to the people who sign them
// (docs/design/disbursement.md, "Webhooks and notices"). It reads disbursement.events and commits its offsets when Kafka has
// the messages. The id of a message is made of the event's and the person's, so a message that is made again is not sent
// again. While the read model has not seen a held batch's event, it waits.
type Batches struct {
	cfg      BatchesConfig
	consumer *consume.Consumer
	told     *prometheus.CounterVec // outcome
}

// NewBatches makes a Batches. It connects when it runs. Any number of them share the work.
func NewBatches(cfg BatchesConfig) (*Batches, error) {
	if cfg.Codec == nil || cfg.Store == nil || cfg.Staff == nil || cfg.Keys == nil || cfg.Sender == nil || cfg.Agency == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("notices of batches: Codec, Store, Staff, Keys, Sender, Agency, Now, Log and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	b := &Batches{cfg: cfg, told: with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_batch_notices_total", Help: "Messages to staff about disbursement batches, by outcome. One that is made again is counted again.",
	}, []string{"outcome"})}
	for _, o := range []string{announceMade, announceWaits, announceNobody, announceUnreachable, announceStale} {
		b.told.WithLabelValues(o)
	}
	var err error
	b.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: BatchesGroup, Topics: []string{schemas.Disbursement.Events}, Poison: schemas.TopicPoisonDeliveries,
		Timeout: announceWithin, AtOnce: announcedAtOnce, Log: cfg.Log,
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_batch_notices_poison_total", Help: "Events of disbursement batches that cannot be decoded, so that nobody gets a message about them.",
		}),
		Failures: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_batch_notices_failures_total", Help: "Batches of events of disbursement batches whose messages could not be made and that were read again.",
		}),
	})
	if err != nil {
		return nil, err
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_batch_notices_lag_seconds", Help: "Age of the oldest event of a disbursement batch read whose messages are not made yet; 0 when there is none.",
	}, b.consumer.Lag)
	return b, nil
}

// Run tells staff until ctx ends, then returns nil. While Kafka or Postgres is away it waits. It returns an error only when
// it could not begin.
func (b *Batches) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { b.remind(ctx); return nil })
	group.Go(func() error { return consume.Batch(ctx, b.consumer, b.decode, b.hear) })
	return group.Wait()
}

const (
	// A batch_ref that was sealed sealedOften times in sealedWithin has its next letters about waiting approvals when the batch has
	// waited for sealedWaits: a preparer who seals and recalls all day would fill the approvers' mailboxes.
	sealedOften  = 3
	sealedWithin = 24 * time.Hour
	sealedWaits  = time.Hour
	remindEvery  = time.Minute
)

// hear tells of the events that were read, but for sealings of which the letter waits.
func (b *Batches) hear(ctx context.Context, read []*disbursement.Event, _ []consume.Move) error {
	for i, e := range read {
		if e == nil || e.Type != disbursement.EventSealed {
			continue
		}
		n, err := b.cfg.Store.SealedBefore(ctx, *e.Batch, e.At, sealedWithin)
		if err != nil {
			return fmt.Errorf("finding whether the letters of the event %s wait: %w", e.ID, err)
		}
		if n >= sealedOften {
			b.told.WithLabelValues(announceWaits).Inc()
			read[i] = nil
		}
	}
	return b.tell(ctx, read)
}

// remind tells of batches whose letter has waited, until ctx ends. The message has the id of the one that would have been sent at
// once, so that nobody gets both, or one twice.
func (b *Batches) remind(ctx context.Context) {
	told := map[string]bool{}
	for ok := true; ok; ok = consume.Sleep(ctx, remindEvery) {
		now := b.cfg.Now()
		list, err := b.cfg.Store.SealedAgain(ctx, now.Add(-notify.BatchToApprove.Life), now.Add(-sealedWaits), sealedOften, sealedWithin)
		still := map[string]bool{}
		for i := 0; i < len(list) && err == nil; i++ {
			x := list[i]
			if still[x.EventID] = true; told[x.EventID] {
				continue
			}
			e := &disbursement.Event{ID: x.EventID, Type: disbursement.EventSealed, TenantID: x.TenantID, Live: x.Live, Batch: &x.Batch.Batch, At: x.At, Sealing: &x.Sealing}
			if err = b.tell(ctx, []*disbursement.Event{e}); err == nil {
				told[x.EventID] = true
			}
		}
		if err == nil {
			maps.DeleteFunc(told, func(id string, _ bool) bool { return !still[id] })
		} else if ctx.Err() == nil {
			b.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "approvers are not told of batches that were sealed again; it is tried again", slog.Any("error", err))
		}
	}
}

// decode returns the event of a record; nil for one of which nobody is told.
func (b *Batches) decode(rec *kgo.Record) (*disbursement.Event, error) {
	var r record.DisbursementEvent
	if err := b.cfg.Codec.Decode(rec.Value, &r); err != nil {
		return nil, err
	}
	if kindOf(disbursement.EventType(r.Type)).Name == "" {
		return nil, nil
	}
	e := batches.ToEvent(&r)
	return &e, nil
}

// kindOf returns the kind of the messages about an event; the zero value for none.
func kindOf(t disbursement.EventType) notify.Kind {
	switch t {
	case disbursement.EventSealed, disbursement.EventApproval:
		return notify.BatchToApprove
	case disbursement.EventApproved:
		return notify.BatchApproved
	case disbursement.EventRejected:
		return notify.BatchRejected
	case disbursement.EventExpired:
		return notify.BatchExpired
	case disbursement.EventHeld:
		return notify.BatchHeld
	case disbursement.EventDone:
		return notify.BatchDone
	case disbursement.EventPaused:
		return notify.BatchUnfunded
	case disbursement.EventPolicy:
		return notify.BatchPolicy
	case disbursement.EventRoster:
		return notify.BatchPeople
	case disbursement.EventRevoked:
		return notify.BatchRevoked
	default:
		return notify.Kind{}
	}
}

// kindOfEvent returns the kind of the messages about an event that has one.
func kindOfEvent(e *disbursement.Event) notify.Kind {
	if e.Type == disbursement.EventPaused && e.Detail[disbursement.DetailClosed] != "" {
		return notify.BatchAccountClosed
	}
	return kindOf(e.Type)
}

// tell makes the messages of a batch of events.
func (b *Batches) tell(ctx context.Context, read []*disbursement.Event) error {
	var staff []identity.StaffEntry // read at the first event of which somebody is told
	for _, e := range read {
		if e == nil {
			continue
		}
		if !b.cfg.Now().Before(e.At.Add(kindOfEvent(e).Life)) {
			b.told.WithLabelValues(announceStale).Inc()
			continue
		}
		people, err := b.people(ctx, e)
		if err == nil && staff == nil && len(people) > 0 {
			staff, err = b.cfg.Staff(ctx)
		}
		if err != nil {
			return fmt.Errorf("finding whom to tell of the event %s: %w", e.ID, err)
		}
		for _, id := range people {
			outcome, err := b.send(ctx, e, id, staff)
			if err != nil {
				return fmt.Errorf("telling of the event %s: %w", e.ID, err)
			}
			b.told.WithLabelValues(outcome).Inc()
		}
	}
	return nil
}

// people returns the ids of those who are told of an event, each once. Whoever is revoked in the roster is none.
func (b *Batches) people(ctx context.Context, e *disbursement.Event) (ids []string, err error) {
	agency, roster, err := b.cfg.Store.Agency(ctx, e.TenantID, e.Live)
	if err != nil {
		return nil, err
	}
	switch e.Type {
	case disbursement.EventSealed, disbursement.EventApproval:
		ids = waitsFor(e)
	case disbursement.EventPolicy: // both those whom the policy of before names and those whom the new one names
		ids = append(slices.Clone(e.Agency.Policy.Watchers), e.Agency.Next.Watchers...)
	case disbursement.EventRoster, disbursement.EventRevoked: // people are the same in both modes
		other, _, err := b.cfg.Store.Agency(ctx, e.TenantID, !e.Live)
		if err != nil {
			return nil, err
		}
		ids = append(slices.Clone(agency.InForce(e.At).Watchers), other.InForce(e.At).Watchers...)
	default:
		ids = append([]string{e.Batch.Maker}, agency.InForce(e.At).Watchers...)
		if e.Type == disbursement.EventHeld && e.Batch.Hold.By == "" {
			listed, err := b.listed(ctx, e.Batch)
			if errors.Is(err, errBehind) && b.cfg.Now().Sub(e.At) > waitsForReadModel { // maker and watchers are told
				b.cfg.Log.LogAttrs(ctx, slog.LevelError, "the approvers of a batch are not told that it is held", slog.String("event_id", e.ID), slog.Any("error", err))
			} else if err != nil {
				return nil, err
			}
			ids = append(ids, listed...)
		}
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool {
		p, ok := roster.Find(id)
		return id == "" || ok && !p.RevokedAt.IsZero()
	}), nil
}

// waitsFor returns the people for whose approval a batch waits since an event: those of the first level after the sealing,
// those of the next level after the approval that completes one. Whoever has approved before does not count again.
func waitsFor(e *disbursement.Event) (ids []string) {
	levels, given := e.Sealing.Content.Levels, e.Sealing.Given()
	current := policy.Current(levels, given)
	begun := current == 1
	if e.Type == disbursement.EventApproval {
		begun = given[len(given)-1].Level < current
	}
	if !begun || current > len(levels) {
		return nil
	}
	for _, p := range levels[current-1].Persons {
		approved := slices.ContainsFunc(given, func(a policy.Approval) bool {
			return cmp.Or(a.For, a.Person) == cmp.Or(p.For, p.ID) || a.Person == p.ID
		})
		if !approved {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// waitsForReadModel is how long the letters about a hold wait for the read model, which has the approvers.
const waitsForReadModel = 10 * time.Minute

// errBehind says that the read model has not seen an event yet.
var errBehind = errors.New("the read model has not seen the batch's event yet")

// listed returns the people who may approve a batch. The event does not have them, the read model does.
func (b *Batches) listed(ctx context.Context, of *disbursement.Batch) (ids []string, err error) {
	stored, err := b.cfg.Store.Batch(ctx, disbursements.Scope{TenantID: of.TenantID}, of.ID)
	switch {
	case errors.Is(err, disbursements.ErrUnknown) || err == nil && stored.Sequence < of.Sequence:
		return nil, errBehind
	case err != nil:
		return nil, err
	}
	for _, l := range stored.Sealing.Content.Levels {
		for _, p := range l.Persons {
			ids = append(ids, p.ID)
		}
	}
	return ids, nil
}

// send makes the message of an event to a person of the agency. Whoever is not in force gets none.
func (b *Batches) send(ctx context.Context, e *disbursement.Event, id string, staff []identity.StaffEntry) (outcome string, err error) {
	i := slices.IndexFunc(staff, func(s identity.StaffEntry) bool { return s.ID == id })
	if i < 0 || !staff[i].InForce() || staff[i].AgencyID != e.TenantID || staff[i].Contact.Email == "" {
		return announceNobody, nil
	}
	to, err := staff[i].Contact.Open(b.cfg.Keys)
	if err != nil { // one row must not keep the letters of all others away
		b.cfg.Log.LogAttrs(ctx, slog.LevelError, "a member of staff is not told of a batch: the address cannot be opened", slog.String("event_id", e.ID), slog.String("staff_id", id), slog.Any("error", err))
		return announceUnreachable, nil
	}
	agency, _ := b.cfg.Agency(e.TenantID)
	err = b.cfg.Sender.Send(ctx, batchMessage(e, agency.Name, id, to.Text(), staff[i].Contact.Language))
	var wrong *notify.FieldError
	if errors.As(err, &wrong) {
		b.cfg.Log.LogAttrs(ctx, slog.LevelError, "a member of staff is not told of a batch", slog.String("event_id", e.ID), slog.String("staff_id", id), slog.Any("error", err))
		return announceUnreachable, nil
	}
	return announceMade, err
}

// maxReason is how much of a reason is told, in characters.
const maxReason = 200

// batchMessage returns the message of an event to a person.
func batchMessage(e *disbursement.Event, agency, person, to string, lang money.Language) notify.Message {
	k := kindOfEvent(e)
	m := notify.Message{
		ID: notify.MessageID(k, provider.ChannelEmail, e.ID, person), Kind: k, Channel: provider.ChannelEmail, To: to, Locale: string(lang),
		AgencyID: e.TenantID, Live: e.Live, At: e.At, Variables: map[string]string{notify.VariableAgency: agency},
	}
	x := e.Batch
	if x != nil {
		m.Variables[notify.VariableBatch], m.Variables[notify.VariableReference] = x.ID, notify.WithoutLinks(x.BatchRef)
		m.Variables[notify.VariableCount], m.Variables[notify.VariableAmount] = strconv.Itoa(x.Count), amountOf(lang, x.Currency, x.Sum)
	}
	switch e.Type { //nolint:exhaustive // the others have no further variables
	case disbursement.EventSealed, disbursement.EventApproval:
		m.NotAfter = x.ApproveUntil
		m.Variables[notify.VariableDate] = localMinute(x.ApproveUntil)
	case disbursement.EventHeld:
		m.Variables[notify.VariableReason] = reasonOf(x.Hold.Reason)
	case disbursement.EventDone:
		m.Variables[notify.VariableDetails] = totals(x, lang)
	case disbursement.EventPaused:
		m.Variables[notify.VariableAccount] = e.Detail[disbursement.DetailAccount]
		if k.Name == notify.BatchAccountClosed.Name {
			m.Variables[notify.VariableReason] = reasonOf(e.Detail[disbursement.DetailReason])
		}
	case disbursement.EventPolicy:
		m.Variables[notify.VariableCount], m.Variables[notify.VariableDate] = strconv.FormatInt(e.Agency.Next.Version, 10), localMinute(e.Agency.NextAt)
	case disbursement.EventRoster:
		m.Variables[notify.VariableDate] = localMinute(e.At.Add(policy.Settling))
	}
	return m
}

// reasonOf returns a reason in one line, without links; a dash for none.
func reasonOf(text string) string {
	text = strings.Join(strings.Fields(notify.WithoutLinks(text)), " ")
	if r := []rune(text); len(r) > maxReason {
		text = string(r[:maxReason]) + "…"
	}
	return cmp.Or(text, "-")
}

// lineWords are the statuses of lines that ended, as a message names them.
var lineWords = map[money.Language]map[disbursement.LineStatus]string{
	money.French: {
		disbursement.LinePaid: "Lignes payées : ", disbursement.LineRefused: "Lignes refusées : ", disbursement.LineCancelled: "Lignes annulées : ", disbursement.LineReturned: "Lignes retournées : ",
	},
	money.English: {
		disbursement.LinePaid: "Lines paid: ", disbursement.LineRefused: "Lines refused: ", disbursement.LineCancelled: "Lines cancelled: ", disbursement.LineReturned: "Lines returned: ",
	},
}

// totals returns the numbers and sums of lines by status, a line each.
func totals(x *disbursement.Batch, lang money.Language) string {
	words, ok := lineWords[lang]
	if !ok {
		words = lineWords[money.French]
	}
	var out []string
	for _, s := range disbursement.LineStatuses() {
		if words[s] != "" {
			t := x.Lines.Of(s)
			out = append(out, fmt.Sprintf("%s%d (%s)", words[s], t.Count, amountOf(lang, x.Currency, t.Sum)))
		}
	}
	return strings.Join(out, "\n")
}
