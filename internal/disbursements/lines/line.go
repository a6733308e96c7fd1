package lines

import (
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"quittance/disbursement"
	"quittance/internal/latin"
)

// lineReading is the state of reading one row.
type lineReading struct {
	*reading
	row  int
	line Line
	// Of an item: its path in the answer, and the columns of which a fault is known already. Empty for the row of a file.
	path string
	skip map[Column]bool
}

// read reads the line. amount reads its amount.
func (l *lineReading) read(amount func()) {
	l.line.Row = l.row
	l.line.Content.LineRef = l.exact(ColumnRef)
	l.reference()
	l.line.Content.Name = l.written(ColumnName, MaxName)
	amount()
	if l.line.Content.Currency = l.exact(ColumnCurrency); l.line.Content.Currency != "" && l.line.Content.Currency != l.Currency {
		l.wrong(FaultCurrency, ColumnCurrency, l.Currency)
	}
	l.payee()
	l.line.Content.Purpose = l.written(ColumnPurpose, MaxPurpose)
	l.corrected()
	for _, column := range required {
		if _, ok := l.have[column]; !ok {
			l.wrong(FaultMissing, column, "")
		}
	}
}

// wrong notes a fault of a cell.
func (l *lineReading) wrong(kind FaultKind, column Column, want string) {
	if l.skip[column] {
		return
	}
	f := Fault{Kind: kind, Row: l.row, Header: column, Cell: l.have[column].text, Want: want}
	if l.path != "" {
		f.Path = l.path + members[column]
	}
	if at, ok := l.where[column]; ok {
		f.Column = letters(at)
	}
	l.fault(f)
}

var (
	// scientific is how spreadsheets write a long number as text.
	scientific = regexp.MustCompile(`^-?\d+([.,]\d+)?[eE][+-]?\d+$`)
	// dated is how spreadsheets write a date as text.
	dated = regexp.MustCompile(`^(\d{1,2}[/.-]\d{1,2}[/.-](\d{2}|\d{4})|\d{4}[/-]\d{2}[/-]\d{2}([ T].*)?)$`)
	// broken is an error of a spreadsheet, in French or English, or a column that is too narrow.
	broken = regexp.MustCompile(`^#([A-ZÉ/ ]+[!?]?|#+)$`)
)

// text returns the text of a cell; false if it is empty, or has a fault that a spreadsheet made.
func (l *lineReading) text(column Column) (string, bool) {
	c, ok := l.have[column]
	if !ok {
		return "", false
	}
	kind, want := l.damage(column, c), ""
	if kind == "" {
		if want = unseen(c.text); want != "" {
			kind = FaultInvisible
		}
	}
	if kind != "" {
		l.wrong(kind, column, want)
		return "", false
	}
	return c.text, true
}

// damage says what a spreadsheet did to a cell; empty if nothing.
func (l *lineReading) damage(column Column, c cell) FaultKind {
	prose := column == ColumnName || column == ColumnPurpose
	account := column == ColumnPhone || column == ColumnNumber || column == ColumnIBAN
	switch {
	case c.kind == cellFormula || runs(column, c.text):
		return FaultFormula
	case c.kind == cellError || broken.MatchString(c.text):
		return FaultError
	case c.kind == cellBoolean:
		return FaultBoolean
	case c.kind == cellDate || (account || column == ColumnAmount) && dated.MatchString(c.text):
		return FaultDate
	case c.kind == cellShown && column == ColumnAmount:
		return FaultShown
	case c.kind != cellText:
		// Of an amount the number itself is what counts. Of any other text the number has lost what made it one.
		if column == ColumnAmount && l.currency.Decimals() == 0 {
			return ""
		}
		if len(only(digits, c.text)) > spreadsheetDigits || strings.ContainsAny(c.text, "eE") {
			return FaultDigits
		}
		return FaultNumber
	case !prose && scientific.MatchString(c.text) && (account || column == ColumnAmount || strings.ContainsAny(c.text, "+,.")):
		return FaultScientific
	case !prose && strings.HasPrefix(c.text, "'"):
		return FaultApostrophe
	case account && keptDigits.MatchString(c.text):
		return FaultDigits
	}
	return ""
}

// runs reports whether a spreadsheet would run a text as a formula. Lines are exported as CSV, so that no text may be one. A
// sign in front of an amount or a phone number is no formula.
func runs(column Column, text string) bool {
	signs := "=@+-"
	if column == ColumnAmount || column == ColumnPhone {
		signs = "=@"
	}
	return text != "" && strings.IndexByte(signs, text[0]) >= 0
}

const (
	// spreadsheetDigits is how many digits of a number spreadsheets keep. They put zeros in place of the others, as in
	// keptDigits.
	spreadsheetDigits = 15
	// generalDigits is how many they show without a format. They show a longer number in scientific notation.
	generalDigits = 11
)

var keptDigits = regexp.MustCompile(`^\d{15}0+$`)

// exact returns a text that the file must have in its final form.
func (l *lineReading) exact(column Column) string {
	text, ok := l.text(column)
	switch {
	case !ok:
		return ""
	case strings.TrimSpace(text) != text:
		l.wrong(FaultSpaces, column, "")
		return ""
	case latin.Unprintable(text) != "":
		l.wrong(FaultCharacter, column, latin.Unprintable(text))
		return ""
	case len(text) > disbursement.MaxText:
		l.wrong(FaultLength, column, strconv.Itoa(disbursement.MaxText))
		return ""
	}
	return text
}

// written returns a text in Latin letters.
func (l *lineReading) written(column Column, most int) string {
	text, ok := l.text(column)
	if !ok {
		return ""
	}
	ascii, bad := latin.Text(text)
	switch {
	case bad != "":
		l.wrong(FaultScript, column, bad)
		return ""
	case ascii == "" && column == ColumnName:
		l.wrong(FaultMissing, column, "")
		return ""
	case len(ascii) > most:
		l.wrong(FaultLength, column, strconv.Itoa(most))
		return ""
	case runs(column, ascii):
		l.wrong(FaultFormula, column, "")
		return ""
	}
	l.changed(column, text, ascii)
	return ascii
}

func (l *lineReading) changed(column Column, from, to string) {
	if from != to {
		l.line.Changes = append(l.line.Changes, Change{column, from, to})
	}
}

// reference remembers the line_ref, and refuses one that the file has had.
func (l *lineReading) reference() {
	ref := l.line.Content.LineRef
	if ref == "" {
		ref = "\x00" + strconv.Itoa(l.row) // counts as a line all the same
	} else if row, twice := l.refs[ref]; twice {
		l.wrong(FaultTwice, ColumnRef, l.place(row))
		ref = "\x00" + strconv.Itoa(l.row)
	}
	l.refs[ref] = l.row
}

// place returns what a fault calls the line of a row.
func (l *lineReading) place(row int) string {
	if l.path != "" {
		return itemPath(row)
	}
	return strconv.Itoa(row)
}

// corrected reads the line_ref that the line pays again.
func (l *lineReading) corrected() {
	ref := l.exact(ColumnCorrects)
	if ref == "" {
		return
	}
	row, twice := l.corrects[ref]
	switch {
	case ref == l.line.Content.LineRef:
		l.wrong(FaultCorrectsSelf, ColumnCorrects, "")
	case twice:
		l.wrong(FaultCorrectTwice, ColumnCorrects, strconv.Itoa(row))
	}
	l.corrects[ref], l.line.Content.Corrects = l.row, ref
}

var (
	whole    = regexp.MustCompile(`^\d+$`)
	grouped  = regexp.MustCompile(`^[+-]?\d{1,3}([ .,'’\x{a0}\x{202f}\x{2009}]\d{3})+([.,]\d+)?$`)
	fraction = regexp.MustCompile(`^\d+[.,]\d+$`)
	negative = regexp.MustCompile(`^(-|−|\()\d[\d., ]*\)?$`)
)

// amount reads the amount into minor units.
func (l *lineReading) amount() {
	text, ok := l.text(ColumnAmount)
	if !ok {
		return
	}
	if stored := l.have[ColumnAmount].kind; stored == cellNumber || stored == cellGeneral {
		var kind FaultKind
		if text, kind = integer(text); kind == "" && stored == cellGeneral && len(text) > generalDigits {
			kind = FaultScientific
		}
		if kind != "" {
			l.wrong(kind, ColumnAmount, l.example())
			return
		}
	}
	decimals := l.currency.Decimals()
	units, part, fractional := strings.Cut(strings.Replace(text, ",", ".", 1), ".")
	switch {
	case negative.MatchString(text):
		l.wrong(FaultNotPositive, ColumnAmount, "")
		return
	case fraction.MatchString(text) && fractional && decimals > 0 && len(part) == decimals:
	case grouped.MatchString(text):
		l.wrong(FaultThousands, ColumnAmount, l.example())
		return
	case fraction.MatchString(text) && decimals == 0:
		l.wrong(FaultDecimals, ColumnAmount, l.example())
		return
	case fraction.MatchString(text) || whole.MatchString(text) && decimals > 0:
		l.wrong(FaultNoDecimals, ColumnAmount, l.example())
		return
	case !whole.MatchString(text) || len(text) > 1 && text[0] == '0':
		l.wrong(FaultAmount, ColumnAmount, l.example())
		return
	}
	amount, err := strconv.ParseInt(units+part, 10, 64)
	switch {
	case err != nil:
		l.wrong(FaultAmountLarge, ColumnAmount, strconv.Itoa(disbursement.MaxSum))
	default:
		l.add(amount)
	}
}

// add takes an amount in minor units, and adds it to the sum.
func (l *lineReading) add(amount int64) {
	switch {
	case amount > disbursement.MaxSum:
		l.wrong(FaultAmountLarge, ColumnAmount, strconv.Itoa(disbursement.MaxSum))
		return
	case amount <= 0:
		l.wrong(FaultNotPositive, ColumnAmount, "")
		return
	}
	l.line.Content.Amount = amount
	if amount > disbursement.MaxSum-l.sum {
		if !l.oversum {
			l.wrong(FaultSum, ColumnAmount, strconv.Itoa(disbursement.MaxSum))
		}
		l.oversum = true
		return
	}
	l.sum += amount
}

// example is an amount as it must be written.
func (l *lineReading) example() string {
	if decimals := l.currency.Decimals(); decimals > 0 {
		return "1500." + strings.Repeat("0", decimals)
	}
	return "1500"
}

// payee finds the payout account by the payment mode, and reads the number that it pays.
func (l *lineReading) payee() {
	mode := l.exact(ColumnMode)
	if mode == "" {
		return
	}
	account := l.account(mode)
	if account == nil {
		l.wrong(FaultMode, ColumnMode, strings.Join(l.modes(), ", "))
		return
	}
	l.line.Content.PaymentMode, l.line.Content.PayoutAccount = mode, account.Code
	if account.Currency != l.Currency {
		l.wrong(FaultModeCurrency, ColumnMode, account.Currency)
	}
	if account.Phone != nil {
		l.unwanted(ColumnIBAN, ColumnNumber, ColumnBIC)
		l.phone(account)
		return
	}
	l.unwanted(ColumnPhone)
	l.bank()
}

func (l *lineReading) unwanted(columns ...Column) {
	for _, column := range columns {
		if _, ok := l.have[column]; ok {
			l.wrong(FaultUnwanted, column, "")
		}
	}
}

// phone reads the payee's number by the rule of the account's operator.
func (l *lineReading) phone(account *Account) {
	text, ok := l.text(ColumnPhone)
	if !ok {
		if _, there := l.have[ColumnPhone]; !there {
			l.wrong(FaultMissing, ColumnPhone, "")
		}
		return
	}
	given := strings.TrimPrefix(only(digits, text), "00")
	number, err := account.Phone(text)
	switch {
	case errors.Is(err, ErrOtherOperator):
		l.wrong(FaultOperator, ColumnPhone, "")
		return
	case err != nil:
		l.wrong(FaultPhone, ColumnPhone, "")
		return
	case given != number && account.Country+given != number:
		l.wrong(FaultZeroLost, ColumnPhone, "")
		return
	}
	l.line.Content.MSISDN = number
	l.changed(ColumnPhone, text, number)
}

// only returns the characters of a text that a set has.
func only(set, text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(set, r) {
			return r
		}
		return -1
	}, text)
}

// groups are what people write between groups of an account number.
var groups = strings.NewReplacer(" ", "", "-", "", "\u00a0", "", "\u202f", "")

// bank reads the payee's bank account: an IBAN, or a RIB.
func (l *lineReading) bank() {
	iban, hasIBAN := l.text(ColumnIBAN)
	number, hasNumber := l.text(ColumnNumber)
	_, thereIBAN := l.have[ColumnIBAN]
	_, thereNumber := l.have[ColumnNumber]
	switch {
	case thereIBAN && thereNumber:
		l.wrong(FaultTwoAccounts, ColumnNumber, "")
	case !thereIBAN && !thereNumber:
		l.wrong(FaultMissing, l.either(), "")
	}
	if hasIBAN {
		l.line.Content.IBAN = l.checked(ColumnIBAN, iban, strings.ToUpper(groups.Replace(iban)), CheckIBAN)
	}
	if hasNumber {
		l.line.Content.Number = l.checked(ColumnNumber, number, groups.Replace(number), CheckRIB)
	}
	if bic := l.exact(ColumnBIC); bic != "" {
		if !bicPattern.MatchString(bic) {
			l.wrong(FaultBIC, ColumnBIC, "")
		}
		l.line.Content.BIC = bic
	}
}

// either is the column of account numbers that the file has.
func (l *lineReading) either() Column {
	if _, ok := l.where[ColumnIBAN]; ok {
		return ColumnIBAN
	}
	return ColumnNumber
}

var bicPattern = regexp.MustCompile(`^[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?$`)

// checked returns an account number whose check holds.
func (l *lineReading) checked(column Column, text, number string, check func(string) (FaultKind, string)) string {
	if kind, want := check(number); kind != "" {
		l.wrong(kind, column, want)
		return ""
	}
	l.changed(column, text, number)
	return number
}

// decimal is how XLSX stores a number, xsd:double.
var decimal = regexp.MustCompile(`^-?\d{1,400}(\.\d{1,400})?([eE][+-]?\d{1,3})?$`)

// integer returns the digits of a number as XLSX stores it. Writers store 15000000 as 1.5E7 as well.
func integer(text string) (string, FaultKind) {
	if !decimal.MatchString(text) {
		return "", FaultAmount
	}
	value, _ := new(big.Rat).SetString(text)
	switch {
	case value.Sign() < 0:
		return "", FaultNotPositive
	case !value.IsInt():
		return "", FaultDecimals
	case len(value.Num().String()) > spreadsheetDigits:
		return "", FaultDigits
	}
	return value.Num().String(), ""
}
