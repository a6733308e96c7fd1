package batch_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/batch"
	"quittance/cmd/internal/roles"
	"quittance/dev/simulator"
	"quittance/disbursement"
	processor "quittance/processors/disbursement"
	"quittance/test/httpclient"
	"quittance/test/payroll"
	"quittance/test/registries"
	"quittance/test/servers"
)

// erpDesk is a desk of an agency with a simulated ERP, which the program may call on this machine.
type erpDesk struct {
	*desk
	url string
}

func newERPDesk(t *testing.T) *erpDesk {
	t.Helper()
	d := &erpDesk{desk: newDesk(t)}
	s, err := simulator.New(simulator.Config{Now: d.Now, Log: servers.Logger(t), ERPAuth: func(string) []simulator.Auth {
		return []simulator.Auth{{Type: simulator.AuthBearer, Token: "token-1"}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	d.url = server.URL
	d.Agency()
	enrol := disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled(d.person, "maker")}}
	enrol.Confirmed = payroll.Confirm(4, enrol.Content(), "ama", "ben")
	d.OK(processor.SenderOffice, "", enrol)
	d.Advance(25 * 3600e9)
	return d
}

// erp gives the agency its ERP.
func (d *erpDesk) erp() {
	d.office.Seed(d.t, `agencies: [{id: `+registries.AgencyA+`, slug: impots, name: Impots, erp: {test: {base_url: "`+d.url+`/erp/impots", auth: {type: bearer, token: token-1}, networks: [127.0.0.0/8]}}}]`)
}

func (d *erpDesk) control(body string) {
	d.t.Helper()
	a, err := httpclient.Default.Post(d.url+"/control/erp/impots", "application/json", strings.NewReader(body))
	if err != nil || a.Body.Close() != nil || a.StatusCode != http.StatusNoContent {
		d.t.Fatalf("%s: %v, %v", body, a.Status, err)
	}
}

// pull runs `batches pull` and returns what it printed.
func (d *erpDesk) pull(code int, more ...string) string {
	d.t.Helper()
	args := append([]string{"batches", "pull", "--agency", "impots", "--mode", "test", "--date", d.Now().Format("2006-01-02")}, more...)
	if !strings.Contains(strings.Join(more, " "), "--batch-ref") {
		args = append(args, "--batch-ref", "grants")
	}
	var out, errs bytes.Buffer
	got := cli.Program{Name: "quittance", Options: roles.Options{Loopback: true}, Groups: []cli.Group{{Commands: []cli.Command{batch.Command()}}}}.Run(d.t.Context(), append(args, d.args...), &out, &errs)
	if got != code {
		d.t.Fatalf("%q ends with %d: %s%s", args, got, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

const grants = `{"disbursements": {"grants": [
	{"line_ref": "b", "beneficiary": {"name": "Éloïse Mabiala", "msisdn": "+242066000002"}, "payment_mode": "MOBILE_MONEY", "amount_minor": 2500, "currency": "XAF"},
	{"line_ref": "a", "beneficiary": {"name": "Ngoma Jean", "msisdn": "+242066000001"}, "payment_mode": "MOBILE_MONEY", "amount_minor": 1500, "currency": "XAF"}]}}`

// The lines of the agency's ERP become a sealed batch, and what the ERP has not, or has wrongly, becomes nothing.
func TestPullCommand(t *testing.T) {
	d := newERPDesk(t)
	d.exec(`DELETE FROM erp_settings`)
	says(t, d.pull(1), "--mode: the agency has no ERP in this mode")
	d.erp()
	says(t, d.pull(1), "items: The ERP has no line under this reference of a batch.", "grants is refused: 1 fault; nothing was made")
	says(t, d.pull(1, "--lang", "fr"), "items\u00a0: L’ERP n’a aucune ligne sous cette référence de lot.")
	says(t, d.pull(2, "--batch-ref", ""), "--batch-ref: give the reference of the batch in the ERP")
	d.control(`{"disbursements": {"grants": [
		{"line_ref": "a", "beneficiary": {"name": "Ngoma Jean", "msisdn": "+242055000001"}, "payment_mode": "MOBILE_MONEY", "amount_minor": 1500, "currency": "XAF"},
		{"line_ref": "a", "beneficiary": {"name": "B", "msisdn": "+242066000002"}, "payment_mode": "MOBILE_MONEY", "amount_minor": "1500", "currency": "EUR"}]}}`)
	says(t, d.pull(1), "items[0].beneficiary.msisdn, value “+242055000001”", "items[1].line_ref, value “a”: items[0] has this reference already.", "items[1].amount_minor: ", "items[1].currency, value “EUR”", "grants is refused: 4 faults")
	var refused struct {
		State  string
		Count  int
		Faults []struct {
			Kind, Field string
			Item        int
			Row         *int
		}
	}
	text, _, _ := strings.Cut(d.pull(1, "--json"), "\nquittance: ")
	if err := json.Unmarshal([]byte(text), &refused); err != nil || refused.Count != 4 || refused.Faults[1].Field != "items[1].amount_minor" || refused.Faults[1].Kind != "item_type" || refused.Faults[1].Item != 1 || refused.Faults[1].Row != nil {
		t.Errorf("%+v, %v", refused, err)
	}

	d.control(grants)
	for how, want := range map[string]string{
		`{"away": true}`: "The connection broke", `{"cut": 1}`: "The connection broke", `{"status": 401}`: "does not accept the credentials",
	} {
		d.control(how)
		says(t, d.pull(1), "the ERP of impots gave no lines of grants, and nothing was made. ", want)
	}
	d.control(`{"status": 200}`)
	says(t, d.run(0, "list", "--mode", "test"), "there are no such batches")
	says(t, d.pull(0, "--try"), "2 lines, 4000 XAF; nothing was made", `item 0, name: "Éloïse Mabiala" becomes "Eloise Mabiala"`)
	var keys, told int
	if err := d.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM personal_keys), (SELECT count(*) FROM audit WHERE action = 'batch.pull' AND agency_id = '`+registries.AgencyA+`')`).Scan(&keys, &told); err != nil || keys != 0 || told != 8 {
		t.Errorf("%d keys, %d rows of the audit table, %v", keys, told, err)
	}

	// Nobody else sees what the ERP has.
	mine := os.Getenv("QUITTANCE_STAFF_KEY")
	t.Setenv("QUITTANCE_STAFF_KEY", d.foreign)
	says(t, d.pull(1), "no agency that you may see")
	t.Setenv("QUITTANCE_STAFF_KEY", mine)
	d.exec(`UPDATE staff_roles SET role = 'reader' WHERE staff_id = '` + d.person + `'`)
	denied := d.pull(1, "--try")
	if strings.Contains(denied, "Mabiala") {
		t.Errorf("whoever is no preparer reads %s", denied)
	}
}

// A pulled batch is sealed at once, or stays a draft that its maker looks at.
func TestPulledBatch(t *testing.T) {
	d := newERPDesk(t)
	d.erp()
	d.control(grants)
	var made struct {
		Batch, Status, Source string
		Digest                *string
		Count                 int
	}
	text, _, _ := strings.Cut(d.pull(0, "--draft", "--json"), "\nquittance: ")
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.Status != "draft" || made.Source != "erp" || made.Count != 2 || made.Digest != nil {
		t.Fatalf("%+v, %v: %s", made, err, text)
	}
	says(t, d.pull(1), "(batch.ref_live)")
	d.OK(processor.SenderOperator, made.Batch, disbursement.Discard{By: d.person})
	says(t, d.pull(2, "--draft", "--names-not-checked", "x"), "leave it out with --draft")
	says(t, d.pull(0), "grants, revision 2, with 2 lines, 4000 XAF, is sealed", "item 0, name")
	d.control(strings.Replace(grants, "grants", "others", 1))
	says(t, d.pull(1, "--batch-ref", "others"), "ref of line a: ", "(line.ref_taken)")
}
