package personal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/internal/contact"
	"quittance/internal/operation"
	"quittance/internal/personal"
	"quittance/internal/secret"
	"quittance/test/processor"
	"quittance/test/servers"
)

var (
	begin = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	actor = operation.Actor{Kind: operation.ActorCommandLine, Name: "officer", Origin: "desk"}
)

// vault is a store on a database of its own.
type vault struct {
	*personal.Store
	pool *pgxpool.Pool
	now  time.Time
}

func newVault(t *testing.T) *vault {
	t.Helper()
	_, pool := servers.Database(t)
	v := &vault{pool: pool, now: begin}
	v.Store = v.with(t, secret.GenerateKeys())
	return v
}

// with returns a store of the same database with other master keys.
func (v *vault) with(t *testing.T, keys *secret.Keys) *personal.Store {
	t.Helper()
	s, err := personal.New(personal.Config{Pool: v.pool, Keys: keys, Now: func() time.Time { return v.now }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (v *vault) seal(t *testing.T, session string, c checkout.Customer) []byte {
	t.Helper()
	sealed, err := v.SealCustomer(t.Context(), session, c)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func (v *vault) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := v.pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const countKeys = `SELECT count(*) FROM personal_keys`

func TestSealedValues(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	c := checkout.Customer{Name: "Mireille Okoko", Email: "m@example.cg", Phone: "+242 06 699 88 77"}
	sealed := v.seal(t, "chs_a", c)
	if got, err := v.Customer(t.Context(), "chs_a", sealed); err != nil || got != c {
		t.Errorf("got %+v, %v", got, err)
	}
	payer, err := v.SealPayer(t.Context(), "chs_a", "242066998877")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Payer(t.Context(), "chs_a", payer); err != nil || got != "242066998877" {
		t.Errorf("got %q, %v", got, err)
	}
	changed := slices.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, open := range map[string]func() error{
		"another session": func() error { _, err := v.Customer(t.Context(), "chs_b", sealed); return err },
		"another use":     func() error { _, err := v.Payer(t.Context(), "chs_a", sealed); return err },
		"changed":         func() error { _, err := v.Customer(t.Context(), "chs_a", changed); return err },
		"short":           func() error { _, err := v.Customer(t.Context(), "chs_a", sealed[:9]); return err },
		"nothing":         func() error { _, err := v.Customer(t.Context(), "chs_a", nil); return err },
	} {
		if err := open(); !errors.Is(err, personal.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := v.count(t, `SELECT count(*) FROM personal_keys k WHERE k::text LIKE '%6998877%' OR position('066998877'::bytea IN sealed) > 0`); n != 0 {
		t.Errorf("%d rows tell the number", n)
	}
	if err := v.Forget(t.Context(), "chs_a"); err != nil {
		t.Fatal(err)
	}
	_, err = v.Customer(t.Context(), "chs_a", sealed)
	_, err2 := v.Payer(t.Context(), "chs_a", payer)
	if !errors.Is(err, personal.ErrErased) || !errors.Is(err2, personal.ErrErased) {
		t.Errorf("after the keys' deletion: %v, %v", err, err2)
	}
	for _, err := range []error{err, err2} {
		if strings.Contains(err.Error(), "77") || strings.Contains(err.Error(), "chs_a") {
			t.Errorf("the error tells too much: %v", err)
		}
	}
}

// A value stays readable under a new master key, and only as long as the old one opens.
func TestMasterKeyIsRotated(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	old, newer := secret.GenerateKeys(), secret.GenerateKeys()
	sealed, err := v.with(t, old).SealPayer(t.Context(), "chs_a", "242066998877")
	if err != nil {
		t.Fatal(err)
	}
	both, err := secret.ParseKeys(newer.Reveal() + "," + old.Reveal() + ":open")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.with(t, both).Payer(t.Context(), "chs_a", sealed); err != nil || got != "242066998877" {
		t.Errorf("with both keys %q, %v", got, err)
	}
	if _, err := v.with(t, newer).Payer(t.Context(), "chs_a", sealed); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("without the old key: %v", err)
	}
	if ids, err := v.with(t, both).Find(t.Context(), "06 699 88 77"); err != nil || !slices.Equal(ids, []string{"chs_a"}) {
		t.Errorf("found %v, %v", ids, err)
	}
	if ids, err := v.with(t, newer).Find(t.Context(), "06 699 88 77"); !errors.Is(err, personal.ErrLocked) || len(ids) != 0 {
		t.Errorf("an incomplete search found %v, %v", ids, err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.seal(t, "chs_b", checkout.Customer{Phone: "066998877"})
	v.seal(t, "chs_c", checkout.Customer{Phone: "+33 6 12 34 56 78"})
	v.seal(t, "chs_d", checkout.Customer{Name: "without a number"})
	for range 2 { // two tries to pay
		if _, err := v.SealPayer(t.Context(), "chs_a", "242066998877"); err != nil {
			t.Fatal(err)
		}
	}
	for _, phone := range []string{"06 699 88 77", "+242 06 699 88 77", "00242066998877", "24266998877", "242 066998877"} {
		if ids, err := v.Find(t.Context(), phone); err != nil || !slices.Equal(ids, []string{"chs_a", "chs_b"}) {
			t.Errorf("%s: %v, %v", phone, ids, err)
		}
	}
	if ids, err := v.Find(t.Context(), "0033612345678"); err != nil || !slices.Equal(ids, []string{"chs_c"}) {
		t.Errorf("a foreign number: %v, %v", ids, err)
	}
	if ids, err := v.Find(t.Context(), "06 699 88 78"); err != nil || len(ids) != 0 {
		t.Errorf("another number: %v, %v", ids, err)
	}
	var refused *operation.Error
	if _, err := v.Find(t.Context(), "nobody"); !errors.As(err, &refused) || refused.Code != "personal.phone_malformed" {
		t.Errorf("no number: %v", err)
	}
}

// The receipt is sent to the number that paid, of which events have the masked form. A number that is not known
// for sure gets none: it would learn what somebody else paid.
func TestPayerOf(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	masked := contact.Mask("066998877")
	pay := func(session string, numbers ...string) {
		t.Helper()
		for _, number := range numbers {
			if _, err := v.SealPayer(t.Context(), session, number); err != nil {
				t.Fatal(err)
			}
		}
	}
	v.seal(t, "chs_a", checkout.Customer{Phone: "+242 05 511 22 33"})
	pay("chs_a", "242066998877", "242066998877", "242066000001")
	v.seal(t, "chs_b", checkout.Customer{Phone: "06 611 11 77"}) // of the same masked form
	pay("chs_b", "242066998877")
	pay("chs_c", "242066000001")
	if got, err := v.PayerOf(t.Context(), "chs_a", masked); err != nil || got != "066998877" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, session := range []string{"chs_b", "chs_c", "chs_d"} {
		if got, err := v.PayerOf(t.Context(), session, masked); !errors.Is(err, personal.ErrErased) || got != "" || strings.Contains(err.Error(), "77") {
			t.Errorf("%s: got %q, %v", session, got, err)
		}
	}
	if err := v.Forget(t.Context(), "chs_a"); err != nil {
		t.Fatal(err)
	}
	if got, err := v.PayerOf(t.Context(), "chs_a", masked); !errors.Is(err, personal.ErrErased) {
		t.Errorf("after the keys' deletion: %q, %v", got, err)
	}
}

// More keys than one query reads.
func TestFindReadsEveryKey(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	keys := secret.GenerateKeys()
	s := v.with(t, keys)
	const n = 20_001
	ids, rows := make([]uuid.UUID, n), make([][]byte, n)
	for i := range n {
		ids[i] = uuid.New()
		row, err := keys.Seal(personal.Label, fmt.Appendf(make([]byte, secret.KeySize), "0660%05d", i), ids[i][:])
		if err != nil {
			t.Fatal(err)
		}
		rows[i] = row
	}
	if _, err := v.pool.Exec(t.Context(), `INSERT INTO personal_keys (id, session_id, sealed, created_at)
		SELECT id, 'chs_' || id, sealed, $3 FROM unnest($1::uuid[], $2::bytea[]) AS k (id, sealed)`, ids, rows, begin); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 9_999, 10_000, n - 1} {
		got, err := s.Find(t.Context(), fmt.Sprintf("0660%05d", i))
		if err != nil || len(got) != 1 || got[0] != "chs_"+ids[i].String() {
			t.Errorf("%d: %v, %v", i, got, err)
		}
	}
}

// Keys whose session never existed belong to no event that would delete them.
func TestSweep(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.seal(t, "chs_old", checkout.Customer{Name: "n"})
	v.now = begin.Add(time.Millisecond)
	v.seal(t, "chs_new", checkout.Customer{Name: "n"})
	n, err := personal.Sweep(t.Context(), v.pool, begin.Add(personal.KeptAtMost+time.Millisecond))
	if err != nil || n != 1 || v.count(t, countKeys+` WHERE session_id = 'chs_new'`) != 1 {
		t.Errorf("%d keys deleted, %v", n, err)
	}
}

// machine is a processor in memory.
type machine struct {
	*processor.Processor
	after func()
}

func (m *machine) Ask(_ context.Context, cmd checkout.Command) (checkout.Answer, error) {
	m.Lock()
	defer m.Unlock()
	if m.after != nil {
		defer m.after()
	}
	if !strings.HasPrefix(cmd.SessionID, "chs_") {
		return checkout.Answer{}, checkout.ErrMalformedID
	}
	return m.Decide(cmd), nil
}

func TestEraseOneSession(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	m := &machine{Processor: processor.New(t, begin)}
	const id = "chs_a"
	s := checkout.Session{
		ID: id, ApplicationID: "app", TenantID: "agency", OrderID: "o", Amount: 5000, Currency: "XAF", PaymentRef: "ref", CustomerID: "NIU-7", Description: "d", Note: "n",
		CustomerSealed: v.seal(t, id, checkout.Customer{Phone: "066998877"}), ExpiresAt: begin.Add(time.Hour),
		Offers: []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney}},
	}
	m.Do(id, checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 10})
	request := personal.Request{Actor: actor, At: begin, By: "session", Reason: "request 7"}
	erase := func(ctx context.Context, id string) personal.Result {
		t.Helper()
		got, err := v.Erase(ctx, m, id, request)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		return got
	}
	if got := erase(t.Context(), id); got != personal.ResultOpen || v.count(t, countKeys) != 1 {
		t.Errorf("an open session is %s", got)
	}
	m.Do(id, checkout.Cancel{By: checkout.ByIntegrator})

	// The command is interrupted after the processor's part: the next one finishes.
	interrupted, kill := context.WithCancel(t.Context())
	m.after = kill
	if got := erase(interrupted, id); got != "" || v.count(t, countKeys) != 1 || v.count(t, `SELECT count(*) FROM audit`) != 0 {
		t.Errorf("interrupted: %q", got)
	}
	m.after = nil
	if got := erase(t.Context(), id); got != personal.ResultErased || v.count(t, countKeys) != 0 {
		t.Errorf("after the interruption: %s", got)
	}
	if got := erase(t.Context(), id); got != personal.ResultNothing {
		t.Errorf("again: %s", got)
	}
	if n := v.count(t, `SELECT count(*) FROM audit WHERE action = 'personal.erase' AND subject = $1 AND actor = 'officer' AND detail->>'reason' = 'request 7'`, id); n != 2 {
		t.Errorf("%d records, want one of the erasure and one of the repetition", n)
	}
	got := m.Session(id)
	if got.HoldsPersonalData() || got.OrderID != "o" || got.Amount != 5000 || got.PaymentRef != "ref" || got.Status != checkout.StatusCancelled {
		t.Errorf("the session is %+v", got)
	}

	// The contact data of an update of a payment whose keys were never adopted.
	const payment, draft = "chs_payment", "chs_draft"
	s.ID, s.OrderID, s.CustomerSealed, s.Cashin = payment, "c", nil, &checkout.Cashin{Kind: checkout.CashinInit, PaymentID: 1}
	m.Do(payment, checkout.InitCheckout{Session: s})
	s.ID, s.CustomerSealed = draft, v.seal(t, draft, checkout.Customer{Phone: "066998877"})
	m.Do(draft, checkout.InitCheckout{Session: s})
	if got := m.Session(payment).ContactID(); got != draft {
		t.Fatalf("the contact data are sealed for %s", got)
	}
	m.Do(payment, checkout.Cancel{By: checkout.ByCitizen})
	if got := erase(t.Context(), payment); got != personal.ResultErased || v.count(t, countKeys) != 0 {
		t.Errorf("keys that were not adopted: %s", got)
	}

	// Data of a creation that was refused. Its session may also be on its way.
	v.seal(t, "chs_refused", checkout.Customer{Name: "n"})
	if got := erase(t.Context(), "chs_refused"); got != personal.ResultUnknown || v.count(t, countKeys) != 1 {
		t.Errorf("fresh data of an unknown session: %s", got)
	}
	request.At = begin.Add(2 * time.Hour)
	if got := erase(t.Context(), "chs_refused"); got != personal.ResultErased || v.count(t, countKeys) != 0 {
		t.Errorf("data of an unknown session: %s", got)
	}
	if got := erase(t.Context(), "nonsense"); got != personal.ResultUnknown {
		t.Errorf("no id of a session: %s", got)
	}
}

// The contact data of a payment that updates another one become the other's, and are erased
// with it. They open as before.
func TestAdoptedKeys(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	c := checkout.Customer{Name: "Mireille Okoko", Phone: "066998877", Address: "12 rue"}
	sealed := v.seal(t, "chs_draft", c)
	if err := v.Adopt(t.Context(), "chs_draft", "chs_kept"); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Customer(t.Context(), "chs_draft", sealed); err != nil || got != c {
		t.Errorf("got %+v, %v", got, err)
	}
	if found, err := v.Find(t.Context(), "066998877"); err != nil || !slices.Equal(found, []string{"chs_kept"}) {
		t.Errorf("found %v, %v", found, err)
	}
	if err := v.Forget(t.Context(), "chs_kept"); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Customer(t.Context(), "chs_draft", sealed); !errors.Is(err, personal.ErrErased) {
		t.Errorf("after the erasure: %v", err)
	}
}

// A message that waits for its provider has a number too. Its key was found by the number and
// not deleted, and the erasure ended with an error.
func TestEraseMessages(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	const id = personal.MessagePrefix + "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	sealed, err := v.SealMessage(t.Context(), id, personal.Message{To: "242066000001"}, "06 600 00 01")
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := v.Find(t.Context(), "06 600 00 01"); err != nil || !slices.Equal(ids, []string{id}) {
		t.Fatalf("found %v, %v", ids, err)
	}
	for _, want := range []personal.Result{personal.ResultErased, personal.ResultNothing} {
		if got, err := v.Erase(t.Context(), nil, id, personal.Request{Actor: actor, At: begin, By: "phone"}); err != nil || got != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	if _, err := v.Message(t.Context(), id, sealed); !errors.Is(err, personal.ErrErased) {
		t.Errorf("the message opens: %v", err)
	}
}
