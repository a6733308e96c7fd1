package papers_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quittance/internal/receipts"
)

// tools returns the folder of the programs that read our papers.
func tools(t *testing.T) (folder, sources string) {
	t.Helper()
	folder, err := filepath.Abs("../../.deps/papers")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "java")); err != nil {
		t.Fatalf("the readers of papers are missing, `make deps/test` fetches them: %v", err)
	}
	return folder, "../../test/tools/papers"
}

// written writes the samples to files and returns their names.
func written(t *testing.T, papers map[string][]byte) (files []string) {
	t.Helper()
	folder := t.TempDir()
	for name, pdf := range papers {
		file := filepath.Join(folder, name+".pdf")
		if err := os.WriteFile(file, pdf, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	slices.Sort(files)
	return files
}

// veraPDF calls every paper PDF/A-2b, and finds the fault of one without its identifier.
func TestPDFA(t *testing.T) {
	t.Parallel()
	folder, sources := tools(t)
	all := samples(t)
	valid := len(all)
	all["zz-faulty"] = bytes.Replace(all["receipt-fr"], []byte("/ID ["), []byte("/XX ["), 1)
	args := append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(folder, "java", "*"), filepath.Join(sources, "Check.java")}, written(t, all)...)
	out, err := exec.CommandContext(t.Context(), "java", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := bytes.Count(out, []byte("\ncompliant ")) + bytes.Count(out[:10], []byte("compliant ")); got != valid {
		t.Errorf("%d of %d papers are compliant:\n%s", got, valid, out)
	}
	if !bytes.Contains(out, []byte("zz-faulty.pdf\n  6.1.3: ")) || bytes.Count(out, []byte("faulty /")) != 1 {
		t.Errorf("veraPDF does not find the missing identifier:\n%s", out)
	}
}

// photographed are the papers whose codes are also read as a phone sees them.
var photographed = regexp.MustCompile("(receipt-(fr|hostile|reversed)|notice-fr|certificate-fr|advice-(fr|hostile))")

// MuPDF renders the papers and finds their words; two libraries read the codes as printed,
// and as a phone sees them.
func TestReaders(t *testing.T) {
	t.Parallel()
	folder, sources := tools(t)
	all := samples(t)
	out, err := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(sources, "read.mjs"), folder, photographed.String()}, written(t, all)...)...).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	says := map[string][]string{
		"receipt-fr": {"Reçu de paiement", "PAYÉ", "252 500 FCFA", "deux cent cinquante-deux mille cinq cents francs CFA", "Mbemba Ngouabi, Élise", "23 novembre 2026 à 10:30", "MTN Mobile Money", "4821 9033 4455 6672", "…4711"},
		"receipt-en": {"Payment receipt", "PAID", "two hundred and fifty-two thousand five hundred CFA francs"},
		// The whole name of another script is one gap; marks that turn the text are gone.
		"receipt-hostile":  {"[…] evil […] Ɓoŋgo Ndɛ́mbɛ́ Nguyễn Thị Hằng", "[31m<script>alert(1)</script> […] (\\)", "9 007 199 254 740 991 FCFA", "9 007 199 254 740 992 FCFA", "neuf billiards", "Quittance du Trésor public", "Guichet 3", "[…] remplace"},
		"receipt-reversed": {"ANNULÉE", "Opération annulée le 24 novembre 2026 à 12:30", "Duplicata"},
		"receipt-test":     {"TEST", "sans valeur", "Enregistrement en cours"},
		"receipt-cent":     {"0,01 €", "zéro euro et un centime"},
		"notice-fr":        {"Avis de paiement", "4821 9033 4455 6672", "Ceci n’est pas un reçu.", "Minimum 10 000 FCFA", "Échéance 1er décembre 2026", "282 500 FCFA", "Partie à remettre au guichet"},
		"notice-en":        {"Payment notice", "This is not a receipt."},
		"notice-many":      {"TEST"},
		"notice-hostile":   {"[…] evil […]", "1 FCFA 9 007 199 254 740 992 FCFA", "[…] evil […] Taxe", "9 007 199 254 740 991 FCFA", "9 007 199 254 740 992 FCFA", "4821 9033 4455 6672", "[…] remplace"},
	}
	maps.Copy(says, batchSays)
	pages := map[string]int{"notice-many": 2, "certificate-fr": 2, "certificate-en": 2, "certificate-test": 2, "certificate-hostile": 2, "certificate-many": 4}
	byJSQR := 0
	for line := range bytes.Lines(out) {
		var got struct {
			File, Text   string
			Pages        int
			Print, Photo [2]*string
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		name := strings.TrimSuffix(got.File, ".pdf")
		text := strings.Join(strings.Fields(got.Text), " ") // white space of any kind
		for _, want := range says[name] {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q: %s", name, want, text)
			}
		}
		if strings.HasPrefix(name, "certificate") && strings.Contains(text, "Ngoma Jean-Baptiste") {
			t.Errorf("%s names a payee", name)
		}
		if want := max(pages[name], 1); got.Pages != want {
			t.Errorf("%s has %d pages, want %d", name, got.Pages, want)
		}
		begins := "https://" + host + "/q#"
		if strings.HasPrefix(name, "notice") {
			begins = "HTTPS://PAIEMENT.EXAMPLE.CG/P/4821903344556672"
		}
		readings := got.Print[:]
		if photographed.MatchString(got.File) {
			readings = append(readings, got.Photo[1])
		}
		for i, read := range readings {
			if read == nil || !strings.HasPrefix(*read, begins) || *read != *got.Print[0] {
				t.Errorf("%s: reading %d of the code failed", name, i)
			}
		}
		if got.Photo[0] != nil && *got.Photo[0] == *got.Print[0] {
			byJSQR++
		}
		delete(says, name)
	}
	// jsQR reads most photographs. It uses one alignment pattern of the many in a receipt's
	// code.
	if byJSQR < 3 || len(says) > 0 {
		t.Errorf("jsQR reads %d photographs, not read: %v", byJSQR, says)
	}
}

// The scripts of test/tools/papers verify the token of the code of a receipt, and refuse a
// forged one, with a JOSE library and the key set alone.
func TestScripts(t *testing.T) {
	t.Parallel()
	folder, _ := tools(t)
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	key, err := receipts.NewKey(true, private.Public().(ed25519.PublicKey), paidAt)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(keys, receipts.Keys{key}.JWKS(paidAt), 0o600); err != nil {
		t.Fatal(err)
	}
	// Node.js finds packages beside the script.
	script, err := os.ReadFile("../../test/tools/papers/verify.mjs")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "verify.mjs")
	if err := os.WriteFile(copied, script, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(folder, "node_modules"), filepath.Join(filepath.Dir(copied), "node_modules")); err != nil {
		t.Fatal(err)
	}
	good := address(t, session())
	none := strings.Replace(good, "#eyJhbGciOiJFZERTQSIs", "#eyJhbGciOiJub25lIiwg", 1)
	for name, command := range map[string][]string{
		"Python": {filepath.Join(folder, "python/bin/python"), "../../test/tools/papers/verify.py"},
		"Node":   {"node", copied},
	} {
		run := func(token string) ([]byte, error) {
			return exec.CommandContext(t.Context(), command[0], command[1], keys, token).Output()
		}
		out, err := run(good)
		if err != nil || !bytes.Contains(out, []byte("4821903344556672")) || !bytes.Contains(bytes.ReplaceAll(out, []byte(" "), nil), []byte(`"test":false`)) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
		for _, forged := range []string{good[:len(good)-6] + "AAAAAA", none, strings.Split(none, ".")[0] + "." + strings.Split(none, ".")[1] + "."} {
			if out, err := run(forged); err == nil {
				t.Errorf("%s: a forged token: %s", name, out)
			}
		}
	}
}
