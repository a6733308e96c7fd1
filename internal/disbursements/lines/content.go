package lines

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"quittance/disbursement/digest"
)

// ErrContent says that bytes are not the content of a line in its canonical form.
var ErrContent = errors.New("not the content of a line")

// content is the sealed content of a line. Its members are in the order of RFC 8785.
type content struct {
	Amount        int64  `json:"amount"` // minor units
	BIC           string `json:"bic,omitempty"`
	Corrects      string `json:"corrects,omitempty"`
	Currency      string `json:"currency,omitempty"`
	IBAN          string `json:"iban,omitempty"`
	LineRef       string `json:"line_ref,omitempty"`
	MSISDN        string `json:"msisdn,omitempty"`
	Name          string `json:"name,omitempty"`
	Number        string `json:"number,omitempty"`
	PaymentMode   string `json:"payment_mode,omitempty"`
	PayoutAccount string `json:"payout_account,omitempty"`
	Purpose       string `json:"purpose,omitempty"`
	Salt          string `json:"salt"` // hexadecimal
}

// Content returns what is encrypted of a line: the members that its leaf is made of, and the salt, as JSON in the form of
// RFC 8785. The error is digest.ErrText.
func Content(salt [32]byte, l digest.Line) ([]byte, error) {
	if _, err := digest.Leaf(salt, l); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(content{
		Amount: l.Amount, BIC: l.BIC, Corrects: l.Corrects, Currency: l.Currency, IBAN: l.IBAN, LineRef: l.LineRef, MSISDN: l.MSISDN, Name: l.Name,
		Number: l.Number, PaymentMode: l.PaymentMode, PayoutAccount: l.PayoutAccount, Purpose: l.Purpose, Salt: hex.EncodeToString(salt[:]),
	}); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// ParseContent reads what Content returns, for disbursement.Request.Same. The error is ErrContent for any other bytes, also
// for the same members in another form. It has no text of the line.
func ParseContent(data []byte) (salt [32]byte, l digest.Line, err error) {
	var c content
	if json.Unmarshal(data, &c) != nil {
		return salt, l, ErrContent
	}
	l = digest.Line{
		Amount: c.Amount, BIC: c.BIC, Corrects: c.Corrects, Currency: c.Currency, IBAN: c.IBAN, LineRef: c.LineRef, MSISDN: c.MSISDN, Name: c.Name,
		Number: c.Number, PaymentMode: c.PaymentMode, PayoutAccount: c.PayoutAccount, Purpose: c.Purpose,
	}
	if n, err := hex.Decode(salt[:], []byte(c.Salt[:min(len(c.Salt), 2*len(salt))])); err != nil || n != len(salt) {
		return [32]byte{}, digest.Line{}, ErrContent
	}
	again, err := Content(salt, l)
	if err != nil || !bytes.Equal(again, data) {
		return [32]byte{}, digest.Line{}, fmt.Errorf("another form: %w", ErrContent)
	}
	return salt, l, nil
}
