package disbursements_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/internal/disbursements"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/test/payouts"
	"quittance/test/payroll"
)

// A batch that was approved and paid is proven from Kafka alone. Events that somebody has changed prove nothing: whoever has
// the processor's user at Kafka has no passkey.
func TestProve(t *testing.T) {
	t.Parallel()
	i := payouts.Install(t)
	i.Process()
	i.Agency()
	lines := []disbursement.NewLine{payroll.Line("a", "mtn", "", 1000), payroll.Line("b", "airtel", "", 2000), payroll.Line("c", "mtn", "", 3000)}
	b := i.Released("dsb_1", lines...)
	i.Sealed("dsb_2", 2)
	requests := payouts.NewReader[record.PayoutRequest](i, schemas.TopicPayouts)
	requests.Next(len(lines))
	prove := func(id string) (disbursements.Proof, error) {
		return disbursements.Prove(t.Context(), i.Kafka, i.Topology, i.Codec, payroll.Tenant, id)
	}
	p, err := prove("dsb_1")
	if err != nil || len(p.Faults) > 0 || p.Digest != b.Digest || p.Lines != 3 || p.Sum != 6000 || len(p.Approvals) != 1 || p.Approvals[0].Person != "ben" ||
		p.Approvals[0].Key != payroll.Human("ben").Hash() || p.ReleasedBy != "cleo" || p.Sent != 3 || p.Offsets[0] < 0 || p.Offsets[1] <= p.Offsets[0] {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err := prove("dsb_2"); err != nil || len(p.Faults) > 0 || len(p.Approvals) != 0 || p.Sent != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := prove("dsb_3"); !errors.Is(err, disbursements.ErrUnknown) {
		t.Errorf("%v", err)
	}

	var values [][]byte
	reader := payouts.NewReader[record.DisbursementEvent](i, schemas.Disbursement.Events)
	for found := int64(0); found < p.Batch.Sequence; {
		for _, r := range reader.Next(1) {
			value, err := i.Codec.Encode(&r)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
			if r.Batch != nil && r.Batch.ID == "dsb_1" {
				found = r.Batch.Sequence
			}
		}
	}
	read := func() (out []disbursement.Event) {
		for _, value := range values {
			var r record.DisbursementEvent
			if err := i.Codec.Decode(value, &r); err != nil {
				t.Fatal(err)
			}
			out = append(out, batches.ToEvent(&r))
		}
		return out
	}
	if p := disbursements.ProveEvents(payroll.Tenant, "dsb_1", read()); len(p.Faults) > 0 {
		t.Fatalf("%q", p.Faults)
	}
	each := func(events []disbursement.Event, kind disbursement.EventType, change func(*disbursement.Event)) []disbursement.Event {
		for k := range events {
			if events[k].Type == kind && (events[k].Batch == nil || events[k].Batch.ID == "dsb_1") {
				change(&events[k])
			}
		}
		return events
	}
	without := func(events []disbursement.Event, kind disbursement.EventType) (out []disbursement.Event) {
		for _, e := range events {
			if e.Type != kind || e.Batch == nil || e.Batch.ID != "dsb_1" {
				out = append(out, e)
			}
		}
		return out
	}
	for what, x := range map[string]struct {
		forge func([]disbursement.Event) []disbursement.Event
		says  string
	}{
		"another amount": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventLinesAdded, func(e *disbursement.Event) { e.Lines[1].Amount++ })
		}, "not those of the lines"},
		"another leaf": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventLinesAdded, func(e *disbursement.Event) { e.Lines[1].Leaf = digest.Hash{1} })
		}, "not those of the lines"},
		"a leaf, sent": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventLinesSent, func(e *disbursement.Event) { e.Lines[0].Leaf = digest.Hash{1} })
		}, "another leaf"},
		"another sum, sealed and signed by nobody": {func(e []disbursement.Event) []disbursement.Event {
			change := func(e *disbursement.Event) {
				if e.Sealing != nil {
					e.Sealing.Content.Sum++
					e.Batch.Digest, _ = e.Sealing.Content.Digest()
				}
			}
			return each(each(each(e, disbursement.EventSealed, change), disbursement.EventApproval, change), disbursement.EventLinesAdded, func(e *disbursement.Event) { e.Lines[0].Amount++ })
		}, "not signed over this batch"},
		"no approval": {func(e []disbursement.Event) []disbursement.Event { return without(e, disbursement.EventApproval) }, "0 of 1 approvals"},
		"the maker approves": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventApproval, func(e *disbursement.Event) {
				e.Sealing.Approvals[0].Person, e.Sealing.Approvals[0].Signed = "ama", payroll.Step(b.Digest, "ama", 1, digest.Approve)
			})
		}, "does not count"},
		"another verdict": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventApproval, func(e *disbursement.Event) {
				e.Sealing.Approvals[0].Signed = payroll.Step(b.Digest, "ben", 1, digest.Reject)
			})
		}, "not signed over this batch"},
		"a passkey of nobody is listed": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventSealed, func(e *disbursement.Event) {
				e.Sealing.Content.Levels[0].Persons[0].Keys = [][32]byte{payroll.Human("mallory").Hash()}
				e.Batch.Digest, _ = e.Sealing.Content.Digest()
			})
		}, "not those of the roster"},
		"a passkey of this morning": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventSealed, func(e *disbursement.Event) { e.At = e.At.Add(-49 * time.Hour) })
		}, "not those of the roster"},
		"released by the maker": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventReleased, func(e *disbursement.Event) { e.Detail[disbursement.DetailBy] = "ama" })
		}, "made the batch released it"},
		"sent before the release": {func(e []disbursement.Event) []disbursement.Event { return without(e, disbursement.EventReleased) }, "before the release"},
		"an event is missing":     {func(e []disbursement.Event) []disbursement.Event { return without(e, disbursement.EventApproved) }, "has the number"},
		"nobody has to approve": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventSealed, func(e *disbursement.Event) {
				e.Sealing.Content.Levels = nil
				e.Batch.Digest, _ = e.Sealing.Content.Digest()
			})
		}, "nobody had to approve"},
		"a tier of smaller sums": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventPolicy, func(e *disbursement.Event) {
				e.Agency.Next.Tiers = []policy.Tier{{UpTo: 10, Rules: e.Agency.Next.Tiers[0].Rules}, {Rules: []policy.Rule{{Role: "chief", Needed: 2}}}}
			})
		}, "no tier"},
		"an approval that counts again": {func(e []disbursement.Event) []disbursement.Event {
			for k := range e {
				if e[k].Type == disbursement.EventApproval && e[k].Batch.ID == "dsb_1" {
					again := e[k]
					sealing := *again.Sealing
					other := sealing.Approvals[0]
					other.Person = "cleo"
					sealing.Approvals = []disbursement.Approved{other, sealing.Approvals[0]}
					again.Sealing = &sealing
					return slices.Insert(e, k+1, again)
				}
			}
			return e
		}, "does not count"},
		"fewer than the policy says": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventPolicy, func(e *disbursement.Event) { e.Agency.Next.Tiers[0].Rules[0].Needed = 2 })
		}, "no tier"},
		"a test batch pays": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventReleased, func(e *disbursement.Event) { e.Batch.Live = true })
		}, "what was not sealed"},
		"another currency at the end": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventLinesSent, func(e *disbursement.Event) { e.Batch.Currency = "EUR" })
		}, "what was not sealed"},
		"a line is sent twice": {func(e []disbursement.Event) []disbursement.Event {
			for k := range e {
				if e[k].Type == disbursement.EventLinesSent && e[k].Batch.ID == "dsb_1" {
					return append(e, e[k])
				}
			}
			return e
		}, "sent again while it was sent"},
		"sent while it is held": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventLinesSent, func(e *disbursement.Event) { e.Batch.Hold = disbursement.Hold{Reason: "r", Since: e.At} })
		}, "held"},
		"a line that becomes another one": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventLinesSent, func(e *disbursement.Event) { e.Lines[0].Amount++ })
		}, "another one than was added"},
		"counts of other lines": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventLinesSent, func(e *disbursement.Event) { e.Batch.Lines.Paid.Count++ })
		}, "counts and sums by status"},
		"another fingerprint": {func(e []disbursement.Event) []disbursement.Event {
			return each(e, disbursement.EventSealed, func(e *disbursement.Event) { e.Batch.Accounts[0].Fingerprint = "f-other" })
		}, "another fingerprint"},
	} {
		p := disbursements.ProveEvents(payroll.Tenant, "dsb_1", x.forge(read()))
		if !strings.Contains(strings.Join(p.Faults, "\n"), x.says) {
			t.Errorf("%s: %q", what, p.Faults)
		}
	}
}
