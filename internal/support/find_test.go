package support_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/identity"
	"quittance/internal/sessions"
	"quittance/internal/support"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/test/servers"
	"quittance/test/topics"
)

// desks returns a function that makes the desk of a viewer of agencies, whose applications have their
// names. The read model has the payments.
func desks(t *testing.T, payments ...checkout.Session) func(viewer *identity.Staff, agencies ...string) *support.Desk {
	t.Helper()
	on := topics.Make(t, 2)
	_, pool := servers.Database(t)
	var rows []sessions.Snapshot
	for _, s := range payments {
		value, err := on.Codec.Encode(mapping.FromEvent(checkout.Event{ID: "evt", Type: checkout.EventCreated, SessionID: s.ID, Sequence: s.Sequence, OccurredAt: s.CreatedAt, Session: s}))
		if err != nil {
			t.Fatal(err)
		}
		_, row, err := sessions.Read(on.Codec, value)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, *row)
	}
	if err := sessions.NewStore(pool).Apply(t.Context(), rows, nil); err != nil {
		t.Fatal(err)
	}
	reader, err := sessions.New(sessions.Config{Pool: pool, Kafka: on.Kafka, Topology: on.Topology, Codec: on.Codec, Log: servers.Logger(t), Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { _ = reader.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return func(viewer *identity.Staff, agencies ...string) *support.Desk {
		d, err := support.New(support.Config{
			Sessions: reader, Deliveries: deliveries.NewStore(pool, nil), Cases: cases.NewStore(pool), NoJournal: errors.New("not asked"),
			Kafka: on.Kafka, Topology: on.Topology, Codec: on.Codec, Now: noon, ApplicationIDs: agencies, Viewer: viewer,
			Machine: func(_ context.Context, at time.Time) (time.Time, error) { return at, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// Others have 250 newer payments of the same order number, which hid the agency's own one: the search
// took the newest 100 of all and dropped those of others. What is of others is answered like what is
// unknown.
func TestFindInTheScopeOfTheViewer(t *testing.T) {
	t.Parallel()
	var all []checkout.Session
	for n := range 251 {
		agency := "foreign"
		if n == 0 {
			agency = "own"
		}
		at := noon.Add(time.Duration(n-300) * time.Second)
		all = append(all, checkout.Session{
			ID: checkout.NewSessionID(at, schemas.PartitionOf(agency, 2), [16]byte{byte(n)}), ApplicationID: agency, TenantID: agency, Live: n%2 == 0, OrderID: "2026-1", Amount: 5000, Currency: "XAF",
			Mode: checkout.ModeHosted, PaymentRef: fmt.Sprintf("%016d", n), CreatedAt: at, ExpiresAt: at.Add(time.Hour), Status: checkout.StatusOpen, Sequence: 1,
		})
	}
	desk := desks(t, all...)
	own := desk(&identity.Staff{ID: "018f0000-0000-7000-8000-000000000001", Name: "Jean", AgencyID: "own"}, "own")
	found, err := own.Find(t.Context(), "2026-1")
	if err != nil || len(found.Payments) != 1 || found.Payments[0].ID != all[0].ID {
		t.Errorf("own payment: %d found, %v", len(found.Payments), err)
	}
	for _, term := range []string{all[250].ID, "2026-2"} {
		if found, err := own.Find(t.Context(), term); err != nil || len(found.Payments) != 0 {
			t.Errorf("%s: %+v, %v", term, found, err)
		}
	}
	foreign, _ := own.Find(t.Context(), all[250].ID)
	unknown, _ := own.Find(t.Context(), checkout.NewSessionID(noon, 1, [16]byte{9}))
	if !reflect.DeepEqual(foreign, unknown) {
		t.Errorf("foreign %+v, unknown %+v", foreign, unknown)
	}
	_, foreignErr := own.Page(t.Context(), all[250].ID)
	_, unknownErr := own.Page(t.Context(), checkout.NewSessionID(noon, 1, [16]byte{9}))
	if !errors.Is(foreignErr, sessions.ErrNotFound) || !errors.Is(unknownErr, sessions.ErrNotFound) || foreignErr.Error() != unknownErr.Error() {
		t.Errorf("pages: %v, %v", foreignErr, unknownErr)
	}
	if found, err := desk(nil).Find(t.Context(), all[0].ID); err != nil || len(found.Payments) != 0 {
		t.Errorf("a desk without applications finds %d, %v", len(found.Payments), err)
	}
	if found, err := desk(nil, "own", "foreign").Find(t.Context(), "2026-1"); err != nil || len(found.Payments) != 200 {
		t.Errorf("operations find %d, %v", len(found.Payments), err)
	}
}
