package bank_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/internal/connector/bank"
	"quittance/statement"
)

const root = "../../.."

var update = flag.Bool("update", false, "write the golden files anew")

// rib returns a RIB of an account at a bank with its key.
func rib(bank, account int) string {
	key := 97 - (89*bank+15*1+3*account)%97
	return fmt.Sprintf("%05d%05d%011d%02d", bank, 1, account, key)
}

// iban returns the IBAN of a RIB in a country whose letters stand for a number.
func iban(country, number, rib string) string {
	n := 0
	for _, c := range rib + number + "00" {
		n = (n*10 + int(c-'0')) % 97
	}
	return fmt.Sprintf("%s%02d%s", country, 98-n, rib)
}

func congo(account int) string { return iban("CG", "1216", rib(30011, account)) }

func day(t *testing.T, text string) statement.Day {
	t.Helper()
	d, err := statement.ParseDay(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func profile(t *testing.T) bank.Profile {
	t.Helper()
	p := bank.Profile{
		Debtor: "Direction générale du Trésor", Client: "TRESOR-42", Account: congo(7), BIC: "BCCGCGCG", Zone: time.FixedZone("", 3600), CutOff: 14 * time.Hour,
		Holidays: []statement.Day{day(t, "2026-12-25")}, Out: "out", In: "in", Archive: "archive", Prefix: "TRESOR_",
	}.WithDefaults()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

func ref(position int) string { return disbursement.NewAttemptID("dsb_1", position, 1).PayoutRef() }

// salaries are a file of a batch with a line of each kind.
func salaries(t *testing.T) bank.File {
	t.Helper()
	return bank.File{
		Batch: "dsb_1", Number: 1, AssignedAt: time.Date(2026, 12, 22, 9, 30, 0, 0, time.UTC), Date: day(t, "2026-12-24"), PayUntil: day(t, "2026-12-31"),
		Payments: []bank.Payment{
			{Ref: ref(0), Amount: 185_000, Name: "Mabiala Awa", Purpose: "Salaire décembre <2026> & prime", Account: congo(1), BIC: "ECOCCGCGXXX"},
			{Ref: ref(1), Amount: 100_000_000, Name: "Entreprise N'Goma & Fils", Account: congo(2)},
			{Ref: ref(2), Amount: 99_999_999, Name: "Éléonore N’Gouabi", Purpose: "Marché 12/2026", Account: rib(30012, 3)},
			{Ref: ref(3), Amount: 1, Name: "Иванов Сергей", Account: iban("CM", "1222", rib(10005, 4))},
		},
	}
}

func build(t *testing.T, p bank.Profile, f bank.File) bank.Built {
	t.Helper()
	b, err := p.Build(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The bytes are for ever: a file whose delivery is undecided is sent again as it was, also by a later release.
func TestFilesNeverChange(t *testing.T) {
	t.Parallel()
	for _, v := range []bank.Version{bank.Version03, bank.Version09} {
		p := profile(t)
		p.Version = v
		b := build(t, p, salaries(t))
		if again := build(t, p, salaries(t)); !bytes.Equal(b.Data, again.Data) {
			t.Error("the same lines make other bytes")
		}
		golden := filepath.Join("testdata", string(v)+".xml")
		if *update {
			if err := os.WriteFile(golden, b.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Data, want) {
			t.Errorf("%s differs:\n%s", golden, b.Data)
		}
		if b.Name != "TRESOR_"+b.ID+".xml" || !disbursement.ValidFileRef(b.ID) || disbursement.ValidPayoutRef(b.ID) {
			t.Errorf("name %s, MsgId %s", b.Name, b.ID)
		}
	}
}

// valid returns what a validator that is not ours says of files against the schemas of ISO 20022.
func valid(t *testing.T, files map[string][]byte) (paths []string, complaints string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts Python")
	}
	dir := t.TempDir()
	for name, data := range files {
		paths = append(paths, filepath.Join(dir, name))
		if err := os.WriteFile(paths[len(paths)-1], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, ".deps/iso20022/bin/python"),
		append([]string{filepath.Join(root, "test/tools/iso20022/validate.py")}, paths...)...).CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatalf("the validator is missing, `make deps/test` fetches it: %v", err)
	}
	return paths, string(out)
}

// Files are valid by the schemas of both versions, and the validator sees a file that is not.
func TestFilesAreValid(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	for _, v := range []bank.Version{bank.Version03, bank.Version09} {
		p := profile(t)
		for i, f := range []bank.File{salaries(t), {Payments: salaries(t).Payments[1:2]}} {
			f.Batch, f.Number, f.AssignedAt, f.Date, f.PayUntil = "dsb_1", i+1, salaries(t).AssignedAt, salaries(t).Date, salaries(t).PayUntil
			p.Version, p.OneDebit = v, i == 1
			p.Client = strings.Repeat("7", 35*(1-i))
			p.Account = []string{rib(30011, 7), congo(7)}[i]
			files[fmt.Sprintf("%s-%d.xml", v, i)] = build(t, p, f).Data
		}
	}
	if _, complaints := valid(t, files); complaints != "" {
		t.Error(complaints)
	}
	p := profile(t)
	broken := bytes.Replace(build(t, p, salaries(t)).Data, []byte("<PmtMtd>TRF</PmtMtd>"), nil, 1)
	if _, complaints := valid(t, map[string][]byte{"broken.xml": broken}); strings.Count(complaints, "\n") != 1 || !strings.Contains(complaints, "broken.xml: ") {
		t.Errorf("the validator says of a file without PmtMtd: %s", complaints)
	}
}

// A reader that we did not write finds in a file what was put in: each line once, in the group of its system, with sums
// without decimals.
func TestAnotherReaderFindsTheLines(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	for _, v := range []bank.Version{bank.Version03, bank.Version09} {
		p := profile(t)
		p.Version = v
		files[string(v)+".xml"] = build(t, p, salaries(t)).Data
	}
	paths, _ := valid(t, files)
	tools := filepath.Join(root, ".deps/iso20022")
	out, err := exec.CommandContext(t.Context(), "java", append([]string{
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(tools, "java", "*"), filepath.Join(root, "test/tools/iso20022/Read.java"),
	}, paths...)...).Output()
	if err != nil {
		t.Fatalf("the reader is missing, `make deps/test` fetches it: %v", err)
	}
	id := disbursement.FileRef("dsb_1", 1)
	one := func(i int, amount, account, name string) string {
		return strings.Join([]string{ref(i), ref(i), "XAF", amount, account, name}, " ") + "\n"
	}
	want := id + " 4 200185000\n" +
		id + "-SYSTAC 3 100185000 2026-12-24 SLEV\n" + one(0, "185000", congo(1), "Mabiala Awa") +
		one(2, "99999999", rib(30012, 3), "Eleonore N'Gouabi") + one(3, "1", iban("CM", "1222", rib(10005, 4)), "Ivanov Sergei") +
		id + "-SYGMA 1 100000000 2026-12-24 SLEV\n" + one(1, "100000000", congo(2), "Entreprise N'Goma + Fils")
	if string(out) != want+want {
		t.Errorf("the reader found\n%s\nwant\n%s", out, want+want)
	}
}

// The bank pays on its first business day that is not before the date: never on a holiday, never after the last day.
func TestExecution(t *testing.T) {
	t.Parallel()
	p := profile(t)
	for _, c := range []struct{ at, date, last, want string }{
		{"2026-12-22T09:00:00Z", "2026-12-22", "2026-12-31", "2026-12-22"}, // Tuesday, 10:00 there
		{"2026-12-22T12:59:59Z", "2026-12-22", "2026-12-31", "2026-12-22"},
		{"2026-12-22T13:00:00Z", "2026-12-22", "2026-12-31", "2026-12-23"}, // the cut-off
		{"2026-12-22T13:00:00Z", "2026-12-22", "2026-12-22", ""},
		{"2026-12-22T23:30:00Z", "2026-12-20", "2026-12-31", "2026-12-23"}, // already Wednesday there
		{"2026-12-24T13:00:00Z", "2026-12-24", "2026-12-31", "2026-12-28"}, // Friday is a holiday
		{"2026-12-24T13:00:00Z", "2026-12-24", "2026-12-27", ""},
		{"2026-12-01T09:00:00Z", "2026-12-19", "2026-12-31", "2026-12-21"}, // the date is a Saturday
		{"2026-12-01T09:00:00Z", "2026-12-24", "2026-12-31", "2026-12-24"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Execution(at, day(t, c.date), day(t, c.last))
		if c.want == "" && !errors.Is(err, bank.ErrTooLate) || c.want != "" && (err != nil || got.String() != c.want) {
			t.Errorf("%s, date %s, until %s: %s, %v; want %s", c.at, c.date, c.last, got, err, c.want)
		}
	}
}

// A line that the bank cannot pay is no file. The error names field and mend, and no personal data.
func TestLinesThatNoBankPays(t *testing.T) {
	t.Parallel()
	wrongKey := congo(1)[4:25] + "00"
	for field, damage := range map[string]func(*bank.Payment){
		"name: it has letters of another script": func(p *bank.Payment) { p.Name = "محمد" },
		"name: give the payee's name":            func(p *bank.Payment) { p.Name = " " },
		"name: it has more than 70":              func(p *bank.Payment) { p.Name = strings.Repeat("a", 71) },
		"name: it has the character U+0007":      func(p *bank.Payment) { p.Name = "Awa\a" },
		"purpose: it has letters of another":     func(p *bank.Payment) { p.Purpose = "工资" },
		"amount: give one above 0":               func(p *bank.Payment) { p.Amount = 0 },
		"payout_ref: give that of the attempt":   func(p *bank.Payment) { p.Ref = disbursement.FileRef("dsb_1", 1) },
		"payout_ref: it is in the file twice":    func(p *bank.Payment) { p.Ref = ref(1) },
		"whose key must fit the other digits":    func(p *bank.Payment) { p.Account = wrongKey },
		"whose RIB key must fit":                 func(p *bank.Payment) { p.Account = iban("CG", "1216", wrongKey) },
		"with valid check digits":                func(p *bank.Payment) { p.Account = "CG99" + congo(1)[4:] },
		"of a country of CEMAC":                  func(p *bank.Payment) { p.Account = "DE89370400440532013000" },
		"bic: give 8 or 11 characters":           func(p *bank.Payment) { p.BIC = "ECOC" },
	} {
		f := salaries(t)
		damage(&f.Payments[0])
		_, err := profile(t).Build(f)
		if !errors.Is(err, bank.ErrPayment) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
			continue
		}
		for _, personal := range []string{f.Payments[0].Name, f.Payments[0].Account} {
			if len(personal) > 4 && strings.Contains(err.Error(), personal) {
				t.Errorf("%s: personal data in %v", field, err)
			}
		}
	}
	for name, change := range map[string]func(*bank.Profile, *bank.File){
		"no line":    func(_ *bank.Profile, f *bank.File) { f.Payments = nil },
		"many lines": func(p *bank.Profile, _ *bank.File) { p.MaxLines = 3 },
		"many bytes": func(p *bank.Profile, _ *bank.File) { p.MaxBytes = 2000 },
	} {
		p, f := profile(t), salaries(t)
		change(&p, &f)
		if _, err := p.Build(f); !errors.Is(err, bank.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// 10,000 lines of the greatest length are below the limit of bytes.
func TestLargestFile(t *testing.T) {
	t.Parallel()
	f := salaries(t)
	f.Payments = nil
	for i := range bank.MaxLines {
		f.Payments = append(f.Payments, bank.Payment{
			Ref: ref(i), Amount: 90_000_000, Name: strings.Repeat("'", 70), Purpose: strings.Repeat("&'", 70), Account: congo(i), BIC: "ECOCCGCGXXX",
		})
	}
	b := build(t, profile(t), f)
	if len(b.Data) > bank.MaxBytes || len(b.Sent) != bank.MaxLines {
		t.Errorf("%d bytes, %d lines", len(b.Data), len(b.Sent))
	}
	t.Logf("%d lines: %d bytes", bank.MaxLines, len(b.Data))
}

// Every field of a profile is checked, and the error names it.
func TestProfiles(t *testing.T) {
	t.Parallel()
	for field, damage := range map[string]func(*bank.Profile){
		"version":    func(p *bank.Profile) { p.Version = "pain.001.001.10" },
		"debtor":     func(p *bank.Profile) { p.Debtor = "" },
		"client":     func(p *bank.Profile) { p.Client = "é" },
		"account":    func(p *bank.Profile) { p.Account = congo(7)[:26] },
		"bic":        func(p *bank.Profile) { p.BIC = "bccgcgcg" },
		"charges":    func(p *bank.Profile) { p.Charges = "OUR" },
		"zone":       func(p *bank.Profile) { p.Zone = nil },
		"cut_off":    func(p *bank.Profile) { p.CutOff = -time.Hour },
		"prefix":     func(p *bank.Profile) { p.Prefix = "../" },
		"sygma_from": func(p *bank.Profile) { p.SYGMAFrom = -1 },
		"max_lines":  func(p *bank.Profile) { p.MaxLines = bank.MaxLines + 1 },
		"max_bytes":  func(p *bank.Profile) { p.MaxBytes = bank.MaxBytes + 1 },
		"out":        func(p *bank.Profile) { p.Out = p.In },
		"in":         func(p *bank.Profile) { p.In = "../in" },
		"archive":    func(p *bank.Profile) { p.Archive = "a/./b" },
	} {
		p := profile(t)
		damage(&p)
		if err := p.Validate(); !errors.Is(err, bank.ErrProfile) || !strings.Contains(err.Error(), ": "+field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
