package origin_test

import (
	"errors"
	"testing"
	"time"

	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// A body is authentic for the event, the addressee and the topic for which the processor made it, and for
// nobody else.
func TestOnlyTheSignedBodyIsAuthentic(t *testing.T) {
	t.Parallel()
	macs, err := secret.GenerateKeys().MACs(secret.LabelWebhookBodies)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 29, 9, 0, 0, 1e6, time.UTC)
	n := &record.Notification{
		EventID: "evt_1", Event: "checkout.completed", ApplicationID: "app", TenantID: "agency", SessionID: "chs_1", Livemode: true, OccurredAt: at, Body: []byte(`{"a":1}`), URL: "https://a.example",
	}
	origin.SignBody(schemas.TopicWebhooks, n, macs)
	planned := func() *record.Delivery {
		return &record.Delivery{
			EventID: n.EventID, Event: n.Event, ApplicationID: n.ApplicationID, TenantID: n.TenantID, SessionID: n.SessionID, Livemode: n.Livemode,
			OccurredAt: n.OccurredAt.In(time.FixedZone("", 3600)), Body: n.Body, URL: n.URL, Mac: n.Mac,
			DeliveryID: "dlv", DestinationID: "e", Attempt: 3, Round: 2, FirstAttemptAt: at, // what the schedule changes
		}
	}
	if err := origin.VerifyBody(schemas.TopicWebhooks, planned(), macs); err != nil {
		t.Fatal(err)
	}
	if err := origin.VerifyBody(schemas.TopicPartners, planned(), macs); !errors.Is(err, origin.ErrForged) {
		t.Errorf("of another topic: %v", err)
	}
	for name, change := range map[string]func(d *record.Delivery){
		"event id":    func(d *record.Delivery) { d.EventID = "evt_2" },
		"event":       func(d *record.Delivery) { d.Event = "checkout.expired" },
		"application": func(d *record.Delivery) { d.ApplicationID = "other" },
		"agency":      func(d *record.Delivery) { d.TenantID = "other" },
		"session":     func(d *record.Delivery) { d.SessionID = "chs_2" },
		"mode":        func(d *record.Delivery) { d.Livemode = false },
		"time":        func(d *record.Delivery) { d.OccurredAt = at.Add(time.Millisecond) },
		"body":        func(d *record.Delivery) { d.Body = []byte(`{"a":2}`) },
		"no body":     func(d *record.Delivery) { d.Body = nil },
		"address":     func(d *record.Delivery) { d.URL = "https://b.example" },
		"moved bytes": func(d *record.Delivery) { d.EventID, d.Event = "evt_1c", "heckout.completed" },
		"MAC":         func(d *record.Delivery) { d.Mac = []byte("x") },
	} {
		d := planned()
		change(d)
		if err := origin.VerifyBody(schemas.TopicWebhooks, d, macs); !errors.Is(err, origin.ErrForged) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	d := planned()
	d.Mac = nil
	if err := origin.VerifyBody(schemas.TopicWebhooks, d, macs); !errors.Is(err, origin.ErrUnsigned) {
		t.Errorf("no MAC: %v", err)
	}
}
