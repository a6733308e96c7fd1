package origin_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/secret"
	"quittance/schemas/origin"
)

func macs(t testing.TB, keys *secret.Keys, role string) *secret.MACs {
	t.Helper()
	m, err := keys.MACs(secret.LabelCommands(role))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A record is authentic as it was signed, and in no other place, with no other content and from nobody else.
func TestOnlyTheSignedRecordIsAuthentic(t *testing.T) {
	t.Parallel()
	keys := secret.GenerateKeys()
	verifier := origin.Verifier{"collect": macs(t, keys, "collect"), "erp": macs(t, keys, "erp")}
	signed := func() *kgo.Record {
		r := &kgo.Record{Topic: "a.commands", Partition: 3, Key: []byte("agency"), Value: []byte("value"), Headers: []kgo.RecordHeader{{Key: "traceparent", Value: []byte("1")}}}
		origin.NewSigner("collect", macs(t, keys, "collect")).Sign(r)
		return r
	}
	if from, err := verifier.Verify(signed()); from != "collect" || err != nil {
		t.Fatalf("signed: %q, %v", from, err)
	}
	header := func(r *kgo.Record, key string) *kgo.RecordHeader {
		for i := range r.Headers {
			if r.Headers[i].Key == key {
				return &r.Headers[i]
			}
		}
		t.Fatal("no header " + key)
		return nil
	}
	for name, c := range map[string]struct {
		change func(r *kgo.Record)
		from   string
		err    error
	}{
		"another topic":          {func(r *kgo.Record) { r.Topic = "b.commands" }, "collect", origin.ErrForged},
		"another partition":      {func(r *kgo.Record) { r.Partition = 4 }, "collect", origin.ErrForged},
		"another key":            {func(r *kgo.Record) { r.Key = []byte("other") }, "collect", origin.ErrForged},
		"no key":                 {func(r *kgo.Record) { r.Key = nil }, "collect", origin.ErrForged},
		"another value":          {func(r *kgo.Record) { r.Value = []byte("valuf") }, "collect", origin.ErrForged},
		"key and value moved":    {func(r *kgo.Record) { r.Key, r.Value = []byte("agencyv"), []byte("alue") }, "collect", origin.ErrForged},
		"another writer":         {func(r *kgo.Record) { header(r, origin.HeaderFrom).Value = []byte("erp") }, "erp", origin.ErrForged},
		"an unknown writer":      {func(r *kgo.Record) { header(r, origin.HeaderFrom).Value = []byte("root") }, "", origin.ErrForged},
		"two writers":            {func(r *kgo.Record) { r.Headers = append(r.Headers, *header(r, origin.HeaderFrom)) }, "collect", origin.ErrForged},
		"two MACs":               {func(r *kgo.Record) { r.Headers = append(r.Headers, *header(r, origin.HeaderMAC)) }, "collect", origin.ErrForged},
		"an empty MAC":           {func(r *kgo.Record) { header(r, origin.HeaderMAC).Value = nil }, "collect", origin.ErrForged},
		"a writer without a MAC": {func(r *kgo.Record) { header(r, origin.HeaderMAC).Key = "x" }, "collect", origin.ErrForged},
		"a MAC without a writer": {func(r *kgo.Record) { header(r, origin.HeaderFrom).Key = "x" }, "", origin.ErrForged},
		"no headers":             {func(r *kgo.Record) { r.Headers = nil }, "", origin.ErrUnsigned},
		"a further header":       {func(r *kgo.Record) { r.Headers = append(r.Headers, kgo.RecordHeader{Key: "x"}) }, "collect", nil},
		"its key of another use": {func(r *kgo.Record) { r.Headers = nil; origin.NewSigner("collect", macs(t, keys, "erp")).Sign(r) }, "collect", origin.ErrForged},
	} {
		r := signed()
		c.change(r)
		if from, err := verifier.Verify(r); from != c.from || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %q, %v", name, from, err)
		}
	}
}

func BenchmarkSignAndVerify(b *testing.B) {
	keys := secret.GenerateKeys()
	m := macs(b, keys, "ingress")
	signer, verifier := origin.NewSigner("ingress", m), origin.Verifier{"ingress": m}
	r := &kgo.Record{Topic: "checkout.commands", Key: make([]byte, 36), Value: make([]byte, 2000)}
	b.ReportAllocs()
	for b.Loop() {
		r.Headers = r.Headers[:0]
		signer.Sign(r)
		if _, err := verifier.Verify(r); err != nil {
			b.Fatal(err)
		}
	}
}
