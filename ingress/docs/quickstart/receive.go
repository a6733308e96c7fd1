//go:build ignore

// Receives webhooks and believes only those that are signed.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	secret := strings.TrimPrefix(os.Getenv("QUITTANCE_WEBHOOK_SECRET"), "whsec_")
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil || len(key) == 0 {
		log.Fatal("QUITTANCE_WEBHOOK_SECRET must be whsec_ and base64")
	}
	http.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || !signed(key, r.Header, body) {
			http.Error(w, "not signed", http.StatusBadRequest)
			return
		}
		var event struct {
			Event   string `json:"event"`
			OrderID string `json:"order_id"`
		}
		if err := json.Unmarshal(body, &event); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// Here unlock the case, before the answer, and answer 500 if that fails: the event comes again.
		// Only for checkout.completed with the livemode that you expect, and with the order, amount and
		// currency of the case; once for each order_id, since an event may come twice.
		fmt.Println(event.Event, event.OrderID)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

func signed(key []byte, h http.Header, body []byte) bool {
	id, timestamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	for _, s := range strings.Fields(h.Get("webhook-signature")) {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "v1,"))
		if err == nil && hmac.Equal(sum, mac.Sum(nil)) {
			return true
		}
	}
	return false
}
