package erp

import (
	"crypto/sha256"
	"encoding/json"

	"quittance/internal/form"
	"quittance/money"
)

// Limits of a disbursement line (docs/design/decisions.md § 10, ISO 20022 where that has one).
const (
	maxLineRef     = 35
	maxName        = 140
	maxAccount     = 34
	maxBIC         = 11
	maxPaymentMode = 50
	maxPurpose     = 140
	maxMetadata    = 20
	maxKey         = 64
	maxValue       = 500
)

// Line is a line of a disbursement batch as the agency's ERP states it (docs/design/decisions.md § 10).
// Its texts are as the ERP sent them.
type Line struct {
	Ref         string // line_ref
	Beneficiary Beneficiary
	PaymentMode string
	Amount      int64 // minor units of Currency, above zero
	Currency    string
	Purpose     string // empty for none
	Metadata    map[string]string
}

// Hash returns a hash of what approvers of a batch see of the line: all but Metadata, which is the ERP's own.
func (l Line) Hash() [sha256.Size]byte {
	b := l.Beneficiary
	text, _ := json.Marshal([]any{l.Ref, b.Name, b.MSISDN, b.IBAN, b.Number, b.BIC, l.PaymentMode, l.Amount, l.Currency, l.Purpose}) // texts and a number
	return sha256.Sum256(text)
}

// Beneficiary is whom a line pays: a phone number or an account, never both.
type Beneficiary struct {
	Name   string
	MSISDN string
	// IBAN or Number, never both; BIC may be empty.
	IBAN, Number, BIC string
}

func parseLine(f *form.Form) (Line, string) {
	l := Line{Ref: reference(f, "line_ref", maxLineRef)}
	present := false
	f.Object("beneficiary", func(f *form.Form) {
		present = true
		l.Beneficiary = parseBeneficiary(f)
	})
	if !present && !f.Faulty("beneficiary") {
		f.Fault("beneficiary", "required", "is required")
	}
	l.PaymentMode = f.Line("payment_mode", true, maxPaymentMode)
	l.Amount, _ = amount(f, "amount_minor", 1)
	if l.Currency = f.Text("currency", true, 1, maxCode); l.Currency != "" {
		if _, ok := money.Lookup(l.Currency); !ok {
			f.Fault("currency", "enum", "is not in the contract's list of currencies")
		}
	}
	l.Purpose = f.Line("purpose", false, maxPurpose)
	f.Object("metadata", func(f *form.Form) {
		l.Metadata = map[string]string{}
		names := f.Names()
		if len(names) > maxMetadata {
			f.Fault("", "length", "must have at most 20 keys")
		}
		for _, name := range names {
			if len([]rune(name)) > maxKey {
				f.Fault(name, "length", "must be a key of at most 64 characters")
			}
			l.Metadata[name] = f.Text(name, false, 0, maxValue)
		}
	})
	return l, l.Ref
}

func parseBeneficiary(f *form.Form) Beneficiary {
	b := Beneficiary{Name: f.Line("name", true, maxName), MSISDN: f.Line("msisdn", false, maxLineRef)}
	account := false
	f.Object("account", func(f *form.Form) {
		account = true
		b.IBAN, b.Number, b.BIC = f.Line("iban", false, maxAccount), f.Line("number", false, maxAccount), f.Line("bic", false, maxBIC)
		if (b.IBAN == "") == (b.Number == "") && !f.Faulty("iban") && !f.Faulty("number") {
			f.Fault("iban", "required", "or number is required, and not both")
		}
		ignoreOthers(f)
	})
	if account == (b.MSISDN != "") && !f.Faulty("msisdn") && !f.Faulty("account") {
		f.Fault("msisdn", "required", "or account is required, and not both")
	}
	ignoreOthers(f)
	return b
}

// ignoreOthers makes no field unknown: further ones are the ERP's own.
func ignoreOthers(f *form.Form) { f.Names() }
