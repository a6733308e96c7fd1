package statements_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"quittance/disbursement"
	"quittance/internal/statements"
	"quittance/statement"
)

var update = flag.Bool("update", false, "write the golden files anew")

// accountOf is the account that a file of testdata is imported for.
func accountOf(name string) statements.Account {
	name = strings.TrimPrefix(name, "bad-")
	mtn := statements.Account{Code: "mtn-1", Number: "46733123454", Currency: "XAF", Profile: "mtn"}
	switch profile, _, _ := strings.Cut(name, "-"); {
	case strings.HasPrefix(name, "bank-b-"):
		return statements.Account{Code: "bank-b", Number: "30012-00105-00012345678-90", Currency: "XAF", Profile: "camt.053", Batch: regexp.MustCompile(`\b(CARD-\d+|SLIP-[\d-]+)\b`)}
	case strings.HasSuffix(name, ".xml"):
		return statements.Account{Code: "bank-a", IBAN: "CG39 3001 1000 1010 1345 1300 019", Currency: "XAF", Profile: "camt.053", Batch: regexp.MustCompile(`\bMTN-\d{8}\b`)}
	case profile == "airtel":
		return statements.Account{Code: "airtel-1", Number: "MER-042", Currency: "XAF", Profile: "airtel"}
	case profile == "card":
		return statements.Account{Code: "card-1", Currency: "EUR", Profile: "card-settlement"}
	case profile == "cash":
		return statements.Account{Code: "cash-1", Currency: "XAF", Profile: "cash-slip"}
	case profile == "own":
		return statements.Account{Code: "own-1", Currency: "XAF", Profile: "csv", Columns: &statements.Layout{
			Name: "own", Separators: "|", Width: 5, ID: []int{1, 2}, OperatorRef: 2, Time: 1, Amount: 3, Reference: 4, Counterparty: 5,
			TimeFormats: []string{"20060102"}, Decimal: ".", Type: 0,
		}}
	}
	return mtn
}

// golden is what a golden file holds.
type golden struct {
	Refused    bool
	Statements []map[string]any
	Skipped    map[string]int
	Faults     []string
	Lines      []statements.Line
}

func read(t *testing.T, text []byte, a statements.Account) (*statements.File, []statements.Line) {
	t.Helper()
	var lines []statements.Line
	file, err := statements.Read(bytes.NewReader(text), a, func(l *statements.Line) error {
		lines = append(lines, *l)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return file, lines
}

// Every file of the corpus is read as its golden file says, and no name or phone number of
// it is in the result.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, path := range corpus(t) {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file, lines := read(t, text, accountOf(name))
			got := golden{Refused: file.Refused(), Skipped: file.Skipped, Lines: lines}
			for _, s := range file.Statements {
				got.Statements = append(got.Statements, map[string]any{
					"id": s.ID, "sequence": s.Sequence, "page": s.Page, "last": s.Last, "copy": s.Copy, "from": s.From, "to": s.To,
					"balanced": s.Balanced, "opening": s.Opening, "closing": s.Closing, "lines": s.Lines, "net": s.Net, "positional": s.Positional,
				})
			}
			for _, f := range file.Faults {
				got.Faults = append(got.Faults, string(f.Kind)+": "+f.String())
			}
			if got.Refused != strings.HasPrefix(name, "bad-") {
				t.Errorf("refused: %v", got.Refused)
			}
			if file.Digest != sha256.Sum256(text) || file.Size != int64(len(text)) {
				t.Errorf("the digest or the size %d is not that of the bytes", file.Size)
			}
			compare(t, path+".golden", got)
		})
	}
}

func corpus(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"testdata/*.xml", "testdata/*.csv"} {
		some, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	if len(all) < 30 {
		t.Fatalf("the corpus has %d files", len(all))
	}
	return all
}

// personal matches the names and phone numbers of the corpus.
var personal = regexp.MustCompile(`(?i)mabiala|ngoma|okemba|lise|manguiers|0?6612345|66999888|55123456|rale d|jeanne|pierre`)

func compare(t *testing.T, path string, got golden) {
	t.Helper()
	b, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if found := personal.Find(b); found != nil {
		t.Errorf("the result has the personal data %q", found)
	}
	if *update {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Errorf("%s differs; run with -update and look at the difference. Got:\n%s", path, b)
	}
}

// A file is read alike however its bytes arrive, and again alike.
func TestSmallReads(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bank-a-02-batch.xml", "airtel-windows-1252.csv", "airtel-utf-16.csv", "bad-mtn-many.csv"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		whole, _ := read(t, text, accountOf(name))
		slow, err := statements.Read(iotest.OneByteReader(bytes.NewReader(text)), accountOf(name), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(*slow), fmt.Sprint(*whole); got != want {
			t.Errorf("%s: byte by byte %s, whole %s", name, got, want)
		}
	}
}

// The encoding of a file changes its bytes, not what it says.
func TestEncodingsAgree(t *testing.T) {
	t.Parallel()
	var digests [][sha256.Size]byte
	for _, name := range []string{"airtel-windows-1252.csv", "airtel-utf-16.csv"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		file, _ := read(t, text, accountOf(name))
		digests = append(digests, file.Statements[0].Digest)
	}
	if digests[0] != digests[1] {
		t.Error("the same statement in another encoding has another digest")
	}
}

// Errors of the source and of the visitor are returned, and are no faults of the file.
func TestErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, name := range []string{"bank-a-02-batch.xml", "mtn.csv"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := statements.Read(bytes.NewReader(text), accountOf(name), func(*statements.Line) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("%s: the visitor's error became %v", name, err)
		}
		source := iotest.TimeoutReader(iotest.HalfReader(bytes.NewReader(text)))
		if _, err := statements.Read(source, accountOf(name), nil); !errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("%s: the source's error became %v", name, err)
		}
	}
	for _, a := range []statements.Account{
		{Profile: "mt940", Currency: "XAF"},
		{Profile: "csv", Currency: "XAF"},
		{Profile: "mtn", Currency: "XXX"},
		{Profile: "csv", Currency: "XAF", Columns: &statements.Layout{Width: 2, Time: 3}},
	} {
		if _, err := statements.Read(strings.NewReader(""), a, nil); !errors.Is(err, statements.ErrProfile) {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// A text that could name a person is no identifier of a line, wherever a payer writes it.
func TestPersonalData(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/bank-b-08-page-1.xml")
	if err != nil {
		t.Fatal(err)
	}
	const batch, transaction = "CARD-77-1</EndToEndId>", "TXCARD-77-1"
	for _, personal := range []string{
		"066123456", "+242066123456", "00242066123456", "242-06-612-34-56", "06.612.34.56", "066-123-456", "MABIALA2026", "Jean Mabiala 12", "MABIALA",
	} {
		changed := bytes.ReplaceAll(text, []byte(batch), []byte(personal+"</EndToEndId>"))
		if strings.Trim(personal, "+0123456789.-") == "" || strings.Contains(personal, "066") {
			changed = bytes.ReplaceAll(changed, []byte(transaction), []byte(personal))
		}
		_, lines := read(t, changed, accountOf("bank-b-"))
		b, err := json.Marshal(lines)
		if err != nil || bytes.Contains(b, []byte(personal)) {
			t.Errorf("a line has the text %q: %s, %v", personal, b, err)
		}
	}
}

// A file with a thousand repetitions has room for its other faults, and takes no longer.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/mtn.csv")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "\n")
	const row = "\n1,,Successful,Payment,2026-11-20 08:00:01,1,0,XAF,x,46733123454,"
	var b strings.Builder
	b.WriteString(head)
	for i := range 20_000 {
		fmt.Fprintf(&b, "%s%d", row, i+1)
	}
	file, lines := read(t, []byte(b.String()), accountOf("mtn.csv"))
	if file.Refused() || len(lines) != 20_000 || lines[19_999].Occurrence != 20_000 || file.More != 0 {
		t.Errorf("%d lines, %d faults", len(lines), len(file.Faults))
	}
	for range 2 * statements.MaxFaults {
		b.WriteString("\nx")
	}
	file, _ = read(t, []byte(b.String()), accountOf("mtn.csv"))
	if !file.Refused() || len(file.Faults) != statements.MaxFaults || file.More != 2*statements.MaxFaults-statements.MaxFaults/2 {
		t.Errorf("%d faults and %d more", len(file.Faults), file.More)
	}
}

// The day of a line is the account's, also over midnight and over a clock change abroad.
func TestDays(t *testing.T) {
	t.Parallel()
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/bank-b-08-page-1.xml")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		zone     *time.Location
		at       string
		day, utc string
	}{
		{nil, "2026-11-20T23:30:00Z", "2026-11-21", "2026-11-20T23:30:00Z"},
		{nil, "2026-11-20T23:30:00", "2026-11-20", "2026-11-20T22:30:00Z"},
		{paris, "2026-10-25T23:30:00", "2026-10-25", "2026-10-25T22:30:00Z"}, // winter time since 3:00
		{paris, "2026-10-24T23:30:00", "2026-10-24", "2026-10-24T21:30:00Z"},
		{paris, "2026-03-28T23:30:00Z", "2026-03-29", "2026-03-28T23:30:00Z"},
		{paris, "2026-10-25T22:30:00+00:00", "2026-10-25", "2026-10-25T22:30:00Z"},
	} {
		a := accountOf("bank-b-")
		a.Zone = test.zone
		changed := bytes.Replace(text, []byte("2026-11-20T23:30:00Z"), []byte(test.at), 1)
		_, lines := read(t, changed, a)
		if got := lines[0].At.Format(time.RFC3339); lines[0].Day != test.day || got != test.utc {
			t.Errorf("%s: day %s, time %s; want %s, %s", test.at, lines[0].Day, got, test.day, test.utc)
		}
	}
}

// An operator abroad writes local times without an offset. An hour that its clock repeats or skips has no
// single instant, but the day of the line is certain, and no line is refused for it.
func TestHourOfClockChange(t *testing.T) {
	t.Parallel()
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	layout := statements.Layout{
		Name: statements.ProfileCSV, Separators: ";", Width: 4, ID: []int{1}, OperatorRef: 1, Time: 2, TimeFormats: []string{"02/01/2006 15:04"}, Amount: 3, Decimal: ",", Currency: 4,
	}
	a := statements.Account{Code: "abroad", Currency: "XAF", Profile: statements.ProfileCSV, Zone: paris, Columns: &layout}
	for _, test := range []struct{ at, day, from, to string }{
		{"25/10/2026 01:59", "2026-10-25", "2026-10-24T23:59:00Z", "2026-10-24T23:59:00Z"},
		{"25/10/2026 02:30", "2026-10-25", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"}, // twice
		{"25/10/2026 03:00", "2026-10-25", "2026-10-25T02:00:00Z", "2026-10-25T02:00:00Z"},
		{"29/03/2026 02:30", "2026-03-29", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"}, // never
	} {
		file, lines := read(t, []byte("L1;"+test.at+";700;XAF\n"), a)
		if file.Refused() || len(lines) != 1 {
			t.Errorf("%s: %v", test.at, file.Faults)
			continue
		}
		if got := lines[0].At.Format(time.RFC3339); lines[0].Day != test.day || got < test.from || got > test.to {
			t.Errorf("%s: day %s, time %s", test.at, lines[0].Day, got)
		}
	}
}

// The times of a 12-hour clock are times, and a day without a time has none.
func TestClocks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ format, at, want string }{
		{"02/01/2006 03:04:05 PM", "20/11/2026 11:30:00 PM", "2026-11-20T22:30:00Z"},
		{"02/01/2006 3PM", "20/11/2026 1PM", "2026-11-20T12:00:00Z"},
		{"02/01/2006 15:04", "20/11/2026 00:30", "2026-11-19T23:30:00Z"},
		{"02/01/2006", "20/11/2026", "0001-01-01T00:00:00Z"},
	} {
		layout := statements.Layout{Name: statements.ProfileCSV, Separators: ";", Width: 4, ID: []int{1}, OperatorRef: 1, Time: 2, TimeFormats: []string{test.format}, Amount: 3, Decimal: ",", Currency: 4}
		file, lines := read(t, []byte("L1;"+test.at+";700;XAF\n"), statements.Account{Code: "own", Currency: "XAF", Profile: statements.ProfileCSV, Columns: &layout})
		if len(lines) != 1 || lines[0].At.Format(time.RFC3339) != test.want || lines[0].Day != "2026-11-20" {
			t.Errorf("%s: %+v %v", test.at, lines, file.Faults)
		}
	}
}

// An amount with the separators of another country is refused: to leave them out would multiply it.
func TestSeparatorsOfAmounts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		decimal, group, amount string
		want                   int64 // 0 is refused
	}{
		{",", " .", "5000", 5000},
		{",", " .", "5 000", 5000},
		{",", " .", "5.000,00", 5000},
		{",", " .", "12.345.678", 12345678},
		{",", " .", "5000.00", 0},
		{",", " .", "5.00", 0},
		{",", " .", "5000.000", 0},
		{",", " .", "5.000.00", 0},
		{",", " .", "5000,0.0", 0},
		{".", ",", "5,000.00", 5000},
		{".", ",", "5000.00", 5000},
		{".", ",", "5000,00", 0},
		{".", ",", "50,00", 0},
		{",", "", "5000,00", 5000},
		{",", "", "5000.00", 0},
		// 5.000 was read as five francs: it may be five thousand, and nothing in the file tells.
		{".", "", "5.000", 0},
		{".", ",", "10.000", 0},
		{",", "", "5,000", 0},
		{",", " .", "1.000,000", 0},
		{".", "", "100.00000", 100},
	} {
		layout := statements.Layout{
			Name: statements.ProfileCSV, Separators: ";", Width: 4, ID: []int{1}, OperatorRef: 1, Time: 2, TimeFormats: []string{"2006-01-02"}, Amount: 3, Decimal: test.decimal, Group: test.group, Currency: 4,
		}
		a := statements.Account{Code: "x", Currency: "XAF", Profile: statements.ProfileCSV, Zone: time.UTC, Columns: &layout}
		file, lines := read(t, []byte("L1;2026-11-20;"+test.amount+";XAF\n"), a)
		if refused := test.want == 0; file.Refused() != refused || !refused && (len(lines) != 1 || lines[0].Amount != test.want) {
			t.Errorf("%s with decimals after %q and groups of %q: %+v %v", test.amount, test.decimal, test.group, lines, file.Faults)
		}
	}
}

// A phone number as an operator's reference is not kept, however it is written. On the 4th, 5th and 6th of a month references with
// a date in them were taken for phones, and dropped; batches were refused.
func TestPhoneInIdentifier(t *testing.T) {
	t.Parallel()
	layout := statements.Layout{
		Name: statements.ProfileCSV, Separators: ";", Width: 6, ID: []int{1}, OperatorRef: 5, Time: 2, TimeFormats: []string{"2006-01-02"}, Amount: 3, Decimal: ",", Currency: 4, Batch: 6,
	}
	a := statements.Account{Code: "x", Currency: "XAF", Profile: statements.ProfileCSV, Zone: time.UTC, Columns: &layout}
	for ref, kept := range map[string]bool{
		"B-20261120": true, "LOT_066": true, "066000001": false, "06_600_00_01": false, "06-600-00-01": false, "242.06.600.00.01": false, "00242066000001": false,
		"03112026-1": true, "04112026-1": true, "05-11-2026-1": true, "06/11/2026/2": true, "AM-05112026-1": true, "FT041120261": true,
	} {
		file, lines := read(t, []byte("L1;2026-11-20;500;XAF;"+ref+";"+ref+"\n"), a)
		if len(lines) != 1 || (lines[0].OperatorRef != "") != kept || lines[0].Batch != ref {
			t.Errorf("%s: %+v %v", ref, lines, file.Faults)
		}
	}
}

// The id of a statement is the bank's: it may be a date, have a space or no digit.
func TestStatementIDs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/bank-a-02-batch.xml")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"04112026-1", "RELEVE 2026/11/02", "066000001", "RELEVE"} {
		file, _ := read(t, bytes.Replace(text, []byte("A-2026-325"), []byte(id), 1), accountOf("bank-a-02-batch.xml"))
		if file.Refused() || file.Statements[0].ID != id {
			t.Errorf("%s: %v %v", id, file.Statements, file.Faults)
		}
	}
}

// A bank sends the statements of two accounts in one file. The file was refused for each of them.
func TestSeveralAccounts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/bank-a-02-two-statements.xml")
	if err != nil {
		t.Fatal(err)
	}
	a := accountOf("bank-a-02-two-statements.xml")
	both, lines := read(t, text, a)
	other := bytes.Replace(text, []byte("CG3930011000101013451300019"), []byte("CG9830011000101013451300099"), 1) // the first one
	file, rest := read(t, other, a)
	if file.Refused() || len(file.Statements) != 1 || file.Statements[0].ID != both.Statements[1].ID || len(rest)+both.Statements[0].Lines != len(lines) || file.Skipped["statement of another account"] != 1 {
		t.Errorf("%+v, %d lines: %v", file.Statements, len(rest), file.Faults)
	}
	if file, rest := read(t, bytes.ReplaceAll(other, []byte("CG3930011000101013451300019"), []byte("CG9830011000101013451300099")), a); !file.Refused() || len(rest) != 0 || file.Faults[0].Kind != statements.FaultAccount {
		t.Errorf("no statement of the account: %v", file.Faults)
	}
}

// A bank split the text of a transfer within the id of the batch. The id was lost.
func TestSplitText(t *testing.T) {
	t.Parallel()
	const text = `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><GrpHdr/><Stmt><Id>M-1</Id><Acct><Id><IBAN>CG1</IBAN></Id></Acct>
<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="XAF">0</Amt><CdtDbtInd>CRDT</CdtDbtInd></Bal><Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="XAF">5</Amt><CdtDbtInd>CRDT</CdtDbtInd></Bal>
<Ntry><Amt Ccy="XAF">5</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-11-02</Dt></BookgDt><NtryDtls><TxDtls><RmtInf><Ustrd>RECETTES LOT MTN-2026</Ustrd><Ustrd>1101 BRAZZAVILLE</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry></Stmt></BkToCstmrStmt></Document>`
	file, lines := read(t, []byte(text), statements.Account{Code: "b", IBAN: "CG1", Currency: "XAF", Profile: "camt.053", Batch: regexp.MustCompile(`\bMTN-\d{8}\b`)})
	if len(lines) != 1 || lines[0].Batch != "MTN-20261101" {
		t.Errorf("%+v %v", lines, file.Faults)
	}
}

// Reports that people sent and could not import, or whose faults said the wrong thing.
func TestReportsOfOperators(t *testing.T) {
	t.Parallel()
	const head = "Id,External id,Status,Type,Date,Amount,Fee,Currency,From,To,Balance\n"
	row := func(id string, day, balance int) string {
		return fmt.Sprintf("%s,,Successful,Payment,2026-11-%02d 10:00:00,5000,50,XAF,x,46733123454,%d\n", id, day, balance)
	}
	for _, test := range []struct{ name, text, ids, fault string }{
		{"an apostrophe before the id", head + row("'29384398", 3, 9900), "mtn-1/29384398", ""},
		{"the newest row first", head + row("3", 5, 14_850) + row("2", 4, 9900) + row("1", 3, 4950), "", "The newest row comes first"},
		{"a row is missing", head + row("1", 3, 4950) + row("3", 5, 14_850), "", "A row is missing, doubled or out of order"},
		{"cut off in the last row", head + row("1", 3, 4950) + "2,,Successful,Pay", "", "The row has 4 columns instead of 11. Fetch the file again: it may be truncated."},
		{"a short row in the middle", head + "2,,Successful,Pay\n" + row("1", 3, 4950), "", "The row has 4 columns instead of 11. Import the operator's file unchanged"},
		{"a status", head + strings.Replace(row("1", 3, 4950), "Successful", "Reussi", 1), "", `The status "Reussi" is unknown.`},
		{"no status", head + strings.Replace(row("1", 3, 4950), "Successful", "", 1), "", "The status is missing."},
		{"a phone for a status", head + strings.Replace(row("1", 3, 4950), "Successful", "066123456", 1), "", "The status is unknown."},
	} {
		file, lines := read(t, []byte(test.text), accountOf("mtn-1.csv"))
		var ids, faults []string
		for _, l := range lines {
			ids = append(ids, l.ID)
		}
		for _, f := range file.Faults {
			faults = append(faults, f.String())
		}
		if got := strings.Join(faults, "\n"); test.fault == "" && (got != "" || strings.Join(ids, " ") != test.ids) || test.fault != "" && (len(faults) != 1 || !strings.Contains(got, test.fault)) {
			t.Errorf("%s: %q, %s", test.name, ids, got)
		}
	}
}

// The switch has no statements of its own: a bank writes those of the account, with the whole text of a transfer in the column of
// our reference. The payout was not found there.
func TestPayoutReferenceInAText(t *testing.T) {
	t.Parallel()
	layout := &statements.Layout{
		Name: "csv", Separators: ";", Width: 5, ID: []int{1}, Reference: 2, Type: 3, Time: 4, Amount: 5,
		Types: map[string]statement.Kind{"VIR": statement.KindTransfer, "RET": statement.KindReturn}, TimeFormats: []string{"02/01/2006"}, Decimal: ",",
	}
	ref, other := disbursement.NewAttemptID("dsb_1", 0, 1).PayoutRef(), disbursement.NewAttemptID("dsb_1", 1, 1).PayoutRef()
	text := "E1;" + ref + " Salaire de novembre;VIR;30/11/2026;-150000\nE2;RETOUR " + ref + ";RET;30/11/2026;149950\nE3;" + ref + " " + other + ";VIR;30/11/2026;-1\n"
	file, lines := read(t, []byte(text), statements.Account{Code: "b", Currency: "XAF", Profile: statements.ProfileCSV, Columns: layout})
	if len(lines) != 3 || len(file.Faults) != 0 {
		t.Fatalf("%d lines, %v", len(lines), file.Faults)
	}
	for i, want := range []string{ref, ref, ""} { // two references contradict each other
		if lines[i].PaymentRef != want {
			t.Errorf("line %d names %q, want %q", i, lines[i].PaymentRef, want)
		}
	}
}

// An entry that is pending is no money and may become some: the statement says from which day on it may lack money.
func TestPendingEntries(t *testing.T) {
	t.Parallel()
	const mtn = "Id,External id,Status,Type,Date,Amount,Fee,Currency,From,To,Balance\n"
	const airtel = "Transaction ID,Reference,Service,Status,Date,Amount,Charges,Currency,Payer,Merchant,Settlement\n"
	row := func(id, status, at string) string {
		return fmt.Sprintf("%s,,%s,Payment,%s,5000,50,XAF,x,46733123454,4950\n", id, status, at)
	}
	camt, err := os.ReadFile("testdata/bank-a-02-two-statements.xml")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text, account string
		want                []string // of each statement
	}{
		{"none", mtn + row("1", "Successful", "2026-11-03 10:00:00") + row("2", "Failed", "2026-11-02 10:00:00"), "mtn-1.csv", []string{""}},
		{"two", mtn + row("1", "Successful", "2026-11-03 10:00:00") + row("2", "Pending", "2026-11-05 10:00:00") + row("3", "PENDING", "2026-11-04 10:00:00"), "mtn-1.csv", []string{"2026-11-04"}},
		{"without a time", mtn + row("1", "Successful", "2026-11-03 10:00:00") + row("2", "Pending", "soon"), "mtn-1.csv", []string{"0001-01-01"}},
		{"airtel", airtel + "CI1,,Collection,TS,03/11/2026 10:00:00,5000,50,XAF,x,MER-042,\nCI2,,Disbursement,TIP,04/11/2026 10:00:00,-5000,0,XAF,x,MER-042,\n", "airtel-1.csv", []string{"2026-11-04"}},
		{"a bank", string(camt), "bank-a-02.xml", []string{"", "2026-11-22"}},
		{"a bank's information", strings.ReplaceAll(string(camt), ">PDNG<", ">INFO<"), "bank-a-02.xml", []string{"", ""}},
	} {
		file, _ := read(t, []byte(test.text), accountOf(test.account))
		var got []string
		for _, s := range file.Statements {
			got = append(got, s.Undecided)
		}
		if file.Refused() || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v", test.name, got, file.Faults)
		}
	}
}

// Two entries of one order have one id of the bank and a reference each: they are no repetition. The date of a balance is a day near the
// statement's.
func TestEntriesOfOneOrder(t *testing.T) {
	t.Parallel()
	file := func(second, closed string) *statements.File {
		f, lines := read(t, []byte(`<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><GrpHdr/><Stmt><Id>M-1</Id><FrToDt><FrDtTm>2026-11-02T00:00:00</FrDtTm><ToDtTm>2026-11-03T00:00:00</ToDtTm></FrToDt><Acct><Id><IBAN>CG1</IBAN></Id></Acct>
<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="XAF">0</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-10-30</Dt></Dt></Bal><Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="XAF">10</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>`+closed+`</Dt></Dt></Bal>
<Ntry><NtryRef>0001</NtryRef><Amt Ccy="XAF">5</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-11-02</Dt></BookgDt><AcctSvcrRef>98888208N8</AcctSvcrRef></Ntry>
<Ntry><NtryRef>`+second+`</NtryRef><Amt Ccy="XAF">5</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-11-02</Dt></BookgDt><AcctSvcrRef>98888208N8</AcctSvcrRef></Ntry></Stmt></BkToCstmrStmt></Document>`),
			statements.Account{Code: "b", IBAN: "CG1", Currency: "XAF", Profile: "camt.053", Latest: "2026-11-04"})
		if len(lines) != 2 || lines[0].ID == lines[1].ID {
			t.Errorf("%+v", lines)
		}
		return f
	}
	if f := file("0002", "2026-11-02"); len(f.Faults) != 0 {
		t.Errorf("%v", f.Faults)
	}
	if f := file("0001", "2026-11-02"); len(f.Faults) != 1 || f.Faults[0].Kind != statements.FaultDuplicateLine {
		t.Errorf("%v", f.Faults)
	}
	for _, closed := range []string{"2026-13-45", "2027-11-02", "1970-01-01", "02/11/2026"} {
		if f := file("0002", closed); len(f.Faults) != 1 || !f.Refused() || f.Faults[0].Field != "Stmt/Bal/Dt" {
			t.Errorf("a balance of %s: %v", closed, f.Faults)
		}
	}
}

// A bank ended the period of a day at the midnight after it, in its own way of writing. The period covered the next day, whose
// statement was refused.
func TestPeriodEnds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/bank-a-02-batch.xml")
	if err != nil {
		t.Fatal(err)
	}
	for end, want := range map[string]string{
		"2026-11-20T23:59:59": "2026-11-20", "2026-11-21T00:00:00": "2026-11-20", "2026-11-21T00:00:00+01:00": "2026-11-20", "2026-11-20T23:59:59Z": "2026-11-20",
		"2026-11-20T23:59:59.999Z": "2026-11-20", "2026-11-21T00:00:00Z": "2026-11-20", "2026-11-20T23:00:00Z": "2026-11-20", "2026-11-20T24:00:00": "2026-11-20",
		"2026-11-20T24:00:00+01:00": "2026-11-20", "2026-11-20T00:00:00": "2026-11-20", "2026-11-20T18:00:00": "2026-11-20", "2026-11-21T12:00:00": "2026-11-21", "2026-11-20T23:30:00Z": "2026-11-21",
	} {
		file, _ := read(t, bytes.Replace(text, []byte("<ToDtTm>2026-11-20T23:59:59"), []byte("<ToDtTm>"+end), 1), accountOf("bank-a-02-batch.xml"))
		if file.Refused() || file.Statements[0].To != want {
			t.Errorf("%s: %s, want %s: %v", end, file.Statements[0].To, want, file.Faults)
		}
	}
}

// A statement follows the last accepted one of its account, or a fault says why not.
func TestFollow(t *testing.T) {
	t.Parallel()
	of := func(id string, sequence int64, page int, last bool, from, to string, opening, closing int64) *statements.Statement {
		return &statements.Statement{
			ID: id, Sequence: sequence, Page: page, Last: last, From: from, To: to, Balanced: true, Opening: opening, Closing: closing,
			Digest: sha256.Sum256([]byte(id + from)), Positional: true, Lines: 1,
		}
	}
	verdict, mark, faults := statements.Follow(statements.Mark{}, of("S1", 7, 1, false, "2026-12-30", "2026-12-30", 0, 50), statements.Seen{})
	if verdict != statements.VerdictAccepted || faults != nil {
		t.Fatal(verdict, faults)
	}
	for _, test := range []struct {
		name string
		s    *statements.Statement
		want []statements.FaultKind
	}{
		{"the next page", of("S1", 7, 2, true, "2026-12-30", "2026-12-31", 50, 80), nil},
		{"a page later", of("S1", 7, 3, true, "2026-12-30", "2026-12-31", 60, 80), []statements.FaultKind{statements.FaultSequence, statements.FaultBalance}},
		{"another statement before the last page", of("S2", 8, 1, true, "2027-01-01", "2027-01-01", 60, 80), []statements.FaultKind{statements.FaultSequence, statements.FaultBalance}},
	} {
		_, _, faults := statements.Follow(mark, test.s, statements.Seen{})
		check(t, test.name, faults, test.want)
	}
	_, mark, _ = statements.Follow(mark, of("S1", 7, 2, true, "2026-12-30", "2026-12-31", 50, 80), statements.Seen{})
	for _, test := range []struct {
		name string
		s    *statements.Statement
		want []statements.FaultKind
	}{
		{"the next", of("S2", 8, 1, true, "2027-01-02", "2027-01-02", 80, 90), nil},
		{"the first of a year", of("S2", 1, 1, true, "2027-01-02", "2027-01-02", 80, 90), nil},
		{"a gap", of("S2", 9, 1, true, "2027-01-02", "2027-01-02", 80, 90), []statements.FaultKind{statements.FaultNumber}},
		{"a step back", of("S2", 6, 1, true, "2027-01-02", "2027-01-02", 80, 90), []statements.FaultKind{statements.FaultNumber}},
		{"another balance", of("S2", 8, 1, true, "2027-01-02", "2027-01-02", 81, 90), []statements.FaultKind{statements.FaultBalance}},
		{"an entry of an earlier day", of("S2", 0, 1, true, "2026-12-29", "2027-01-02", 80, 90), nil},
		{"a second one of the day", of("S2", 8, 1, true, "2026-12-31", "2026-12-31", 80, 90), nil},
		{"a second page first", of("S2", 8, 2, true, "2027-01-02", "2027-01-02", 80, 90), []statements.FaultKind{statements.FaultNumber}},
		{"a second page first, after a gap", of("S2", 8, 2, true, "2027-01-02", "2027-01-02", 81, 90), []statements.FaultKind{statements.FaultSequence, statements.FaultBalance}},
	} {
		_, _, faults := statements.Follow(mark, test.s, statements.Seen{})
		check(t, test.name, faults, test.want)
	}
	_, _, faults = statements.Follow(mark, of("S2", 0, 1, true, "2026-12-29", "2027-01-02", 80, 90), statements.Seen{Twin: true})
	check(t, "an older statement under another id, at the same balance", faults, []statements.FaultKind{statements.FaultOverlap})
	empty := of("", 0, 1, true, "", "", 0, 0)
	empty.Balanced, empty.Positional = false, false
	if verdict, after, _ := statements.Follow(mark, empty, statements.Seen{}); verdict != statements.VerdictAccepted || after != mark {
		t.Errorf("a file without rows: %s, %+v", verdict, after)
	}
	again := of("S1", 7, 2, true, "2026-12-30", "2026-12-31", 50, 80)
	if verdict, after, _ := statements.Follow(mark, again, statements.Seen{Earlier: true, Same: true}); verdict != statements.VerdictUnchanged || after != mark {
		t.Errorf("the same content: %s", verdict)
	}
	if verdict, after, _ := statements.Follow(mark, again, statements.Seen{Earlier: true}); verdict != statements.VerdictQuarantined || after != mark {
		t.Errorf("other content: %s", verdict)
	}
}

func check(t *testing.T, name string, faults []statements.Fault, want []statements.FaultKind) {
	t.Helper()
	var got []statements.FaultKind
	for _, f := range faults {
		got = append(got, f.Kind)
		if f.Detail == "" || f.Mend == "" {
			t.Errorf("%s: %s lacks words", name, f.Kind)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
}
