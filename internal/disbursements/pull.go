package disbursements

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"quittance/disbursement"
	"quittance/internal/call"
	"quittance/internal/disbursements/lines"
	"quittance/internal/erp"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// LabelERPLines is of the MACs over the lines of ERPs (internal/secret). Who pulls a batch makes one, `sink erp` verifies it
// before the batch is released.
const LabelERPLines = "erp lines"

// ERP is an agency's ERP as a source of batches. All fields are required.
type ERP struct {
	Client   *erp.Client
	Settings registry.ERPSettings
	// MACs are those of LabelERPLines.
	MACs *secret.MACs
}

// ERPError says that an ERP gave no usable answer. The ERP may have one later.
type ERPError struct {
	Result call.Result
	// Items is how many items had been read.
	Items int
}

// Error returns the reason of the result, without anything that the ERP sent.
func (e *ERPError) Error() string {
	return fmt.Sprintf("the ERP gave no usable answer (%s) after %d items", e.Result.Reason(), e.Items)
}

// Read asks the ERP for the lines of a batch and reads them by rules, as a file is read: the lines, or all faults. id names the
// lines as the ERP has them, in whatever order; it is empty if there are faults. The error is *ERPError, or lines.ErrRules.
func (x *ERP) Read(ctx context.Context, batchRef string, rules lines.Rules) (file *lines.File, id string, err error) {
	items, err := lines.NewItems(rules)
	if err != nil {
		return nil, "", err
	}
	stated, err := x.ask(ctx, batchRef, func(i erp.LineItem) { items.Add(itemOf(i)) })
	if err != nil {
		return nil, "", err
	}
	if file = items.File(); !file.Refused() {
		id = hex.EncodeToString(x.MACs.Append(nil, stated.text(x.Settings.AgencyID, x.Settings.Live, batchRef)))
	}
	return file, id, nil
}

// Same asks the ERP for the lines of a batch that was pulled, and reports whether they are still those. An ERP that has a faulty
// line, none, or too many, has others. The error is *ERPError.
func (x *ERP) Same(ctx context.Context, b disbursement.Batch) (bool, error) {
	faulty := false
	stated, err := x.ask(ctx, b.BatchRef, func(i erp.LineItem) { faulty = faulty || len(i.Faults) > 0 })
	var none *ERPError
	switch {
	case errors.As(err, &none) && none.Result.Fault == erp.FaultInvalid && none.Result.Detail == erp.InvalidTooMany:
		return false, nil
	case err != nil:
		return false, err
	}
	made, err := hex.DecodeString(b.ImportID)
	if err != nil || faulty || len(stated) != b.Count {
		return false, nil //nolint:nilerr // an id that is none of Read's is that of other lines
	}
	return x.MACs.Verify(stated.text(b.TenantID, b.Live, b.BatchRef), made), nil
}

// ask asks the ERP and calls take with each item.
func (x *ERP) ask(ctx context.Context, batchRef string, take func(erp.LineItem)) (stated statement, err error) {
	r, err := x.Client.Disbursements(ctx, x.Settings, batchRef, func(i erp.LineItem) error {
		stated = append(stated, i.Hash())
		take(i)
		return nil
	})
	if err == nil && !r.OK() {
		err = &ERPError{Result: r, Items: len(stated)}
	}
	return stated, err
}

// statement are the hashes of what an ERP states of each line. A line_ref is in an answer once, so that the same hashes are the
// same lines.
type statement [][sha256.Size]byte

// text returns what the MAC of a batch is over.
func (s statement) text(tenantID string, live bool, batchRef string) []byte {
	slices.SortFunc(s, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	head, _ := json.Marshal([]any{"quittance erp lines v1", tenantID, disbursement.Mode(live), batchRef, len(s)}) // texts and a number
	out := append(make([]byte, 0, len(head)+1+len(s)*sha256.Size), head...)
	out = append(out, '\n')
	for _, h := range s {
		out = append(out, h[:]...)
	}
	return out
}

func itemOf(i erp.LineItem) lines.Item {
	b := i.Beneficiary
	out := lines.Item{
		Ref: i.Ref, Name: b.Name, Phone: b.MSISDN, IBAN: b.IBAN, Number: b.Number, BIC: b.BIC, Mode: i.PaymentMode, Currency: i.Currency, Purpose: i.Purpose, Amount: i.Amount,
	}
	for _, f := range i.Faults {
		out.Wrong = append(out.Wrong, lines.Wrong{Path: f.Field, Rule: f.Rule})
	}
	return out
}
