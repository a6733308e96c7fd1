package money_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quittance/money"
)

var update = flag.Bool("update", false, "write the golden files anew")

// contractCards is the card list of the contract, section "Limits", verbatim.
const contractCards = "USD, EUR, GBP, AUD, CAD, CHF, DKK, NOK, SEK, PLN, HUF, CZK, RON, BGN, MXN, BRL, ARS, CLP, COP, PEN, INR, SGD, HKD, TWD, KRW, JPY, NZD, ZAR, ILS, TRY, AED, SAR, THB, MYR, PHP, IDR, VND"

func TestTableIsTheContracts(t *testing.T) {
	t.Parallel()
	var cards []string
	for _, c := range money.All() {
		if c.Card() {
			cards = append(cards, c.Code())
		}
		if got, ok := money.Lookup(c.Code()); !ok || got != c {
			t.Errorf("Lookup(%q) = %v, %v", c.Code(), got, ok)
		}
		want := 2
		if strings.Contains("XAF JPY KRW CLP VND", c.Code()) {
			want = 0
		}
		if c.Decimals() != want {
			t.Errorf("%s has %d decimals, want %d", c.Code(), c.Decimals(), want)
		}
	}
	if got := strings.Join(cards, ", "); got != contractCards {
		t.Errorf("card currencies are\n%s, want\n%s", got, contractCards)
	}
	if n := len(money.All()); n != 38 {
		t.Errorf("%d currencies, want 38", n)
	}
	for _, code := range []string{"", "xaf", "XOF", "KWD", "XAF "} {
		if c, ok := money.Lookup(code); ok {
			t.Errorf("Lookup(%q) found %v", code, c)
		}
	}
}

// No two currencies are written alike. Otherwise a citizen could confirm the wrong one.
func TestNoTwoCurrenciesReadAlike(t *testing.T) {
	t.Parallel()
	for _, lang := range money.Languages {
		seen := map[string]string{}
		for _, c := range money.All() {
			text := strings.NewReplacer("0", "", ".", "", ",", "").Replace(c.Format(lang, 0))
			if other, taken := seen[text]; taken {
				t.Errorf("%s and %s are both written %q in %s", c.Code(), other, text, lang)
			}
			seen[text] = c.Code()
		}
	}
}

func TestFormatGolden(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for _, c := range money.All() {
		for _, lang := range money.Languages {
			for _, minor := range []int64{0, 1, 99, 100, 5000, 123456, 123456789, -1, -5000, -123456, math.MaxInt64, math.MinInt64} {
				fmt.Fprintf(&b, "%s %s %20d  %s\n", c.Code(), lang, minor, c.Format(lang, minor))
			}
		}
	}
	const golden = "testdata/format.golden"
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("amounts differ from %s; run with -update and read the diff", golden)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][2]string{0: {"0", "0"}, 999: {"999", "999"}, 100_000: {"100\u202f000", "100,000"}, -1_234_567: {"\u22121\u202f234\u202f567", "\u22121,234,567"}} {
		if fr, en := money.Number(money.French, n), money.Number(money.English, n); fr != want[0] || en != want[1] {
			t.Errorf("%d: %q, %q; want %q", n, fr, en, want)
		}
	}
}

// These rows are written by hand. The code under test wrote the golden file.
func TestFormatByHand(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		code            string
		minor           int64
		french, english string
	}{
		{"XAF", 5000, "5\u202f000\u202fFCFA", "FCFA\u00a05,000"},
		{"XAF", -1234567, "\u22121\u202f234\u202f567\u202fFCFA", "\u2212FCFA\u00a01,234,567"},
		{"XAF", 999, "999\u202fFCFA", "FCFA\u00a0999"},
		{"EUR", 10000, "100,00\u202f€", "€100.00"},
		{"EUR", 100, "1,00\u202f€", "€1.00"},
		{"EUR", -5, "\u22120,05\u202f€", "\u2212€0.05"},
		{"USD", 123456, "1\u202f234,56\u202f$US", "US$1,234.56"},
		{"HUF", 150000, "1\u202f500,00\u202fHUF", "HUF\u00a01,500.00"},
		{"JPY", 1500, "1\u202f500\u202fJPY", "¥1,500"},
		{"XAF", math.MaxInt64, "9\u202f223\u202f372\u202f036\u202f854\u202f775\u202f807\u202fFCFA", "FCFA\u00a09,223,372,036,854,775,807"},
		{"EUR", math.MinInt64, "\u221292\u202f233\u202f720\u202f368\u202f547\u202f758,08\u202f€", "\u2212€92,233,720,368,547,758.08"},
	} {
		c, _ := money.Lookup(row.code)
		if got := c.Format(money.French, row.minor); got != row.french {
			t.Errorf("%s %d in French is %+q, want %+q", row.code, row.minor, got, row.french)
		}
		if got := c.Format(money.English, row.minor); got != row.english {
			t.Errorf("%s %d in English is %+q, want %+q", row.code, row.minor, got, row.english)
		}
	}
}

func currency(t *rapid.T) money.Currency {
	return rapid.SampledFrom(money.All()).Draw(t, "currency")
}

func TestDecimalReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, minor := currency(t), rapid.Int64().Draw(t, "minor")
		text := c.Decimal(minor)
		if !regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d\d)?$`).MatchString(text) {
			t.Fatalf("Decimal(%d) = %q", minor, text)
		}
		got, err := c.ParseDecimal(text)
		if err != nil || got != minor {
			t.Fatalf("ParseDecimal(%q) = %d, %v, want %d", text, got, err, minor)
		}
	})
}

// In each language the text has the digits of the amount, and no line can break in it.
func TestFormatKeepsTheDigits(t *testing.T) {
	t.Parallel()
	notDigit := regexp.MustCompile(`\D`)
	rapid.Check(t, func(t *rapid.T) {
		c, minor := currency(t), rapid.Int64().Draw(t, "minor")
		for _, lang := range money.Languages {
			text := c.Format(lang, minor)
			if got, want := notDigit.ReplaceAllString(text, ""), notDigit.ReplaceAllString(c.Decimal(minor), ""); got != want {
				t.Fatalf("digits of %q are %s, want %s", text, got, want)
			}
			if strings.ContainsAny(text, " -") {
				t.Fatalf("%q can break over two lines", text)
			}
		}
	})
}

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	xaf, _ := money.Lookup("XAF")
	eur, _ := money.Lookup("EUR")
	for _, row := range []struct {
		c    money.Currency
		text string
		want int64
	}{
		{xaf, "5000", 5000},
		{xaf, "5000.00", 5000},
		{xaf, "0005000", 5000},
		{eur, "100", 10000},
		{eur, "100.5", 10050},
		{eur, "100.500", 10050},
	} {
		if got, err := row.c.ParseDecimal(row.text); err != nil || got != row.want {
			t.Errorf("%s %q is %d, %v, want %d", row.c.Code(), row.text, got, err, row.want)
		}
	}
	for _, text := range []string{"", "-", ".", "5.", ".5", "+5", " 5", "5e3", "5,00", "5.001", "0x5", "--5", "٥", "92233720368547758.08"} {
		if got, err := eur.ParseDecimal(text); !errors.Is(err, money.ErrDecimal) {
			t.Errorf("%q is %d, %v, want ErrDecimal", text, got, err)
		}
	}
}

func TestParseRatio(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "1": 1_000_000, "0.015": 15_000, "0.000001": 1, "0.5": 500_000, "1.000000": 1_000_000, "00.10": 100_000} {
		if got, err := money.ParseRatio(text); err != nil || got != want {
			t.Errorf("ParseRatio(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "0.", ".5", "-0.1", "+0.1", "0.0000001", "0.0150000", "1.000001", "1.5", "2", "1e-2", " 0.1", "0,015", "1.5%", "99999999999999999999"} {
		if got, err := money.ParseRatio(text); !errors.Is(err, money.ErrRatio) {
			t.Errorf("ParseRatio(%q) = %d, %v, want ErrRatio", text, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		ppm := rapid.Int64Range(0, money.PartsPerMillion).Draw(t, "ppm")
		if got, err := money.ParseRatio(money.FormatRatio(ppm)); err != nil || got != ppm {
			t.Fatalf("%d is written %q and read %d, %v", ppm, money.FormatRatio(ppm), got, err)
		}
	})
}

func TestFee(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		amount   int64
		schedule money.Schedule
		want     int64
	}{
		{"no schedule", 5000, money.Schedule{}, 0},
		{"1.5 % of 5000", 5000, money.Schedule{RatioPPM: 15_000}, 75},
		{"half goes up", 100, money.Schedule{RatioPPM: 15_000}, 2},
		{"below half goes down", 99, money.Schedule{RatioPPM: 15_000}, 1},
		{"fixed part after rounding", 100, money.Schedule{RatioPPM: 15_000, Fixed: 100}, 102},
		{"minimum", 100, money.Schedule{RatioPPM: 15_000, Minimum: 50}, 50},
		{"maximum", 10_000_000, money.Schedule{RatioPPM: 15_000, Maximum: 5000, HasMaximum: true}, 5000},
		{"maximum of nothing", 5000, money.Schedule{RatioPPM: 15_000, Fixed: 10, HasMaximum: true}, 0},
		{"a maximum not set is none", 10_000_000, money.Schedule{RatioPPM: 15_000, Maximum: 5000}, 150_000},
		{"raised to the step", 5003, money.Schedule{RatioPPM: 15_000, Step: 5}, 77},
		{"a multiple of the step already", 5000, money.Schedule{RatioPPM: 15_000, Step: 5}, 75},
		{"the step alone", 5003, money.Schedule{Step: 5}, 2},
		{"above the maximum by less than a step", 5001, money.Schedule{RatioPPM: 15_000, Maximum: 10, HasMaximum: true, Step: 5}, 14},
		{"a step of 1", 5003, money.Schedule{Fixed: 3, Step: 1}, 3},
		{"all of it", math.MaxInt64, money.Schedule{RatioPPM: money.PartsPerMillion}, math.MaxInt64},
		{"overflow below a maximum", math.MaxInt64, money.Schedule{RatioPPM: money.PartsPerMillion, Fixed: math.MaxInt64, Maximum: 7, HasMaximum: true}, 7},
	} {
		if got, err := money.Fee(row.amount, row.schedule); err != nil || got != row.want {
			t.Errorf("%s: fee is %d, %v, want %d", row.name, got, err, row.want)
		}
	}
	for name, row := range map[string]struct {
		amount   int64
		schedule money.Schedule
		want     error
	}{
		"negative amount":          {-1, money.Schedule{}, money.ErrAmount},
		"negative ratio":           {1, money.Schedule{RatioPPM: -1}, money.ErrSchedule},
		"ratio above one":          {1, money.Schedule{RatioPPM: money.PartsPerMillion + 1}, money.ErrSchedule},
		"negative fixed part":      {1, money.Schedule{Fixed: -1}, money.ErrSchedule},
		"negative minimum":         {1, money.Schedule{Minimum: -1}, money.ErrSchedule},
		"maximum below minimum":    {1, money.Schedule{Minimum: 2, Maximum: 1, HasMaximum: true}, money.ErrSchedule},
		"negative step":            {1, money.Schedule{Step: -5}, money.ErrSchedule},
		"overflow of the step":     {5, money.Schedule{Fixed: math.MaxInt64, Step: math.MaxInt64}, money.ErrOverflow},
		"overflow before the step": {math.MaxInt64, money.Schedule{RatioPPM: money.PartsPerMillion, Fixed: 3, Step: math.MaxInt64}, money.ErrOverflow},
		"overflow":                 {math.MaxInt64, money.Schedule{RatioPPM: 1, Fixed: math.MaxInt64}, money.ErrOverflow},
	} {
		if got, err := money.Fee(row.amount, row.schedule); !errors.Is(err, row.want) {
			t.Errorf("%s: fee is %d, %v, want %v", name, got, err, row.want)
		}
	}
}

// Fee agrees with the formula of contract docs/design/decisions.md § 7 in rational numbers, for all of
// int64.
func TestFeeIsTheFormula(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(rapid.Int64Range(0, 1_000_000), rapid.Int64Range(0, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		amount := part.Draw(t, "amount")
		s := money.Schedule{
			RatioPPM:   rapid.Int64Range(0, money.PartsPerMillion).Draw(t, "ratio"),
			Fixed:      part.Draw(t, "fixed"),
			Minimum:    part.Draw(t, "minimum"),
			HasMaximum: rapid.Bool().Draw(t, "bounded"),
			Step:       rapid.OneOf(rapid.Int64Range(0, 100), part).Draw(t, "step"),
		}
		s.Maximum = rapid.Int64Range(s.Minimum, math.MaxInt64).Draw(t, "maximum")

		exact := new(big.Rat).Mul(big.NewRat(s.RatioPPM, money.PartsPerMillion), new(big.Rat).SetInt64(amount))
		exact.Add(exact, big.NewRat(1, 2))
		want := new(big.Int).Div(exact.Num(), exact.Denom()) // floor, as both are positive
		want.Add(want, big.NewInt(s.Fixed))
		if low := big.NewInt(s.Minimum); want.Cmp(low) < 0 {
			want = low
		}
		if high := big.NewInt(s.Maximum); s.HasMaximum && want.Cmp(high) > 0 {
			want = new(big.Int).Set(high)
		}
		if s.Step > 1 {
			steps, rest := new(big.Int).QuoRem(new(big.Int).Add(want, big.NewInt(amount)), big.NewInt(s.Step), new(big.Int))
			if rest.Sign() > 0 {
				steps.Add(steps, big.NewInt(1))
			}
			want = steps.Mul(steps, big.NewInt(s.Step)).Sub(steps, big.NewInt(amount))
		}

		got, err := money.Fee(amount, s)
		if !want.IsInt64() {
			if !errors.Is(err, money.ErrOverflow) {
				t.Fatalf("fee is %d, %v, want ErrOverflow", got, err)
			}
			return
		}
		if err != nil || got != want.Int64() {
			t.Fatalf("fee is %d, %v, want %s", got, err, want)
		}
	})
}

func TestTotal(t *testing.T) {
	t.Parallel()
	if got, err := money.Total(5000, 75); err != nil || got != 5075 {
		t.Errorf("total is %d, %v", got, err)
	}
	if got, err := money.Total(math.MaxInt64, 0); err != nil || got != math.MaxInt64 {
		t.Errorf("total is %d, %v", got, err)
	}
	if _, err := money.Total(math.MaxInt64, 1); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("error is %v, want ErrOverflow", err)
	}
	if _, err := money.Total(5000, -1); !errors.Is(err, money.ErrAmount) {
		t.Errorf("error is %v, want ErrAmount", err)
	}
}

func TestDivide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fee     int64
		amounts []int64
		want    []int64
	}{
		{0, []int64{1, 2}, []int64{0, 0}},
		{75, []int64{5000}, []int64{75}},
		{100, []int64{1, 1, 1}, []int64{34, 33, 33}},        // ties by position
		{100, []int64{2, 1, 1, 2}, []int64{33, 17, 17, 33}}, // the largest remainders are in the middle
		{2, []int64{0, 5, 5}, []int64{0, 1, 1}},             //
		{7, []int64{0, 0}, []int64{7, 0}},                   // nothing to divide by
		{math.MaxInt64, []int64{1 << 53, 1 << 53}, []int64{math.MaxInt64/2 + 1, math.MaxInt64 / 2}},
	} {
		if got := money.Divide(c.fee, c.amounts); !slices.Equal(got, c.want) {
			t.Errorf("%d among %v is %v, want %v", c.fee, c.amounts, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		fee := rapid.Int64Range(0, 1<<53).Draw(t, "fee")
		amounts := rapid.SliceOfN(rapid.Int64Range(1, 1<<53), 1, 20).Draw(t, "amounts")
		sum := new(big.Int)
		for _, a := range amounts {
			sum.Add(sum, big.NewInt(a))
		}
		left := fee
		for i, part := range money.Divide(fee, amounts) {
			left -= part
			// |part × sum − fee × amount| < sum: less than one unit from the exact share.
			off := new(big.Int).Sub(new(big.Int).Mul(big.NewInt(part), sum), new(big.Int).Mul(big.NewInt(fee), big.NewInt(amounts[i])))
			if off.CmpAbs(sum) >= 0 {
				t.Errorf("item %d gets %d of %d", i, part, fee)
			}
		}
		if left != 0 {
			t.Errorf("%d of %d are lost", left, fee)
		}
	})
}
