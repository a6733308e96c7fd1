//go:build ignore

// Receives webhooks. It answers 2xx only after the case is stored: what is answered 2xx never comes again.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type event struct {
	Event        string `json:"event"`
	Livemode     bool   `json:"livemode"`
	Sequence     int64  `json:"sequence"`
	SessionID    string `json:"session_id"`
	OrderID      string `json:"order_id"`
	Amount       int64  `json:"amount"`
	Currency     string `json:"currency"`
	WasCompleted bool   `json:"was_completed"`
}

var (
	live = strings.HasPrefix(os.Getenv("QUITTANCE_KEY"), "sk_live_")
	mu   sync.Mutex
)

func main() {
	secret := strings.TrimPrefix(os.Getenv("QUITTANCE_WEBHOOK_SECRET"), "whsec_")
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil || len(key) == 0 || os.Getenv("QUITTANCE_KEY") == "" {
		log.Fatal("QUITTANCE_KEY must be sk_…, QUITTANCE_WEBHOOK_SECRET must be whsec_ and base64")
	}
	http.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || !signed(key, r.Header, body) {
			http.Error(w, "not signed", http.StatusBadRequest)
			return
		}
		var e event
		err = json.Unmarshal(body, &e)
		if err == nil {
			err = store(e)
		}
		if err != nil {
			log.Print(err)
			http.Error(w, "not stored", http.StatusInternalServerError) // the event comes again
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

// store keeps what an event says about a case: in your program one transaction of its database.
// Here a case is a file. create.go wrote its first line, the due, before it created the session;
// each other line is the last word about the money of a session. A case is unlocked while one of them ends in paid.
func store(e event) error {
	var state string
	switch {
	case e.Livemode != live: // test money unlocks nothing
		return nil
	case e.Event == "checkout.completed":
		state = "paid"
	case e.Event == "checkout.reversed" && e.WasCompleted: // the money was given back
		state = "reversed"
	default:
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	name := "cases/" + url.PathEscape(e.OrderID) + ".txt"
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Stat("cases") // the order of another system that shares the endpoint, if there is a store
		return err
	}
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if state == "paid" && lines[0] != fmt.Sprint(e.Amount, " ", e.Currency) {
		state = "differs" // a person must look at it
	}
	kept := lines[:1]
	for _, line := range lines[1:] {
		var session string
		var sequence int64
		if _, err := fmt.Sscan(line, &session, &sequence); err != nil {
			return err
		}
		if session != e.SessionID {
			kept = append(kept, line)
		} else if sequence >= e.Sequence {
			return nil // this event was stored before, or a later one
		}
	}
	kept = append(kept, fmt.Sprint(e.SessionID, " ", e.Sequence, " ", state))
	if err := replace(name, strings.Join(kept, "\n")+"\n"); err != nil {
		return err
	}
	fmt.Println(e.OrderID, state)
	return nil
}

// replace replaces a file by one that is on the disk as a whole.
func replace(name, text string) error {
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
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
