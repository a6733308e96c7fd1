package statements_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"quittance/checkout"
	"quittance/internal/statements"
)

// FuzzRead reads any bytes by each profile. What it accepts adds up, and its lines have
// distinct ids and references whose checks hold.
func FuzzRead(f *testing.F) {
	for _, pattern := range []string{"testdata/*.xml", "testdata/*.csv"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "bad-"), filepath.Ext(path)))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		for _, a := range []statements.Account{accountOf(name), accountOf("bank-a.xml")} {
			once(t, text, a)
		}
	})
}

var dayPattern = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)

func once(t *testing.T, text []byte, a statements.Account) {
	t.Helper()
	file, lines := read(t, text, a)
	if file.Size != int64(len(text)) || len(lines) > file.Lines {
		t.Errorf("size %d, %d lines of %d", file.Size, len(lines), file.Lines)
	}
	for _, fault := range file.Faults {
		if fault.Detail == "" || fault.Mend == "" || fault.Line < 1 || fault.Column < 1 {
			t.Errorf("a fault is incomplete: %+v", fault)
		}
	}
	if file.Refused() {
		return
	}
	ids, net, counted := map[string]bool{}, int64(0), 0
	for _, l := range lines {
		if ids[l.ID] || l.ID == "" {
			t.Errorf("the id %q comes twice", l.ID)
		}
		ids[l.ID] = true
		net += l.Net()
		if l.PaymentRef != "" && !checkout.ValidPaymentRef(l.PaymentRef) || !dayPattern.MatchString(l.Day) || l.Currency != a.Currency || l.Amount == 0 && l.Fee == 0 {
			t.Errorf("a line is wrong: %+v", l)
		}
	}
	for _, s := range file.Statements {
		net -= s.Net
		counted += s.Lines
		if s.Balanced && s.Opening+s.Net != s.Closing {
			t.Errorf("%d and %d are not %d", s.Opening, s.Net, s.Closing)
		}
	}
	if net != 0 || counted != len(lines) || counted != file.Lines {
		t.Errorf("the statements' sums or counts are not those of the lines")
	}
	again, err := statements.Read(bytes.NewReader(text), a, nil)
	if err != nil || again.Refused() || again.Digest != file.Digest {
		t.Error("read again, the file is another")
	}
}
