package money

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Language is a language of the pages for citizens, as a BCP 47 primary tag.
type Language string

// The languages of the service, French first.
const (
	French  Language = "fr"
	English Language = "en"
)

// Languages lists every Language, the default first.
var Languages = []Language{French, English}

const (
	narrowNoBreakSpace = "\u202f" // groups of digits and the unit in French
	noBreakSpace       = "\u00a0" // between a lettered symbol and the number in English
	minus              = "\u2212" // not a hyphen, because a line can break after a hyphen
)

// ErrDecimal is wrapped by the errors of [Currency.ParseDecimal].
var ErrDecimal = errors.New("not a decimal amount")

// Format returns an amount in minor units for people: `5 000 FCFA` in French, with narrow
// no-break spaces (U+202F), and `FCFA 5,000` in English, with a no-break space (U+00A0).
// The text never breaks over two lines. Any other language is formatted as French.
func (c Currency) Format(lang Language, minor int64) string {
	whole, fraction := c.split(minor)
	var b strings.Builder
	if minor < 0 {
		b.WriteString(minus)
	}
	if lang == English {
		b.WriteString(c.english)
		if last, _ := utf8.DecodeLastRuneInString(c.english); unicode.IsLetter(last) {
			b.WriteString(noBreakSpace)
		}
		group(&b, whole, ",")
		if fraction != "" {
			b.WriteString("." + fraction)
		}
		return b.String()
	}
	group(&b, whole, narrowNoBreakSpace)
	if fraction != "" {
		b.WriteString("," + fraction)
	}
	b.WriteString(narrowNoBreakSpace + c.french)
	return b.String()
}

// Number returns a whole number for people: `100 000` in French, with narrow no-break spaces (U+202F), and `100,000` in English. Any
// other language is formatted as French.
func Number(lang Language, n int) string {
	var b strings.Builder
	digits, negative := strings.CutPrefix(strconv.Itoa(n), "-")
	if negative {
		b.WriteString(minus)
	}
	separator := narrowNoBreakSpace
	if lang == English {
		separator = ","
	}
	group(&b, digits, separator)
	return b.String()
}

// Decimal returns an amount in minor units for programs: `5000` for XAF 5000, `100.00` for
// EUR 10000, `-0.05` for EUR -5. Operators and acquirers accept amounts in this form.
func (c Currency) Decimal(minor int64) string {
	whole, fraction := c.split(minor)
	if fraction != "" {
		whole += "." + fraction
	}
	if minor < 0 {
		whole = "-" + whole
	}
	return whole
}

// ParseDecimal returns the minor units of an amount in the form of [Currency.Decimal]. It
// also accepts fewer or more decimals if no value is lost, because operators answer
// `5000.00` for XAF. The error for anything else, such as a plus sign or an exponent, wraps
// [ErrDecimal].
func (c Currency) ParseDecimal(s string) (int64, error) {
	digits, negative := strings.CutPrefix(s, "-")
	whole, fraction, pointed := strings.Cut(digits, ".")
	if !isDigits(whole) || pointed && !isDigits(fraction) {
		return 0, fmt.Errorf("parsing %s amount %q: %w", c.code, s, ErrDecimal)
	}
	if len(fraction) > c.decimals {
		if strings.Trim(fraction[c.decimals:], "0") != "" {
			return 0, fmt.Errorf("parsing %s amount %q, which is finer than its minor unit: %w", c.code, s, ErrDecimal)
		}
		fraction = fraction[:c.decimals]
	}
	fraction += strings.Repeat("0", c.decimals-len(fraction))
	text := whole + fraction
	if negative {
		text = "-" + text
	}
	minor, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parsing %s amount %q, which is out of range: %w", c.code, s, ErrDecimal)
	}
	return minor, nil
}

// split returns the digits before and after the decimal separator, without the sign.
func (c Currency) split(minor int64) (whole, fraction string) {
	digits := strconv.FormatUint(magnitude(minor), 10)
	if c.decimals == 0 {
		return digits, ""
	}
	if short := c.decimals + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	cut := len(digits) - c.decimals
	return digits[:cut], digits[cut:]
}

// magnitude returns |v| as a uint64, because |v| of the smallest int64 exceeds an int64.
func magnitude(v int64) uint64 {
	if v < 0 {
		return uint64(-(v + 1)) + 1 //nolint:gosec // -(v+1) is never negative for v < 0
	}
	return uint64(v)
}

func group(b *strings.Builder, digits, separator string) {
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteString(separator)
		}
		b.WriteByte(digits[i])
	}
}

func isDigits(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
