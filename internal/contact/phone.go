package contact

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Errors of numbers. They do not repeat the number.
var (
	// ErrNotMobile says that a text is not a Congolese mobile number.
	ErrNotMobile = errors.New("not a mobile number")
	// ErrOtherOperator says that a number belongs to another operator.
	ErrOtherOperator = errors.New("a number of another operator")
)

const (
	countryCode    = "242"
	nationalLength = 9 // 06 600 00 01
	nbsp           = "\u00a0"
)

// MobileOf turns a number of an operator as people write it into digits with the country
// code and without a plus sign: 06 600 00 01 becomes 242066000001. Congolese mobile numbers
// keep their 0 after the country code. MobileOf restores a missing 0, which callers of the
// deprecated surface omit (contract docs/design/decisions.md § 8). The first two digits must be one of
// the operator's prefixes. Errors wrap ErrNotMobile or ErrOtherOperator.
func MobileOf(input string, prefixes ...string) (string, error) {
	national, ok := NationalNumber(input)
	if !ok {
		return "", fmt.Errorf("reading the payer's number: %w", ErrNotMobile)
	}
	if !slices.Contains(prefixes, national[:2]) {
		return "", fmt.Errorf("reading the payer's number: %w", ErrOtherOperator)
	}
	return countryCode + national, nil
}

// NationalNumber returns the nine digits of a Congolese mobile number as people write it,
// with or without the country code. ok is false for any other text.
func NationalNumber(input string) (national string, ok bool) {
	const maxInput, maxSeen = 400, 40 // a mark has up to four bytes, and there may be one at each digit
	if len(input) > maxInput {
		return "", false
	}
	if input = Visible(input); len(input) > maxSeen {
		return "", false
	}
	input = strings.TrimFunc(input, isSeparator)
	input, international := strings.CutPrefix(input, "+")
	var b strings.Builder
	for _, r := range input {
		switch {
		case r >= '0' && r <= '9':
			b.WriteRune(r)
		case isSeparator(r):
		default:
			return "", false
		}
	}
	digits := b.String()
	if !international {
		digits, international = strings.CutPrefix(digits, "00")
	}
	if rest, found := strings.CutPrefix(digits, countryCode); found && (international || len(digits) > nationalLength) {
		digits = rest
		if len(digits) == nationalLength-1 && digits[0] != '0' {
			digits = "0" + digits
		}
	} else if international {
		return "", false // another country
	}
	return digits, len(digits) == nationalLength && digits[0] == '0' && digits[1] != '0'
}

// PossibleNumber reports whether a text can be a telephone number of any country as people write
// it: 6 to 15 digits (E.164), with separators and a plus sign or 00 before the country code. A
// number of the Congo has 8 or 9 digits behind its country code.
func PossibleNumber(input string) bool {
	input = strings.TrimFunc(input, isSeparator)
	input, international := strings.CutPrefix(input, "+")
	digits := strings.Map(func(r rune) rune {
		if isSeparator(r) {
			return -1
		}
		return r
	}, input)
	if !international {
		digits, international = strings.CutPrefix(digits, "00")
	}
	if strings.Trim(digits, "0123456789") != "" || len(digits) < 6 || len(digits) > 15 {
		return false
	}
	if rest, congo := strings.CutPrefix(digits, countryCode); congo && international {
		return len(rest) == nationalLength || len(rest) == nationalLength-1
	}
	return !international || digits[0] != '0'
}

// isSeparator reports whether people write the character between digits.
func isSeparator(r rune) bool {
	switch r {
	case ' ', '\t', '.', '-', '/', '(', ')', '\u00a0', '\u2009', '\u202f', '\u2010', '\u2011', '\u2013':
		return true
	}
	return false
}

// Visible returns a text without the characters that nobody sees: marks of format (Unicode's Cf) and
// variation selectors. People paste them with a number, a reference or an address.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return r
	}, text)
}

func invisible(r rune) bool { return unicode.In(r, unicode.Cf, unicode.Variation_Selector) }

// Mask hides the middle of a mobile number: 242066000001 becomes
// "+242 06 ••• •• 01", with no-break spaces. It hides any other text completely.
func Mask(msisdn string) string {
	national, ok := NationalNumber(msisdn)
	if !ok {
		return "•••"
	}
	return strings.Join([]string{"+" + countryCode, national[:2], "•••", "••", national[nationalLength-2:]}, nbsp)
}
