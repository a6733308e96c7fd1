package lines_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/xuri/excelize/v2"
	"pgregory.net/rapid"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements/lines"
	"quittance/money"
)

// What a fault says to a person quotes the cell, in both languages. No form of it for logs does, whatever the verb is.
func TestFaultsKeepPersonalData(t *testing.T) {
	t.Parallel()
	const secret = "06 600 00 0l"
	f := read(t, good().with(1, cPhone, secret).csv(","), rules())
	if len(f.Faults) != 1 {
		t.Fatal(faults(f))
	}
	fault := f.Faults[0]
	for lang, want := range map[money.Language]string{
		money.French:  "Ligne 2, colonne F, «\u00a0Téléphone\u00a0», valeur «\u00a0" + secret + "\u00a0»\u00a0: Ce n’est pas un numéro de téléphone mobile. Saisissez le numéro complet du bénéficiaire.",
		money.English: "Row 2, column F, “Phone”, value “" + secret + "”: This is not a mobile phone number. Enter the payee’s number in full.",
	} {
		if got := fault.Text(lang); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	log.LogAttrs(context.Background(), slog.LevelInfo, "refused", slog.Any("fault", fault), slog.Any("all", f.Faults), slog.Any("file", f))
	slog.New(slog.NewJSONHandler(&out, nil)).LogAttrs(context.Background(), slog.LevelInfo, "refused", slog.Any("fault", fault))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb, fault)
		fmt.Fprintf(&out, verb, f.Faults)
		fmt.Fprintf(&out, verb, &fault)
	}
	if text := out.String(); strings.Contains(text, "600") || !strings.Contains(text, "row 2, column F (msisdn): phone") {
		t.Error(text)
	}
	long := read(t, good().with(1, cCurrency, strings.Repeat("x", 100)+"\u202e").csv(","), rules())
	if cell := long.Faults[0].Cell; cell != strings.Repeat("x", 80)+"…" {
		t.Errorf("%q", cell)
	}
	if cell := read(t, good().with(1, cRef, "a\u202eb").csv(","), rules()).Faults[0].Cell; cell != "a\ufffdb" {
		t.Errorf("%q", cell)
	}
}

// Each kind has its texts in both languages, sentences with the same arguments, and no argument stays open.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, kind := range lines.FaultKinds() {
		for _, lang := range money.Languages {
			for _, text := range []string{lines.Fault{Kind: kind, Want: "17"}.Detail(lang), lines.Fault{Kind: kind, Want: "17"}.Mend(lang)} {
				if len(text) < 10 || !strings.HasSuffix(text, ".") || strings.Contains(text, "%") {
					t.Errorf("%s in %s: %q", kind, lang, text)
				}
			}
		}
		fr, en := lines.Fault{Kind: kind, Want: "\x00"}, lines.Fault{Kind: kind, Want: "\x00"}
		if strings.Count(fr.Detail(money.French), "\x00") != strings.Count(en.Detail(money.English), "\x00") ||
			strings.Count(fr.Mend(money.French), "\x00") != strings.Count(en.Mend(money.English), "\x00") {
			t.Errorf("%s has other arguments in the two languages", kind)
		}
	}
}

// Duplicates name both rows, and what a fault needs is in its words.
func TestArguments(t *testing.T) {
	t.Parallel()
	for want, file := range map[string]table{
		"Row 2 has this line_ref already.":                                             good().with(3, cRef, "S-0001"),
		"Row 3 corrects this reference already.":                                       good().with(3, cCorrects, "R-0001"),
		"The text has an invisible character (U+200B).":                                good().with(1, cName, "A\u200bB"),
		"Write one of these modes: AIRTEL, BANK, MOMO, VIREMENT.":                      good().with(1, cMode, "CASH"),
		"The IBAN does not have the 27 characters of its country. A zero may be lost.": good().with(4, cIBAN, goodIBAN[:26]),
		"Write it without separators, such as 1500.":                                   good().with(1, cAmount, "1.500"),
	} {
		f := read(t, file.csv(","), rules())
		if len(f.Faults) != 1 || !strings.Contains(f.Faults[0].Text(money.English), want) {
			t.Errorf("%s: %s", want, f.Faults[0].Text(money.English))
		}
	}
}

// The key finds each wrong digit and each two that are exchanged, and is that of the formula of CEMAC.
func TestRIBKey(t *testing.T) {
	t.Parallel()
	accepted := func(rib string) bool {
		return !read(t, good().with(3, cNumber, rib).csv(","), rules()).Refused()
	}
	rapid.Check(t, func(t *rapid.T) {
		digit := rapid.SliceOfN(rapid.ByteRange('0', '9'), 21, 21)
		body := string(digit.Draw(t, "body"))
		number := func(text string) *big.Int { n, _ := new(big.Int).SetString(text, 10); return n }
		sum := new(big.Int)
		for _, part := range []struct {
			factor int64
			text   string
		}{{89, body[:5]}, {15, body[5:10]}, {3, body[10:]}} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(part.factor), number(part.text)))
		}
		rib := body + fmt.Sprintf("%02d", 97-new(big.Int).Mod(sum, big.NewInt(97)).Int64())
		if !accepted(rib) {
			t.Fatalf("%s is refused", rib)
		}
		i, other := rapid.IntRange(0, 22).Draw(t, "i"), rapid.ByteRange('0', '9').Draw(t, "other")
		if wrong := rib[:i] + string(other) + rib[i+1:]; wrong != rib && accepted(wrong) {
			t.Fatalf("%s is taken for %s", wrong, rib)
		}
		if i < 22 && rib[i] != rib[i+1] && accepted(rib[:i]+rib[i+1:i+2]+rib[i:i+1]+rib[i+2:]) {
			t.Fatalf("%s with %d and %d exchanged is taken", rib, i, i+1)
		}
	})
}

// IBANs of the registry's examples are taken, in groups and small letters as well, and the preparer sees what changed.
func TestIBAN(t *testing.T) {
	t.Parallel()
	for _, iban := range []string{
		"FR1420041010050500013M02606", "DE89370400440532013000", "GB29NWBK60161331926819", "BE68539007547034", "CH9300762011623852957", "NO9386011117947",
		"MT84MALT011000012345MTLCAST001S", "MU17BOMM0101101030300200000MUR", "TN5910006035183598478831", "ST23000100010051845310146", goodIBAN,
	} {
		if f := read(t, good().with(4, cIBAN, iban).csv(","), rules()); f.Refused() || f.Lines[3].Changes != nil {
			t.Errorf("%s: %s", iban, faults(f))
		}
		typed := strings.ToLower(iban[:4]) + " " + iban[4:8] + "\u00a0" + iban[8:]
		f := read(t, good().with(4, cIBAN, typed).csv(","), rules())
		if f.Refused() || f.Lines[3].Content.IBAN != iban || !reflect.DeepEqual(f.Lines[3].Changes, []lines.Change{{lines.ColumnIBAN, typed, iban}}) {
			t.Errorf("%s: %s", typed, faults(f))
		}
		if f := read(t, good().with(4, cIBAN, iban[:5]+iban[6:]).csv(","), rules()); faults(f) != "row 5, column G (iban): iban_length" {
			t.Errorf("%s without a character: %s", iban, faults(f))
		}
	}
}

// Names in Latin, Greek and Cyrillic letters become readable ASCII; both texts are returned.
func TestTransliteration(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"Éléonore  N’GOUABI-ŒUVRE": "Eleonore N'GOUABI-OEUVRE", "E\u0301le\u0301onore": "Eleonore", "Mbɔ́ŋgɔ": "MboNGgo", "Иванов Сергей": "Ivanov Sergei",
		"Γιώργος": "Giorgos", "Straße « ø »": "Strasse << o >>", "\u00a0NGOMA\u202fJEAN ": "NGOMA JEAN", "ＡＢＣ": "ABC",
	} {
		f := read(t, good().with(1, cName, from).csv(","), rules())
		if f.Refused() || f.Lines[0].Content.Name != want || !reflect.DeepEqual(f.Lines[0].Changes, []lines.Change{{lines.ColumnName, from, want}}) {
			t.Errorf("%q: %s", from, faults(f))
		}
	}
}

// Phone numbers are taken in any spelling of the operator's rule, but never with a zero that somebody has to add.
func TestPhones(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"066000001", "06 600 00 01", "+242 06 600 00 01", "00242066000001", "242-06-600-00-01"} {
		f := read(t, good().with(1, cPhone, text).csv(","), rules())
		if f.Refused() || f.Lines[0].Content.MSISDN != "242066000001" {
			t.Errorf("%s: %s", text, faults(f))
		}
	}
	for text, want := range map[string]string{"+242 6 600 00 01": "zero_lost", "242 66000001": "zero_lost", "0066000001": "phone"} {
		if f := read(t, good().with(1, cPhone, text).csv(","), rules()); faults(f) != "row 2, column F (msisdn): "+want {
			t.Errorf("%s: %s", text, faults(f))
		}
	}
}

// lineOf draws a line that Read returns unchanged.
func lineOf(t *rapid.T, ref string, decimals bool) digest.Line {
	text := func(name string, most int) string {
		s := strings.Join(strings.Fields(rapid.StringOfN(rapid.RuneFrom([]rune("ABCdef 0123;,\"'&<>.()/\\_=-+@#é")), 0, most, most).Draw(t, name)), " ")
		return strings.TrimLeft(strings.ReplaceAll(s, "é", "e"), "=+-@'# ")
	}
	l := digest.Line{LineRef: ref, Name: "N" + text("name", 60), Currency: "XAF", Purpose: text("purpose", 140), Corrects: "C" + ref}
	l.Amount = rapid.Int64Range(1, 1<<40).Draw(t, "amount")
	if rapid.Bool().Draw(t, "corrects nothing") {
		l.Corrects = ""
	}
	kind := rapid.IntRange(0, 3).Draw(t, "kind")
	if decimals {
		l.Currency, kind = "EUR", 4
	}
	switch kind {
	case 0:
		l.PaymentMode, l.PayoutAccount, l.MSISDN = "MOMO", "mtn", fmt.Sprintf("24206%07d", rapid.IntRange(0, 9999999).Draw(t, "phone"))
	case 1:
		l.PaymentMode, l.PayoutAccount, l.MSISDN = "AIRTEL", "airtel", fmt.Sprintf("24204%07d", rapid.IntRange(0, 9999999).Draw(t, "phone"))
	case 2:
		l.PaymentMode, l.PayoutAccount, l.Number = "VIREMENT", "bank", goodRIB
	case 3:
		l.PaymentMode, l.PayoutAccount, l.IBAN, l.BIC = "BANK", "bank", goodIBAN, "BCCGCGCGXXX"
	default:
		l.PaymentMode, l.PayoutAccount, l.IBAN = "SEPA", "euro", "DE89370400440532013000"
	}
	return l
}

// Lines that are written as a template and read are the same lines, in both formats and languages, with and without
// decimals. So is a template that was opened and closed empty: it has no lines.
func TestTemplate(t *testing.T) {
	t.Parallel()
	type write func(io.Writer, money.Language, lines.Rules, []digest.Line) error
	rapid.Check(t, func(t *rapid.T) {
		r, decimals := rules(), rapid.Bool().Draw(t, "decimals")
		if decimals {
			r.Currency, r.Accounts = "EUR", r.Accounts[3:]
		}
		refs := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9 /._"'-]{0,20}[A-Za-z0-9]`), 0, 8, rapid.ID[string]).Draw(t, "refs")
		in := make([]digest.Line, len(refs))
		for i, ref := range refs {
			in[i] = lineOf(t, ref, decimals)
		}
		for i, w := range []write{lines.WriteCSV, lines.WriteXLSX} {
			for _, lang := range money.Languages {
				var out bytes.Buffer
				if err := w(&out, lang, r, in); err != nil {
					t.Fatal(err)
				}
				f, err := lines.Read(bytes.NewReader(out.Bytes()), int64(out.Len()), r)
				if err != nil {
					t.Fatal(err)
				}
				if len(in) == 0 {
					if faults(f) != "no_lines" {
						t.Fatal(faults(f))
					}
					continue
				}
				want := slices.SortedFunc(slices.Values(in), func(a, b digest.Line) int { return strings.Compare(a.LineRef, b.LineRef) })
				if !reflect.DeepEqual(contents(f.Lines), want) {
					t.Fatalf("format %d, %s:\n%+v\nis read as\n%+v\n%s", i, lang, want, contents(f.Lines), faults(f))
				}
			}
		}
	})
}

// fixed are random bytes that a seed gives.
func fixed(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// Leaves are over what is encrypted, the root is that of another implementation of RFC 6962, and the totals are those of
// the lines. Whoever opens a line can show that it is the one that was approved, and no other one is.
func TestSeal(t *testing.T) {
	t.Parallel()
	f := read(t, good().csv(","), rules())
	s, err := lines.Seal(f.Lines, fixed(1))
	if err != nil {
		t.Fatal(err)
	}
	other := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
	salts := map[[32]byte]bool{}
	for i, x := range s.Lines {
		salts[x.Salt] = true
		content, err := lines.Content(x.Salt, x.Content)
		if err != nil {
			t.Fatal(err)
		}
		salt, line, err := lines.ParseContent(content)
		if err != nil || salt != x.Salt || line != f.Lines[i].Content {
			t.Errorf("%s is read as %+v, %v", content, line, err)
		}
		request := disbursement.Request{
			Line:    disbursement.Line{Leaf: x.Leaf, Ref: line.LineRef, Amount: line.Amount, CorrectsRef: line.Corrects},
			Account: line.PayoutAccount, Currency: line.Currency,
		}
		if !request.Same(salt, line) {
			t.Errorf("%s is not what was sealed", content)
		}
		if line.Name += "X"; request.Same(salt, line) {
			t.Error("another name passes")
		}
		if err := other.Append(x.Leaf[:], nil); err != nil {
			t.Fatal(err)
		}
	}
	root, err := other.GetRootHash(nil)
	if err != nil || !bytes.Equal(root, s.Root[:]) || len(salts) != 4 || s.Sum != 698001 || s.Largest != 450000 {
		t.Errorf("%v, root %s, sum %d, largest %d, %d salts", err, s.Root, s.Sum, s.Largest, len(salts))
	}
	if want := []lines.Total{{"airtel", 1, 98000}, {"bank", 2, 450001}, {"mtn", 1, 150000}}; !reflect.DeepEqual(s.Totals, want) {
		t.Errorf("%+v", s.Totals)
	}
	if _, err := lines.Seal(f.Lines, bytes.NewReader(make([]byte, 100))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("with too few salts: %v", err)
	}
	if _, err := lines.Seal(append(f.Lines, f.Lines[0]), fixed(1)); !errors.Is(err, lines.ErrOrder) {
		t.Errorf("out of order: %v", err)
	}
}

// The content of a line has one form: other bytes that a JSON reader takes for the same are refused.
func TestContentHasOneForm(t *testing.T) {
	t.Parallel()
	const form = `{"amount":1500,"currency":"XAF","line_ref":"a \"b\" <&>","name":"N","salt":"0101010101010101010101010101010101010101010101010101010101010101"}`
	salt, l, err := lines.ParseContent([]byte(form))
	if err != nil || l != (digest.Line{Amount: 1500, Currency: "XAF", LineRef: `a "b" <&>`, Name: "N"}) || salt != [32]byte(bytes.Repeat([]byte{1}, 32)) {
		t.Fatalf("%+v, %v", l, err)
	}
	for _, other := range []string{
		"", "{}", "null", form + " ", form + "{}", strings.Replace(form, `{"amount":1500,`, `{"amount":1,"amount":1500,`, 1), strings.Replace(form, `:1500`, `:1.5e3`, 1),
		strings.Replace(form, `"name":"N"`, `"name":"N","iban":""`, 1), strings.Replace(form, `"name":"N"`, `"name":"N","x":"y"`, 1), strings.Replace(form, `"name"`, `"Name"`, 1),
		strings.Replace(form, `"N"`, `"\u004e"`, 1), strings.Replace(form, `"N"`, `"é"`, 1), strings.Replace(form, `0101"`, `01"`, 1), strings.Replace(form, `0101"`, `01011"`, 1),
		strings.Replace(form, `"salt":"01`, `"salt":"0A`, 1), strings.Replace(form, `<`, `\u003c`, 1), strings.Replace(form, "1500", "9007199254740992", 1),
	} {
		if _, _, err := lines.ParseContent([]byte(other)); !errors.Is(err, lines.ErrContent) || strings.Contains(err.Error(), "XAF") {
			t.Errorf("%s: %v", other, err)
		}
	}
	if _, err := lines.Content(salt, digest.Line{Name: "é"}); !errors.Is(err, digest.ErrText) {
		t.Error(err)
	}
}

// Chunks keep to the limits of a command, have all lines once and in order, and end at the first error.
func TestChunks(t *testing.T) {
	t.Parallel()
	f := read(t, file(t, lines.FormatCSV, many(1001)), rules())
	s, err := lines.Seal(f.Lines, fixed(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, padding := range []int{0, 1500} {
		next, root := 0, digest.Tree{}
		for chunk, err := range s.Chunks(func(position int, content []byte) ([]byte, error) {
			return append(content, make([]byte, padding)...), nil
		}) {
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			for i, l := range chunk.Lines {
				x := s.Lines[next+i]
				size += len(l.Sealed) + len(l.Ref) + len(l.Corrects) + len(l.Account) + len(l.Leaf)
				if l.Ref != x.Content.LineRef || l.Amount != x.Content.Amount || l.Account != x.Content.PayoutAccount || l.Corrects != x.Content.Corrects || l.Leaf != x.Leaf ||
					!bytes.Contains(l.Sealed, []byte(l.Ref)) {
					t.Fatalf("%+v", l)
				}
				root = root.Add(l.Leaf)
			}
			if chunk.Position != next || len(chunk.Lines) > disbursement.MaxLinesAdded || size > disbursement.MaxBytesAdded {
				t.Fatalf("%d lines, %d bytes at %d", len(chunk.Lines), size, chunk.Position)
			}
			if full := len(chunk.Lines) == disbursement.MaxLinesAdded; padding == 0 && next+len(chunk.Lines) < 1001 && !full || padding > 0 && full {
				t.Fatalf("%d lines of %d bytes", len(chunk.Lines), size)
			}
			next += len(chunk.Lines)
		}
		if next != 1001 || root.Root() != s.Root {
			t.Errorf("%d lines, root %s", next, root.Root())
		}
	}
	broken := errors.New("no key")
	var last error
	for _, err := range s.Chunks(func(position int, content []byte) ([]byte, error) {
		if position == 300 {
			return nil, broken
		}
		return content, nil
	}) {
		last = err
	}
	if !errors.Is(last, broken) {
		t.Error(last)
	}
	for _, err := range s.Chunks(func(int, []byte) ([]byte, error) { return make([]byte, disbursement.MaxBytesSealed+1), nil }) {
		last = err
	}
	if !errors.Is(last, lines.ErrSealedSize) {
		t.Error(last)
	}
}

// Differences are by line_ref, whatever the order is, and their sums lead from one batch to the other.
func TestCompare(t *testing.T) {
	t.Parallel()
	before := wantGood()
	after := slices.Clone(before)
	after[1].Amount, after[1].MSISDN = 99000, "242055000009"
	after[2].PaymentMode = "BANK"
	after[3].LineRef = "S-0005"
	slices.Reverse(after)
	got := lines.Compare(before, after)
	want := lines.Differences{
		Added: []digest.Line{after[0]}, Removed: []digest.Line{before[3]}, AddedSum: 1, RemovedSum: 1, BeforeSum: 548000, AfterSum: 549000,
		Changed: []lines.Changed{
			{before[1], after[2], []lines.Column{lines.ColumnAmount, lines.ColumnPhone}},
			{before[2], after[1], []lines.Column{lines.ColumnMode}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if none := lines.Compare(before, before); !reflect.DeepEqual(none, lines.Differences{}) {
		t.Errorf("%+v", none)
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (out []digest.Line) {
			for _, ref := range rapid.SliceOfNDistinct(rapid.IntRange(0, 12), 0, 9, rapid.ID[int]).Draw(t, name) {
				out = append(out, digest.Line{LineRef: fmt.Sprint(ref), Amount: rapid.Int64Range(1, 3).Draw(t, name+" amount"), Name: rapid.SampledFrom([]string{"A", "B"}).Draw(t, name+" name")})
			}
			return out
		}
		a, b := draw("a"), draw("b")
		d := lines.Compare(a, b)
		total := func(ls []digest.Line) (n int64) {
			for _, l := range ls {
				n += l.Amount
			}
			return n
		}
		if total(a)-d.RemovedSum+d.AddedSum-d.BeforeSum+d.AfterSum != total(b) || len(a)-len(d.Removed)+len(d.Added) != len(b) {
			t.Fatalf("%+v and %+v differ by %+v", a, b, d)
		}
		for _, c := range d.Changed {
			if len(c.Columns) == 0 || c.Before == c.After || !slices.Contains(a, c.Before) || !slices.Contains(b, c.After) {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// Payees are known by keyed hashes only. Warnings say what a person should look at, and refuse nothing.
func TestWarnings(t *testing.T) {
	t.Parallel()
	mac := func(text string) lines.MAC { return lines.MAC(rfc6962.DefaultHasher.HashLeaf([]byte(text))) }
	text := good().with(2, cAmount, "150000").with(2, cMode, "MOMO").with(2, cPhone, "06 600 00 01")
	f := read(t, text.csv(","), rules())
	if f.Refused() {
		t.Fatal(faults(f))
	}
	payee := func(i int) lines.MAC { return mac(lines.PayeeText(f.Lines[i].Content)) }
	known := lines.Known{
		Payees: map[lines.MAC][]lines.Payment{
			payee(0): {{1, "XAF", "2026-11-01"}, {150000, "EUR", "2026-11-01"}, {150000, "XAF", "2026-08-31"}},
			payee(2): {{450000, "XAF", "2026-09-02"}, {450000, "XAF", "2026-10-02"}},
		},
		Names: map[lines.MAC][]lines.MAC{mac(lines.NameText(digest.Line{Name: "Marie  Sita"})): {payee(0)}, mac(lines.NameText(f.Lines[0].Content)): {payee(0)}},
	}
	got, err := lines.Warn(f.Lines, "2026-12-01", known, mac)
	want := []lines.Warning{
		{lines.WarnTwice, 3, "S-0002", "S-0001"},
		{lines.WarnName, 3, "S-0002", ""}, // the number of the first line, with another name
		{lines.WarnRecent, 4, "S-0003", "2026-10-02"},
		{lines.WarnName, 4, "S-0003", ""},
		{lines.WarnAccount, 5, "S-0004", ""},
	}
	if err != nil || !reflect.DeepEqual(got.List, want) || got.Count[lines.WarnTwice] != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for date, recent := range map[string]int{"2026-12-31": 1, "2027-01-01": 0, "2026-12-01": 1} {
		got, err := lines.Warn(f.Lines[2:3], date, known, mac)
		if err != nil || got.Count[lines.WarnRecent] != recent {
			t.Errorf("on %s: %+v, %v", date, got, err)
		}
	}
	nobody, err := lines.Warn(f.Lines, "2026-12-01", lines.Known{}, mac)
	if err != nil || nobody.Count[lines.WarnPayee] != 4 {
		t.Errorf("%+v, %v", nobody, err)
	}
	if _, err := lines.Warn(f.Lines, "soon", known, mac); err == nil {
		t.Error("a date that is none passes")
	}
	crowd, err := lines.Warn(read(t, file(t, lines.FormatCSV, many(1500)), rules()).Lines, "2026-12-01", lines.Known{}, mac)
	if err != nil || crowd.Count[lines.WarnPayee] < lines.MaxWarnings || len(crowd.List) > 2*lines.MaxWarnings {
		t.Errorf("%d warnings of %+v", len(crowd.List), crowd.Count)
	}
}

// Rules that cannot be used are an error of the caller, not faults of the file.
func TestRules(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*lines.Rules){
		"currency": func(r *lines.Rules) { r.Currency = "XXX" }, "accounts": func(r *lines.Rules) { r.Accounts = nil },
		"no account in the currency": func(r *lines.Rules) { r.Currency = "USD" },
		"code":                       func(r *lines.Rules) { r.Accounts[0].Code = "" }, "modes": func(r *lines.Rules) { r.Accounts[0].Modes = nil },
		"mode twice": func(r *lines.Rules) { r.Accounts[1].Modes = []string{"MOMO"} }, "mode of other letters": func(r *lines.Rules) { r.Accounts[1].Modes = []string{"é"} },
		"country": func(r *lines.Rules) { r.Accounts[0].Country = "" },
	} {
		r := rules()
		change(&r)
		if _, err := lines.Read(bytes.NewReader(nil), 0, r); !errors.Is(err, lines.ErrRules) {
			t.Errorf("%s: %v", name, err)
		}
		if err := lines.WriteCSV(io.Discard, money.French, r, nil); !errors.Is(err, lines.ErrRules) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// broken is a file that cannot be read beyond a place.
type broken struct {
	file []byte
	from int64
}

var errDisk = errors.New("disk")

func (b broken) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > b.from {
		return 0, errDisk
	}
	return copy(p, b.file[at:]), nil
}

// An error of the disk is an error, not a fault that tells people to mend their file.
func TestErrorsOfTheSource(t *testing.T) {
	t.Parallel()
	for _, text := range [][]byte{file(t, lines.FormatCSV, many(3000)), file(t, lines.FormatXLSX, many(3000))} {
		for _, from := range []int64{4, int64(len(text)) / 2} {
			if _, err := lines.Read(broken{text, from}, int64(len(text)), rules()); !errors.Is(err, errDisk) {
				t.Errorf("%v", err)
			}
		}
	}
}

// The template keeps what people enter: all its columns are text, in the order that spreadsheets want. It offers the modes
// that pay in the currency of the batch, and its instructions fit the columns that Read leaves out.
func TestTemplateKeepsText(t *testing.T) {
	t.Parallel()
	text := file(t, lines.FormatXLSX, nil)
	f, err := excelize.OpenReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // in memory
	parts, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := fs.ReadFile(parts, "xl/worksheets/sheet1.xml")
	if err != nil {
		t.Fatal(err)
	}
	columns := regexp.MustCompile(`<col min="(\d+)"`).FindAllSubmatch(sheet, -1)
	for i, column := range columns {
		if string(column[1]) != fmt.Sprint(i+1) || len(columns) != len(lines.Columns) {
			t.Errorf("column %d of %d is %s", i+1, len(columns), column[1])
		}
	}
	for column := 'A'; column < rune('A'+len(lines.Columns)); column++ {
		style, err := f.GetColStyle("Lignes", string(column))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := f.GetStyle(style); err != nil || s.NumFmt != 49 {
			t.Errorf("column %c: %+v, %v", column, s, err)
		}
	}
	rules, err := f.GetDataValidations("Lignes")
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]string{}
	for _, v := range rules {
		lists[v.Sqref] = v.Formula1
	}
	if lists["D2:D100001"] != `"XAF"` || lists["E2:E100001"] != `"AIRTEL,BANK,MOMO,VIREMENT"` || lists["B2:B100001"] != "0" {
		t.Errorf("%v", lists)
	}
	rows, err := f.GetRows("Instructions")
	if err != nil || len(rows) < len(lines.Columns) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		if len(row) > 3 || strings.Contains(strings.Join(row, ""), "%") {
			t.Errorf("%q", row)
		}
	}
}
