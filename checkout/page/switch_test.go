package page_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"quittance/checkout/page"
	"quittance/money"
)

// The pages of the offer switch say nothing of mobile money, and the first one has at most 8 kB on the way.
func TestSwitchPages(t *testing.T) {
	t.Parallel()
	r, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	xaf, _ := money.Lookup("XAF")
	for _, lang := range money.Languages {
		for state, code := range map[page.State]string{page.StatePhone: "", page.StateWaiting: "", page.StateFailed: "collect.payer_not_found"} {
			var out bytes.Buffer
			if err := r.Render(&out, page.View{
				Lang: lang, State: state, Agency: "DGI", Currency: xaf, Due: 5000, Total: 5000, Offer: "switch", Kind: page.KindMobileMoney, FailureCode: code,
				PaymentRef: "4821093377150264", Action: "/c/1/phone", SelfURL: "/c/1",
			}); err != nil {
				t.Fatal(err)
			}
			if text := strings.ToLower(out.String()); strings.Contains(text, "mobile money") {
				t.Errorf("%s %s speaks of mobile money:\n%s", state, lang, text)
			}
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = z.Write(out.Bytes())
			_ = z.Close()
			if packed.Len() > 8000 {
				t.Errorf("%s %s has %d bytes", state, lang, packed.Len())
			}
			t.Logf("%s %s: %d bytes, %d packed", state, lang, out.Len(), packed.Len())
		}
	}
}
