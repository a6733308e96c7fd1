package collect

import (
	"testing"

	"quittance/schemas/record"
)

// Somebody who paid by reference comes back to the reference's page: the acquirer's page must
// not tell the session's id.
func TestReturnURL(t *testing.T) {
	t.Parallel()
	s := &Sink{cfg: Config{CheckoutURL: "https://pay.example"}}
	for want, q := range map[string]record.CollectionRequest{
		"https://pay.example/c/chs_1?returned&lang=en":            {SessionID: "chs_1", PaymentRef: "4821093377150264", Language: "en"},
		"https://pay.example/p/4821093377150264?returned&lang=fr": {SessionID: "chs_1", PaymentRef: "4821093377150264", Language: "fr", ByReference: true},
	} {
		if got := (&job{sink: s, request: q}).returnURL(); got != want {
			t.Errorf("the way back is %s, want %s", got, want)
		}
	}
}
