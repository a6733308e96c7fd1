package counter

import (
	"strings"
	"unicode"
)

// scanned has the characters of the digits 1 to 9 and 0 on a French keyboard. A barcode
// scanner that is set to an American keyboard writes them instead of digits.
var scanned = strings.NewReplacer("&", "1", "é", "2", `"`, "3", "'", "4", "(", "5", "-", "6", "è", "7", "_", "8", "ç", "9", "à", "0")

// reference returns the payment_ref in a text that a clerk typed or that a barcode scanner
// wrote. People write white space, hyphens and dots between the digits. A scanner may write
// an AIM identifier such as ]C1 before them, the address in the QR code of a notice, or
// digits of a wrong keyboard layout. The result may be no payment_ref.
func reference(typed string) string {
	text := strings.TrimSpace(typed)
	if len(text) > 3 && text[0] == ']' {
		text = text[3:]
	}
	if strings.Contains(text, "/") {
		text, _, _ = strings.Cut(text, "?")
		text = strings.TrimRight(text, "/")
		text = text[strings.LastIndex(text, "/")+1:]
	}
	if !strings.ContainsAny(text, "0123456789") {
		text = scanned.Replace(text)
	}
	return digits(text)
}

// digits removes from a number what people write between the digits: white space,
// hyphens, dots.
func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("-.\u202f\u200b", r) {
			return -1
		}
		return r
	}, s)
}
