package document_test

import (
	"strings"
	"testing"

	"quittance/document"
)

func TestMaskName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "", "Élise Mbemba": "É••• M•••", "  jean-pierre  N. ": "j••• N•••", "🎉 🎉": "", "محمد عبد": "م••• ع•••", "\u202eevil": "e•••",
		"a b c d e f": "a••• b••• c••• d•••", "<script>": "s•••", strings.Repeat("W", 500): "W•••", "\xff": "", "123": "",
	} {
		if got := document.MaskName(name); got != want {
			t.Errorf("%q is masked as %q, want %q", name, got, want)
		}
	}
}
