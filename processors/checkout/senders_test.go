package checkout_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/commands"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	processor "quittance/processors/checkout"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// thief is whoever has taken the Kafka user of one role: it may write the topic of commands, and has the
// role's keys or none.
type thief struct {
	*installation
	keys *secret.Keys
}

// writes writes a command in a sender's name, with the keys that the thief has for that name.
func (x thief) writes(as string, do checkout.Action) *kgo.Record {
	x.t.Helper()
	r, err := mapping.FromCommand(checkout.Command{
		At: time.Now().UTC(), SessionID: "chs_a", Do: do, ReplyTo: &checkout.ReplyTo{CorrelationID: "thief", Partition: 1},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	value, err := x.codec.Encode(r)
	if err != nil {
		x.t.Fatal(err)
	}
	rec := &kgo.Record{Topic: x.topology.Name(schemas.TopicCommands), Partition: x.topology.Partition(schemas.TopicCommands, tenant), Value: value}
	signer, err := commands.NewSigner(x.keys, as)
	if err == nil {
		signer.Sign(rec)
	} else if as != "" {
		rec.Headers = []kgo.RecordHeader{schemas.Header(origin.HeaderFrom, as), schemas.Header(origin.HeaderMAC, strings.Repeat("x", secret.MACSize))}
	}
	x.produce(rec)
	return rec
}

// Whoever had the Kafka user of the sink collect could write "the cash is in the till", "the ERP has it" or
// "the operator says approved" to checkout.commands, and the payment was paid. Now each command is refused
// that its writer may not send, without a reply, and the partition goes on.
func TestStolenKafkaUserCannotPay(t *testing.T) {
	t.Parallel()
	i := install(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	stop := i.process(func() time.Time { return now })
	defer stop()
	i.send(create("chs_a", "o", now))
	i.send(pay("chs_a", now)[0])
	approved := checkout.Outcome{CollectionID: "c-chs_a", Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF", OperatorRef: "op"}
	polled := approved
	polled.Source = checkout.SourceEnquiry
	take := checkout.Take{CollectionID: "cash", By: "clerk", Total: 5000, Desk: "desk"}

	user := thief{i, secret.GenerateKeys().Subset("nobody", nil)}
	collect := thief{i, i.keys.Subset("collect", []secret.Use{{Purpose: secret.PurposeMAC, Label: secret.LabelCommands(processor.SenderCollect)}})}
	other := thief{i, secret.GenerateKeys()} // keys of another installation
	var attacks []*kgo.Record
	for _, do := range []checkout.Action{take, approved, polled, checkout.Cancel{By: checkout.ByIntegrator}, checkout.Confirmed{TransactionID: "018f0000-0000-7000-8000-0000000000ff", Answer: checkout.AnswerAccepted, AnsweredAt: now}, checkout.Resolve{CaseID: "c", Resolution: checkout.ResolutionApproved}, checkout.Erase{By: "x"}} {
		attacks = append(attacks, user.writes("", do), user.writes(processor.SenderIngress, do), user.writes(processor.SenderCollect, do), user.writes("root", do), other.writes(processor.SenderIngress, do))
	}
	for _, do := range []checkout.Action{take, approved, checkout.Cancel{By: checkout.ByIntegrator}} { // not collect's own
		attacks = append(attacks, collect.writes(processor.SenderCollect, do), collect.writes(processor.SenderIngress, do))
	}
	poisoned := i.read(schemas.TopicPoisonCommands, len(attacks))
	for n, p := range poisoned {
		if !bytes.Equal(p.Value, attacks[n].Value) || !slices.ContainsFunc(p.Headers, func(h kgo.RecordHeader) bool {
			return h.Key == schemas.HeaderError && (bytes.HasPrefix(h.Value, []byte("forged: ")) || bytes.HasPrefix(h.Value, []byte("unsigned: ")) || bytes.HasPrefix(h.Value, []byte("not allowed: ")))
		}) {
			t.Errorf("attack %d is not in the poison topic with its reason: %+v", n, p.Headers)
		}
	}
	for _, r := range decode[record.Reply](i, i.read(schemas.TopicReplies, 2)) {
		if r.CorrelationID == "thief" {
			t.Error("an attack was answered")
		}
	}
	if events := decode[record.Event](i, i.read(schemas.TopicEvents, 2)); events[1].Type != "collection.requested" {
		t.Errorf("the events are %+v", events)
	}
	want := map[[2]string]float64{
		{"unknown", "unsigned"}: 7, {"ingress", "forged"}: 14 + 3, {"collect", "forged"}: 7, {"unknown", "forged"}: 7, {"collect", "not_allowed"}: 3,
	}
	for _, sender := range append(processor.Senders(), "unknown") {
		for _, reason := range []string{"unsigned", "forged", "not_allowed"} {
			got, n := i.counted("quittance_processor_commands_refused_total", sender, reason), want[[2]string{sender, reason}]
			if got < n || n == 0 && got != 0 { // a transaction that is repeated counts again
				t.Errorf("%s, %s: %v refused, want %v", sender, reason, got, n)
			}
		}
	}

	// The sink collect itself says what the operator answered.
	thief{i, i.keys}.writes(processor.SenderCollect, polled)
	if events := decode[record.Event](i, i.read(schemas.TopicEvents, 3)); events[2].Type != "checkout.completed" {
		t.Errorf("the events are %+v", events)
	}
}

// A record of ingress is copied to another partition, or written again under another key.
func TestCopiedCommandIsForged(t *testing.T) {
	t.Parallel()
	i := install(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	stop := i.process(func() time.Time { return now })
	defer stop()
	i.send(create("chs_a", "o", now))
	i.read(schemas.TopicReplies, 1)
	cl, err := i.cfg.Client(kgo.ConsumeTopics(i.topology.Name(schemas.TopicCommands)), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	original := cl.PollFetches(ctx).Records()[0]
	copied := func(partition int32, key string) *kgo.Record {
		return &kgo.Record{Topic: original.Topic, Partition: partition, Key: []byte(key), Value: original.Value, Headers: original.Headers}
	}
	i.produce(copied(1-original.Partition, string(original.Key)))
	i.produce(copied(original.Partition, "another"))
	i.read(schemas.TopicPoisonCommands, 2)
	i.read(schemas.TopicEvents, 1)
}

// During an upgrade the senders of the release before do not sign. With --accept-unsigned-commands their
// commands are decided; a forged one is not, and nobody sends a Tick.
func TestUnsignedCommandsOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	i := install(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	stop := i.run(func() time.Time { return now }, true)
	defer stop()
	r, err := mapping.FromCommand(create("chs_a", "o", now))
	if err != nil {
		t.Fatal(err)
	}
	value, err := i.codec.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	i.raw("", value)
	i.read(schemas.TopicEvents, 1)
	thief{i, secret.GenerateKeys()}.writes(processor.SenderIngress, checkout.Cancel{By: checkout.ByIntegrator})
	i.read(schemas.TopicPoisonCommands, 1)
	i.read(schemas.TopicEvents, 1)
	if n := i.counted("quittance_processor_commands_unsigned_total"); n < 1 {
		t.Errorf("%v unsigned commands counted", n)
	}
}

// counted returns the value of a counter of the processor with these values of labels; -1 if there is none.
func (i *installation) counted(name string, labels ...string) float64 {
	i.t.Helper()
	families, err := i.metrics.Gather()
	if err != nil {
		i.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			has := func(value string) bool {
				return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == value })
			}
			if f.GetName() == name && !slices.ContainsFunc(labels, func(l string) bool { return !has(l) }) {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// A data folder of the release before has decided commands without a signature. They are skipped: a
// processor without the flag starts, and refuses none of them.
func TestDecidedUnsignedCommandsAreSkipped(t *testing.T) {
	t.Parallel()
	i := install(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	clock := func() time.Time { return now }
	stop := i.run(clock, true)
	for n := range 3 {
		r, err := mapping.FromCommand(create(fmt.Sprint("chs_", n), fmt.Sprint(n), now))
		if err != nil {
			t.Fatal(err)
		}
		value, err := i.codec.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		i.raw("", value)
	}
	i.read(schemas.TopicEvents, 3)
	stop()
	if _, err := kadm.NewClient(i.producer).DeleteGroups(t.Context(), i.cfg.Prefix+"processor"); err != nil {
		t.Fatal(err)
	}
	defer i.process(clock)()
	i.send(create("chs_z", "z", now))
	i.read(schemas.TopicEvents, 4)
	i.read(schemas.TopicPoisonCommands, 0)
}

func TestProcessorNeedsTheKeysOfAllSenders(t *testing.T) {
	t.Parallel()
	keys := secret.GenerateKeys()
	senders, err := commands.NewVerifier(keys, processor.Senders()[1:])
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{topology: &kafka.Topology{}, codec: &schemas.Codec{}}
	if _, err := processor.New(processor.Config{Codec: i.codec, Topology: i.topology, Senders: senders, Bodies: senders[processor.SenderERP], Verify: func(_, _ []byte) bool { return false }, Metrics: prometheus.NewRegistry()}); err == nil || !strings.Contains(err.Error(), "no key of the sender ingress") {
		t.Errorf("without a key: %v", err)
	}
}
