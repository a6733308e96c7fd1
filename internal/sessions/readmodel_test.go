package sessions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/operation"
	readmodel "quittance/internal/sessions"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/test/await"
	"quittance/test/filled"
	"quittance/test/servers"
)

const (
	appA = "018f0000-0000-7000-8000-00000000000a"
	appB = "018f0000-0000-7000-8000-00000000000b"
)

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	_, pool := servers.Database(t)
	return pool
}

// codec is shared by all tests.
func codec(t *testing.T) *schemas.Codec {
	t.Helper()
	registry, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := schemas.NewCodec(t.Context(), registry, true)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

// snapshots returns sessions in the form in which events carry them.
func snapshots(t *testing.T, codec *schemas.Codec, sessions ...checkout.Session) []readmodel.Snapshot {
	t.Helper()
	var out []readmodel.Snapshot
	for _, s := range sessions {
		value, err := codec.Encode(mapping.FromEvent(checkout.Event{ID: "evt", Type: checkout.EventCreated, SessionID: s.ID, Sequence: s.Sequence, OccurredAt: s.CreatedAt, Session: s}))
		if err != nil {
			t.Fatal(err)
		}
		_, snapshot, err := readmodel.Read(codec, value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, *snapshot)
	}
	return out
}

// world has a broker with the topics of one installation, and a reader.
type world struct {
	cfg      kafka.Config
	topology *kafka.Topology
	events   string
	pool     *pgxpool.Pool
	store    *readmodel.Store
	codec    *schemas.Codec
	reader   *readmodel.Reader
}

func newWorld(t *testing.T, timeout time.Duration) world {
	t.Helper()
	w := world{cfg: kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Partitions: 2}, pool: database(t)}
	cl, err := w.cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	if _, err := kafka.Migrate(t.Context(), w.cfg, cl); err != nil {
		t.Fatal(err)
	}
	if w.topology, err = kafka.Load(t.Context(), w.cfg, cl); err != nil {
		t.Fatal(err)
	}
	w.events, w.store, w.codec = w.topology.Name(schemas.TopicEvents), readmodel.NewStore(w.pool), codec(t)
	w.reader, err = readmodel.New(readmodel.Config{Pool: w.pool, Kafka: w.cfg, Topology: w.topology, Codec: w.codec, Log: servers.Logger(t), Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w world) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.reader.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// transaction writes one record to a partition of the events topic and ends.
func (w world) transaction(t *testing.T, partition int32, end kgo.TransactionEndTry) {
	t.Helper()
	cl, err := w.cfg.Producer(kgo.TransactionalID(servers.Prefix(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: w.events, Partition: partition, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := cl.EndTransaction(t.Context(), end); err != nil {
		t.Fatal(err)
	}
}

// awaitHighWatermark waits until the high watermark of the partition has reached the
// offset. A broker writes the marker of a transaction after it acknowledged the end.
func (w world) awaitHighWatermark(t *testing.T, partition int32, want int64) {
	t.Helper()
	cl, err := w.cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for {
		ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), w.events)
		if err != nil {
			t.Fatal(err)
		}
		if at, _ := ends.Lookup(w.events, partition); at.Offset >= want {
			if at.Offset > want {
				t.Fatalf("high watermark = %d, want %d", at.Offset, want)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// answered repeats a read until the reader answers. The readers of these tests have a short
// time-out, so that reads that must fail do it soon; a broker on a busy machine takes longer.
func answered[T any](read func() (T, error)) (got T, err error) {
	await.Within(await.Patience, func() bool {
		got, err = read()
		return !errors.Is(err, readmodel.ErrBehind)
	})
	return got, err
}

// agency returns the agency of an application.
func agency(app string) string { return "agency of " + app }

func sessionID(n int, app string, partitions int32) string {
	return checkout.NewSessionID(time.UnixMilli(1_790_000_000_000+int64(n)), schemas.PartitionOf(agency(app), partitions), [16]byte{byte(n), byte(n >> 8)})
}

func session(n int, app string) checkout.Session {
	at := time.UnixMilli(1_790_000_000_000 + int64(n)).UTC()
	return checkout.Session{
		ID: sessionID(n, app, 2), ApplicationID: app, TenantID: agency(app), OrderID: fmt.Sprintf("order-%d", n), Amount: 5000, Currency: "XAF",
		Mode: checkout.ModeHosted, PaymentRef: fmt.Sprintf("%016d", n), CreatedAt: at, ExpiresAt: at.Add(time.Hour), Status: checkout.StatusOpen, Sequence: 1,
	}
}

func TestEveryFieldComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Second)
	full := filled.New[checkout.Session]()
	bare := checkout.Session{ID: "bare", CreatedAt: full.CreatedAt, ExpiresAt: full.ExpiresAt, Sequence: 1}
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, full, bare), nil); err != nil {
		t.Fatal(err)
	}
	got, err := w.reader.Statuses(t.Context(), []string{full.ID, "bare", "none"})
	if err != nil {
		t.Fatal(err)
	}
	full.Customer, full.ClientSecretSealed = nil, nil // events do not carry them
	full.Orphans = nil                                // only decisions need them
	if want := map[string]checkout.Session{full.ID: full, "bare": bare}; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The snapshot equals the value of the event byte for byte. It never holds contact data or
// a sealed client_secret, even if the event does.
func TestSnapshotIsTheEventWithoutContactData(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Second)
	full := filled.New[checkout.Session]()
	full.Metadata["zero"] = "a\x00b" // a text column refuses it
	event := mapping.FromEvent(checkout.Event{ID: "evt", Type: checkout.EventCompleted, SessionID: full.ID, Sequence: 7, OccurredAt: full.CreatedAt, Session: full})
	clean, err := w.codec.Encode(event)
	if err != nil {
		t.Fatal(err)
	}
	event.Session.Customer = &record.Customer{Name: full.Customer.Name, Phone: "+242066000001"}
	event.Session.ClientSecretSealed = []byte("sealed secret")
	dirty, err := w.codec.Encode(event)
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range [][]byte{clean, dirty} {
		kind, snapshot, err := readmodel.Read(w.codec, value)
		if err != nil || kind != checkout.EventCompleted || snapshot.Sequence != 7 {
			t.Fatalf("%s %+v, %v", kind, snapshot, err)
		}
		snapshot.Sequence = int64(8 + i) // the row of the second replaces that of the first
		if err := w.store.Apply(t.Context(), []readmodel.Snapshot{*snapshot}, nil); err != nil {
			t.Fatal(err)
		}
		var row string
		var stored []byte
		if err := w.pool.QueryRow(t.Context(), `SELECT s::text, snapshot FROM sessions s WHERE id = $1`, full.ID).Scan(&row, &stored); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(stored, clean) {
			t.Errorf("%d: stored %x, want %x", i, stored, clean)
		}
		for _, secret := range []string{full.Customer.Name, "+242066000001", "sealed secret"} {
			if strings.Contains(row, secret) || bytes.Contains(stored, []byte(secret)) {
				t.Errorf("%d: the row holds %q", i, secret)
			}
		}
		got, err := w.reader.Statuses(t.Context(), []string{full.ID})
		if err != nil || got[full.ID].Sequence != 7 || got[full.ID].Metadata["zero"] != "a\x00b" || got[full.ID].Customer != nil {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	if _, none, err := readmodel.Read(w.codec, []byte("garbage")); !errors.Is(err, schemas.ErrUndecodable) || none != nil {
		t.Errorf("garbage: %+v, %v", none, err)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	pool := database(t)
	store, codec := readmodel.NewStore(pool), codec(t)
	apply := func(from, to int64, sessions ...checkout.Session) error {
		return store.Apply(t.Context(), snapshots(t, codec, sessions...), []consume.Move{{Topic: "topic", Partition: 3, From: from, To: to}})
	}
	state := func() string {
		t.Helper()
		var sequence int64
		var status string
		if err := pool.QueryRow(t.Context(), `SELECT sequence, status FROM sessions WHERE id = $1`, sessionID(1, appA, 2)).Scan(&sequence, &status); err != nil {
			t.Fatal(err)
		}
		positions, err := store.Positions(t.Context(), "topic")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %s at %d", sequence, status, positions[3])
	}
	at := func(sequence int64, status checkout.Status) checkout.Session {
		s := session(1, appA)
		s.Sequence, s.Status = sequence, status
		return s
	}
	for _, step := range []struct {
		name     string
		from, to int64
		sessions []checkout.Session
		err      error
		want     string
	}{
		{"first", consume.None, 10, []checkout.Session{at(2, checkout.StatusOpen), at(1, checkout.StatusOpen)}, nil, "2 open at 10"},
		{"older", 10, 11, []checkout.Session{at(1, checkout.StatusFailed)}, nil, "2 open at 11"},
		{"twice", 11, 12, []checkout.Session{at(2, checkout.StatusFailed)}, nil, "2 open at 12"},
		{"newer", 12, 20, []checkout.Session{at(3, checkout.StatusCompleted), at(4, checkout.StatusCompleted)}, nil, "4 completed at 20"},
		{"nothing", 20, 21, nil, nil, "4 completed at 21"},
		{"other writer was here", 20, 22, []checkout.Session{at(5, checkout.StatusFailed)}, readmodel.ErrMoved, "4 completed at 21"},
		{"other writer began", consume.None, 22, []checkout.Session{at(5, checkout.StatusFailed)}, readmodel.ErrMoved, "4 completed at 21"},
	} {
		if err := apply(step.from, step.to, step.sessions...); !errors.Is(err, step.err) {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := state(); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
	zero := at(5, checkout.StatusFailed)
	zero.OrderID = "a\x00b"
	if err := apply(21, 22, zero); !errors.Is(err, readmodel.ErrRefused) {
		t.Errorf("a zero byte: %v", err)
	}
	if got := state(); got != "4 completed at 21" {
		t.Errorf("after a refusal: %s", got)
	}
}

func TestSessionIsShownToItsOwnersOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5*time.Second)
	w.run(t)
	s := session(1, appA)
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, s), nil); err != nil {
		t.Fatal(err)
	}
	got, err := w.reader.Session(t.Context(), readmodel.Query{ID: s.ID, ApplicationIDs: []string{appB, appA}})
	if err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("Session = %+v, %v", got, err)
	}
	for name, q := range map[string]readmodel.Query{
		"foreign":         {ID: s.ID, ApplicationIDs: []string{appB}},
		"nobody":          {ID: s.ID},
		"other mode":      {ID: s.ID, ApplicationIDs: []string{appA}, Live: true},
		"unknown":         {ID: sessionID(2, appA, 2), ApplicationIDs: []string{appA}},
		"malformed":       {ID: "chs_", ApplicationIDs: []string{appA}},
		"other partition": {ID: checkout.NewSessionID(time.UnixMilli(1), 77, [16]byte{}), ApplicationIDs: []string{appA}},
	} {
		if got, err := w.reader.Session(t.Context(), q); !errors.Is(err, readmodel.ErrNotFound) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5*time.Second)
	w.run(t)
	var all []checkout.Session
	for n := range 30 {
		s := session(n, []string{appA, appB}[n%3/2]) // every third is appB's
		s.Live = n >= 24
		s.CustomerID = []string{"", "alice", "bob"}[n%3]
		if n%2 == 0 {
			s.Status, s.EndedAt = checkout.StatusExpired, s.ExpiresAt
		}
		s.OrderID = fmt.Sprintf("order-%d", n/2)
		all = append(all, s)
	}
	shuffled := slices.Clone(all)
	slices.Reverse(shuffled[10:])
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, shuffled...), nil); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	for name, c := range map[string]struct {
		f    readmodel.Filter
		keep func(checkout.Session) bool
	}{
		"own":     {readmodel.Filter{ApplicationIDs: []string{appA}}, func(s checkout.Session) bool { return s.ApplicationID == appA && !s.Live }},
		"several": {readmodel.Filter{ApplicationIDs: []string{appA, appB}, PageSize: 100}, func(s checkout.Session) bool { return !s.Live }},
		"live":    {readmodel.Filter{ApplicationIDs: []string{appB}, Live: true}, func(s checkout.Session) bool { return s.ApplicationID == appB && s.Live }},
		"order":   {readmodel.Filter{ApplicationIDs: []string{appA}, OrderID: "order-0"}, func(s checkout.Session) bool { return s.ApplicationID == appA && s.OrderID == "order-0" }},
		"exact":   {readmodel.Filter{ApplicationIDs: []string{appA}, OrderID: "ORDER-0"}, func(checkout.Session) bool { return false }},
		"status": {readmodel.Filter{ApplicationIDs: []string{appA}, Status: checkout.StatusExpired}, func(s checkout.Session) bool {
			return s.ApplicationID == appA && !s.Live && s.Status == checkout.StatusExpired
		}},
		"customer":    {readmodel.Filter{ApplicationIDs: []string{appA}, CustomerID: "alice"}, func(s checkout.Session) bool { return s.ApplicationID == appA && !s.Live && s.CustomerID == "alice" }},
		"payment_ref": {readmodel.Filter{ApplicationIDs: []string{appA}, PaymentRef: "0000000000000003"}, func(s checkout.Session) bool { return s.PaymentRef == "0000000000000003" }},
		"together": {readmodel.Filter{ApplicationIDs: []string{appA}, CustomerID: "alice", Status: checkout.StatusOpen}, func(s checkout.Session) bool {
			return s.ApplicationID == appA && !s.Live && s.CustomerID == "alice" && s.Status == checkout.StatusOpen
		}},
		"page 2": {readmodel.Filter{ApplicationIDs: []string{appA, appB}, Page: 2, PageSize: 7}, func(s checkout.Session) bool { return !s.Live }},
		"beyond": {readmodel.Filter{ApplicationIDs: []string{appA, appB}, Page: 9, PageSize: 7}, func(s checkout.Session) bool { return !s.Live }},
		"nobody": {readmodel.Filter{}, func(checkout.Session) bool { return false }},
	} {
		var want []checkout.Session
		for _, s := range all {
			if c.keep(s) {
				want = append(want, s)
			}
		}
		total := int64(len(want))
		size := c.f.PageSize
		if size == 0 {
			size = 20
		}
		from := min((max(c.f.Page, 1)-1)*size, len(want))
		want = want[from:min(from+size, len(want))]
		for _, app := range c.f.ApplicationIDs {
			c.f.TenantIDs = append(c.f.TenantIDs, agency(app))
		}
		got, n, err := w.reader.List(t.Context(), c.f)
		if err != nil || n != total || len(got) != len(want) || (len(want) > 0 && !reflect.DeepEqual(got, want)) {
			t.Errorf("%s: %d items of %d, %v; want %d of %d", name, len(got), n, err, len(want), total)
		}
	}
}

// Support finds sessions of all applications and both modes by id, payment reference and
// order, each once and the newest first.
func TestSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5*time.Second)
	w.run(t)
	var all []checkout.Session
	for n := range 8 {
		s := session(n, []string{appA, appB}[n%2])
		s.Live, s.OrderID = n >= 4, fmt.Sprintf("order-%d", n/4*4)
		all = append(all, s)
	}
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, all...), nil); err != nil {
		t.Fatal(err)
	}
	if s, err := w.reader.ByPaymentRef(t.Context(), all[2].PaymentRef); err != nil || !reflect.DeepEqual(s, all[2]) {
		t.Errorf("the session of a reference: %+v, %v", s, err)
	}
	if _, err := w.reader.ByPaymentRef(t.Context(), "0"); !errors.Is(err, readmodel.ErrNotFound) {
		t.Errorf("the session of no reference: %v", err)
	}
	both := []string{appA, appB}
	if ids, err := w.store.Named(t.Context(), readmodel.Search{OrderID: "order-4", ApplicationIDs: both}); err != nil || len(ids) != 4 {
		t.Errorf("the sessions of an order: %q, %v", ids, err)
	}
	for field, q := range map[string]readmodel.Search{"order": {OrderID: "order-5", ApplicationIDs: both}, "payment-ref": {PaymentRef: "1"}} {
		var refused *operation.Error
		if ids, err := w.store.Named(t.Context(), q); !errors.As(err, &refused) || refused.Field != field || ids != nil {
			t.Errorf("%s that no session has: %q, %v", field, ids, err)
		}
	}
	for name, c := range map[string]struct {
		q    readmodel.Search
		want []int
	}{
		"an order of several applications": {readmodel.Search{OrderID: "order-4", ApplicationIDs: both}, []int{7, 6, 5, 4}},
		"of one application":               {readmodel.Search{OrderID: "order-4", ApplicationIDs: both[:1]}, []int{6, 4}},
		"another spelling":                 {readmodel.Search{OrderID: "ORDER-4", ApplicationIDs: both}, nil},
		"a payment reference":              {readmodel.Search{PaymentRef: all[2].PaymentRef}, []int{2}},
		"an id":                            {readmodel.Search{IDs: []string{all[1].ID, "chs_nothing"}}, []int{1}},
		"all of them":                      {readmodel.Search{IDs: []string{all[1].ID}, PaymentRef: all[1].PaymentRef, OrderID: "order-0", ApplicationIDs: both}, []int{3, 2, 1, 0}},
		"an id of others":                  {readmodel.Search{IDs: []string{all[1].ID}, ApplicationIDs: both[:1]}, nil},
		"a payment reference of others":    {readmodel.Search{PaymentRef: all[1].PaymentRef, ApplicationIDs: both[:1]}, nil},
		"of nobody":                        {readmodel.Search{IDs: []string{all[1].ID}, PaymentRef: all[1].PaymentRef, OrderID: "order-0", ApplicationIDs: []string{}}, nil},
		"a zero byte":                      {readmodel.Search{OrderID: "order-4\x00", ApplicationIDs: both}, nil},
		"nothing":                          {readmodel.Search{}, nil},
	} {
		var want, ids []string
		for _, n := range c.want {
			want = append(want, all[n].ID)
		}
		found, err := w.reader.Search(t.Context(), c.q)
		for i, s := range found {
			ids = append(ids, s.ID)
			if !reflect.DeepEqual(s, all[c.want[min(i, len(c.want)-1)]]) {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%s: %q, %v; want %q", name, ids, err, want)
		}
		slices.Sort(want)
		if ids, err := w.store.Find(t.Context(), c.q); err != nil || !slices.Equal(ids, want) {
			t.Errorf("%s: Find returns %q, %v; want %q", name, ids, err, want)
		}
	}
}

// The last record of the partition is the marker of an aborted transaction. No reader of
// committed records receives it, but the position counts it.
func TestBarrierCountsControlRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 400*time.Millisecond)
	w.run(t)
	s := session(1, appA)
	partition := w.topology.Partition(schemas.TopicEvents, agency(appA))
	w.transaction(t, partition, kgo.TryCommit)
	w.transaction(t, partition, kgo.TryAbort)
	const mark = 4 // record, marker, record, marker
	w.awaitHighWatermark(t, partition, mark)
	read := func() (checkout.Session, error) { return w.reader.ByID(t.Context(), s.ID) }
	if _, err := read(); !errors.Is(err, readmodel.ErrBehind) {
		t.Errorf("nothing applied: %v", err)
	}
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, s), []consume.Move{{Topic: w.events, Partition: partition, From: consume.None, To: mark - 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); !errors.Is(err, readmodel.ErrBehind) {
		t.Errorf("all but the marker applied: %v", err)
	}
	if err := w.store.Apply(t.Context(), nil, []consume.Move{{Topic: w.events, Partition: partition, From: mark - 1, To: mark}}); err != nil {
		t.Fatal(err)
	}
	if _, err := answered(read); err != nil {
		t.Errorf("all applied: %v", err)
	}
	// The position of another agency's partition does not count.
	if _, _, err := w.reader.List(t.Context(), readmodel.Filter{ApplicationIDs: []string{appA}}); err == nil {
		t.Error("a list without its agencies waits for nothing")
	}
	if _, err := answered(func() (int64, error) {
		_, total, err := w.reader.List(t.Context(), readmodel.Filter{TenantIDs: []string{agency(appA), agency(appB)}, ApplicationIDs: []string{appA, appB}})
		return total, err
	}); err != nil {
		t.Errorf("list: %v", err)
	}
}

// A migration or a person empties the read model while a reader runs that knows the
// earlier positions. No caller gets the answer that a session does not exist.
func TestRebuildIsNotSeenHalfFilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 300*time.Millisecond)
	w.run(t)
	s := session(1, appA)
	partition := w.topology.Partition(schemas.TopicEvents, s.TenantID)
	s.ID = checkout.NewSessionID(s.CreatedAt, partition, [16]byte{1})
	w.transaction(t, partition, kgo.TryCommit)
	const mark = 2 // record, marker
	w.awaitHighWatermark(t, partition, mark)
	apply := func(rows []readmodel.Snapshot, from, to int64) {
		t.Helper()
		if err := w.store.Apply(t.Context(), rows, []consume.Move{{Topic: w.events, Partition: partition, From: from, To: to}}); err != nil {
			t.Fatal(err)
		}
	}
	byID := func() (checkout.Session, error) { return w.reader.ByID(t.Context(), s.ID) }
	list := func() ([]checkout.Session, error) {
		items, total, err := w.reader.List(t.Context(), readmodel.Filter{TenantIDs: []string{s.TenantID}, ApplicationIDs: []string{appA}})
		if err == nil && total != int64(len(items)) {
			t.Errorf("a list of %d has %d", total, len(items))
		}
		return items, err
	}
	shown := func(when string) {
		t.Helper()
		if got, err := answered(byID); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%s: %+v, %v", when, got, err)
		}
		if items, err := answered(list); err != nil || !reflect.DeepEqual(items, []checkout.Session{s}) {
			t.Errorf("%s: list %+v, %v", when, items, err)
		}
	}
	behind := func(when string) {
		t.Helper()
		if got, err := byID(); !errors.Is(err, readmodel.ErrBehind) {
			t.Errorf("%s: %+v, %v", when, got, err)
		}
		if items, err := list(); !errors.Is(err, readmodel.ErrBehind) {
			t.Errorf("%s: list %+v, %v", when, items, err)
		}
	}
	apply(snapshots(t, w.codec, s), consume.None, mark)
	shown("filled")
	if _, err := w.pool.Exec(t.Context(), `TRUNCATE sessions, readmodel_positions`); err != nil {
		t.Fatal(err)
	}
	behind("emptied")
	apply(nil, consume.None, 0)
	behind("begun again")
	apply(snapshots(t, w.codec, s), 0, mark-1)
	behind("filled but for the marker")
	apply(nil, mark-1, mark)
	shown("filled again")
}

// Postgres is restored from an older dump while a reader runs: its rows and positions are
// older than what the reader has shown. No read returns the older session, the live status
// does not either, and after the read model has caught up both are right.
func TestRestoredReadModelIsNotShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 300*time.Millisecond)
	w.run(t)
	old, paid := session(1, appA), session(1, appA)
	partition := w.topology.Partition(schemas.TopicEvents, old.TenantID)
	old.ID = checkout.NewSessionID(old.CreatedAt, partition, [16]byte{1})
	paid.ID, paid.Sequence, paid.Status = old.ID, 2, checkout.StatusCompleted
	late := session(2, appA)
	late.ID = checkout.NewSessionID(late.CreatedAt, partition, [16]byte{2})
	w.transaction(t, partition, kgo.TryCommit)
	w.transaction(t, partition, kgo.TryCommit)
	const mark = 4 // record, marker, record, marker
	w.awaitHighWatermark(t, partition, mark)
	apply := func(from, to int64, rows ...checkout.Session) {
		t.Helper()
		if err := w.store.Apply(t.Context(), snapshots(t, w.codec, rows...), []consume.Move{{Topic: w.events, Partition: partition, From: from, To: to}}); err != nil {
			t.Fatal(err)
		}
	}
	statuses := func() (map[string]checkout.Session, error) {
		return w.reader.Statuses(t.Context(), []string{old.ID, late.ID})
	}
	apply(consume.None, 2, old)
	if got, err := answered(statuses); err != nil || len(got) != 1 || got[old.ID].Sequence != 1 {
		t.Errorf("before any read: %+v, %v", got, err)
	}
	if _, err := w.pool.Exec(t.Context(), `CREATE TABLE dump AS SELECT * FROM sessions; CREATE TABLE dumped AS SELECT * FROM readmodel_positions`); err != nil {
		t.Fatal(err)
	}
	apply(2, mark, paid, late)
	right := func(when string) {
		t.Helper()
		if got, err := answered(func() (checkout.Session, error) { return w.reader.ByID(t.Context(), paid.ID) }); err != nil || !reflect.DeepEqual(got, paid) {
			t.Errorf("%s: %+v, %v", when, got, err)
		}
		if got, err := answered(statuses); err != nil || len(got) != 2 || got[paid.ID].Sequence != 2 {
			t.Errorf("%s: live status %+v, %v", when, got, err)
		}
	}
	right("before the restore")
	if _, err := w.pool.Exec(t.Context(), `TRUNCATE sessions, readmodel_positions; INSERT INTO sessions SELECT * FROM dump; INSERT INTO readmodel_positions SELECT * FROM dumped`); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second read does not remember the earlier positions
		if got, err := w.reader.ByID(t.Context(), paid.ID); !errors.Is(err, readmodel.ErrBehind) {
			t.Errorf("restored: %+v, %v", got, err)
		}
		if got, err := w.reader.ByID(t.Context(), late.ID); !errors.Is(err, readmodel.ErrBehind) {
			t.Errorf("restored without the session: %+v, %v", got, err)
		}
		if got, err := statuses(); !errors.Is(err, readmodel.ErrBehind) {
			t.Errorf("restored: live status %+v, %v", got, err)
		}
	}
	if _, err := w.pool.Exec(t.Context(), `TRUNCATE sessions, readmodel_positions`); err != nil {
		t.Fatal(err)
	}
	if got, err := statuses(); !errors.Is(err, readmodel.ErrBehind) {
		t.Errorf("emptied: live status %+v, %v", got, err)
	}
	apply(consume.None, mark, paid, late)
	right("caught up")
}

// A transaction that has not ended may be acknowledged at any moment. Its events count as
// soon as they are written.
func TestBarrierWaitsForOpenTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 400*time.Millisecond)
	w.run(t)
	partition := w.topology.Partition(schemas.TopicEvents, agency(appA))
	cl, err := w.cfg.Producer(kgo.TransactionalID(servers.Prefix(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: w.events, Partition: partition, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if s, err := w.reader.ByID(t.Context(), sessionID(1, appA, 2)); !errors.Is(err, readmodel.ErrBehind) {
		t.Errorf("ByID = %+v, %v", s, err)
	}
	if err := cl.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
}

func TestBarrierIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 200*time.Millisecond)
	begun := time.Now()
	if _, err := w.reader.ByID(t.Context(), sessionID(1, appA, 2)); !errors.Is(err, readmodel.ErrBehind) { // Run does not run
		t.Errorf("without Run: %v", err)
	}
	if d := time.Since(begun); d > await.Patience {
		t.Errorf("took %v", d)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.reader.ByID(gone, sessionID(1, appA, 2)); !errors.Is(err, context.Canceled) || errors.Is(err, readmodel.ErrBehind) {
		t.Errorf("a caller that has gone: %v", err)
	}
	w.run(t)
	w.pool.Close() // Postgres is away
	if _, _, err := w.reader.List(t.Context(), readmodel.Filter{TenantIDs: []string{agency(appA)}, ApplicationIDs: []string{appA}}); !errors.Is(err, readmodel.ErrBehind) {
		t.Errorf("without Postgres: %v", err)
	}
}

// The keys of personal data go with the event that erases them, in the same transaction.
// Postgres is restored from a dump that has the keys again: they go again.
func TestKeysGoWithTheEvent(t *testing.T) {
	t.Parallel()
	pool, codec := database(t), codec(t)
	store := readmodel.NewStore(pool)
	keys := func() (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM personal_keys`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	add := func(session string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `INSERT INTO personal_keys (id, session_id, sealed, created_at) VALUES (gen_random_uuid(), $1, 'k', now())`, session); err != nil {
			t.Fatal(err)
		}
	}
	event := func(id string, sequence int64, kind checkout.EventType, archived bool) readmodel.Snapshot {
		t.Helper()
		s := checkout.Session{ID: id, ApplicationID: appA, Status: checkout.StatusExpired, Sequence: sequence, Archived: archived, Collection: &checkout.Collection{ID: "1"}}
		value, err := codec.Encode(mapping.FromEvent(checkout.Event{ID: "evt", Type: kind, SessionID: id, Sequence: sequence, Session: s}))
		if err != nil {
			t.Fatal(err)
		}
		_, snapshot, err := readmodel.Read(codec, value)
		if err != nil {
			t.Fatal(err)
		}
		return *snapshot
	}
	for _, id := range []string{"chs_a", "chs_a", "chs_b", "chs_c"} {
		add(id)
	}
	history := []readmodel.Snapshot{
		event("chs_a", 2, checkout.EventExpired, false), event("chs_a", 3, checkout.EventErased, false), event("chs_a", 4, checkout.EventLatePayment, false),
		event("chs_b", 2, checkout.EventExpired, false), event("chs_c", 3, checkout.EventArchived, true),
	}
	if err := store.Apply(t.Context(), history, nil); err != nil || keys() != 1 {
		t.Errorf("%d keys are left, %v; want that of chs_b", keys(), err)
	}
	add("chs_a")
	add("chs_c")
	if err := store.Apply(t.Context(), history, nil); err != nil || keys() != 1 {
		t.Errorf("after a restore %d keys are left, %v", keys(), err)
	}

	// Updates brought the contact data of two sessions that were not made, and whoever sent
	// them ended before it could hand over the keys.
	updated := func(sequence int64, contactOf string, kind checkout.EventType) readmodel.Snapshot {
		t.Helper()
		s := checkout.Session{ID: "chs_d", ApplicationID: appA, Status: checkout.StatusOpen, Sequence: sequence, Archived: kind == checkout.EventArchived, Cashin: &checkout.Cashin{ContactOf: contactOf}}
		value, err := codec.Encode(mapping.FromEvent(checkout.Event{ID: "evt", Type: kind, SessionID: s.ID, Sequence: sequence, Session: s}))
		if err != nil {
			t.Fatal(err)
		}
		_, snapshot, err := readmodel.Read(codec, value)
		if err != nil {
			t.Fatal(err)
		}
		return *snapshot
	}
	add("chs_draft1")
	add("chs_draft2")
	for _, event := range []readmodel.Snapshot{updated(2, "chs_draft1", checkout.EventUpdated), updated(3, "chs_draft2", checkout.EventUpdated)} {
		if err := store.Apply(t.Context(), []readmodel.Snapshot{event}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Apply(t.Context(), []readmodel.Snapshot{updated(4, "chs_draft2", checkout.EventArchived)}, nil); err != nil || keys() != 1 {
		t.Errorf("after updates %d keys are left, %v", keys(), err)
	}
}
