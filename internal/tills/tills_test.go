package tills_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/sessions"
	"quittance/internal/tills"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/test/registries"
	"quittance/test/servers"
)

var actor = operation.Actor{Kind: operation.ActorPerson, Name: "impots/c01"}

// counter is an agency's counter over a real read model.
type counter struct {
	*tills.Tills
	t     *testing.T
	pool  *pgxpool.Pool
	store *sessions.Store
	codec *schemas.Codec
	now   time.Time
	paid  int
}

var (
	c01 = tills.Who{AgencyID: registries.AgencyA, Clerk: "c01", Counter: "Hall"}
	c02 = tills.Who{AgencyID: registries.AgencyA, Clerk: "c02", Counter: "Hall"}
)

func newCounter(t *testing.T) *counter {
	t.Helper()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	c := &counter{t: t, pool: h.Pool, store: sessions.NewStore(h.Pool), now: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)}
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: 1}
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	if _, err := kafka.Migrate(t.Context(), cfg, cl); err != nil {
		t.Fatal(err)
	}
	topology, err := kafka.Load(t.Context(), cfg, cl)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.codec, err = schemas.NewCodec(t.Context(), registry, true); err != nil {
		t.Fatal(err)
	}
	reader, err := sessions.New(sessions.Config{Pool: h.Pool, Kafka: cfg, Topology: topology, Codec: c.codec, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := reader.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	if c.Tills, err = tills.New(tills.Config{Pool: h.Pool, ReadModel: reader, Now: func() time.Time { return c.now }}); err != nil {
		t.Fatal(err)
	}
	return c
}

// cash puts cash of an amount on record that c01 took, and that a clerk gave back unless by
// is empty.
func (c *counter) cash(amount int64, at time.Time, by string) {
	c.t.Helper()
	c.paid++
	s := checkout.Session{
		ID: checkout.NewSessionID(at, 0, [16]byte{byte(c.paid), byte(c.paid >> 8)}), ApplicationID: registries.AppA, TenantID: registries.AgencyA, OrderID: fmt.Sprint(c.paid), Amount: amount, Currency: "XAF",
		PaymentRef: fmt.Sprintf("%016d", c.paid), CreatedAt: at, ExpiresAt: at, Status: checkout.StatusCompleted, Sequence: 3, ServiceLabel: "Patente",
		Collection: &checkout.Collection{
			ID: fmt.Sprint("collection-", c.paid), Channel: checkout.ChannelCash, Status: checkout.CollectionApproved, Amount: amount, Currency: "XAF",
			Clerk: "c01", DecidedAt: at, Account: "Hall", ReversedBy: by,
		},
	}
	if by != "" {
		s.Collection.ReversedAt = at.Add(time.Second)
	}
	value, err := c.codec.Encode(mapping.FromEvent(checkout.Event{ID: "evt", Type: checkout.EventCompleted, SessionID: s.ID, Sequence: 3, OccurredAt: at, Session: s}))
	if err != nil {
		c.t.Fatal(err)
	}
	_, snapshot, err := sessions.Read(c.codec, value)
	if err == nil {
		err = c.store.Apply(c.t.Context(), []sessions.Snapshot{*snapshot}, nil)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *counter) refused(err error, code, field string) operation.Args {
	c.t.Helper()
	refused := (*operation.Error)(nil)
	if !errors.As(err, &refused) || refused.Code != code || refused.Field != field {
		c.t.Fatalf("%v, want %s at %q", err, code, field)
	}
	return refused.Args
}

func (c *counter) must(t tills.Till, err error) tills.Till {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	return t
}

// A day: open, take, give back, count wrongly, explain, correct, sign. Each movement counts in
// one till.
func TestTill(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	ctx := t.Context()
	c.cash(7, c.now.Add(-24*time.Hour), "") // before the day of the first till
	c.cash(1000, c.now, "")                 // before the opening, and on its day
	if taken, returned, err := c.Uncounted(ctx, c01); err != nil || taken != (tills.Sum{Count: 1, Amount: 1000}) || returned.Count != 0 {
		t.Errorf("not counted yet: %+v %+v %v", taken, returned, err)
	}
	_, err := c.Open(ctx, actor, c01, -1)
	c.refused(err, "till.amount_out_of_range", "opening")
	first := c.must(c.Open(ctx, actor, c01, 20_000))
	if again := c.must(c.Open(ctx, actor, c01, 5)); again != first || first.Number != 1 || first.Opening != 20_000 {
		t.Errorf("opened twice: %+v, %+v", first, again)
	}
	if got, ok, err := c.Current(ctx, c01); err != nil || !ok || got != first {
		t.Errorf("current is %+v, %v, %v", got, ok, err)
	}
	c.cash(5050, c.now.Add(time.Hour), "c02")
	c.cash(300, c.now.Add(2*time.Hour), "c01") // beside another payment: the clerk gave it back
	c.now = c.now.Add(8 * time.Hour)

	_, err = c.Count(ctx, actor, c02, first.ID, 26_350, "")
	c.refused(err, "till.unknown", "id")
	_, err = c.Count(ctx, actor, c01, "x", 26_350, "")
	c.refused(err, "till.unknown", "id")
	_, err = c.Count(ctx, actor, tills.Who{AgencyID: c01.AgencyID, Live: true, Clerk: "c01"}, first.ID, 26_350, "")
	c.refused(err, "till.unknown", "id")
	_, err = c.Count(ctx, actor, c01, first.ID, -1, "")
	c.refused(err, "till.amount_out_of_range", "counted")
	_, err = c.Count(ctx, actor, c01, first.ID, 26_000, "")
	if args := c.refused(err, "till.note_required", "note"); args["difference"] != int64(-50) {
		t.Errorf("refused with %v", args)
	}
	if got, ok, err := c.Current(ctx, c01); err != nil || !ok || got != first {
		t.Errorf("a refused count closes %+v, %v, %v", got, ok, err)
	}
	_, err = c.Sign(ctx, actor, c02, first.ID, first.Version(), 0)
	c.refused(err, "till.not_closed", "")
	closed := c.must(c.Count(ctx, actor, c01, first.ID, 26_000, "a coin is missing"))
	if !closed.Closed() || closed.Taken != (tills.Sum{Count: 3, Amount: 6350}) || closed.Returned != (tills.Sum{Count: 1, Amount: 300}) || closed.Expected() != 26_050 || closed.Difference() != -50 {
		t.Errorf("closed is %+v", closed)
	}
	if again := c.must(c.Count(ctx, actor, c01, first.ID, 26_000, "a coin is missing")); again != closed {
		t.Errorf("closed again is %+v", again)
	}

	// What is on record later does not change a closed till, also after a rebuild.
	c.cash(90, c.now.Add(-time.Hour), "") // stamped before the closing
	if err := c.store.Empty(ctx, actor, c.now, "x", nil); err != nil {
		t.Fatal(err)
	}
	c.paid = 0
	c.cash(7, closed.OpenedAt.Add(-24*time.Hour), "")
	c.cash(1000, closed.OpenedAt, "")
	c.cash(5050, closed.OpenedAt.Add(time.Hour), "c02")
	c.cash(300, closed.OpenedAt.Add(2*time.Hour), "c01")
	c.cash(90, c.now.Add(-time.Hour), "")

	_, err = c.Sign(ctx, actor, c01, first.ID, closed.Version(), 26_000)
	c.refused(err, "till.second_person", "")
	_, err = c.Sign(ctx, actor, c02, first.ID, closed.Version(), 26_050)
	c.refused(err, "till.count_differs", "counted")
	corrected := c.must(c.Count(ctx, actor, c01, first.ID, 26_050, ""))
	if corrected.Difference() != 0 || corrected.Taken != closed.Taken || !corrected.ClosedAt.Equal(closed.ClosedAt) {
		t.Errorf("corrected is %+v", corrected)
	}
	if _, unsigned, err := c.Recent(ctx, c02); err != nil || len(unsigned) != 1 || unsigned[0] != corrected {
		t.Errorf("to sign: %+v, %v", unsigned, err)
	}
	signed := c.must(c.Sign(ctx, actor, c02, first.ID, corrected.Version(), 26_050))
	if again := c.must(c.Sign(ctx, actor, c02, first.ID, corrected.Version(), 26_050)); again != signed || signed.SignedBy != "c02" || !signed.SignedAt.Equal(c.now) {
		t.Errorf("signed is %+v, again %+v", signed, again)
	}
	_, err = c.Count(ctx, actor, c01, first.ID, 1, "x")
	c.refused(err, "till.signed", "")
	report, movements, err := c.Report(ctx, c02, first.ID)
	if err != nil || report != signed || len(movements) != 4 || movements[0].Amount != 1000 || movements[3].Kind != checkout.CashReturned || movements[3].ServiceLabel != "Patente" {
		t.Errorf("the report is %+v %+v, %v", report, movements, err)
	}

	// The next till counts what came too late for the first one, and the other clerk's till
	// what that clerk gave back.
	c.now = c.now.Add(16 * time.Hour)
	second := c.must(c.Open(ctx, actor, c01, 0))
	second = c.must(c.Count(ctx, actor, c01, second.ID, 90, ""))
	if second.Number != 2 || second.Taken != (tills.Sum{Count: 1, Amount: 90}) {
		t.Errorf("the second is %+v", second)
	}
	theirs := c.must(c.Open(ctx, actor, c02, 6000))
	if taken, returned, err := c.Uncounted(ctx, c02); err != nil || taken.Count != 0 || returned.Count != 0 {
		t.Errorf("restitutions of an earlier day: %+v %+v %v", taken, returned, err) // before the day of their first till
	}
	if theirs = c.must(c.Count(ctx, actor, c02, theirs.ID, 6000, "")); theirs.Number != 1 || theirs.Returned.Count != 0 {
		t.Errorf("theirs is %+v", theirs)
	}
	var actions []string
	if err := c.pool.QueryRow(ctx, `SELECT array_agg(action ORDER BY id) FROM audit WHERE subject = $1`, first.ID).Scan(&actions); err != nil || fmt.Sprint(actions) != "[till.open till.close till.recount till.sign]" {
		t.Errorf("audited are %v, %v", actions, err)
	}
}

// A signature covers the note that the second clerk saw, and every note is in the audit table.
func TestSignatureCoversTheNote(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	ctx := t.Context()
	till := c.must(c.Open(ctx, actor, c01, 100))
	seen := c.must(c.Count(ctx, actor, c01, till.ID, 50, "a coin is missing"))
	changed := c.must(c.Count(ctx, actor, c01, till.ID, 50, "c02 took it"))
	for _, version := range []string{seen.Version(), ""} {
		_, err := c.Sign(ctx, actor, c02, till.ID, version, 50)
		c.refused(err, "till.changed", "")
	}
	if signed := c.must(c.Sign(ctx, actor, c02, till.ID, changed.Version(), 50)); !signed.Signed() {
		t.Errorf("signed is %+v", signed)
	}
	var notes string
	if err := c.pool.QueryRow(ctx, `SELECT string_agg(concat_ws(', ', action, detail->>'note', detail->>'note_before'), '; ' ORDER BY id) FROM audit WHERE subject = $1`, till.ID).Scan(&notes); err != nil ||
		notes != "till.open; till.close, a coin is missing; till.recount, c02 took it, a coin is missing; till.sign, c02 took it" {
		t.Errorf("audited is %q, %v", notes, err)
	}
}

// The report of a restitution names the clerk who had taken the cash, before and after that
// clerk's till counts it.
func TestReportSaysWhoTookTheCash(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	ctx := t.Context()
	theirs := c.must(c.Open(ctx, actor, c02, 100))
	c.cash(60, c.now, "c02")
	c.must(c.Count(ctx, actor, c02, theirs.ID, 40, ""))
	says := func(want string) {
		t.Helper()
		if _, movements, err := c.Report(ctx, c02, theirs.ID); err != nil || len(movements) != 1 || movements[0].Kind != checkout.CashReturned || movements[0].TakenBy != want {
			t.Errorf("the movements are %+v, %v, want one of %q", movements, err, want)
		}
	}
	says("c01")
	own := c.must(c.Open(ctx, actor, c01, 0))
	c.must(c.Count(ctx, actor, c01, own.ID, 60, ""))
	if err := c.store.Empty(ctx, actor, c.now, "x", nil); err != nil { // a rebuild begins
		t.Fatal(err)
	}
	says("c01")
}

// Two browsers close a till at the same time, while cash is put on record: one closing
// counts, and every movement is in one till.
func TestEachMovementCountsOnce(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	const n = 40
	var sum int64
	for round := range 3 {
		till := c.must(c.Open(t.Context(), actor, c01, 0))
		var wg sync.WaitGroup
		var results [4]tills.Till
		for i := range results {
			wg.Go(func() {
				var err error
				if results[i], err = c.Count(t.Context(), actor, c01, till.ID, int64(i), "in a hurry"); err != nil {
					t.Error(err)
				}
			})
		}
		for i := range n {
			c.cash(int64(i+1), c.now, "")
		}
		wg.Wait()
		for _, r := range results {
			if r.Taken != results[0].Taken || !r.ClosedAt.Equal(results[0].ClosedAt) {
				t.Errorf("round %d: %+v and %+v", round, results[0], r)
			}
		}
		sum += results[0].Taken.Amount
	}
	last := c.must(c.Open(t.Context(), actor, c01, 0))
	last = c.must(c.Count(t.Context(), actor, c01, last.ID, 0, "the rest"))
	if sum += last.Taken.Amount; sum != 3*n*(n+1)/2 {
		t.Errorf("all tills together counted %d, want %d", sum, 3*n*(n+1)/2)
	}
}

// The database holds the rules too: nobody signs their own till.
func TestFourEyesInTheDatabase(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	till := c.must(c.Open(t.Context(), actor, c01, 0))
	if _, err := c.pool.Exec(t.Context(), `UPDATE tills SET signed_by = 'c02', signed_at = now() WHERE id = $1`, till.ID); err == nil {
		t.Error("an open till is signed")
	}
	c.must(c.Count(t.Context(), actor, c01, till.ID, 0, ""))
	if _, err := c.pool.Exec(t.Context(), `UPDATE tills SET signed_by = 'c01', signed_at = now() WHERE id = $1`, till.ID); err == nil {
		t.Error("a clerk signs the own till")
	}
}
