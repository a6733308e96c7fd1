package journeys_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/dev/simulator"
	"quittance/money"
	"quittance/test/servers"
)

// bank adds the page of the simulated acquirer, where citizens pay by card.
func (g *gallery) bank(t *testing.T) {
	t.Helper()
	now := galleryTime
	clock := func() time.Time { return now }
	s, err := simulator.New(simulator.Config{Now: clock, Timestamp: clock, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	handler := s.Handler()
	// Each row is a transaction of its own, after this button was pressed.
	for _, row := range []struct{ name, press, number string }{
		{name: "bank"},
		{name: "bank.approved", press: "approve"},
		{name: "bank.refused", press: "decline"},
		{name: "bank.working", press: "pay", number: "4000 0000 0000 0012"},
		{name: "bank.expired"},
		{name: "bank.unknown"},
	} {
		at := cardTransaction(t, handler, now)
		if row.press != "" {
			form := url.Values{"token": {at.Query().Get("token")}, "action": {row.press}, "card": {row.number}}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, at.Path, strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			answerTo(t, handler, r, http.StatusSeeOther)
		}
		status := http.StatusOK
		switch row.name {
		case "bank.expired":
			now = now.Add(time.Hour)
		case "bank.unknown":
			at.Path, status = at.Path+"0", http.StatusNotFound
		}
		for _, lang := range money.Languages {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, at.Path+"?"+at.RawQuery+"&lang="+string(lang), nil)
			g.tours = append(g.tours, tour{{
				name: row.name + "-" + string(lang), widths: auditWidths, pictured: true, page: pageOf(answerTo(t, handler, r, status)),
			}})
		}
	}
}

// cardTransaction requests a card payment as the service does, and returns its page.
func cardTransaction(t *testing.T, bank http.Handler, now time.Time) (at *url.URL) {
	t.Helper()
	const path = "/card/v1/transactions"
	body, err := json.Marshal(map[string]any{
		"merchant": "impots", "reference": uuid.NewString(), "amount": 6000, "currency": "EUR", "description": "Visa d’entrée",
		"return_url": "https://pay.example/c/chs_1", "callback_url": "http://" + deadAddress(t), "expires_at": now.Add(5 * time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("request\nimpots\n%d\nPOST\n%s\n%x", now.Unix(), path, sha256.Sum256(body))
	mac := hmac.New(sha256.New, []byte("simulator"))
	mac.Write([]byte(text))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", fmt.Sprintf(`HMAC-SHA256 merchant="impots", timestamp="%d", signature="%x"`, now.Unix(), mac.Sum(nil)))
	var opened struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(answerTo(t, bank, r, http.StatusCreated).Body.Bytes(), &opened); err != nil {
		t.Fatal(err)
	}
	if at, err = url.Parse(opened.URL); err != nil {
		t.Fatal(err)
	}
	return at
}
