package disbursement_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/commands"
	processor "quittance/processors/disbursement"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/test/payouts"
	"quittance/test/payroll"
)

// A batch is opened, approved, released, requested and paid through Kafka. A processor that restarts in the middle goes on
// from its state, and each attempt is requested once.
func TestBatchThroughKafka(t *testing.T) {
	t.Parallel()
	i := payouts.Install(t)
	stop := i.Process()
	i.Agency()
	const lines = 300 // more than an account has in flight
	b := i.Sealed("dsb_1", lines)
	if a := i.Ask(processor.SenderOffice, b.ID, disbursement.Release{Signed: payroll.Step(b.Digest, "cleo", 0, digest.Release)}); a.Code() != disbursement.CodeStatus {
		t.Fatalf("a sealed batch is released: %s", a.Code())
	}
	if a := i.Ask(processor.SenderOffice, b.ID, disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ama", 1, digest.Approve)}); a.Code() != disbursement.CodeMaker {
		t.Fatalf("the maker approves: %s", a.Code())
	}
	i.OK(processor.SenderOffice, b.ID, disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)})
	i.OK(processor.SenderOffice, b.ID, disbursement.Release{Signed: payroll.Step(b.Digest, "cleo", 0, digest.Release)})

	requests := payouts.NewReader[record.PayoutRequest](i, schemas.TopicPayouts)
	seen, answered := map[string]int{}, 0
	pay := func(upTo int) {
		for answered < upTo {
			for _, r := range requests.Next(1) {
				q := batches.ToRequest(&r)
				if q.Kind != disbursement.RequestPay {
					continue
				}
				seen[q.Line.AttemptID().PayoutRef()]++
				word := disbursement.Word{
					Position: q.Line.Position, Attempt: q.Line.Attempt, Try: q.Line.Try, Source: disbursement.FromRequest, Kind: disbursement.WordPaid,
					Amount: q.Line.Amount, Currency: q.Currency, OperatorRef: "op",
				}
				i.OK(processor.SenderDisburse, b.ID, word)
				answered++
			}
		}
	}
	pay(50)
	stop()
	stop = i.Process()
	defer func() { stop() }()
	pay(lines)
	done := i.OK(processor.SenderDisburse, b.ID, disbursement.Word{Position: 0, Attempt: 1, Source: disbursement.FromEnquiry, Kind: disbursement.WordPending})
	if done.Status != disbursement.StatusDone || done.Lines.Paid.Count != lines || done.Lines.Paid.Sum != b.Sum {
		t.Errorf("%s, %+v", done.Status, done.Lines)
	}
	if len(seen) != lines || answered != lines {
		t.Errorf("%d requests of %d attempts, want %d", answered, len(seen), lines)
	}
	events := payouts.NewReader[record.DisbursementEvent](i, schemas.Disbursement.Events).Next(lines)
	sequence, completed := int64(0), 0
	for _, e := range events {
		if e.Batch == nil {
			continue
		}
		if sequence++; e.Batch.Sequence != sequence {
			t.Fatalf("the event %d of the batch has the number %d", sequence, e.Batch.Sequence)
		}
		if e.Type != string(disbursement.EventLinesAdded) {
			for _, l := range e.Lines {
				if len(l.Sealed) > 0 {
					t.Errorf("%s has the content of a line", e.Type)
				}
			}
		}
		if e.Type == string(disbursement.EventDone) {
			completed++
		}
	}
	if completed != 1 {
		t.Errorf("the batch is done %d times", completed)
	}
}

// Whoever may not send a command, or sends it where the agency's state is not, reaches nothing but the poison topic.
func TestCommandsOfOthersArePoison(t *testing.T) {
	t.Parallel()
	i := payouts.Install(t)
	stop := i.Process()
	defer stop()
	i.Agency()
	b := i.Sealed("dsb_1", 1)
	command := func(do disbursement.Action) *kgo.Record {
		rec, err := commands.DisbursementProtocol(i.Codec, i.Topology).Encode(disbursement.Command{At: i.Now(), TenantID: payroll.Tenant, Batch: b.ID, Do: do}, nil)
		if err != nil {
			t.Fatal(err)
		}
		rec.Topic = i.Topology.Name(schemas.Disbursement.Commands)
		return rec
	}
	sign := func(rec *kgo.Record, from string) *kgo.Record {
		signer, err := commands.NewSigner(i.Keys, from)
		if err != nil {
			t.Fatal(err)
		}
		signer.Sign(rec)
		return rec
	}
	approve := disbursement.Approve{Level: 1, Signed: payroll.Step(b.Digest, "ben", 1, digest.Approve)}
	unsigned := command(approve)
	notAllowed := sign(command(approve), processor.SenderDisburse)
	forged := sign(command(approve), processor.SenderOffice)
	forged.Value = command(disbursement.Recall{By: "ama"}).Value
	elsewhere := command(approve)
	elsewhere.Partition = 1 - elsewhere.Partition
	sign(elsewhere, processor.SenderOffice)
	foreign := sign(command(approve), "ingress")
	garbage := sign(&kgo.Record{Topic: unsigned.Topic, Partition: unsigned.Partition, Key: unsigned.Key, Value: []byte("no record")}, processor.SenderOffice)
	wrong := []*kgo.Record{unsigned, notAllowed, forged, elsewhere, foreign, garbage}
	for _, from := range []string{processor.SenderOperator, processor.SenderOffice, processor.SenderDisburse} { // only who asks ERPs says what they have
		wrong = append(wrong, sign(command(disbursement.ERPSame{AskedAt: i.Now(), Same: true}), from))
	}
	if err := i.Producer.ProduceSync(t.Context(), wrong...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	poisoned(t, i, len(wrong))
	now := i.Ask(processor.SenderOperator, b.ID, disbursement.Stop{}).Batch // refused, with the batch as it is
	if now == nil || now.Status != disbursement.StatusSealed || now.Sequence != b.Sequence {
		t.Errorf("the batch is %+v", now)
	}
}

// poisoned waits for n poison records.
func poisoned(t *testing.T, i *payouts.Installation, n int) {
	t.Helper()
	cl, err := i.Kafka.Client(kgo.ConsumeTopics(i.Topology.Name(schemas.Disbursement.Poison)), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for found := 0; found < n; {
		found += len(cl.PollFetches(ctx).Records())
		if ctx.Err() != nil {
			t.Fatalf("%d poison records, want %d", found, n)
		}
	}
}

// A command without an agency has no partition.
func TestCommandsNameTheirAgency(t *testing.T) {
	t.Parallel()
	i := payouts.Install(t)
	_, err := commands.DisbursementProtocol(i.Codec, i.Topology).Encode(disbursement.Command{At: i.Now(), Do: disbursement.Recall{}}, nil)
	if !errors.Is(err, commands.ErrNoAgency) {
		t.Errorf("%v", err)
	}
}

// Whatever time a command gives, it happens when the broker takes it: people who are enrolled by one that is dated a day back do
// not count at once. Of a topic that has the senders' times nothing is decided.
func TestCommandsHaveTheBrokersTime(t *testing.T) {
	t.Parallel()
	i := payouts.Install(t)
	i.BrokerTimes = true
	defer i.Process()()
	send := func(back time.Duration, do disbursement.Action) disbursement.Answer {
		a, err := i.Client(processor.SenderOperator).Ask(t.Context(), disbursement.Command{At: i.Now().Add(back), TenantID: payroll.Tenant, Do: do})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	enrol := disbursement.Enrol{
		People: []disbursement.Enrolled{payroll.Enrolled("ama", "maker"), payroll.Enrolled("ben", "chief")}, RPID: payroll.RPID, Origin: payroll.Origin,
	}
	if a := send(-100*time.Hour, enrol); a.Code() != disbursement.CodeOK {
		t.Fatalf("%+v", a)
	}
	set := disbursement.SetPolicy{Policy: payroll.Policy()}
	set.Confirmed = payroll.Confirm(2, set.Content(false), "ama", "ben")
	for _, back := range []time.Duration{0, -49 * time.Hour, 25 * time.Hour} {
		if a := send(back, set); a.Code() != disbursement.CodeNotInForce {
			t.Errorf("dated %s: %+v", back, a)
		}
	}
	enrolled := payouts.NewReader[record.DisbursementEvent](i, schemas.Disbursement.Events).Next(1)[0]
	if age := time.Since(enrolled.At); age > 10*time.Minute || age < -10*time.Minute {
		t.Errorf("the enrolment was %s ago", age)
	}

	none := "CreateTime"
	cfg := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "message.timestamp.type", Value: &none}}
	if _, err := kadm.NewClient(i.Producer).AlterTopicConfigs(t.Context(), cfg, i.Topology.Name(schemas.Disbursement.Commands)); err != nil {
		t.Fatal(err)
	}
	rec, err := commands.DisbursementProtocol(i.Codec, i.Topology).Encode(disbursement.Command{At: i.Now(), TenantID: payroll.Tenant, Do: enrol}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := commands.NewSigner(i.Keys, processor.SenderOperator)
	if err != nil {
		t.Fatal(err)
	}
	rec.Topic = i.Topology.Name(schemas.Disbursement.Commands)
	signer.Sign(rec)
	done := make(chan struct{})
	go func() { // the broker takes the setting after a while
		defer close(done)
		for range 100 {
			again := *rec
			if i.Producer.ProduceSync(t.Context(), &again).FirstErr() != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	poisoned(t, i, 1)
	<-done
}
