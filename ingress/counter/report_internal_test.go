package counter

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/form"
	"quittance/money"
	"quittance/test/connectors"
)

const anyReference = "4821093377150264"

// A clerk's report obeys the rules of operators' reports.
func TestReports(t *testing.T) {
	t.Parallel()
	parse := func(_ http.Header, body []byte) (connector.Report, error) {
		r, err := readReport(body)
		return connector.Report{ID: r.collectionID, Outcome: connector.Outcome{
			Status: checkout.OutcomeApproved, Amount: r.total, Currency: money.Default, OperatorRef: r.receipt,
		}}, err
	}
	connectors.Reports(t, parse, func(id string, amount int64, _ string) []byte {
		return fmt.Appendf(nil, `{"payment_ref":%q,"collection_id":%q,"total":%d,"receipt":"R-7"}`, anyReference, id, amount)
	})
}

// Desk software learns every field that it must mend.
func TestReportFaults(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()
	whole := map[string]string{"payment_ref": `"` + anyReference + `"`, "collection_id": `"` + id + `"`, "total": "5050"}
	for _, row := range []struct{ field, value, want string }{
		{"receipt", `"R-7"`, ""},
		{"receipt", "null", ""},
		{"receipt", "\"N\xb0 7\"", ""},
		{"receipt", `"N\ud800 7"`, ""},
		{"receipt", "\"N\ufffd 7\"", ""},
		{"receipt", "7", "receipt:type"},
		{"receipt", `"a\nb"`, "receipt:format"},
		{"receipt", `"` + strings.Repeat("x", 65) + `"`, "receipt:length"},
		{"receipt", `""`, ""},
		{"receipt", `" "`, "receipt:format"},
		{"payment_ref", "4821093377150264", "payment_ref:type"},
		{"payment_ref", `""`, "payment_ref:length"},
		{"payment_ref", "null", "payment_ref:required"},
		{"collection_id", `"k1"`, "collection_id:format"},
		{"collection_id", "null", "collection_id:required"},
		{"total", "null", "total:required"},
		{"total", `"5050"`, "total:type"},
		{"total", "5050.5", "total:type"},
		{"total", "0", "total:range"},
		{"total", "-5050", "total:range"},
		{"amount", "5050", "amount:unknown"},
	} {
		body := ""
		for name, value := range whole {
			if name != row.field {
				body += fmt.Sprintf("%q:%s,", name, value)
			}
		}
		report, err := readReport(fmt.Appendf(nil, `{%s%q:%s}`, body, row.field, row.value))
		got := ""
		var faults *form.FaultsError
		if errors.As(err, &faults) && errors.Is(err, connector.ErrReport) && len(faults.Faults) == 1 {
			got = faults.Faults[0].Field + ":" + faults.Faults[0].Rule
		}
		if got != row.want || (err == nil) != (row.want == "") || err == nil && (report.collectionID != id || report.paymentRef != anyReference) {
			t.Errorf("%s %s: %+v, %v; want %q", row.field, row.value, report, err, row.want)
		}
	}
}
