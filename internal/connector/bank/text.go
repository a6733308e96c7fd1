package bank

import (
	"fmt"
	"strings"

	"quittance/internal/disbursements/lines"
	"quittance/internal/latin"
)

// replaced are the printable characters that banks' networks do not carry (SWIFT's character set x), with what stands in
// their place.
var replaced = strings.NewReplacer("&", "+", "\"", "'", "`", "'", "_", "-", "~", "-", "[", "(", "]", ")", "{", "(", "}", ")", "<", "(", ">", ")",
	"\\", "/", "|", "/", ";", ",", "@", ".", "#", ".", "$", ".", "%", ".", "*", ".", "=", "-", "^", ".", "!", ".")

// written returns a text in the characters that banks take. The error names the field and the mend, and never has the
// text.
func written(field, text string, most int) (string, error) {
	ascii, bad := latin.Text(text)
	if bad != "" {
		return "", fmt.Errorf("%s: it has letters of another script: write it in Latin letters", field)
	}
	ascii = replaced.Replace(ascii)
	switch {
	case latin.Unprintable(ascii) != "":
		return "", fmt.Errorf("%s: it has the character %s: remove it", field, latin.Unprintable(ascii))
	case len(ascii) > most:
		return "", fmt.Errorf("%s: it has more than %d characters: shorten it", field, most)
	}
	return ascii, nil
}

// cemac are the countries whose accounts SYSTAC and SYGMA reach.
const cemac = "CF CG CM GA GQ TD"

// accountFault says how to mend an account that is neither an IBAN of CEMAC nor a RIB; empty if it is one.
func accountFault(account string) string {
	if isRIB(account) {
		if kind, _ := lines.CheckRIB(account); kind != "" {
			return "whose key must fit the other digits"
		}
		return ""
	}
	kind, _ := lines.CheckIBAN(account)
	switch {
	case kind == lines.FaultRIBKey:
		return "whose RIB key must fit the other digits"
	case kind != "":
		return "without spaces, with valid check digits"
	case !strings.Contains(cemac, account[:2]):
		return "of a country of CEMAC: SYSTAC and SYGMA reach no other"
	}
	return ""
}

func isRIB(account string) bool { return account != "" && account[0] >= '0' && account[0] <= '9' }
