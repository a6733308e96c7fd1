package counter

import (
	"bytes"
	"fmt"

	"quittance/internal/connector"
	"quittance/internal/form"
)

// maxReceipt is how many characters the number of a receipt has at most.
const maxReceipt = 64

// report is a clerk's statement that the cash of a reservation is in the till. It decides
// the collection; no operator is asked. The desk repeats it with the same collectionID
// until it is answered: the same id is the same cash.
type report struct {
	paymentRef, collectionID string
	total                    int64 // minor units of XAF, all that counters take (contract docs/design/decisions.md § 7)
	receipt                  string
}

// readReport reads the body of POST /api/v1/counter/payments. Its error wraps
// connector.ErrReport and a *form.MalformedError or a *form.FaultsError, which tell
// the desk what to mend. It does not check whose reservation the report is about.
func readReport(body []byte) (report, error) {
	f, err := readForm(body)
	if err != nil {
		return report{}, fmt.Errorf("reading a clerk's report: %w: %w", connector.ErrReport, err)
	}
	r := report{
		paymentRef: f.Text("payment_ref", true, 1, maxRef), collectionID: f.UUID("collection_id", true),
		total: f.Amount("total"), receipt: f.Line("receipt", false, maxReceipt),
	}
	if err := f.Err(); err != nil {
		return report{}, fmt.Errorf("reading a clerk's report: %w: %w", connector.ErrReport, err)
	}
	return r, nil
}

// readForm reads a body of desk software. It replaces bytes that are not UTF-8:
// cash that is in the till is not refused for an accent. The error is a
// *form.MalformedError.
func readForm(body []byte) (*form.Form, error) {
	return form.Read(bytes.ToValidUTF8(body, []byte("\uFFFD")))
}
