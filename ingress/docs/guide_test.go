package docs

import (
	"encoding/json"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/dev/simulator"
	guides "quittance/docs"
	"quittance/internal/erp"
	"quittance/internal/receipts"
)

// The guides for analysts are pages in each language, with their sections in the navigation and
// their examples as they are in the file.
func TestGuide(t *testing.T) {
	t.Parallel()
	h := server(t)
	for path, guide := range map[string]struct {
		title    string
		text     []byte
		sections int
		columns  []string
	}{
		"/docs/analysts":    {"Reports and analysis – Quittance API", guides.Analysts, 5, nil},
		"/docs/fr/analysts": {"États et analyse – API Quittance", guides.AnalystsFrench, 5, nil},
		"/docs/views":       {"Columns of the views – Quittance API", guides.Views, 9, []string{"approved_on", "confirmation_state", "proposed_resolution"}},
		"/docs/fr/views":    {"Colonnes des vues – API Quittance", guides.ViewsFrench, 9, []string{"approved_on", "confirmation_state", "proposed_resolution"}},
	} {
		page := get(t, h, path)
		if strings.Count(page, "<h1") != 1 || !strings.Contains(page, "<title>"+guide.title+"</title>") {
			t.Errorf("%s has not one title", path)
		}
		sections := regexp.MustCompile(`(?m)^## (.*)$`).FindAllSubmatch(guide.text, -1)
		if len(sections) < guide.sections {
			t.Fatalf("the file of %s has %d sections", path, len(sections))
		}
		for _, m := range sections {
			to := regexp.MustCompile(`<li><a href="#([\w-]+)">` + regexp.QuoteMeta(string(m[1])) + `</a>`).FindStringSubmatch(page)
			if to == nil || strings.Count(page, `<h2 id="`+to[1]+`">`) != 1 {
				t.Errorf("%s: no way leads to %q", path, m[1])
			}
		}
		text := html.UnescapeString(page)
		for _, example := range examples(guide.text) {
			if !strings.Contains(text, example) {
				t.Errorf("%s lacks the example\n%s", path, example)
			}
		}
		if strings.Contains(page, "<!--") || strings.Contains(page, "<pre>") || strings.Contains(page, "```") {
			t.Errorf("%s has marks of the file, or examples that a keyboard cannot scroll", path)
		}
		for _, column := range guide.columns {
			if !strings.Contains(page, "<td><code>"+column+"</code></td>") {
				t.Errorf("%s lacks the column %s", path, column)
			}
		}
	}
	if got, err := renderGuide([]byte("# T\n\n<!-- sql: x -->\n<b onclick=\"x\">raw</b>\n")); err != nil || strings.Contains(string(got), "<b") {
		t.Errorf("%s, %v", got, err)
	}
}

// examples returns the examples of a guide.
func examples(guide []byte) (found []string) {
	for _, m := range regexp.MustCompile("(?s)```\\w+\n(.*?)```").FindAllSubmatch(guide, -1) {
		found = append(found, string(m[1]))
	}
	return found
}

// The French guide has the examples of the English one, so that nobody adds a month up
// differently, and its sections and code.
func TestGuidesAgree(t *testing.T) {
	t.Parallel()
	inEnglish, inFrench := examples(slices.Concat(guides.Analysts, guides.Views)), examples(slices.Concat(guides.AnalystsFrench, guides.ViewsFrench))
	if len(inEnglish) < 15 || !slices.Equal(inEnglish, inFrench) {
		t.Errorf("the guides have %d and %d examples, or different ones", len(inEnglish), len(inFrench))
		for i := range min(len(inEnglish), len(inFrench)) {
			if inEnglish[i] != inFrench[i] {
				t.Errorf("%s\nis in French\n%s", inEnglish[i], inFrench[i])
			}
		}
	}
	for _, pattern := range []string{"(?m)^#", "(?m)^<!-- .*$", `(?m)^\| .[a-z_]+. \| .[A-Z]`, "`[^`\n]+`"} {
		count := func(text []byte) (n int) { return len(regexp.MustCompile(pattern).FindAll(text, -1)) }
		for english, french := range map[*[]byte]*[]byte{&guides.Analysts: &guides.AnalystsFrench, &guides.Views: &guides.ViewsFrench} {
			if in, fr := count(*english), count(*french); in > fr {
				t.Errorf("the English guide has %d of %s, the French one %d", in, pattern, fr)
			}
		}
	}
}

// The guide of the cash-in API has the mapping of the contract in both languages, and no mark
// of the file.
func TestCashinGuide(t *testing.T) {
	t.Parallel()
	h := server(t)
	for _, path := range []string{"/docs/cash-in", "/docs/fr/cash-in"} {
		page := html.UnescapeString(get(t, h, path))
		for _, row := range [][2]string{
			{"<code>apiKey</code>", "<code>Authorization: Bearer sk_…</code>"},
			{"<code>externalNumber</code>", "<code>order_id</code>"},
			{"<code>amount</code>", "<code>amount</code>"},
			{"<code>redirectUrl</code>", "<code>checkout_url</code>"},
			{"<code>GET /transactions/{number}/check-status</code>", "<code>GET /api/v1/checkout/sessions?order_id=…</code>"},
			{"webhook", "<code>checkout.completed</code>"},
		} {
			if !regexp.MustCompile(`<tr>\n<td>[^\n]*` + regexp.QuoteMeta(row[0]) + `[^\n]*</td>\n<td>[^\n]*` + regexp.QuoteMeta(row[1])).MatchString(page) {
				t.Errorf("%s does not say what replaces %s", path, row[0])
			}
		}
		if strings.Count(page, "<h1") != 1 || strings.Contains(page, "{#") || strings.Count(page, "<h3 ") != 6 || strings.Contains(page, "<th></th>") {
			t.Errorf("%s has marks of the file, or not six steps", path)
		}
	}
	// The third, of the registry file, has comments in each language.
	if inEnglish, inFrench := examples(guides.Cashin), examples(guides.CashinFrench); len(inEnglish) != 3 || len(inFrench) != 3 || !slices.Equal(inEnglish[:2], inFrench[:2]) {
		t.Error("the guides have other examples")
	}
}

// The guide for ERP vendors has examples that keep its rules, the same in both languages.
func TestERPGuide(t *testing.T) {
	t.Parallel()
	inEnglish, inFrench := examples(guides.ERP), examples(guides.ERPFrench)
	if len(inEnglish) != 5 || !slices.Equal(inEnglish, inFrench) {
		t.Fatalf("the guides have %d and %d examples, or different ones", len(inEnglish), len(inFrench))
	}
	if dues, refused, err := erp.ParseDues([]byte(inEnglish[1])); err != nil || len(dues) != 2 || len(refused) != 0 {
		t.Errorf("dues: %+v, %+v, %v", dues, refused, err)
	}
	lines := 0
	if err := erp.ReadDisbursements(strings.NewReader(inEnglish[3]), func(i erp.LineItem) error {
		if lines++; len(i.Faults) > 0 {
			t.Errorf("disbursement line: %+v", i.Faults)
		}
		return nil
	}); err != nil || lines != 2 {
		t.Errorf("%d disbursement lines, %v", lines, err)
	}
	s, err := simulator.New(simulator.Config{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if r := askBody(s.Handler(), "/erp/impots/payment-confirmations", inEnglish[2], "Idempotency-Key", "0193a1b2-0000-7000-8000-000000000001"); r.Code != http.StatusCreated {
		t.Errorf("confirmation: %d %s", r.Code, r.Body)
	}
	h := server(t)
	for path, title := range map[string]string{"/docs/erp": "For ERP vendors – Quittance API", "/docs/fr/erp": "Pour les éditeurs d’ERP – API Quittance"} {
		page := get(t, h, path)
		if strings.Count(page, "<h1") != 1 || !strings.Contains(page, "<title>"+title+"</title>") || strings.Contains(page, "{#") || strings.Count(page, "<h2 ") != 7 || len(page) > maxPage {
			t.Errorf("%s has %d sections and %d bytes, or marks of the file", path, strings.Count(page, "<h2 "), len(page))
		}
		for _, id := range []string{"check-your-system", "get-dues", "post-payment-confirmations"} {
			if !strings.Contains(page, `<h2 id="`+id+`">`) {
				t.Errorf("%s lacks the section %s", path, id)
			}
		}
	}
}

// The guide for checking receipts has an example with the claims of a token, the same in both
// languages.
func TestReceiptsGuide(t *testing.T) {
	t.Parallel()
	inEnglish, inFrench := examples(guides.Receipts), examples(guides.ReceiptsFrench)
	if len(inEnglish) != 2 || !slices.Equal(inEnglish, inFrench) {
		t.Fatalf("the guides have %d and %d examples, or different ones", len(inEnglish), len(inFrench))
	}
	var claims receipts.Claims
	strict := json.NewDecoder(strings.NewReader(inEnglish[1]))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&claims); err != nil || claims.Version != receipts.Version {
		t.Errorf("%+v, %v", claims, err)
	}
	h := server(t)
	for path, title := range map[string]string{"/docs/receipts": "Checking receipts – Quittance API", "/docs/fr/receipts": "Vérifier les reçus – API Quittance"} {
		page := get(t, h, path)
		if strings.Count(page, "<h1") != 1 || !strings.Contains(page, "<title>"+title+"</title>") || strings.Contains(page, "{#") || strings.Count(page, "<h2 ") != 4 || len(page) > maxPage {
			t.Errorf("%s has %d sections and %d bytes, or marks of the file", path, strings.Count(page, "<h2 "), len(page))
		}
		if !strings.Contains(page, `<h2 id="with-a-phone">`) {
			t.Errorf("%s lacks a section", path)
		}
	}
}

// askBody posts JSON.
func askBody(h http.Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
