package disbursements

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
)

// Passkeys reports whether a passkey is, or was, that of a person: identity.People, whose rows are signed.
type Passkeys func(person string, key [32]byte) bool

// Standing is what the rows of a batch that was approved say of it, without a proof from Kafka: they agree with each other, with
// what approvers signed, and with the passkeys of people.
type Standing struct {
	Approvals []ProvenApproval
	// ReleasedBy is the person who released the batch, as the processor said; empty for a batch that was not released, or by its
	// date.
	ReleasedBy string
	// Found says in what the rows do not agree; none for a batch that stands.
	Found []Difference
}

// Stands compares the rows of a sealed batch: digest, root, counts, sums and accounts with the rows of all lines, and with their
// contents as far as with opens them (nil opens none, and an erased line has none); the totals by status with the lines; and each
// approval with its signature, with a passkey of its person (nil asks nobody), and with who was listed. The batch was read in the same
// snapshot. What it cannot see is a change of several
// rows that agree with each other but for what is signed, such as the status of a line and the totals of its batch: Prove does.
func (s *Store) Stands(ctx context.Context, with Opener, known Passkeys, b Batch) (Standing, error) {
	out := standing{b: b}
	out.signed(known)
	scanned := scan{b: b}
	if err := s.eachLine(ctx, b.ID, with, scanned.take); err != nil {
		return Standing{}, err
	}
	out.differ(scanned.found()...)
	if b.ReleasedAt.IsZero() {
		return out.end(), nil
	}
	released, err := s.steps(ctx, ` AND type = $3`, b.ID, 1, string(disbursement.EventReleased))
	if err != nil {
		return Standing{}, err
	}
	if len(released) != 1 || !released[0].At.Equal(b.ReleasedAt) {
		out.differ(DifferentStatus)
		return out.end(), nil
	}
	out.ReleasedBy = released[0].Detail[disbursement.DetailBy]
	return out.end(), nil
}

// standing collects what differs.
type standing struct {
	Standing

	b Batch
}

func (s *standing) differ(found ...Difference) { s.Found = append(s.Found, found...) }

func (s *standing) end() Standing {
	slices.Sort(s.Found)
	s.Found = slices.Compact(s.Found)
	return s.Standing
}

// signed checks digest and approvals.
func (s *standing) signed(known Passkeys) {
	b, c := s.b, s.b.Sealing.Content
	if !b.ofDigest() || b.Count != c.Count || b.Sum != c.Sum || b.Largest != c.Largest || b.PayUntil != c.PayUntil {
		s.differ(DifferentDigest)
	}
	for _, a := range b.Sealing.Approvals {
		approval, faults := attested(c, b.Digest, s.Approvals, a)
		if len(faults) > 0 || known != nil && !known(a.Person, approval.Key) {
			s.differ(DifferentApprovals)
		}
		s.Approvals = append(s.Approvals, approval)
	}
	if approved := b.Status == disbursement.StatusApproved || b.Status == disbursement.StatusReleasing || b.Status == disbursement.StatusDone; !approved {
		return // it lacks some
	}
	if len(c.Levels) == 0 || slices.ContainsFunc(c.Levels, func(l policy.Level) bool { return l.Needed < 1 }) || len(lacking(c, s.Approvals)) > 0 {
		s.differ(DifferentApprovals)
	}
}

// scan adds up the lines of a batch.
type scan struct {
	b       Batch
	tree    digest.Tree
	sum     int64
	largest int64
	of      map[int]disbursement.Total // by account
	totals  disbursement.Totals
	wrong   bool // a line is not where it is, or its content is another one than its leaf has
	unknown bool // a status is none
}

func (s *scan) take(l OpenLine) {
	if s.of == nil {
		s.of = map[int]disbursement.Total{}
	}
	s.wrong = s.wrong || l.Position != s.tree.Size || l.Opened && !s.b.leafOf(l)
	s.tree = s.tree.Add(l.Leaf)
	s.sum, s.largest = s.sum+l.Amount, max(s.largest, l.Amount)
	account := s.of[l.Account]
	s.of[l.Account] = disbursement.Total{Count: account.Count + 1, Sum: account.Sum + l.Amount}
	if t := s.totals.Of(l.Status); t != nil {
		t.Count, t.Sum = t.Count+1, t.Sum+l.Amount
	} else {
		s.unknown = true
	}
}

// found returns in what the lines differ from the batch.
func (s *scan) found() (out []Difference) {
	b, c := s.b, s.b.Sealing.Content
	if s.wrong {
		out = append(out, DifferentLines)
	}
	if s.tree.Root() != c.Root {
		out = append(out, DifferentRoot)
	}
	if s.tree.Size != c.Count {
		out = append(out, DifferentCount)
	}
	same := s.sum == c.Sum && s.largest == c.Largest && len(s.of) == len(c.Accounts)
	for i, t := range s.of {
		same = same && i >= 0 && i < len(b.Accounts) && slices.Contains(c.Accounts, digest.Account{Code: b.Accounts[i].Code, Fingerprint: b.Accounts[i].Fingerprint, Count: t.Count, Sum: t.Sum})
	}
	if !same {
		out = append(out, DifferentSum)
	}
	if s.unknown || s.totals != b.Lines {
		out = append(out, DifferentStatus)
	}
	return out
}

// leafOf reports whether the content of an opened line is that of its leaf, and its row says the same.
func (b Batch) leafOf(l OpenLine) bool {
	leaf, err := digest.Leaf(l.Salt, l.Content)
	account := l.Account >= 0 && l.Account < len(b.Accounts) && b.Accounts[l.Account].Code == l.Content.PayoutAccount
	return err == nil && leaf == l.Leaf && l.Content.Amount == l.Amount && l.Content.LineRef == l.Ref && account
}

// PaidLine is a line that is paid, or was and came back.
type PaidLine struct {
	OpenLine
	disbursement.History
	// Found says in what the rows do not agree; none for a line that was paid as it was approved.
	Found []Difference
}

// PaidLine returns the line at a position of a batch with when it was paid, as the rows say it: they agree as Stands says, and the
// history of the line agrees with its status. The error is ErrUnknown for a position that the batch does not have.
func (s *Store) PaidLine(ctx context.Context, with Opener, known Passkeys, b Batch, position int) (out PaidLine, err error) {
	if out.OpenLine, err = s.Line(ctx, with, b, position); err != nil {
		return out, err
	}
	if out.History, err = s.history(ctx, b.ID, position); err != nil {
		return out, err
	}
	stands, err := s.Stands(ctx, nil, known, b)
	if err != nil {
		return out, err
	}
	out.Found = stands.Found
	if !out.Opened || !b.leafOf(out.OpenLine) {
		out.Found = append(out.Found, DifferentLines)
	}
	if paid := out.Status == disbursement.LinePaid || out.Status == disbursement.LineReturned; paid && !out.Contested && !out.Evidenced(out.Line) {
		out.Found = append(out.Found, DifferentStatus)
	}
	slices.Sort(out.Found)
	out.Found = slices.Compact(out.Found)
	return out, nil
}

// history returns when the money of a line moved, from all steps of this line alone.
func (s *Store) history(ctx context.Context, batch string, position int) (h disbursement.History, err error) {
	steps, err := s.steps(ctx, ` AND lines = 1 AND detail ->> 'line' = $3 AND type = ANY($4)`, batch, StepsAtMost, strconv.Itoa(position), []string{
		string(disbursement.EventLinePaid), string(disbursement.EventLineReturned), string(disbursement.EventReturnWithdrawn), string(disbursement.EventLinePart), string(disbursement.EventLineSettled),
	})
	if err != nil {
		return h, err
	}
	for _, x := range steps {
		h = h.After(x.Type, x.At, x.Detail)
	}
	return h, nil
}

// patience is how long Agrees waits for the read model, and lookEvery the time between two looks.
const (
	patience  = 10 * time.Second
	lookEvery = 200 * time.Millisecond
)

// Agrees returns in what the rows of a batch are not as Kafka has proven them. It waits until the read model has all events of the
// proof. Of rows that have later events only that is compared which never changes. The error says that the read model is behind.
func (s *Store) Agrees(ctx context.Context, p Proof) (found []Difference, err error) {
	until, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		behind := false
		err := s.Snapshot(ctx, func(at *Store) error {
			b, err := at.Batch(ctx, Scope{TenantID: p.Batch.TenantID}, p.Batch.ID)
			if behind = err == nil && b.Sequence < p.Batch.Sequence; err != nil || behind {
				return err
			}
			found, err = at.agree(ctx, p, b)
			return err
		})
		if err != nil || !behind {
			return found, err
		}
		select {
		case <-until.Done():
			return nil, ErrBehind
		case <-tick.C:
		}
	}
}

// ErrBehind says that the read model lacks events of a batch that are in Kafka.
var ErrBehind = errors.New("the read model lacks events of the batch that are in Kafka: check that `quittance sink readmodel` runs, then try again")

func (s *Store) agree(ctx context.Context, p Proof, b Batch) ([]Difference, error) {
	stands, err := s.Stands(ctx, nil, nil, b)
	if err != nil {
		return nil, err
	}
	out := standing{Standing: stands, b: b}
	if b.Digest != p.Digest || !reflect.DeepEqual(b.Sealing.Content, p.Content) {
		out.differ(DifferentDigest)
	}
	if !slices.EqualFunc(stands.Approvals, p.Approvals, func(row, proven ProvenApproval) bool {
		proven.Offset = row.Offset
		return row == proven
	}) {
		out.differ(DifferentApprovals)
	}
	now := b.Sequence == p.Batch.Sequence
	if now && !reflect.DeepEqual(b.Batch, p.Batch) {
		out.differ(DifferentStatus)
	}
	err = s.eachLine(ctx, b.ID, nil, func(l OpenLine) {
		proven, known := p.Outcome(l.Position)
		row := l.Line
		row.Sealed = nil
		switch {
		case !known || row.Leaf != proven.Leaf || row.Amount != proven.Amount || row.Ref != proven.Ref:
			out.differ(DifferentLines)
		case now && !reflect.DeepEqual(row, proven.Line):
			out.differ(DifferentStatus)
		}
	})
	return out.end().Found, err
}
