package simulator_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/dev/simulator"
)

func confirmationBody(id string) map[string]any {
	return map[string]any{
		"erp_due_ref": "D-1", "transaction_id": id, "notice_ref": "AV20260000000042", "payment_ref": "1234567890123456",
		"subject_ref": nil, "amount_minor": 5000, "currency": "XAF", "partial": false,
		"paid_at": "2026-09-30T08:15:00Z", "service_code": "patente",
		"payment": map[string]any{"channel": "MOBILE_MONEY", "offer_id": "momo", "operator_ref": "123456789012345", "payer_masked": "06 6•• •• 01"},
	}
}

// confirm posts body to the ERP of impots. header replaces the usual headers; an empty
// value removes one.
func (w *world) confirm(key string, body map[string]any, header map[string]string) answer {
	w.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]string{"Content-Type": "application/json", "Idempotency-Key": key, "Authorization": "Bearer erp-token"}
	maps.Copy(all, header)
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	return w.call(http.MethodPost, "/erp/impots/payment-confirmations", string(text), all)
}

// erpBook is the answer of GET /control/erp/{agency}.
type erpBook struct {
	Totals struct {
		Attempts, Accepted, Repeated, Refused int
	}
	Accepted []struct {
		ID            int64
		TransactionID string `json:"transaction_id"`
		Accepted      int
		Attempts      int
		Body          map[string]any
	}
	Attempts []struct {
		ID            int64
		TransactionID string `json:"transaction_id"`
		Status        int
		Code          string
	}
}

func (w *world) erpBook(query string) erpBook {
	w.t.Helper()
	var b erpBook
	w.call(http.MethodGet, "/control/erp/impots"+query, "", nil).decode(w.t, &b)
	return b
}

func withERPToken(c *simulator.Config) {
	c.ERPAuth = func(agency string) []simulator.Auth {
		if agency != "impots" {
			return nil
		}
		return []simulator.Auth{
			{Type: simulator.AuthBearer, Token: "erp-token"},
			{Type: simulator.AuthAPIKey, Header: "X-API-Key", Value: "erp-key"},
			{Type: simulator.AuthBasic, Username: "erp", Password: "secret"},
		}
	}
}

func TestERPRecordsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withERPToken)
	id := uuid.NewString()
	if a := w.confirm(id, confirmationBody(id), nil); a.status != http.StatusCreated {
		t.Fatalf("first: %d %s", a.status, a.body)
	}
	if a := w.confirm(id, confirmationBody(id), nil); a.status != http.StatusConflict || !strings.Contains(a.body, `"code":"already_recorded"`) {
		t.Errorf("same again: %d %s", a.status, a.body)
	}
	other := confirmationBody(id)
	other["amount_minor"] = 5001
	if a := w.confirm(id, other, nil); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "transaction_id_reused") {
		t.Errorf("same id, other body: %d %s", a.status, a.body)
	}
	second := uuid.NewString()
	w.confirm(second, confirmationBody(second), nil)

	b := w.erpBook("")
	if len(b.Accepted) != 2 || b.Accepted[0].TransactionID != id || b.Accepted[0].Accepted != 1 || b.Accepted[0].Attempts != 3 {
		t.Errorf("accepted: %+v", b.Accepted)
	}
	if got := b.Accepted[0].Body["amount_minor"]; got != float64(5000) {
		t.Errorf("the body kept has amount_minor %v", got)
	}
	if len(b.Attempts) != 4 || b.Totals.Attempts != 4 || b.Totals.Accepted != 2 || b.Totals.Repeated != 1 || b.Totals.Refused != 1 {
		t.Errorf("attempts %+v, totals %+v", b.Attempts, b.Totals)
	}
	if b := w.erpBook("?after=1&attempts_after=3"); len(b.Accepted) != 1 || b.Accepted[0].TransactionID != second || len(b.Attempts) != 1 {
		t.Errorf("second page: %+v", b)
	}
	w.call(http.MethodDelete, "/control/erp/impots", "", nil)
	if b := w.erpBook(""); len(b.Accepted) != 0 || len(b.Attempts) != 0 || b.Totals.Attempts != 0 {
		t.Errorf("after DELETE: %+v", b)
	}
	if a := w.confirm(id, confirmationBody(id), nil); a.status != http.StatusCreated {
		t.Errorf("after DELETE: %d", a.status)
	}
}

func TestERPIsStrictAboutHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withERPToken)
	id := uuid.NewString()
	for name, row := range map[string]struct {
		header map[string]string
		key    string
		status int
	}{
		"no credentials":         {map[string]string{"Authorization": ""}, id, 401},
		"wrong token":            {map[string]string{"Authorization": "Bearer other"}, id, 401},
		"wrong api key":          {map[string]string{"Authorization": "", "X-API-Key": "other"}, id, 401},
		"wrong password":         {basic("erp", "other", map[string]string{}), id, 401},
		"not JSON by its header": {map[string]string{"Content-Type": "text/plain"}, id, 415},
		"no content type":        {map[string]string{"Content-Type": ""}, id, 415},
		"no idempotency key":     {nil, "", 400},
		"another key":            {nil, uuid.NewString(), 422},
	} {
		if a := w.confirm(row.key, confirmationBody(id), row.header); a.status != row.status {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, row.status)
		}
	}
	for name, header := range map[string]map[string]string{
		"bearer":                {},
		"api key":               {"Authorization": "", "X-API-Key": "erp-key"},
		"basic":                 basic("erp", "secret", map[string]string{}),
		"content type, charset": {"Content-Type": "application/json; charset=utf-8"},
	} {
		id := uuid.NewString()
		if a := w.confirm(id, confirmationBody(id), header); a.status != http.StatusCreated {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	for _, path := range []string{"/health", "/dues?subject_ref=N", "/disbursements?batch_ref=B"} {
		if a := w.call(http.MethodGet, "/erp/impots"+path, "", nil); a.status != http.StatusUnauthorized {
			t.Errorf("%s without credentials: %d", path, a.status)
		}
	}
	// An agency without credentials in its settings accepts every request.
	if a := w.call(http.MethodGet, "/erp/douanes/health", "", nil); a.status != http.StatusOK {
		t.Errorf("open ERP: %d", a.status)
	}
}

func TestERPIsStrictAboutFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withERPToken)
	type members = map[string]any
	wrong := map[string][]any{
		"erp_due_ref":    {nil, "", 7},
		"transaction_id": {nil, "42", strings.ToUpper(uuid.NewString())},
		"notice_ref":     {nil, "AV2026", 7},
		"payment_ref":    {nil, "123", 1234567890123456},
		"subject_ref":    {"", 7},
		"amount_minor":   {nil, 0, -1, 1.5, "5000"},
		"currency":       {nil, "xaf", "FCFA"},
		"partial":        {nil, "false", 0},
		"paid_at":        {nil, "30/09/2026", 1790000000},
		"service_code":   {"", "Patente", 7},
		"payment":        {nil, "MOBILE_MONEY", []any{}},
		"surplus":        {nil, 1},
	}
	wrongPayment := map[string][]any{
		"channel":      {nil, "BANK", "mobile_money"},
		"offer_id":     {nil, "", 7},
		"operator_ref": {nil, "", 7},
		"payer_masked": {"", 7, "+242 066000001"},
		"surplus":      {true},
	}
	try := func(field string, change func(members)) {
		t.Helper()
		id := uuid.NewString()
		body := confirmationBody(id)
		change(body)
		a := w.confirm(id, body, nil)
		if a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, `"field":"`+field+`"`) || !strings.Contains(a.body, `"mend"`) {
			t.Errorf("%s: %v: %d %s", field, body, a.status, a.body)
		}
	}
	for field, values := range wrong {
		for _, v := range values {
			try(field, func(b members) { b[field] = v })
		}
		if field != "surplus" {
			try(field, func(b members) { delete(b, field) })
		}
	}
	for field, values := range wrongPayment {
		for _, v := range values {
			try("payment."+field, func(b members) { b["payment"].(members)[field] = v })
		}
		if field != "surplus" {
			try("payment."+field, func(b members) { delete(b["payment"].(members), field) })
		}
	}
	if b := w.erpBook(""); b.Totals.Accepted != 0 {
		t.Errorf("%d faulty confirmations were accepted", b.Totals.Accepted)
	}
	for name, text := range map[string]string{"no JSON": "{", "no object": "[]"} {
		a := w.call(http.MethodPost, "/erp/impots/payment-confirmations", text,
			map[string]string{"Content-Type": "application/json", "Idempotency-Key": "x", "Authorization": "Bearer erp-token"})
		if a.status != http.StatusBadRequest && a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	// Members that may be null may also have a value.
	id := uuid.NewString()
	body := confirmationBody(id)
	body["subject_ref"], body["service_code"] = "NIU-1", nil
	body["payment"].(members)["payer_masked"] = nil
	if a := w.confirm(id, body, nil); a.status != http.StatusCreated {
		t.Errorf("nulls: %d %s", a.status, a.body)
	}
}

func TestERPOutages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withERPToken)
	auth := map[string]string{"Authorization": "Bearer erp-token"}
	id := uuid.NewString()
	w.control("/erp/impots", `{"status":500,"times":2}`)
	for range 2 {
		if a := w.confirm(id, confirmationBody(id), nil); a.status != http.StatusInternalServerError {
			t.Errorf("during the outage: %d", a.status)
		}
	}
	if a := w.confirm(id, confirmationBody(id), nil); a.status != http.StatusCreated {
		t.Errorf("after it: %d", a.status)
	}

	w.control("/erp/impots", `{"refuse":{"status":422,"code":"due_closed"}}`)
	if a := w.call(http.MethodGet, "/erp/impots/health", "", auth); a.status != http.StatusOK {
		t.Errorf("health while confirmations are refused: %d", a.status)
	}
	refused := uuid.NewString()
	if a := w.confirm(refused, confirmationBody(refused), nil); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, `"code":"due_closed"`) {
		t.Errorf("refusal: %d %s", a.status, a.body)
	}

	w.control("/erp/impots", `{"delay":"100ms"}`)
	started := time.Now()
	if a := w.confirm(refused, confirmationBody(refused), nil); a.status != http.StatusCreated || time.Since(started) < 100*time.Millisecond {
		t.Errorf("slow ERP: %d after %s", a.status, time.Since(started))
	}
	w.control("/erp/impots", `{"status":200}`)
	if b := w.erpBook(""); b.Totals.Accepted != 2 || b.Totals.Refused != 3 {
		t.Errorf("totals %+v", b.Totals)
	}
}

func TestERPDuesAndDisbursements(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	get := func(path string) answer { return w.call(http.MethodGet, "/erp/impots"+path, "", nil) }
	w.control("/erp/impots", `{"dues":{"NIU-1":[{"erp_due_ref":"D-1"},{"erp_due_ref":"D-2"}]},"disbursements":{"B-1":[{"line_ref":"L-1"}]}}`)
	if a := get("/dues?subject_ref=NIU-1"); a.body != `{"items":[{"erp_due_ref":"D-1"},{"erp_due_ref":"D-2"}]}`+"\n" {
		t.Errorf("dues: %s", a.body)
	}
	if a := get("/disbursements?batch_ref=B-1"); a.body != `{"items":[{"line_ref":"L-1"}]}`+"\n" {
		t.Errorf("disbursements: %s", a.body)
	}
	if a := get("/dues?subject_ref=NIU-2"); a.status != http.StatusOK || a.body != `{"items":[]}`+"\n" {
		t.Errorf("unknown subject: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/dues", "/dues?subject_ref=", "/dues?batch_ref=B-1", "/disbursements?batch_ref=B-1&x=1"} {
		if a := get(path); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	w.control("/erp/impots", `{"dues":{"NIU-1":[]}}`)
	if a := get("/dues?subject_ref=NIU-1"); a.body != `{"items":[]}`+"\n" {
		t.Errorf("dues after they were paid: %s", a.body)
	}
}
