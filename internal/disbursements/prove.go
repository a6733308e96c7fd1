package disbursements

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
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
	// Content is what approvers signed; zero for a batch that was not sealed.
	Content digest.Batch
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

	outcomes map[int]Outcome // by position
}

// Outcome is a line as the last event about it has it, without its content, and when its money moved.
type Outcome struct {
	disbursement.Line
	disbursement.History
}

// Outcome returns what became of the line at a position; false for one that was not added.
func (p Proof) Outcome(position int) (Outcome, bool) {
	o, ok := p.outcomes[position]
	return o, ok
}

// Find returns what became of the line with a line_ref; false if none has it.
func (p Proof) Find(ref string) (Outcome, bool) {
	for _, o := range p.outcomes {
		if o.Ref == ref {
			return o, true
		}
	}
	return Outcome{}, false
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
// that were added, that the digest is that of what was sealed and of what later events say, that the listed people are those of
// a tier of the policy and of the roster, each with passkeys of a day, that each approval is signed over it, by enough people and
// none twice, and that nothing was sent before the release, with another leaf, or while another attempt might pay. Roster, policy
// and what became of attempts are as the processor recorded them. The error is ErrUnknown for a batch without events.
func Prove(ctx context.Context, cfg kafka.Config, topology *kafka.Topology, codec *schemas.Codec, tenantID, batch string) (Proof, error) {
	cl, err := cfg.Client()
	if err != nil {
		return Proof{}, err
	}
	defer cl.Close()
	topic := topology.Name(schemas.Disbursement.Events)
	p := prover{tenantID: tenantID, batch: batch, agencies: map[bool]disbursement.Agency{}, out: Proof{Partition: topology.Partition(schemas.Disbursement.Events, tenantID), Offsets: [2]int64{-1, -1}}}
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
	agencies        map[bool]disbursement.Agency // by mode
	agency          disbursement.Agency          // in the batch's mode
	lines           map[int]Outcome
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
	if e.Agency != nil {
		p.agencies[e.Live] = *e.Agency
	}
	if e.Batch == nil || e.Batch.ID != p.batch {
		return
	}
	p.agency = p.agencies[e.Batch.Live]
	if p.sequence++; e.Batch.Sequence != p.sequence {
		p.fault("the event at offset %d has the number %d, after %d", offset, e.Batch.Sequence, p.sequence-1)
		p.sequence = e.Batch.Sequence
	}
	p.out.Batch, p.out.Offsets[1] = *e.Batch, offset
	if p.out.Offsets[0] < 0 {
		p.out.Offsets[0] = offset
	}
	if p.sealed {
		p.same(e)
	}
	defer p.follow(e)
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
		if p.out.ReleasedBy != "" && p.roster.Same(p.out.ReleasedBy, p.content.Maker) {
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
			p.fault("line %d comes after line %d", l.Position+1, len(p.leaves))
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
	p.out.Digest, p.out.Content = sum, c
	p.same(e)
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
	p.people(e)
}

// people compares who had to approve with the roster and the policy as the processor had them at the sealing.
func (p *prover) people(e disbursement.Event) {
	c := p.content
	var rules []policy.Rule
	for i, l := range c.Levels {
		rules = append(rules, policy.Rule{Role: l.Role, Needed: l.Needed})
		if l.Needed < 1 {
			p.fault("level %d needs nobody", i+1)
		}
	}
	if len(rules) == 0 {
		p.fault("nobody had to approve it")
	}
	if want, ok := p.roster.Levels(rules, c.Maker, e.At); !ok || !reflect.DeepEqual(want, c.Levels) {
		p.fault("the people and passkeys that are listed are not those of the roster")
	}
	in := p.agency.InForce(e.At)
	// The sum alone needs a tier; what was sealed on that day can only have raised it.
	least, err := in.Rules(c.Sum, 0, c.Largest)
	from := slices.IndexFunc(in.Tiers, func(t policy.Tier) bool { return slices.Equal(t.Rules, least) })
	if err != nil || in.Version != c.Policy || from < 0 || !slices.ContainsFunc(in.Tiers[from:], func(t policy.Tier) bool { return slices.Equal(t.Rules, rules) }) {
		p.fault("the levels are those of no tier that the policy in force has for this sum")
	}
}

// same compares what an event says of the batch with what was sealed.
func (p *prover) same(e disbursement.Event) {
	b, c := e.Batch, p.content
	if b.Digest != p.out.Digest || c.Batch != b.ID || c.Agency != b.TenantID || c.Mode != disbursement.Mode(b.Live) || c.BatchRef != b.BatchRef || c.Revision != b.Revision ||
		c.Currency != b.Currency || c.Date != b.Date || c.Maker != b.Maker || c.PayUntil != b.PayUntil || c.Count != b.Count || c.Sum != b.Sum {
		p.fault("%s says of the batch what was not sealed", e.Type)
	}
}

// follow keeps the lines as an event leaves them, and finds attempts that are made while another one may pay.
func (p *prover) follow(e disbursement.Event) {
	if p.lines == nil {
		p.lines = map[int]Outcome{}
	}
	for _, l := range e.Lines {
		before, known := p.lines[l.Position]
		switch {
		case known && (l.Leaf != before.Leaf || l.Amount != before.Amount || l.Ref != before.Ref || l.Account != before.Account):
			p.fault("line %d is another one than was added", l.Position+1)
		case e.Type == disbursement.EventLinesSent && (before.Status != disbursement.LineReady || l.Attempt != before.Attempt+1):
			p.fault("line %d was sent again while it was %s", l.Position+1, before.Status)
		case e.Type == disbursement.EventLinesResent && (before.Status != disbursement.LineSent || l.Attempt != before.Attempt):
			p.fault("line %d was requested again under another id", l.Position+1)
		case e.Type == disbursement.EventLineRetried && (before.Status != disbursement.LineRefused || before.Unproven || before.Contested),
			e.Type == disbursement.EventLineUnsent && before.Status != disbursement.LineSent,
			e.Type != disbursement.EventLineRetried && e.Type != disbursement.EventLineUnsent && l.Status == disbursement.LineReady && before.Status != disbursement.LineReady && before.Status != "":
			p.fault("line %d became ready again after it was %s", l.Position+1, before.Status)
		}
		l.Sealed = nil
		if len(e.Lines) == 1 { // money moves in events of one line
			before.History = before.After(e.Type, e.At, e.Detail)
		}
		p.lines[l.Position] = Outcome{l, before.History}
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
	out, faults := attested(p.content, p.out.Digest, p.out.Approvals, a)
	out.Offset = offset
	for _, text := range faults {
		p.fault("%s", text)
	}
	p.out.Approvals = append(p.out.Approvals, out)
}

// enough finds levels that lack people.
func (p *prover) enough() {
	for _, text := range lacking(p.content, p.out.Approvals) {
		p.fault("%s", text)
	}
	if !p.sealed {
		p.fault("the batch was not sealed")
	}
}

func (p *prover) sends(e disbursement.Event) {
	if p.out.ReleasedAt.IsZero() {
		p.fault("lines were sent before the release")
	}
	if b := e.Batch; b.Held() || b.Stopped || b.Overdue || b.Status != disbursement.StatusReleasing {
		p.fault("lines were sent of a batch that was %s, held, stopped or overdue", b.Status)
	}
	for _, l := range e.Lines {
		p.out.Sent++
		if l.Position < 0 || l.Position >= len(p.leaves) || p.leaves[l.Position] != l.Leaf {
			p.fault("line %d was sent with another leaf", l.Position+1)
		}
	}
}

func (p *prover) end() {
	var totals disbursement.Totals
	for _, l := range p.lines {
		if t := totals.Of(l.Status); t != nil {
			t.Count, t.Sum = t.Count+1, t.Sum+l.Amount
		}
	}
	if totals != p.out.Batch.Lines {
		p.fault("the counts and sums by status are not those of the lines")
	}
	p.out.outcomes = p.lines
	switch p.out.Batch.Status {
	case disbursement.StatusApproved, disbursement.StatusReleasing, disbursement.StatusDone:
		p.enough()
	default: // pays nothing
	}
}
