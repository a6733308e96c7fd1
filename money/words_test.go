package money_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quittance/money"
)

func TestWords(t *testing.T) {
	t.Parallel()
	xaf, _ := money.Lookup("XAF")
	for _, row := range []struct {
		minor           int64
		french, english string
	}{
		{0, "zéro franc CFA", "zero CFA francs"},
		{1, "un franc CFA", "one CFA franc"},
		{2, "deux francs CFA", "two CFA francs"},
		{16, "seize francs CFA", "sixteen CFA francs"},
		{17, "dix-sept francs CFA", "seventeen CFA francs"},
		{21, "vingt et un francs CFA", "twenty-one CFA francs"},
		{22, "vingt-deux francs CFA", "twenty-two CFA francs"},
		{30, "trente francs CFA", "thirty CFA francs"},
		{61, "soixante et un francs CFA", "sixty-one CFA francs"},
		{70, "soixante-dix francs CFA", "seventy CFA francs"},
		{71, "soixante et onze francs CFA", "seventy-one CFA francs"},
		{79, "soixante-dix-neuf francs CFA", "seventy-nine CFA francs"},
		{80, "quatre-vingts francs CFA", "eighty CFA francs"},
		{81, "quatre-vingt-un francs CFA", "eighty-one CFA francs"},
		{90, "quatre-vingt-dix francs CFA", "ninety CFA francs"},
		{91, "quatre-vingt-onze francs CFA", "ninety-one CFA francs"},
		{99, "quatre-vingt-dix-neuf francs CFA", "ninety-nine CFA francs"},
		{100, "cent francs CFA", "one hundred CFA francs"},
		{101, "cent un francs CFA", "one hundred and one CFA francs"},
		{200, "deux cents francs CFA", "two hundred CFA francs"},
		{280, "deux cent quatre-vingts francs CFA", "two hundred and eighty CFA francs"},
		{1000, "mille francs CFA", "one thousand CFA francs"},
		{1001, "mille un francs CFA", "one thousand and one CFA francs"},
		{5050, "cinq mille cinquante francs CFA", "five thousand and fifty CFA francs"},
		{21_000, "vingt et un mille francs CFA", "twenty-one thousand CFA francs"},
		{80_000, "quatre-vingt mille francs CFA", "eighty thousand CFA francs"},
		{200_300, "deux cent mille trois cents francs CFA", "two hundred thousand three hundred CFA francs"},
		{1_000_000, "un million de francs CFA", "one million CFA francs"},
		{1_000_001, "un million un francs CFA", "one million and one CFA francs"},
		{80_000_000, "quatre-vingts millions de francs CFA", "eighty million CFA francs"},
		{200_000_000, "deux cents millions de francs CFA", "two hundred million CFA francs"},
		{2_001_000, "deux millions mille francs CFA", "two million one thousand CFA francs"},
		{1_000_000_000, "un milliard de francs CFA", "one billion CFA francs"},
		{
			1 << 53,
			"neuf billiards sept billions cent quatre-vingt-dix-neuf milliards deux cent cinquante-quatre millions sept cent quarante mille neuf cent quatre-vingt-douze francs CFA",
			"nine quadrillion seven trillion one hundred and ninety-nine billion two hundred and fifty-four million seven hundred and forty thousand nine hundred and ninety-two CFA francs",
		},
	} {
		if got, ok := xaf.Words(money.French, row.minor); !ok || got != row.french {
			t.Errorf("%d in French is %q, want %q", row.minor, got, row.french)
		}
		if got, ok := xaf.Words(money.English, row.minor); !ok || got != row.english {
			t.Errorf("%d in English is %q, want %q", row.minor, got, row.english)
		}
	}
	for _, minor := range []int64{-1, money.MaxWords + 1} {
		if got, ok := xaf.Words(money.French, minor); ok {
			t.Errorf("%d is %q", minor, got)
		}
	}
}

// Currencies with two decimals, feminine ones, and amounts around one unit.
func TestWordsOfCurrencies(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		code            string
		minor           int64
		french, english string
	}{
		{"EUR", 0, "zéro euro", "zero euros"},
		{"EUR", 1, "zéro euro et un centime", "zero euros and one cent"},
		{"EUR", 99, "zéro euro et quatre-vingt-dix-neuf centimes", "zero euros and ninety-nine cents"},
		{"EUR", 100, "un euro", "one euro"},
		{"EUR", 180, "un euro et quatre-vingts centimes", "one euro and eighty cents"},
		{"EUR", 5005, "cinquante euros et cinq centimes", "fifty euros and five cents"},
		{"EUR", 100_000_000, "un million d’euros", "one million euros"},
		{"EUR", 100_000_001, "un million d’euros et un centime", "one million euros and one cent"},
		{"EUR", 1 << 53, "quatre-vingt-dix billions soixante et onze milliards neuf cent quatre-vingt-douze millions cinq cent quarante-sept mille quatre cent neuf euros et quatre-vingt-douze centimes", "ninety trillion seventy-one billion nine hundred and ninety-two million five hundred and forty-seven thousand four hundred and nine euros and ninety-two cents"},
		{"USD", 1, "zéro dollar des États-Unis et un cent", "zero US dollars and one cent"},
		{"USD", 200_000_000, "deux millions de dollars des États-Unis", "two million US dollars"},
		{"GBP", 100, "une livre sterling", "one pound sterling"},
		{"GBP", 2_102, "vingt et une livres sterling et deux pence", "twenty-one pounds sterling and two pence"},
		{"GBP", 8_100, "quatre-vingt-une livres sterling", "eighty-one pounds sterling"},
		{"GBP", 7_100, "soixante et onze livres sterling", "seventy-one pounds sterling"},
		{"GBP", 9_100, "quatre-vingt-onze livres sterling", "ninety-one pounds sterling"},
		{"GBP", 100_100, "mille une livres sterling", "one thousand and one pounds sterling"},
		{"GBP", 2_100_000, "vingt et un mille livres sterling", "twenty-one thousand pounds sterling"},
		{"ILS", 121, "un shekel israélien et vingt et une agorot", "one Israeli shekel and twenty-one agorot"},
		{"JPY", 21, "vingt et un yens", "twenty-one yen"},
	} {
		c, _ := money.Lookup(row.code)
		if got, ok := c.Words(money.French, row.minor); !ok || got != row.french {
			t.Errorf("%d %s in French is %q, want %q", row.minor, row.code, got, row.french)
		}
		if got, ok := c.Words(money.English, row.minor); !ok || got != row.english {
			t.Errorf("%d %s in English is %q, want %q", row.minor, row.code, got, row.english)
		}
	}
	var none money.Currency
	if got, ok := none.Words(money.French, 1); ok {
		t.Errorf("no currency is %q", got)
	}
	for _, c := range money.All() {
		for _, lang := range money.Languages {
			if text, ok := c.Words(lang, 202); !ok || strings.Contains(text, "  ") || strings.HasSuffix(text, " ") {
				t.Errorf("202 %s in %s is %q", c.Code(), lang, text)
			}
		}
	}
}

// The words of 475 numbers up to 2^53 are those of the Python library num2words 0.5.14,
// which made testdata/cardinals.tsv. Its English has commas between groups; ours has none.
func TestWordsOfAnotherLibrary(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("testdata/cardinals.tsv")
	if err != nil {
		t.Fatal(err)
	}
	xaf, _ := money.Lookup("XAF")
	rows := 0
	for line := range strings.Lines(string(golden)) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		minor, err := strconv.ParseInt(cells[0], 10, 64)
		if err != nil || len(cells) != 3 {
			t.Fatalf("line %q: %v", line, err)
		}
		rows++
		french, _ := xaf.Words(money.French, minor)
		if number, _, _ := strings.Cut(french, " franc"); strings.TrimSuffix(number, " de") != cells[1] {
			t.Errorf("%d in French is %q, want %q", minor, number, cells[1])
		}
		english, _ := xaf.Words(money.English, minor)
		if number, _, _ := strings.Cut(english, " CFA"); number != strings.ReplaceAll(cells[2], ",", "") {
			t.Errorf("%d in English is %q, want %q", minor, number, cells[2])
		}
	}
	if rows != 475 {
		t.Errorf("%d rows", rows)
	}
}

// The words of each amount up to 2^53 have the value of the amount. The test reads them with
// rules of its own: a name of a power multiplies what stands since the last higher one.
func TestWordsReadBack(t *testing.T) {
	t.Parallel()
	xaf, _ := money.Lookup("XAF")
	read := map[money.Language]map[string]int64{
		money.French: {
			"zéro": 0, "un": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "six": 6, "sept": 7, "huit": 8, "neuf": 9, "dix": 10,
			"onze": 11, "douze": 12, "treize": 13, "quatorze": 14, "quinze": 15, "seize": 16,
			"vingt": 20, "trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60, "cent": 100,
			"mille": 1e3, "million": 1e6, "milliard": 1e9, "billion": 1e12, "billiard": 1e15, "et": -1, "de": -1,
		},
		money.English: {
			"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
			"eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
			"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
			"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "quadrillion": 1e15, "and": -1,
		},
	}
	value := func(lang money.Language, text string) int64 {
		text = strings.NewReplacer("francs CFA", "", "franc CFA", "", "CFA francs", "", "CFA franc", "", "quatre-vingts", "80", "quatre-vingt", "80", "-", " ").Replace(text)
		sum, group := int64(0), int64(0)
		for word := range strings.FieldsSeq(text) {
			n, ok := read[lang][word]
			if !ok {
				n, ok = read[lang][strings.TrimSuffix(word, "s")]
			}
			switch {
			case word == "80":
				group += 80
			case !ok:
				return -1
			case n == -1:
			case n == 100:
				group = max(group, 1) * 100
			case n > 100:
				sum, group = sum+max(group, 1)*n, 0
			default:
				group += n
			}
		}
		return sum + group
	}
	rapid.Check(t, func(t *rapid.T) {
		minor := rapid.OneOf(rapid.Int64Range(0, 1<<53), rapid.Int64Range(0, 10_000), rapid.SampledFrom([]int64{1 << 53, 1<<53 - 1, 1e15, 1e12, 1e9, 1e6})).Draw(t, "minor")
		for _, lang := range money.Languages {
			text, ok := xaf.Words(lang, minor)
			if got := value(lang, text); !ok || got != minor {
				t.Fatalf("%d in %s is %q, which is %d", minor, lang, text, got)
			}
		}
	})
}
