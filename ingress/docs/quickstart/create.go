//go:build ignore

// Creates a session, prints where the citizen pays, and waits for the end.
package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

var (
	api    = os.Getenv("QUITTANCE_URL") + "/api/v1/checkout/sessions"
	client = &http.Client{Timeout: 20 * time.Second}
)

type session struct {
	CheckoutURL string `json:"checkout_url"`
	Status      string `json:"status"`
	Paid        bool   `json:"paid"`
}

func main() {
	// Keep order, due and key before you call: a webhook is compared with them. After no
	// answer or a 503 send the same again: it happens once.
	order, key := "DOSSIER-"+rand.Text(), rand.Text()
	keep(order, "5000 XAF\n")
	body, _ := json.Marshal(map[string]any{"order_id": order, "amount": 5000, "currency": "XAF", "description": "Patente 2026"})
	var s session
	call(http.MethodPost, api, string(body), key, &s)
	fmt.Printf("order_id: %s\ncheckout_url: %s\n", order, s.CheckoutURL)

	// A service waits for the webhook; asking by order_id is the fallback.
	for s.Status == "open" {
		time.Sleep(2 * time.Second)
		var list struct{ Items []session }
		call(http.MethodGet, api+"?order_id="+url.QueryEscape(order), "", "", &list)
		s = list.Items[0]
	}
	fmt.Printf("status: %s, paid: %t\n", s.Status, s.Paid)
}

func keep(order, due string) { // in your program a row of its database
	if err := os.MkdirAll("cases", 0o700); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("cases/"+url.PathEscape(order)+".txt", []byte(due), 0o600); err != nil {
		log.Fatal(err)
	}
}

func call(method, url, body, key string, into any) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("QUITTANCE_KEY"))
	if key != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := client.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		log.Fatalf("%s %s %v", resp.Status, text, err) // a problem's "type" leads to the mend
	}
	if err := json.Unmarshal(text, into); err != nil {
		log.Fatal(err)
	}
}
