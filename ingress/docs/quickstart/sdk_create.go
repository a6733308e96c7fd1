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
	// Store the key with the order before you call: a second call with it makes nothing twice.
	order, key := "DOSSIER-"+rand.Text(), rand.Text()
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
