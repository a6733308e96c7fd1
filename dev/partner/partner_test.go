package partner

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"quittance/money"
	"quittance/money/language"
	"quittance/money/language/languagetest"
	"quittance/test/servers"
)

// The test in test/operations covers payments, with the whole service.

func newPartner(t *testing.T) *Partner {
	t.Helper()
	p, err := New(Config{Listen: "127.0.0.1:8090", APIBase: "http://127.0.0.1:1", APIKey: "ak_test_x", SecretKey: "as_test_x", Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ask(p *Partner, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if method == http.MethodPost && !strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, r)
	return w
}

// A webhook counts only at the order's own address, and only with the order's amount and
// paymentId. Money that came stays, whatever is said later.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	o := &order{ID: "CMD-1", Stamp: stamps[0], PaymentID: 7, Status: created}
	p.orders[o.ID] = o
	own := "/notification.php?" + url.Values{"commande": {o.ID}, "cle": {p.proof(o.ID)}}.Encode()
	const said = `{"paymentId":7,"externalNumber":"CMD-1","amount":5000,"status":"completed","paidAt":"2026-11-22T09:00:00.000Z","note":null}`
	for _, c := range []struct {
		path, body string
		status     int
		after      string
		calls      int
	}{
		{"/notification.php?commande=CMD-1", said, 404, created, 0},
		{"/notification.php?commande=CMD-1&cle=" + p.proof("CMD-2"), said, 404, created, 0},
		{"/notification.php?commande=CMD-2&cle=" + p.proof("CMD-2"), said, 422, created, 0},
		{own, "{", 400, created, 0},
		{own, strings.Replace(said, "5000", "50", 1), 422, created, 0},
		{own, strings.Replace(said, ":7,", ":8,", 1), 422, created, 0},
		{own, strings.Replace(said, "completed", "paid", 1), 422, created, 0},
		{own, strings.Replace(said, "completed", "failed", 1), 200, failed, 1},
		{own, said, 200, completed, 2},
		{own, said, 200, completed, 3},
		{own, strings.Replace(said, "completed", "failed", 1), 200, completed, 4},
	} {
		if w := ask(p, http.MethodPost, c.path, c.body); w.Code != c.status || o.Status != c.after || o.Webhooks != c.calls {
			t.Errorf("%s %s: %d, then %s after %d calls", c.path, c.body, w.Code, o.Status, o.Webhooks)
		}
	}
}

// While the API is away the pages say so, and bad input is refused.
func TestPagesWithoutTheAPI(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	if w := ask(p, http.MethodGet, "/?lang=en", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Buy a stamp") || strings.Count(w.Body.String(), `name="moyen"`) != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		"timbre=TF-5000": {http.StatusBadGateway, words["fr"]["later"]}, "timbre=none&lang=en": {http.StatusUnprocessableEntity, words["en"]["choose"]},
	} {
		if w := ask(p, http.MethodPost, "/commande.php", body); w.Code != want.status || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := ask(p, http.MethodGet, "/commande.php?commande=CMD-X", ""); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), words["fr"]["unknown"]) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if _, err := New(Config{Listen: "127.0.0.1:1", APIBase: "pay.example", APIKey: "a", SecretKey: "s", Log: servers.Logger(t)}); err == nil || !strings.Contains(err.Error(), "no origin") {
		t.Errorf("New says %v", err)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, language.Table[map[string]string]{money.French: words["fr"], money.English: words["en"]})
}
