package disbursements

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
)

// Proof is what the records of a batch in disbursement.events prove, without Postgres.
type Proof struct {
	// Batch is as its last event has it.
	Batch  disbursement.Batch
	Digest digest.Hash
	// Lines are those that were added, in order, without their contents.
	Lines     int
	Sum       int64 // minor units
	Approvals []ProvenApproval
	// ReleasedBy is the person who released it, as the processor says; empty for a batch that was not released, or by its date.
	ReleasedBy string
	ReleasedAt time.Time
	// Sent is how many requests to pay were made.
	Sent int
	// Faults say what does not hold; none for a batch that was paid, or may be, as its approvers signed.
	Faults []string
	// Partition and Offsets are where its records are: the first and the last one.
	Partition int32
	Offsets   [2]int64
}

// ProvenApproval is an approval whose signature holds.
type ProvenApproval struct {
	Level       int
	Person, For string
	At          time.Time
	Key         [32]byte // SHA-256 of the passkey's SubjectPublicKeyInfo
	Offset      int64
}

// Prove reads all events of the agency's partition and checks the batch: that its root, count and sums are those of the lines
// that were added, that the digest is that of what was sealed, that each approval is signed over it by a passkey that the
// agency's roster had a day before, by enough people and none twice, and that nothing was sent before, or with another leaf.
// The roster is as the processor recorded it. The error is ErrUnknown for a batch without events.
func Prove(ctx context.Context, cfg kafka.Config, topology *kafka.Topology, codec *schemas.Codec, tenantID, batch string) (Proof, error) {
	cl, err := cfg.Client()
	if err != nil {
		return Proof{}, err
	}
	defer cl.Close()
	topic := topology.Name(schemas.Disbursement.Events)
	p := prover{tenantID: tenantID, batch: batch, out: Proof{Partition: topology.Partition(schemas.Disbursement.Events, tenantID), Offsets: [2]int64{-1, -1}}}
	spans, err := kafka.Bounds(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return Proof{}, err
	}
	only := map[int32]kafka.Span{p.out.Partition: spans[p.out.Partition]}
	err = cfg.Read(ctx, topic, only, nil, func(r *kgo.Record) (bool, error) {
		var event record.DisbursementEvent
		if err := codec.Decode(r.Value, &event); err != nil {
			return true, fmt.Errorf("the record %d of partition %d: %w", r.Offset, r.Partition, err)
		}
		p.take(batches.ToEvent(&event), r.Offset)
		return true, nil
	})
	if err != nil {
		return Proof{}, fmt.Errorf("proving a batch: %w", err)
	}
	if p.out.Batch.ID == "" {
		return Proof{}, ErrUnknown
	}
	p.end()
	return p.out, nil
}

// prover adds up the events of a batch.
type prover struct {
	tenantID, batch string
	out             Proof
	roster          policy.Roster
	tree            digest.Tree
	leaves          []digest.Hash
	accounts        map[int]disbursement.Total
	largest         int64
	content         digest.Batch
	sealed          bool
	sequence        int64
}

func (p *prover) fault(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.out.Faults, text) {
		p.out.Faults = append(p.out.Faults, text)
	}
}

func (p *prover) take(e disbursement.Event, offset int64) {
	if e.TenantID != p.tenantID {
		return
	}
	if e.Roster != nil {
		p.roster = e.Roster.Roster
	}
	if e.Batch == nil || e.Batch.ID != p.batch {
		return
	}
	if p.sequence++; e.Batch.Sequence != p.sequence {
		p.fault("the event at offset %d has the number %d, after %d", offset, e.Batch.Sequence, p.sequence-1)
		p.sequence = e.Batch.Sequence
	}
	p.out.Batch, p.out.Offsets[1] = *e.Batch, offset
	if p.out.Offsets[0] < 0 {
		p.out.Offsets[0] = offset
	}
	switch e.Type {
	case disbursement.EventLinesAdded:
		p.add(e)
	case disbursement.EventSealed:
		p.seal(e)
	case disbursement.EventApproval:
		p.approval(e, offset)
	case disbursement.EventReleased:
		p.out.ReleasedBy, p.out.ReleasedAt = e.Detail[disbursement.DetailBy], e.At
		p.enough()
		if p.out.ReleasedBy == p.content.Maker {
			p.fault("the person who made the batch released it")
		}
	case disbursement.EventLinesSent, disbursement.EventLinesResent:
		p.sends(e)
	default: // changes nothing that was signed
	}
}

func (p *prover) add(e disbursement.Event) {
	if p.sealed {
		p.fault("lines were added after the sealing")
	}
	if p.accounts == nil {
		p.accounts = map[int]disbursement.Total{}
	}
	for _, l := range e.Lines {
		if l.Position != len(p.leaves) {
			p.fault("line %d comes after line %d", l.Position, len(p.leaves)-1)
		}
		p.tree, p.leaves = p.tree.Add(l.Leaf), append(p.leaves, l.Leaf)
		p.out.Lines++
		p.out.Sum += l.Amount
		p.largest = max(p.largest, l.Amount)
		t := p.accounts[l.Account]
		p.accounts[l.Account] = disbursement.Total{Count: t.Count + 1, Sum: t.Sum + l.Amount}
	}
}

// seal compares what was sealed with the lines, and the people who are listed with the roster.
func (p *prover) seal(e disbursement.Event) {
	if p.sealed || e.Sealing == nil {
		p.fault("the batch was sealed twice, or without what approvers sign")
		return
	}
	p.sealed, p.content = true, e.Sealing.Content
	c := p.content
	sum, err := c.Digest()
	if err != nil || sum != e.Batch.Digest {
		p.fault("the digest is not that of what was sealed")
	}
	p.out.Digest = sum
	if c.Batch != p.batch || c.Agency != p.tenantID {
		p.fault("another batch was sealed")
	}
	if c.Root != p.tree.Root() || c.Count != p.out.Lines || c.Sum != p.out.Sum || c.Largest != p.largest {
		p.fault("root, count, sum or largest line are not those of the lines that were added")
	}
	for i, a := range e.Batch.Accounts {
		at := slices.IndexFunc(c.Accounts, func(x digest.Account) bool { return x.Code == a.Code })
		switch t := p.accounts[i]; {
		case at < 0 && t.Count > 0:
			p.fault("the account %s is not among those that were signed", a.Code)
		case at >= 0 && (c.Accounts[at].Count != t.Count || c.Accounts[at].Sum != t.Sum || c.Accounts[at].Fingerprint != a.Fingerprint):
			p.fault("the account %s was signed with other lines or another fingerprint", a.Code)
		}
	}
	for i, l := range c.Levels {
		for _, listed := range l.Persons {
			if listed.ID == c.Maker || listed.For == c.Maker {
				p.fault("level %d lists the person who made the batch, or a delegate", i+1)
			}
			for _, key := range listed.Keys {
				if !p.roster.InForce(listed.ID, key, e.At) {
					p.fault("level %d lists a passkey of %s that the roster did not have for a day", i+1, listed.ID)
				}
			}
		}
	}
}

// approval verifies the newest approval of an event.
func (p *prover) approval(e disbursement.Event, offset int64) {
	if e.Sealing == nil || len(e.Sealing.Approvals) != len(p.out.Approvals)+1 {
		p.fault("the event at offset %d does not have one approval more", offset)
		return
	}
	if same, err := e.Sealing.Content.Digest(); err != nil || same != p.out.Digest {
		p.fault("what was sealed changed at offset %d", offset)
	}
	a := e.Sealing.Approvals[len(p.out.Approvals)]
	out := ProvenApproval{Level: a.Level, Person: a.Person, For: a.For, At: a.At, Key: a.Signed.Assertion.KeyHash(), Offset: offset}
	statement, err := digest.Step{Digest: p.out.Digest, Level: a.Level, Person: a.Person, Verdict: digest.Approve}.Statement()
	if err != nil || a.Signed.Assertion.Verify(assertion.Party{RPID: p.content.RPID, Origin: p.content.Origin}, statement) != nil {
		p.fault("the approval of %s at level %d is not signed over this batch", a.Person, a.Level)
	}
	listed := a.Level >= 1 && a.Level <= len(p.content.Levels) && slices.ContainsFunc(p.content.Levels[a.Level-1].Persons, func(x policy.Approver) bool {
		return x.ID == a.Person && x.For == a.For && slices.Contains(x.Keys, out.Key)
	})
	if !listed {
		p.fault("%s is not listed at level %d with this passkey", a.Person, a.Level)
	}
	for _, before := range p.out.Approvals {
		if before.Person == a.Person || before.Key == out.Key || a.For != "" && (before.For == a.For || before.Person == a.For) || before.For == a.Person {
			p.fault("%s counts twice", a.Person)
		}
	}
	p.out.Approvals = append(p.out.Approvals, out)
}

// enough finds levels that lack people.
func (p *prover) enough() {
	for i, l := range p.content.Levels {
		n := 0
		for _, a := range p.out.Approvals {
			if a.Level == i+1 {
				n++
			}
		}
		if n < l.Needed {
			p.fault("level %d has %d of %d approvals", i+1, n, l.Needed)
		}
	}
	if !p.sealed {
		p.fault("the batch was not sealed")
	}
}

func (p *prover) sends(e disbursement.Event) {
	if p.out.ReleasedAt.IsZero() {
		p.fault("lines were sent before the release")
	}
	for _, l := range e.Lines {
		p.out.Sent++
		if l.Position < 0 || l.Position >= len(p.leaves) || p.leaves[l.Position] != l.Leaf {
			p.fault("line %d was sent with another leaf", l.Position)
		}
	}
}

func (p *prover) end() {
	switch p.out.Batch.Status {
	case disbursement.StatusApproved, disbursement.StatusReleasing, disbursement.StatusDone:
		p.enough()
	default: // pays nothing
	}
}

// ErrErased says that a line of a batch cannot be opened any more, so that the batch cannot be exported for verification.
var ErrErased = errors.New("a line of the batch was erased, or cannot be opened")
