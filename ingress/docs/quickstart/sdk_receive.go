//go:build ignore

// Receives webhooks and believes only those that are signed.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"

	quittance "quittance.example/go"
)

func main() {
	receiver, err := quittance.NewReceiver(os.Getenv("QUITTANCE_WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /webhooks", func(w http.ResponseWriter, r *http.Request) {
		event, err := receiver.Read(r)
		if err != nil {
			http.Error(w, "not signed", http.StatusBadRequest)
			return
		}
		if paid, ok := event.Data.(*quittance.CompletedEvent); ok && paid.Livemode {
			// Here unlock the case, once for each paid.OrderID: an event may come twice.
		}
		fmt.Println(event.Type, event.OrderID)
		w.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
