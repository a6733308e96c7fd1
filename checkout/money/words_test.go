package money_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quittance/checkout/money"
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
	euro, _ := money.Lookup("EUR")
	if got, ok := euro.Words(money.French, 100); ok {
		t.Errorf("euros are %q", got)
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
