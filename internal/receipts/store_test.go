package receipts_test

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/test/servers"
)

var (
	operator = operation.Actor{Kind: operation.ActorCommandLine, Name: "op", Origin: "machine"}
	ingress  = operation.Actor{Kind: operation.ActorService, Name: "ingress", Origin: "machine"}
)

// installation is a database with the first keys.
type installation struct {
	pool *pgxpool.Pool
	keys *secret.Keys
}

func install(t *testing.T) installation {
	t.Helper()
	_, pool := servers.Database(t)
	i := installation{pool, secret.GenerateKeys()}
	if err := receipts.EnsureKeys(t.Context(), pool, i.keys, ingress, paidAt); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i installation) store(t *testing.T, keys *secret.Keys) *receipts.Store {
	t.Helper()
	s, err := receipts.NewStore(receipts.StoreConfig{Pool: i.pool, Keys: keys, PublicURL: "https://" + host})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (i installation) issue(t *testing.T, s *receipts.Store, at time.Time) string {
	t.Helper()
	session := paid()
	session.EndedAt = at
	token, address, err := s.Issue(t.Context(), "impots", session, session.Items[0].TransactionID)
	if err != nil || address != "https://"+host+"/q#"+token {
		t.Fatalf("%s, %v", address, err)
	}
	return token
}

// states returns "mode state" of all keys.
func (i installation) states(t *testing.T, now time.Time) (out []string, entries []receipts.Entry) {
	t.Helper()
	entries, err := receipts.ListKeys(t.Context(), i.pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		mode, _, _ := strings.Cut(e.ID, "-")
		out = append(out, mode+" "+string(e.State(now)))
	}
	return out, entries
}

func (i installation) audited(t *testing.T) string {
	t.Helper()
	rows, _ := i.pool.Query(t.Context(), `SELECT actor_kind || ' ' || action FROM audit ORDER BY id`)
	actions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(actions, ", ")
}

// Roles that start together make one key of each mode, which signs also what was paid before.
// Nobody has to type anything before the first receipt.
func TestFirstKeys(t *testing.T) {
	t.Parallel()
	_, pool := servers.Database(t)
	i := installation{pool, secret.GenerateKeys()}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := receipts.EnsureKeys(t.Context(), pool, i.keys, ingress, paidAt); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	states, entries := i.states(t, paidAt)
	if got := strings.Join(states, ", "); got != "test signing, live signing" {
		t.Fatal(got)
	}
	if got := i.audited(t); got != "service receipt_key.create, service receipt_key.create" {
		t.Error(got)
	}
	s := i.store(t, i.keys)
	for _, at := range []time.Time{paidAt, paidAt.AddDate(-3, 0, 0), paidAt.AddDate(20, 0, 0)} {
		token := i.issue(t, s, at)
		keys, err := s.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := keys.Verify(s.Issuer(), token); err != nil || got.Test() || got.Key.ID != entries[1].ID {
			t.Errorf("paid at %v: %+v, %v", at, got, err)
		}
	}
	// Postgres has no private part that opens without the master key, and errors show none.
	if _, err := i.store(t, secret.GenerateKeys()).Signer(t.Context(), true, paidAt); !errors.Is(err, receipts.ErrNoKeys) {
		t.Errorf("another master key: %v", err)
	}
	if _, err := receipts.NewStore(receipts.StoreConfig{Pool: pool, Keys: i.keys, PublicURL: "pay.example"}); err == nil {
		t.Error("an address without a host")
	}
}

// Whoever can write to Postgres makes, revives or moves a key of receipts. Nobody is told to trust it.
func TestForgedKeysAreNotPublished(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	thief, err := receipts.NewKey(true, public, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	const insert = `INSERT INTO receipt_keys (id, kid, live, public, sealed, signs_from, created_at, signature) SELECT `
	for name, c := range map[string]struct {
		sql  string
		args []any
	}{
		"a key of the thief":              {insert + `gen_random_uuid(), $1, live, $2, sealed, signs_from - interval '1 s', created_at, signature FROM receipt_keys WHERE live`, []any{thief.ID, []byte(public)}},
		"the public part is another":      {`UPDATE receipt_keys SET public = $2, kid = $1 WHERE live`, []any{thief.ID, []byte(public)}},
		"a revoked key is none":           {`UPDATE receipt_keys SET revoked_at = NULL WHERE live`, nil},
		"a key signs earlier":             {`UPDATE receipt_keys SET signs_from = signs_from + interval '1 day' WHERE live`, nil},
		"the key of tests is one of live": {`UPDATE receipt_keys SET live = true WHERE NOT live`, nil},
		"the private part is no seal":     {`UPDATE receipt_keys SET sealed = $1 WHERE live`, []any{[]byte(private.Seed())}},
		"the private part is another's":   {`UPDATE receipt_keys k SET sealed = o.sealed FROM receipt_keys o WHERE k.live AND NOT o.live`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := install(t)
			before, err := i.store(t, i.keys).Keys(t.Context())
			if err != nil || len(before) != 2 {
				t.Fatal(before, err)
			}
			if strings.Contains(c.sql, "revoked_at") {
				if _, _, _, err := receipts.RevokeKey(t.Context(), i.pool, i.keys, operator, before[1].ID, paidAt); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := i.pool.Exec(t.Context(), c.sql, c.args...); err != nil {
				t.Fatal(err)
			}
			after, err := i.store(t, i.keys).Keys(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			set := string(after.JWKS(paidAt))
			if strings.Contains(set, thief.ID) || strings.Contains(c.sql, "UPDATE") && len(after) != 1 && !strings.Contains(c.sql, "revoked_at") {
				t.Errorf("%d keys are trusted: %s", len(after), set)
			}
			if k, ok := after.Find(before[1].ID); ok && strings.Contains(c.sql, "WHERE live") && !strings.Contains(c.sql, "INSERT") {
				t.Errorf("%+v is trusted", k)
			}
		})
	}
}

// The next key is public at once and signs 30 days later. A receipt of before has the same bytes
// after the rotation. Only one key waits at a time.
func TestRotate(t *testing.T) {
	t.Parallel()
	i := install(t)
	s := i.store(t, i.keys)
	before := i.issue(t, s, paidAt)
	now := paidAt.Add(time.Hour)
	made, err := receipts.RotateKeys(t.Context(), i.pool, i.keys, operator, []bool{true, false}, now)
	if err != nil || len(made) != 2 || made[1].State(now) != receipts.KeyAnnounced || !made[1].From.Equal(now.Add(receipts.AnnouncedFor).Truncate(time.Second)) {
		t.Fatalf("%+v, %v", made, err)
	}
	if keys, err := s.Keys(t.Context()); err != nil || len(keys) != 2 {
		t.Errorf("%d keys are remembered, %v", len(keys), err)
	}
	s.Age(time.Minute)
	keys, err := s.Keys(t.Context())
	if err != nil || len(keys) != 4 || strings.Count(string(keys.JWKS(now)), `"kid"`) != 4 {
		t.Errorf("%d keys after a minute, %s, %v", len(keys), keys.JWKS(now), err)
	}
	if i.issue(t, s, paidAt) != before {
		t.Error("the rotation changed the bytes of an earlier receipt")
	}
	later := made[1].From
	for at, want := range map[time.Time]bool{later.Add(-time.Second): false, later: true} {
		got, err := keys.Verify(host, i.issue(t, s, at))
		if err != nil || (got.Key.ID == made[1].ID) != want {
			t.Errorf("paid at %v: signed by %s, %v", at, got.Key.ID, err)
		}
	}
	refused := (*operation.Error)(nil)
	if _, err := receipts.RotateKeys(t.Context(), i.pool, i.keys, operator, []bool{true}, now.Add(time.Hour)); !errors.As(err, &refused) || refused.Code != receipts.CodeAnnounced {
		t.Errorf("a second key: %v", err)
	}
	if states, _ := i.states(t, later); strings.Join(states, ", ") != "test retired, test signing, live retired, live signing" {
		t.Error(states)
	}
	if _, err := receipts.RotateKeys(t.Context(), i.pool, i.keys, operator, []bool{true}, later); err != nil {
		t.Errorf("after the waiting key began to sign: %v", err)
	}
}

// A revoked key leaves the key set. Its successor signs a moment later, so that all processes
// agree on the key of every payment: the announced key, or a new one.
func TestRevoke(t *testing.T) {
	t.Parallel()
	i := install(t)
	s := i.store(t, i.keys)
	before := i.issue(t, s, paidAt)
	_, entries := i.states(t, paidAt)
	stolen := entries[1].ID
	now := paidAt.Add(time.Hour)
	revoked, next, changed, err := receipts.RevokeKey(t.Context(), i.pool, i.keys, operator, stolen, now)
	if err != nil || !changed || revoked.State(now) != receipts.KeyRevoked || next == nil || next.ID == stolen || next.From.Sub(now) > time.Minute || next.From.Sub(now) < 20*time.Second {
		t.Fatalf("%+v, %+v, %v, %v", revoked, next, changed, err)
	}
	if _, next, changed, err := receipts.RevokeKey(t.Context(), i.pool, i.keys, operator, stolen, now); err != nil || changed || next != nil {
		t.Errorf("again: %v, %v, %v", next, changed, err)
	}
	fresh := i.store(t, i.keys)
	keys, err := fresh.Keys(t.Context())
	if err != nil || strings.Contains(string(keys.JWKS(now)), stolen) || !strings.Contains(string(keys.JWKS(now)), next.ID) {
		t.Errorf("the key set is %s, %v", keys.JWKS(now), err)
	}
	for at, want := range map[time.Time]string{paidAt: stolen, now: stolen, next.From.Add(-time.Second): stolen, next.From: next.ID} {
		if got, err := keys.Verify(host, i.issue(t, fresh, at)); err != nil || got.Key.ID != want || got.Revoked() != (want == stolen) {
			t.Errorf("paid at %v: %+v, %v", at, got, err)
		}
	}
	if i.issue(t, fresh, paidAt) != before || i.issue(t, s, now) != i.issue(t, fresh, now) {
		t.Error("processes make different tokens of one payment")
	}

	// The successor is stolen, too, before it signs anything; then a key waits when the signing
	// one is stolen.
	if _, third, _, err := receipts.RevokeKey(t.Context(), i.pool, i.keys, operator, next.ID, now); err != nil || third == nil || third.ID == next.ID || !third.RevokedAt.IsZero() {
		t.Fatalf("the successor is revoked: %+v, %v", third, err)
	}
	now = now.Add(time.Hour)
	waiting, err := receipts.RotateKeys(t.Context(), i.pool, i.keys, operator, []bool{true}, now)
	if err != nil {
		t.Fatal(err)
	}
	_, entries = i.states(t, now)
	for _, e := range entries {
		if e.Live && e.State(now) == receipts.KeySigning {
			stolen = e.ID
		}
	}
	if _, next, _, err = receipts.RevokeKey(t.Context(), i.pool, i.keys, operator, stolen, now); err != nil || next == nil || next.ID != waiting[0].ID || !next.From.Before(now.Add(time.Minute)) {
		t.Errorf("the waiting key takes over: %+v, %v", next, err)
	}
	refused := (*operation.Error)(nil)
	if _, _, _, err := receipts.RevokeKey(t.Context(), i.pool, i.keys, operator, "live-none", now); !errors.As(err, &refused) || refused.Code != receipts.CodeUnknownKey {
		t.Errorf("an unknown key: %v", err)
	}
	if got := i.audited(t); !strings.HasSuffix(got, "command_line receipt_key.revoke, command_line receipt_key.advance") {
		t.Error(got)
	}
}

// `secrets reseal` seals the private parts and signs the rows again.
func TestKeysAreSealedAgain(t *testing.T) {
	t.Parallel()
	i := install(t)
	before := i.issue(t, i.store(t, i.keys), paidAt)
	newest := secret.GenerateKeys()
	both, err := secret.ParseKeys(newest.Reveal() + "," + i.keys.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if done, err := receipts.SealedKeys.Reseal(t.Context(), i.pool, both, operator, paidAt, 10, func(int) {}); err != nil || done.Sealed != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := registry.Reseal(t.Context(), i.pool, both, operator, paidAt, 10, func(int) {}); err != nil {
		t.Fatal(err)
	}
	if i.issue(t, i.store(t, newest), paidAt) != before {
		t.Error("another token after sealing again")
	}
}
