//go:build ignore

// Receives webhooks. It answers 2xx only after the case is stored: what is answered 2xx never comes again.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	quittance "quittance.example/go"
)

var (
	live = strings.HasPrefix(os.Getenv("QUITTANCE_KEY"), "sk_live_")
	mu   sync.Mutex
)

func main() {
	receiver, err := quittance.NewReceiver(os.Getenv("QUITTANCE_WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /webhooks", func(w http.ResponseWriter, r *http.Request) {
		event, err := receiver.Read(r)
		if errors.Is(err, quittance.ErrSignature) {
			http.Error(w, "not signed", http.StatusBadRequest)
			return
		}
		if err == nil {
			err = store(event)
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
// Here a case is a file. sdk_create.go wrote its first line, the due, before it created the session;
// each other line is the last word about the money of a session. A case is unlocked while one of them ends in paid.
func store(e quittance.Event) error {
	if e.Livemode != live {
		return nil // test money unlocks nothing
	}
	var state string
	switch data := e.Data.(type) {
	case *quittance.CompletedEvent:
		state = "paid"
	case *quittance.ReversedEvent:
		if !data.WasCompleted {
			return nil // money that had unlocked nothing
		}
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
