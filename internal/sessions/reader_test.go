package sessions_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka/consume"
	"quittance/internal/operation"
	readmodel "quittance/internal/sessions"
	"quittance/schemas"
	"quittance/test/await"
	"quittance/test/servers"
)

// A rebuild empties the read model between the positions and the rows of a list. The list
// has the session, or says that the read model is behind; it never says that there is none.
func TestRebuildIsNotSeenInTheMiddleOfARead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 300*time.Millisecond)
	between := &interrupted{}
	cfg, err := pgxpool.ParseConfig(w.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1 // nobody else reads the positions meanwhile
	cfg.ConnConfig.DialFunc = between.dial
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w.reader, err = readmodel.New(readmodel.Config{Pool: pool, Kafka: w.cfg, Topology: w.topology, Codec: w.codec, Log: servers.Logger(t), Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	w.run(t)

	s := session(1, appA)
	partition := w.topology.Partition(schemas.TopicEvents, s.TenantID)
	for p := range int32(2) {
		w.transaction(t, p, kgo.TryCommit)
		w.awaitHighWatermark(t, p, 2) // record, marker
		var rows []readmodel.Snapshot
		if p == partition {
			rows = snapshots(t, w.codec, s)
		}
		if err := w.store.Apply(t.Context(), rows, []consume.Move{{Topic: w.events, Partition: p, From: consume.None, To: 2}}); err != nil {
			t.Fatal(err)
		}
	}
	list := func() (int64, error) {
		_, total, err := w.reader.List(t.Context(), readmodel.Filter{TenantIDs: []string{s.TenantID}, ApplicationIDs: []string{appA}})
		return total, err
	}
	// From now on the connection has the statements prepared, and a list is one write.
	if total, err := answered(list); total != 1 || err != nil {
		t.Fatalf("before the rebuild: %d, %v", total, err)
	}

	emptied := make(chan error, 1)
	between.arm(func() {
		w.await(t, "the reader has read the positions", `SELECT count(*) > 0 FROM pg_locks WHERE relation = 'readmodel_positions'::regclass AND granted AND pid <> pg_backend_pid()`, nil)
		go func() {
			emptied <- w.store.Empty(context.WithoutCancel(t.Context()), operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}, time.Now(), w.events, map[int32]int64{0: 0, 1: 0})
		}()
		w.await(t, "the rebuild has emptied the table or waits for it", `SELECT count(*) > 0 FROM pg_locks WHERE relation = 'sessions'::regclass AND NOT granted`, emptied)
	})
	if !await.Within(await.Patience, func() bool { // a list that the broker did not answer in time reads no rows
		if total, err := list(); err == nil && total != 1 || err != nil && !errors.Is(err, readmodel.ErrBehind) {
			t.Errorf("during the rebuild the list has %d sessions, %v", total, err)
		}
		return between.armed.Load() == nil
	}) {
		t.Error("nothing happened in the middle of the list")
	}
	if err := <-emptied; err != nil {
		t.Fatal(err)
	}
	if total, err := list(); !errors.Is(err, readmodel.ErrBehind) || strings.Contains(err.Error(), "being rebuilt") {
		t.Errorf("after the rebuild the list has %d sessions, %v", total, err)
	}
}

// await waits until a query is true, or something has come.
func (w world) await(t *testing.T, what, query string, or chan error) {
	t.Helper()
	var err error
	if !await.Within(10*time.Second, func() bool {
		var is bool
		err = w.pool.QueryRow(t.Context(), query).Scan(&is)
		return is || len(or) > 0 || err != nil
	}) || err != nil {
		t.Errorf("not seen: %s: %v", what, err)
	}
}

// interrupted makes connections to Postgres on which something happens between the first
// statement of a batch and the second.
type interrupted struct{ armed atomic.Pointer[func()] }

func (i *interrupted) arm(do func()) { i.armed.Store(&do) }

func (i *interrupted) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	return interruptedConn{c, i}, err
}

type interruptedConn struct {
	net.Conn
	by *interrupted
}

// Write writes the messages up to the first Execute, lets things happen, and writes the rest.
func (c interruptedConn) Write(b []byte) (int, error) {
	first, statements := 0, 0
	if c.by.armed.Load() != nil {
		for at := 0; at+5 <= len(b); { // a letter, and the length of the rest
			next := at + 1 + int(binary.BigEndian.Uint32(b[at+1:]))
			if b[at] == 'E' {
				if statements++; statements == 1 {
					first = next
				}
			}
			at = next
		}
	}
	if statements < 2 {
		return c.Conn.Write(b)
	}
	do := *c.by.armed.Swap(nil)
	n, err := c.Conn.Write(b[:first])
	if err != nil {
		return n, err
	}
	do()
	m, err := c.Conn.Write(b[first:])
	return n + m, err
}
