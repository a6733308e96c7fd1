// Package counter is cash at an agency's counter. Nobody is asked for that money:
// a clerk reports that it is in the till, so that its Connector is no Collector, and
// a report decides. Package ingress/counter knows the clerk by a key.
//
// The report is the body of POST /api/v1/counter/payments: payment_ref and
// collection_id of the reservation, total in minor units, and where the desk has one
// the number of its own receipt. It comes again with the same collection_id until it
// is answered, and is the same cash.
package counter

import (
	"bytes"
	"fmt"
	"net/http"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/form"
)

const (
	// Operator is the counter's short name.
	Operator = "counter"
	// MaxReceipt is how many characters a receipt's number has at most.
	MaxReceipt = 64
	// currency is what counters take (contract decisions § 7).
	currency = "XAF"
)

// Connector reads what clerks report. The zero value is ready.
type Connector struct{}

// Operator is "counter".
func (Connector) Operator() string { return Operator }

// ParseReport reads the body of a report, which approves. Its errors hold a
// *form.MalformedError or a *form.FaultsError, for the desk that is told how to mend
// it. Whether the key is a clerk's, and whether payment_ref is the session's that has
// the collection, is the caller's to check.
func (Connector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	f, err := Read(body)
	if err != nil {
		return connector.Report{}, fmt.Errorf("reading a clerk's report: %w: %w", connector.ErrReport, err)
	}
	report := Cash(f.Text("payment_ref", true, 1, 64), f.UUID("collection_id", true), f.Amount("total"), f.Line("receipt", false, MaxReceipt))
	if err := f.Err(); err != nil {
		return connector.Report{}, fmt.Errorf("reading a clerk's report: %w: %w", connector.ErrReport, err)
	}
	return report, nil
}

// Read is the form of what desk software sends. Text in another encoding than UTF-8
// costs nothing: cash that is in the till is not refused for an accent. The error is a
// *form.MalformedError.
func Read(body []byte) (*form.Form, error) {
	return form.Read(bytes.ToValidUTF8(body, []byte("\uFFFD")))
}

// Cash is the report of total minor units in the till, with the number of the desk's
// receipt if it has one.
func Cash(paymentRef, collectionID string, total int64, receipt string) connector.Report {
	return connector.Report{
		ID: collectionID, PaymentRef: paymentRef,
		Outcome: connector.Outcome{Status: checkout.OutcomeApproved, Amount: total, Currency: currency, OperatorRef: receipt},
	}
}
