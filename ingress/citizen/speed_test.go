package citizen_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The list of 100 dues of five references is there within a second when the ERP answers in
// 300 ms.
func TestAHundredDuesWithinASecond(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	for subject := range 5 {
		var dues []string
		for n := range 20 {
			dues = append(dues, fmt.Sprintf(`{"erp_due_ref": "D-%d-%d", "label": "Taxe %d", "amount_minor": 1000, "outstanding_minor": 1000, "original_minor": 1000, "currency": "XAF", "allow_partial": false, "revenue_line_code": "4711"}`, subject, n, n))
		}
		w.control("impots", fmt.Sprintf(`{"dues": {"TP-100-%d": [%s]}}`, subject, strings.Join(dues, ",")))
		b.link(agency, fmt.Sprint("TP-100-", subject))
	}
	const slow = 300 * time.Millisecond
	w.control("impots", `{"delay": "300ms"}`)
	begun := time.Now()
	a := b.want(b.call(http.MethodGet, "/dues", nil), http.StatusOK, "")
	took := time.Since(begun)
	t.Logf("a list of %d dues of 5 references took %v, of which the ERP %v", len(a.list("items")), took, slow)
	if len(a.list("items")) != 100 || took < slow || took > time.Second {
		t.Errorf("the list of %d dues took %v", len(a.list("items")), took)
	}
}
