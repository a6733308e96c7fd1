//go:build ignore

// Creates a session, prints where the citizen pays, and waits for the end.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	quittance "quittance.example/go"
)

func main() {
	ctx := context.Background()
	client, err := quittance.New(quittance.Config{URL: os.Getenv("QUITTANCE_URL"), Key: os.Getenv("QUITTANCE_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	// Keep order, due and key before you call, in your program in its database: a webhook is
	// compared with the due, and a second call with the key makes nothing twice.
	order, key := "DOSSIER-"+rand.Text(), rand.Text()
	err = os.MkdirAll("cases", 0o700)
	if err == nil {
		err = os.WriteFile("cases/"+order+".txt", []byte("5000 XAF\n"), 0o600)
	}
	if err != nil {
		log.Fatal(err)
	}
	session, err := client.CreateSession(ctx, quittance.SessionCreate{OrderID: order, Amount: 5000}, key)
	var refused *quittance.Problem
	if errors.As(err, &refused) {
		log.Fatal(refused, " ", refused.Type) // a page that says what to do
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("order_id: %s\ncheckout_url: %s\n", order, session.CheckoutURL)

	// A service waits for the webhook; asking is the fallback.
	for session.Status == "open" {
		time.Sleep(2 * time.Second)
		if session, err = client.Session(ctx, session.ID); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("status: %s, paid: %t\n", session.Status, session.Paid)
}
