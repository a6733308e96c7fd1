package lines

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/latin"
	"quittance/money"
)

// Limits of a file and of its texts.
const (
	MaxBytes   = 64 << 20 // of a file
	MaxName    = 70       // characters of a name, as pain.001 of most banks has it
	MaxPurpose = 140      // characters of a purpose, as unstructured remittance information has it
)

// Column is a member of a line. Its text is the member's name in digest.Line's signed form.
type Column string

// The columns of a file. ColumnAccount is none: the registry gives it by the payment mode.
const (
	ColumnRef      Column = "line_ref"
	ColumnName     Column = "name"
	ColumnAmount   Column = "amount"
	ColumnCurrency Column = "currency"
	ColumnMode     Column = "payment_mode"
	ColumnPhone    Column = "msisdn"
	ColumnIBAN     Column = "iban"
	ColumnNumber   Column = "number"
	ColumnBIC      Column = "bic"
	ColumnPurpose  Column = "purpose"
	ColumnCorrects Column = "corrects"
	ColumnAccount  Column = "payout_account"
)

// Columns are the columns of a file, in the order of the template.
var Columns = []Column{
	ColumnRef, ColumnName, ColumnAmount, ColumnCurrency, ColumnMode, ColumnPhone, ColumnIBAN, ColumnNumber, ColumnBIC, ColumnPurpose, ColumnCorrects,
}

// required are the columns that each line needs. Which account number it needs depends on the payout account.
var required = []Column{ColumnRef, ColumnName, ColumnAmount, ColumnCurrency, ColumnMode}

// member returns the text of a column in a line; not that of the amount.
func member(l *digest.Line, c Column) *string {
	switch c {
	case ColumnRef:
		return &l.LineRef
	case ColumnName:
		return &l.Name
	case ColumnCurrency:
		return &l.Currency
	case ColumnMode:
		return &l.PaymentMode
	case ColumnPhone:
		return &l.MSISDN
	case ColumnIBAN:
		return &l.IBAN
	case ColumnNumber:
		return &l.Number
	case ColumnBIC:
		return &l.BIC
	case ColumnPurpose:
		return &l.Purpose
	case ColumnCorrects:
		return &l.Corrects
	case ColumnAccount:
		return &l.PayoutAccount
	default:
		return nil
	}
}

// Rules are what the registry says about the batch.
type Rules struct {
	// Currency of the batch, such as XAF. Each line names it.
	Currency string
	// Accounts are the payout accounts from which lines may be paid.
	Accounts []Account
}

// Account is a payout account as the registry has it.
type Account struct {
	Code, Currency string
	// Modes are the payment modes whose lines it pays. A mode belongs to one account.
	Modes []string
	// Phone reads the number of a payee of the account's operator, as people write it, into digits with the calling code.
	// It returns ErrOtherOperator for a number of another operator, and any other error for a text that is no number. An
	// account without it pays bank accounts, by IBAN or RIB.
	Phone func(text string) (number string, err error)
	// Country is the calling code in the numbers that Phone returns, such as 242. A number may come without it. A number
	// to which Phone added anything else has lost a zero, and is a fault.
	Country string
}

// ErrOtherOperator says that a phone number belongs to another operator than the account's.
var ErrOtherOperator = errors.New("a number of another operator")

// ErrRules says that the rules cannot be used.
var ErrRules = errors.New("unusable rules of a file of lines")

// validate returns ErrRules with the first thing that is wrong.
func (r Rules) validate() error {
	if _, ok := money.Lookup(r.Currency); !ok {
		return fmt.Errorf("%w: the currency %q is unknown", ErrRules, r.Currency)
	}
	if len(r.Accounts) == 0 || len(r.Accounts) > disbursement.MaxAccounts {
		return fmt.Errorf("%w: %d payout accounts; give 1 to %d", ErrRules, len(r.Accounts), disbursement.MaxAccounts)
	}
	var modes []string
	for _, a := range r.Accounts {
		if a.Code == "" || latin.Unprintable(a.Code) != "" || len(a.Modes) == 0 || a.Phone != nil && a.Country == "" {
			return fmt.Errorf("%w: the payout account %q needs a code, a payment mode, and a calling code if it pays phone numbers", ErrRules, a.Code)
		}
		for _, mode := range a.Modes {
			if mode == "" || latin.Unprintable(mode) != "" || len(mode) > disbursement.MaxText || slices.Contains(modes, mode) {
				return fmt.Errorf("%w: the payment mode %q is empty, not printable ASCII, or there twice", ErrRules, mode)
			}
			modes = append(modes, mode)
		}
	}
	if len(r.modes()) == 0 {
		return fmt.Errorf("%w: no payout account is in %s", ErrRules, r.Currency)
	}
	return nil
}

// account returns the payout account of a payment mode, in whatever case of letters: ERPs write MOBILE_MONEY. It is nil if
// there is none.
func (r Rules) account(mode string) *Account {
	for i := range r.Accounts {
		if slices.ContainsFunc(r.Accounts[i].Modes, func(m string) bool { return strings.EqualFold(m, mode) }) {
			return &r.Accounts[i]
		}
	}
	return nil
}

// modes returns the payment modes that pay in the currency of the batch, in order.
func (r Rules) modes() (modes []string) {
	for _, a := range r.Accounts {
		if a.Currency == r.Currency {
			modes = append(modes, a.Modes...)
		}
	}
	slices.Sort(modes)
	return modes
}
