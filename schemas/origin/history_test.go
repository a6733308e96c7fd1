package origin_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
)

// What was written before the first proof is believed, also by a reader that begins in the middle, and nothing without a
// proof after it.
func TestHistoryIsBelievedAndNothingNew(t *testing.T) {
	t.Parallel()
	keys := secret.GenerateKeys()
	m := macs(t, keys, "cases")
	verifier := origin.Verifier{"cases": m}
	var topic []*kgo.Record
	write := func(sign func(*kgo.Record)) {
		r := &kgo.Record{Topic: "cases.events", Key: []byte("case"), Value: []byte{byte(len(topic))}, Offset: int64(len(topic))}
		sign(r)
		topic = append(topic, r)
	}
	unsigned := func(*kgo.Record) {}
	proven := origin.NewSigner("cases", m).SignKeyed
	retired := origin.NewSigner("cases", macs(t, secret.GenerateKeys(), "cases")).SignKeyed
	for _, sign := range []func(*kgo.Record){unsigned, retired, unsigned, proven, unsigned, retired, proven} {
		write(sign)
	}
	looked := 0
	first := func(from, to int64) (int64, bool, error) {
		for ; from < to; from++ {
			looked++
			if _, err := verifier.VerifyKeyed(topic[from]); err == nil {
				return from, true, nil
			}
		}
		return 0, false, nil
	}
	want := []error{nil, nil, nil, nil, origin.ErrUnsigned, origin.ErrForged, nil}
	for begin := range topic {
		h := origin.NewHistory(verifier, first)
		refused := 0
		h.Refusing(func(error) { refused++ })
		for i := range topic { // from begin to the end, and then the others, as a rebuild does
			r := topic[(begin+i)%len(topic)]
			err := h.Verify(r)
			if !errors.Is(err, want[r.Offset]) || (err == nil) != (want[r.Offset] == nil) || err != nil && !errors.Is(err, schemas.ErrUndecodable) {
				t.Errorf("from %d: record %d: %v, want %v", begin, r.Offset, err, want[r.Offset])
			}
		}
		if refused != 2 {
			t.Errorf("from %d: %d refused", begin, refused)
		}
	}
	looked = 0
	h := origin.NewHistory(verifier, first)
	for _, r := range topic[:3] {
		_ = h.Verify(r)
	}
	if looked != 0 {
		t.Errorf("a reader from the beginning looked at %d records again", looked)
	}
	away := errors.New("Kafka is away")
	h = origin.NewHistory(verifier, func(int64, int64) (int64, bool, error) { return 0, false, away })
	if err := h.Verify(topic[2]); !errors.Is(err, away) || errors.Is(err, schemas.ErrUndecodable) {
		t.Errorf("while Kafka is away: %v", err)
	}
}
