// Package export has the JSON of a batch for whoever verifies it without the service: what the approvers signed, each line
// with its salt, and each approval with its signature. docs/operating/disbursements has two programs that read it.
//
// The form is public and only grows.
package export

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"quittance/disbursement"
	"quittance/disbursement/digest"
)

// Form names the form of an export.
const Form = "quittance disbursement export v1"

// Batch is an exported batch.
type Batch struct {
	Form string `json:"form"`
	// Batch is the signed form of the batch (digest.Batch.Form).
	Batch json.RawMessage `json:"batch"`
	// Lines are all lines in the order of the bytes of their line_ref.
	Lines     []Line     `json:"lines"`
	Approvals []Approval `json:"approvals"`
}

// Line is a line with what makes its leaf. Absent members are left out.
type Line struct {
	// Salt is 32 bytes in hexadecimal.
	Salt          string `json:"salt"`
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
}

// Approval is an approval with its signature. Bytes are base64url without padding.
type Approval struct {
	Level             int    `json:"level"`
	Person            string `json:"person"`
	For               string `json:"for,omitempty"`
	PublicKey         string `json:"public_key"` // SubjectPublicKeyInfo
	ClientData        string `json:"client_data"`
	AuthenticatorData string `json:"authenticator_data"`
	Signature         string `json:"signature"`
}

// Opened is the content of a line and its salt, as they were sealed.
type Opened struct {
	Salt [32]byte
	Line digest.Line
}

// New returns the export of a sealed batch. lines are all of it in order. The error is digest.ErrText, or says that the
// lines are not those that were sealed.
func New(s disbursement.Sealing, lines []Opened) (Batch, error) {
	form, err := s.Content.Form()
	if err != nil {
		return Batch{}, fmt.Errorf("exporting a batch: %w", err)
	}
	out := Batch{Form: Form, Batch: form, Lines: []Line{}, Approvals: []Approval{}}
	var tree digest.Tree
	for _, l := range lines {
		leaf, err := digest.Leaf(l.Salt, l.Line)
		if err != nil {
			return Batch{}, fmt.Errorf("exporting a line: %w", err)
		}
		tree = tree.Add(leaf)
		out.Lines = append(out.Lines, toLine(l))
	}
	if tree.Root() != s.Content.Root {
		return Batch{}, fmt.Errorf("exporting a batch: its lines have the root %s, sealed was %s", tree.Root(), s.Content.Root)
	}
	for _, a := range s.Approvals {
		out.Approvals = append(out.Approvals, toApproval(a))
	}
	return out, nil
}

func toLine(o Opened) Line {
	l := o.Line
	return Line{
		Salt: hex.EncodeToString(o.Salt[:]), Amount: l.Amount, BIC: l.BIC, Corrects: l.Corrects, Currency: l.Currency, IBAN: l.IBAN, LineRef: l.LineRef,
		MSISDN: l.MSISDN, Name: l.Name, Number: l.Number, PaymentMode: l.PaymentMode, PayoutAccount: l.PayoutAccount, Purpose: l.Purpose,
	}
}

func toApproval(a disbursement.Approved) Approval {
	text := base64.RawURLEncoding.EncodeToString
	x := a.Signed.Assertion
	return Approval{
		Level: a.Level, Person: a.Person, For: a.For, PublicKey: text(x.PublicKey), ClientData: text(x.ClientData),
		AuthenticatorData: text(x.AuthenticatorData), Signature: text(x.Signature),
	}
}
