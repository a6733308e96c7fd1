package schemas_test

import (
	"testing"

	"quittance/schemas"
	"quittance/schemas/record"
)

func BenchmarkCodec(b *testing.B) {
	codec, err := schemas.NewCodec(b.Context(), &numbered{}, true)
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range []record.Record{&record.Command{}, &record.Session{}, &record.Idempotency{}} {
		in := sample(r)
		b.Run("encode/"+r.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := codec.Encode(in); err != nil {
					b.Fatal(err)
				}
			}
		})
		value, err := codec.Encode(in)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("decode/"+r.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := codec.Decode(value, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
