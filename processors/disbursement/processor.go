package disbursement

import (
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/processors/entry"
	"quittance/processors/output"
	"quittance/processors/runtime"
	"quittance/processors/sender"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// Bounds of a transaction of the runtime. A command has up to 200 lines, and a tick changes up to 200, so that other
// agencies of the partition wait half a second at most.
const (
	MaxPollRecords = 16
	MaxTicks       = 8
)

// Config is what a Processor needs. All fields but AcceptTimes are required.
type Config struct {
	Codec    *schemas.Codec
	Topology output.Topology
	// Senders has the keys of those that Senders returns.
	Senders origin.Verifier
	// Requests proves the requests to operators: the sink makes no others.
	Requests *origin.Signer
	// AcceptTimes believes the times that commands give. Otherwise the time of a command is that of the broker
	// (sender.Guard.TimeOf).
	AcceptTimes bool
	Metrics     prometheus.Registerer
}

// Processor decides commands. It has no state and may decide for any number of partitions at the same time.
type Processor struct {
	codec    *schemas.Codec
	topology output.Topology
	guard    *sender.Guard[disbursement.Action]
	requests *origin.Signer
	anyTime  bool
}

var _ runtime.Processor = (*Processor)(nil)

// New creates a processor that writes to the topics of the installation.
func New(cfg Config) (*Processor, error) {
	if cfg.Codec == nil || cfg.Topology == nil || cfg.Requests == nil || cfg.Metrics == nil {
		return nil, errors.New("processor of disbursement: Codec, Topology, Requests and Metrics are required")
	}
	guard, err := sender.New(sender.Config[disbursement.Action]{
		Processor: schemas.Disbursement.Processor, Keys: cfg.Senders, Allowed: sendersOf, Metrics: cfg.Metrics,
	}, Senders())
	if err != nil {
		return nil, err
	}
	return &Processor{cfg.Codec, cfg.Topology, guard, cfg.Requests, cfg.AcceptTimes}, nil
}

// Process decides one record of disbursement.commands. A record that cannot be decoded, an unknown command, and a command of
// somebody who may not send it are poison.
func (p *Processor) Process(tx *runtime.Tx, rec *kgo.Record) error {
	from, err := p.guard.Sent(rec)
	if err != nil {
		return err
	}
	var r record.DisbursementCommand
	if err := p.codec.Decode(rec.Value, &r); err != nil {
		if errors.Is(err, schemas.ErrUndecodable) {
			return runtime.Poison(err)
		}
		return err
	}
	cmd, err := batches.ToCommand(&r)
	if err != nil {
		return runtime.Poison(err)
	}
	if err := p.guard.Allows(from, cmd.Do); err != nil {
		return err
	}
	if p.topology.Partition(schemas.Disbursement.Commands, cmd.TenantID) != tx.Partition() {
		return runtime.Poison(errPartition)
	}
	if !p.anyTime {
		if cmd.At, err = p.guard.TimeOf(from, rec); err != nil {
			return err
		}
	}
	return p.decide(tx, cmd)
}

// errPartition says that a command is not in the partition of its agency. Decided there, it would not see the agency's
// state: its line_refs would be free, and its day's sum zero.
var errPartition = errors.New("the command is in another partition than its agency")

// transaction is the part of runtime.Tx that a decision needs.
type transaction interface {
	entry.Tx
	output.Tx
}

func (p *Processor) decide(tx transaction, cmd disbursement.Command) error {
	state := entry.NewState(tx, p.codec)
	d, err := disbursement.Decide(view{state}, cmd)
	if err != nil {
		return runtime.Poison(err)
	}
	if err := state.Err(); err != nil {
		return err
	}
	write(state, d)
	w := output.New(p.codec, p.topology, tx)
	w.Fail(state.Err())
	for _, e := range d.Events {
		r := batches.FromEvent(e)
		w.EmitHere(schemas.Disbursement.Events, e.TenantID, &r)
	}
	for _, q := range d.Requests {
		r := batches.FromRequest(q)
		w.EmitSigned(schemas.TopicPayouts, q.Line.AttemptID().PayoutRef(), &r, p.requests.Sign)
	}
	if d.Answer != nil {
		w.EmitTo(schemas.Disbursement.Replies, cmd.ReplyTo.Partition, cmd.ReplyTo.CorrelationID, batches.Reply(*cmd.ReplyTo, *d.Answer))
	}
	return w.Err()
}

// Deadline returns when an entry of the state needs a tick.
func (p *Processor) Deadline(key, value []byte) time.Time {
	return kinds.Deadline(p.codec, key, value)
}

// Tick decides a batch or a payout account at the time now.
func (p *Processor) Tick(tx *runtime.Tx, key []byte, now time.Time) error {
	return p.tick(tx, key, now)
}

func (p *Processor) tick(tx transaction, key []byte, now time.Time) error {
	return kinds.Tick(tx, key, func(letter byte, id string) error {
		cmd := disbursement.Command{At: now.UTC().Truncate(time.Millisecond)}
		if letter == accounts.Letter {
			parts := strings.SplitN(id, "\x00", 3)
			cmd.TenantID, cmd.Live, cmd.Do = parts[0], parts[1] == disbursement.Mode(true), disbursement.Tick{Account: parts[2]}
			return p.decide(tx, cmd)
		}
		state := entry.NewState(tx, p.codec)
		b := batchEntries.Value(state, id)
		if err := state.Err(); err != nil {
			return err
		}
		cmd.TenantID, cmd.Live, cmd.Batch, cmd.Do = b.TenantID, b.Live, id, disbursement.Tick{}
		return p.decide(tx, cmd)
	})
}
