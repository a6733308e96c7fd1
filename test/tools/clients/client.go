//go:build ignore

// Command client uses the client that oapi-codegen makes; see clients_test.go.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/google/uuid"

	"quittance/test/tools/clients/client"
)

func main() {
	ctx := context.Background()
	c, err := client.NewClientWithResponses(os.Getenv("QUITTANCE_URL"), client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("QUITTANCE_KEY"))
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	body := client.SessionCreate{OrderId: os.Getenv("QUITTANCE_ORDER"), Amount: 5_000_000_000}
	created, err := c.CreateSessionWithResponse(ctx, &client.CreateSessionParams{IdempotencyKey: uuid.NewString()}, body)
	if err != nil || created.JSON201 == nil {
		log.Fatal(err, created)
	}
	read, err := c.GetSessionWithResponse(ctx, created.JSON201.Id, nil)
	if err != nil || read.JSON200 == nil {
		log.Fatal(err, read)
	}
	fmt.Println(read.JSON200.Id, read.JSON200.Status, read.JSON200.Amount, read.JSON200.Mode)
	refused, err := c.CreateSessionWithResponse(ctx, &client.CreateSessionParams{IdempotencyKey: uuid.NewString()}, body)
	if err != nil || refused.ApplicationproblemJSON409 == nil {
		log.Fatal(err, refused)
	}
	fmt.Println(refused.StatusCode(), refused.ApplicationproblemJSON409.Code)

	for line := range strings.Lines(os.Getenv("QUITTANCE_EVENTS")) {
		var event client.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			log.Fatal(err)
		}
		value, err := event.ValueByDiscriminator()
		if err != nil {
			log.Fatal(err)
		}
		switch e := value.(type) {
		case client.CompletedEvent:
			fmt.Println(e.Event, e.SessionId, e.Amount, e.TotalAmount)
		case client.FailedEvent:
			fmt.Println(e.Event, e.SessionId, e.Amount, e.FailureCode)
		case client.CancelledEvent:
			fmt.Println(e.Event, e.SessionId, e.Amount, e.Status)
		case client.ExpiredEvent:
			fmt.Println(e.Event, e.SessionId, e.Amount, e.Status)
		case client.LatePaymentEvent:
			fmt.Println(e.Event, e.SessionId, e.Amount, e.TotalAmount)
		case client.ReversedEvent:
			fmt.Println(e.Event, e.SessionId, e.Amount, e.Items[0].Amount)
		}
	}
}
