package statements

import (
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"quittance/checkout"
	"quittance/disbursement"
	"quittance/money"
)

// parseAmount reads a decimal with a point into minor units. why says what is wrong.
func parseAmount(text string, currency money.Currency) (amount int64, why string) {
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(text, "+")
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if scientific.MatchString(digits) {
		return 0, "The amount is in scientific notation, so a spreadsheet has rounded it."
	}
	if whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" || strings.HasSuffix(digits, ".") {
		return 0, "The amount is not a decimal number."
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > currency.Decimals() {
		return 0, "The amount has more decimals than " + currency.Code() + "."
	}
	for _, d := range []byte(whole + fraction + strings.Repeat("0", currency.Decimals()-len(fraction))) {
		if amount > (math.MaxInt64-int64(d-'0'))/10 {
			return 0, "The amount is too large."
		}
		amount = amount*10 + int64(d-'0')
	}
	if negative {
		amount = -amount
	}
	return amount, ""
}

var scientific = regexp.MustCompile(`^\d+([.,]\d+)?[eE][+-]?\d+$`)

// add returns a + b; ok is false if the sum overflows.
func add(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// checkedRef reads a cell that is meant to hold a reference of ours: a payment_ref, a notice_ref, or the payout_ref of
// money that was paid to somebody, which is a payment_ref here. why says that it was one, and what has damaged it.
func checkedRef(cell string) (paymentRef, noticeRef, why string) {
	cell = strings.TrimPrefix(strings.TrimSpace(cell), "'") // a spreadsheet's mark of a text
	if scientific.MatchString(cell) {
		return "", "", "The reference is in scientific notation: a spreadsheet read it as a number and kept 15 of its 16 digits."
	}
	ref := checkout.Ungrouped(cell)
	if noticePattern.MatchString(ref) {
		return "", ref, ""
	}
	switch {
	case disbursement.ValidPayoutRef(cell):
		return cell, "", ""
	case payoutPattern.MatchString(cell):
		return "", "", "The payout reference fails its check characters."
	}
	// A bank writes what a transfer over the switch is for: the payout_ref, and what follows it.
	if refs := payoutInText.FindAllString(cell, -1); len(refs) == 1 && disbursement.ValidPayoutRef(refs[0]) {
		return refs[0], "", ""
	}
	if strings.Trim(ref, "0123456789") != "" || len(ref) < 14 || len(ref) > 17 {
		return "", "", "" // some other reference
	}
	switch {
	case checkout.ValidPaymentRef(ref):
		return ref, "", ""
	case len(ref) == 16 && ref[15] == '0':
		return "", "", "The payment reference fails its check and ends in 0: a spreadsheet read it as a number and kept 15 of its 16 digits."
	case len(ref) < 16 && checkout.ValidPaymentRef(strings.Repeat("0", 16-len(ref))+ref):
		return "", "", "The payment reference has lost its leading zeros: a spreadsheet read it as a number."
	case len(ref) != 16:
		return "", "", "The payment reference does not have 16 digits."
	}
	return "", "", "The payment reference fails its check digits."
}

const mendReference = "Ask for the file as the operator makes it, and import it without opening it in a spreadsheet."

var (
	noticePattern = regexp.MustCompile(`^AV\d{14}$`)
	noticeInText  = regexp.MustCompile(`\bAV\d{14}\b`)
	payoutPattern = regexp.MustCompile(`^QD[0-9A-HJKMNP-TV-Z]{24}$`)
	payoutInText  = regexp.MustCompile(`\bQD[0-9A-HJKMNP-TV-Z]{24}\b`)
	// digitsInText finds 16 digits, also grouped by fours.
	digitsInText = regexp.MustCompile(`\b\d{4}[ .\x{a0}-]?\d{4}[ .\x{a0}-]?\d{4}[ .\x{a0}-]?\d{4}\b`)
)

// found collects references in the texts of a line. Two different ones of a kind contradict
// each other, so neither is taken.
type found struct {
	payment, notice, batch    string
	payments, notices, batchs bool // ambiguous
}

func once(kept *string, ambiguous *bool, ref string) {
	if *kept == "" || *kept == ref {
		*kept = ref
		return
	}
	*ambiguous = true
}

func (f *found) text(text string, batch *regexp.Regexp) {
	for _, digits := range digitsInText.FindAllString(text, -1) {
		if ref := checkout.Ungrouped(digits); checkout.ValidPaymentRef(ref) {
			once(&f.payment, &f.payments, ref)
		}
	}
	for _, ref := range payoutInText.FindAllString(text, -1) {
		if disbursement.ValidPayoutRef(ref) {
			once(&f.payment, &f.payments, ref)
		}
	}
	for _, ref := range noticeInText.FindAllString(text, -1) {
		once(&f.notice, &f.notices, ref)
	}
	if batch == nil {
		return
	}
	for _, groups := range batch.FindAllStringSubmatch(text, -1) {
		if id := token(groups[min(1, len(groups)-1)]); id != "" { // a wide pattern may match a name
			once(&f.batch, &f.batchs, id)
		}
	}
}

// joined takes a text that a bank has split over several elements, for what no element has by itself.
func (f *found) joined(parts []string, batch *regexp.Regexp) {
	if len(parts) < 2 {
		return
	}
	var whole found
	whole.text(strings.Join(parts, ""), batch)
	if f.payment == "" {
		f.payment, f.payments = whole.payment, whole.payments
	}
	if f.notice == "" {
		f.notice, f.notices = whole.notice, whole.notices
	}
	if f.batch == "" {
		f.batch, f.batchs = whole.batch, whole.batchs
	}
}

// into writes what is unambiguous to the line.
func (f *found) into(l *Line) {
	if !f.payments {
		l.PaymentRef = f.payment
	}
	if !f.notices {
		l.NoticeRef = f.notice
	}
	if !f.batchs {
		l.Batch = f.batch
	}
}

// token keeps an identifier that a person may have written. It drops a text that could be a name, without a digit or with other
// characters, or that is a number of Congo's phones as a whole, with or without the country's code.
func token(text string) string {
	text = strings.TrimSpace(text)
	if !tokenPattern.MatchString(text) || !strings.ContainsAny(text, "0123456789") || text == "NOTPROVIDED" || isPhone(text) {
		return ""
	}
	return text
}

// isPhone reports whether a text is a phone number as a whole. 04112026-1 is a date and a number: nobody separates the last
// digit of a phone.
func isPhone(text string) bool {
	return phonePattern.MatchString(separators.Replace(text)) && !datedPattern.MatchString(text)
}

// name keeps an identifier that an institution gave: the id of a statement or of a batch. It has no person's phone,
// and need not have a digit.
func name(text string) string {
	text = strings.Join(strings.Fields(strings.TrimPrefix(strings.TrimSpace(text), "'")), " ")
	if !namePattern.MatchString(text) || text == "NOTPROVIDED" {
		return ""
	}
	return text
}

// batchID keeps the id of a batch that a payer may have written: one without a digit could be a name.
func batchID(text string) string {
	if !strings.ContainsAny(text, "0123456789") {
		return ""
	}
	return name(text)
}

var (
	tokenPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:-]{0,63}$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/: -]{0,63}$`)
	phonePattern = regexp.MustCompile(`^(00)?(242)?0[4-6]\d{7}$`)
	datedPattern = regexp.MustCompile(`^(\d{8}|\d\d[-./_]\d\d[-./_]\d{4})[-./_:]\d$`)
	separators   = strings.NewReplacer(".", "", "-", "", "/", "", ":", "", "_", "")
)

// decode returns a cell in UTF-8. A cell that is not UTF-8 is Windows-1252, which includes
// the printable characters of ISO-8859-1.
func decode(cell string) string {
	if utf8.ValidString(cell) {
		return cell
	}
	text, err := charmap.Windows1252.NewDecoder().String(cell)
	if err != nil {
		return strings.ToValidUTF8(cell, "\ufffd")
	}
	return text
}
