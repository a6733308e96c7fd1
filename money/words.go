package money

import "strings"

// MaxWords is the largest amount that [Currency.Words] writes, in minor units. It is larger
// than any amount that the service takes, which is below 2^53.
const MaxWords = 1e18 - 1

// Words returns an amount in minor units in words: "cinq mille cinquante francs CFA",
// "cinquante euros et cinq centimes", or "five thousand and fifty CFA francs". Decimals that
// are zero are left out. French is spelt as before 1990, with hyphens only below one hundred,
// and numbers agree with the gender of the currency: "vingt et une livres sterling". ok is
// false for a negative amount, an amount above MaxWords, and the zero Currency. Any other
// language is French.
func (c Currency) Words(lang Language, minor int64) (text string, ok bool) {
	noun, known := nouns[c.code]
	if !known || minor < 0 || minor > MaxWords {
		return "", false
	}
	unit := int64(1)
	for range c.decimals {
		unit *= 10
	}
	whole, fraction := minor/unit, minor%unit
	if lang == English {
		text = english(whole) + " " + pick(noun.english.whole, whole != 1)
		if fraction > 0 {
			text += " and " + english(fraction) + " " + pick(noun.english.fraction, fraction != 1)
		}
		return text, true
	}
	text = frenchOf(whole, noun.french.whole, noun.french.feminine)
	if fraction > 0 {
		text += " et " + frenchOf(fraction, noun.french.fraction, noun.french.feminineFraction)
	}
	return text, true
}

// frenchOf spells a number of things in French.
func frenchOf(n int64, names [2]string, feminine bool) string {
	number, of := french(n), ""
	if feminine && n%10 == 1 && n%100 != 11 && n%100 != 71 && n%100 != 91 {
		number += "e" // vingt et une livres, quatre-vingt-une livres
	}
	if n > 0 && n%1_000_000 == 0 {
		of = "de " // un million de francs
		if strings.HasPrefix(names[0], "e") {
			of = "d’" // un million d’euros
		}
	}
	return number + " " + of + pick(names, n > 1)
}

func pick(names [2]string, several bool) string {
	if several {
		return names[1]
	}
	return names[0]
}

// The names of the powers of one thousand. French counts with the long scale, English with
// the short one.
var (
	frenchPowers  = [...]string{"", "mille", "million", "milliard", "billion", "billiard"}
	englishPowers = [...]string{"", "thousand", "million", "billion", "trillion", "quadrillion"}
)

// thousands splits a number into its groups of three digits, the lowest first.
func thousands(n int64) (groups []int) {
	for ; n > 0; n /= 1000 {
		groups = append(groups, int(n%1000))
	}
	return groups
}

var frenchSmall = [...]string{
	"zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix",
	"onze", "douze", "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf",
}

var frenchTens = [...]string{2: "vingt", "trente", "quarante", "cinquante", "soixante", "soixante", "quatre-vingt", "quatre-vingt"}

func french(n int64) string {
	if n == 0 {
		return frenchSmall[0]
	}
	var words []string
	groups := thousands(n)
	for power := len(groups) - 1; power >= 0; power-- {
		switch group := groups[power]; {
		case group == 0:
		case power == 0:
			words = append(words, frenchGroup(group, true))
		case power == 1 && group == 1:
			words = append(words, frenchPowers[1]) // mille, not "un mille"
		case power == 1:
			words = append(words, frenchGroup(group, false), frenchPowers[1]) // mille has no plural
		case group == 1:
			words = append(words, "un", frenchPowers[power])
		default:
			words = append(words, frenchGroup(group, true), frenchPowers[power]+"s")
		}
	}
	return strings.Join(words, " ")
}

// frenchGroup spells a number from 1 to 999. cent and vingt take the s of the plural at the
// end of a number, also before million, but not before mille.
func frenchGroup(n int, plural bool) string {
	var words []string
	hundreds, rest := n/100, n%100
	switch {
	case hundreds == 1:
		words = append(words, "cent")
	case hundreds > 1 && rest == 0 && plural:
		words = append(words, frenchSmall[hundreds], "cents")
	case hundreds > 1:
		words = append(words, frenchSmall[hundreds], "cent")
	}
	if rest > 0 {
		words = append(words, frenchBelowHundred(rest, plural))
	}
	return strings.Join(words, " ")
}

func frenchBelowHundred(n int, plural bool) string {
	if n < len(frenchSmall) {
		return frenchSmall[n]
	}
	tens, units := n/10, n%10
	if tens == 7 || tens == 9 {
		units += 10 // soixante-dix, quatre-vingt-dix
	}
	switch {
	case n == 80 && plural:
		return "quatre-vingts"
	case units == 0:
		return frenchTens[tens]
	case (units == 1 || units == 11) && tens < 8:
		return frenchTens[tens] + " et " + frenchSmall[units]
	}
	return frenchTens[tens] + "-" + frenchSmall[units]
}

var englishSmall = [...]string{
	"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
	"eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
}

var englishTens = [...]string{2: "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}

func english(n int64) string {
	if n == 0 {
		return englishSmall[0]
	}
	var words []string
	groups := thousands(n)
	for power := len(groups) - 1; power >= 0; power-- {
		group := groups[power]
		if group == 0 {
			continue
		}
		if power == 0 && group < 100 && len(words) > 0 {
			words = append(words, "and") // one thousand and one
		}
		words = append(words, englishGroup(group))
		if power > 0 {
			words = append(words, englishPowers[power])
		}
	}
	return strings.Join(words, " ")
}

// englishGroup spells a number from 1 to 999.
func englishGroup(n int) string {
	var words []string
	if n >= 100 {
		words = append(words, englishSmall[n/100], "hundred")
	}
	rest := n % 100
	if rest > 0 && n >= 100 {
		words = append(words, "and")
	}
	switch {
	case rest == 0:
	case rest < len(englishSmall):
		words = append(words, englishSmall[rest])
	case rest%10 == 0:
		words = append(words, englishTens[rest/10])
	default:
		words = append(words, englishTens[rest/10]+"-"+englishSmall[rest%10])
	}
	return strings.Join(words, " ")
}
