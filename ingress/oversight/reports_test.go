package oversight_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"quittance/internal/clickhouse"
	"quittance/internal/identity"
	"quittance/internal/journal"
	"quittance/internal/report"
	"quittance/money"
	"quittance/test/backoffice"
	journaltest "quittance/test/journal"
	"quittance/test/registries"
)

// journaled gives the pages a journal in which both agencies have taken money in March 2026: one 5,075 francs, the other 999.
func journaled(t *testing.T, w *backoffice.World) clickhouse.Conn {
	t.Helper()
	addr, database := journaltest.Migrated(t)
	conn, err := clickhouse.Open(t.Context(), "http://"+addr+"/"+database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	called(t, conn, registries.AgencyA, "Direction générale des impôts", "impots")
	called(t, conn, registries.AgencyB, "Direction générale des douanes", "douanes")
	took(t, conn, registries.AgencyA, "=1+1", 5000, 75)
	took(t, conn, registries.AgencyB, "quittance-douane", 999, 0)
	w.ClickHouse = "http://" + addr + "/" + database
	return conn
}

// francs is an amount as the pages show it.
func francs(minor int64) string {
	c, _ := money.Lookup("XAF")
	return c.Format(money.French, minor)
}

// called writes the names of an agency.
func called(t *testing.T, conn clickhouse.Conn, agency, name, slug string) {
	t.Helper()
	if _, err := journal.NewStore(conn).PutNames(t.Context(), []journal.Name{
		{Kind: journal.NameAgency, ID: agency, TenantID: agency, Name: name}, {Kind: journal.NameSlug, ID: agency, TenantID: agency, Name: slug},
	}); err != nil {
		t.Fatal(err)
	}
}

// took writes a payment of March 2026.
func took(t *testing.T, conn clickhouse.Conn, agency, service string, amount, fee int64) {
	t.Helper()
	if err := conn.Exec(t.Context(), `INSERT INTO receipt_rows (row_id, movement, occurred_at, local_date, approved_on, tenant_id, livemode, channel, offer_id, session_id, order_id, service_code, service_label, currency, amount, fee_amount, total_amount)
		VALUES (generateUUIDv4(), 'completed', '2026-03-01 09:00:00', '2026-03-01', '2026-03-01', ?, true, 'MOBILE_MONEY', 'momo', ?, 'order', ?, ?, 'XAF', ?, ?, ?)`,
		agency, "chs_"+service, service, service, amount, fee, amount+fee); err != nil {
		t.Fatal(err)
	}
}

// An agency's people see the reports of their agency only; the service's people those of all. Each report has words for its columns,
// says where it comes from, and is a file with its digest in the audit table for whoever may export.
func TestReports(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	w.Seed(t, registries.Full+"  - {id: "+registries.AgencyB+", slug: douanes, name: Direction générale des douanes}\n")
	conn := journaled(t, w)
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	w.Add(t, "impots", []identity.Role{identity.RoleAccountant}, "Awa")
	w.Add(t, "impots", []identity.Role{identity.RoleReader}, "Rose")
	operator, accountant, reader := w.Enter(t, "Olive"), w.Enter(t, "Awa"), w.Enter(t, "Rose")
	const takings = "?report=takings&month=2026-03"

	form := accountant.Get("/agency/reports")
	backoffice.Want(t, form, http.StatusOK, "Recettes par moyen de paiement", `value="2026-03"`)
	backoffice.Lacks(t, form, `name="agency"`, "Provenance")
	own := accountant.Get("/agency/reports" + takings)
	backoffice.Want(t, own, http.StatusOK, "Ce que les comptes ont reçu", francs(5075), "Payé à temps", "Total", "Direction générale des impôts", "Non comparé avec Kafka", "quittance test",
		"quittance report takings --month 2026-03 --agency impots", `href="/agency/reports/file?format=csv&amp;lang=fr&amp;mode=live&amp;month=2026-03&amp;report=takings"`)
	backoffice.Lacks(t, own, "douane", "999", "chs_")
	backoffice.Lacks(t, accountant.Get("/agency/reports"+takings+"&agency="+registries.AgencyB), "douane", "999")
	backoffice.Lacks(t, reader.Get("/agency/reports"+takings), "/agency/reports/file")
	backoffice.Want(t, reader.Get("/agency/reports/file"+takings+"&format=csv"), http.StatusForbidden)
	all := operator.Get("/ops/reports" + takings + "&lang=en")
	backoffice.Want(t, all, http.StatusOK, "quittance-douane", "All, and the money of none", "Paid in time")
	backoffice.Lacks(t, operator.Get("/ops/reports"+takings+"&agency="+registries.AgencyA), "quittance-douane")
	backoffice.Want(t, accountant.Get("/agency/reports"+takings+"&mode=test"), http.StatusOK, "Rien à montrer pour 2026-03", "--mode test")
	backoffice.Want(t, operator.Get("/ops/reports?report=x&month=mars&mode=y&agency=z"), http.StatusUnprocessableEntity, `href="#report"`, `href="#month"`, `href="#mode"`, `href="#agency"`)

	t.Run("each", func(t *testing.T) {
		head := regexp.MustCompile(`<th role="columnheader" scope="col">([^<]*)</th>`)
		for _, r := range report.All() {
			a := operator.Get("/ops/reports?report=" + r.Name + "&month=2026-03")
			backoffice.Want(t, a, http.StatusOK, "quittance report "+r.Name)
			for _, m := range head.FindAllStringSubmatch(a.Body.String(), -1) {
				if strings.Contains(m[1], "_") || m[1] == strings.ToLower(m[1]) {
					t.Errorf("%s has no word for the column %s", r.Name, m[1])
				}
			}
		}
	})

	t.Run("files", func(t *testing.T) {
		for _, format := range []string{"csv", "xlsx"} {
			a := accountant.Get("/agency/reports/file" + takings + "&format=" + format)
			if got := a.Header().Get("Content-Disposition"); a.Code != http.StatusOK || got != `attachment; filename="quittance-live-impots-takings-2026-03.`+format+`"` {
				t.Errorf("%d, %s", a.Code, got)
			}
			sum := sha256.Sum256(a.Body.Bytes())
			var rows int
			if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'report.download' AND actor = $1 AND agency_id = $2 AND subject = 'takings' AND detail->>'sha256' = $3`,
				w.IDs["Awa"], registries.AgencyA, hex.EncodeToString(sum[:])).Scan(&rows); err != nil || rows != 1 {
				t.Errorf("%d rows have the digest of the file, %v", rows, err)
			}
			if format == "csv" {
				if text := a.Body.String(); !strings.Contains(text, "'=1+1") || !strings.Contains(text, "# report: takings; agency: impots; month: 2026-03") || strings.Contains(text, "douane") {
					t.Errorf("the file is\n%s", text)
				}
				continue
			}
			if f, err := excelize.OpenReader(bytes.NewReader(a.Body.Bytes())); err != nil || len(f.GetSheetList()) != 2 {
				t.Errorf("the workbook: %v", err)
			}
		}
		backoffice.Want(t, accountant.Get("/agency/reports/file"+takings+"&format=exe"), http.StatusNotFound)
	})

	t.Run("too large", func(t *testing.T) {
		if err := conn.Exec(t.Context(), fmt.Sprintf(`INSERT INTO receipt_rows (row_id, movement, occurred_at, local_date, approved_on, tenant_id, livemode, channel, offer_id, session_id, order_id, service_code, service_label, currency, amount, fee_amount, total_amount)
			SELECT generateUUIDv4(), 'completed', '2026-04-01 09:00:00', '2026-04-01', '2026-04-01', '%s', true, 'CASH', 'cash_agency', '', 'order', toString(number), 's', 'XAF', 1, 0, 1 FROM numbers(%d)`, registries.AgencyA, report.RowsAtMost+1)); err != nil {
			t.Fatal(err)
		}
		a := accountant.Get("/agency/reports?report=takings&month=2026-04")
		backoffice.Want(t, a, http.StatusOK, "plus de 5000 lignes", "quittance report takings --month 2026-04 --agency impots --format csv --out takings-2026-04.csv")
		backoffice.Lacks(t, a, "/agency/reports/file", "<table")
		leads(t, accountant.Get("/agency/reports/file?report=takings&month=2026-04&format=csv"), "/agency/reports?lang=fr&mode=live&month=2026-04&report=takings")
	})

	t.Run("not possible", func(t *testing.T) {
		// A second agency of the same name: whose rows the report would have is not sure.
		called(t, conn, registries.AgencyB, "Direction générale des douanes", "impots")
		backoffice.Want(t, accountant.Get("/agency/reports"+takings), http.StatusServiceUnavailable, "ne connaît pas encore cette administration")
		if err := journal.NewStore(conn).SetPositions(t.Context(), journal.Position{Topic: "checkout.events", Partition: 0, Position: 5, Goal: 9}); err != nil {
			t.Fatal(err)
		}
		backoffice.Want(t, operator.Get("/ops/reports"+takings), http.StatusServiceUnavailable, "quittance rebuild journal")
		w.ClickHouse = ""
		a := operator.Get("/ops/reports" + takings)
		backoffice.Want(t, a, http.StatusServiceUnavailable, "ClickHouse ne répond pas", "quittance doctor office", `<code id="command">quittance report takings --month 2026-03</code>`)
		backoffice.Lacks(t, a, "no ClickHouse")
		backoffice.Want(t, operator.Get("/ops/reports/file"+takings+"&format=csv"), http.StatusServiceUnavailable)
	})
}
