package matcher

import (
	"context"
	"testing"

	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/test/servers"
)

// Behind PgBouncer with pool_mode = transaction the unlock of an account ran in another session
// than its lock. Its result was not read: the matcher believed for good, without a word, that
// another instance held the account.
func TestLockBehindAPooler(t *testing.T) {
	t.Parallel()
	dsn := servers.Postgres(t)
	open := func(at string) *Matcher {
		pool, err := postgres.Open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return &Matcher{cfg: Config{Pool: pool, Kafka: kafka.Config{Prefix: t.Name()}}}
	}
	account := registry.StatementAccountKey{AgencyID: "agn_1", Code: "bank"}
	nothing := func() error { return nil }
	direct := open(dsn)
	for name, m := range map[string]*Matcher{
		"Postgres itself": open(dsn),
		"a pooler":        open(servers.TransactionPooler(t, dsn, servers.PoolerRoundRobin) + "&default_query_exec_mode=simple_protocol"),
	} {
		free := func(when string) {
			if ran, err := direct.locked(t.Context(), account, nothing); !ran || err != nil {
				t.Errorf("%s: another instance, %s: %v, %v", name, when, ran, err)
			}
		}
		if ran, err := m.locked(t.Context(), account, nothing); !ran || err != nil {
			t.Fatalf("%s: the account is free: %v, %v", name, ran, err)
		}
		free("after a run")
		_, err := m.locked(t.Context(), account, func() error {
			if ran, err := direct.locked(t.Context(), account, nothing); ran || err != nil {
				t.Errorf("%s: another instance at the same time: %v, %v", name, ran, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		ending, cancel := context.WithCancel(t.Context())
		if ran, err := m.locked(ending, account, func() error { cancel(); return ending.Err() }); !ran || err == nil {
			t.Errorf("%s: a run that ends with its process: %v, %v", name, ran, err)
		}
		free("after a run that ended with its process")
	}
}
