package registries

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/postgres"
)

// Gate is a way to Postgres that can be cut.
type Gate struct {
	listener net.Listener

	mu    sync.Mutex
	open  *sync.Cond
	shut  bool
	held  bool
	conns []net.Conn
}

// Gate opens a pool through a gate.
func (h House) Gate(t *testing.T) (*pgxpool.Pool, *Gate) {
	t.Helper()
	u, err := url.Parse(h.DSN)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &Gate{listener: l}
	g.open = sync.NewCond(&g.mu)
	target := u.Host
	go g.serve(t, target)
	u.Host = l.Addr().String()
	pool, err := postgres.Open(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Hold(false); g.Shut(true); _ = l.Close(); pool.Close() })
	return pool, g
}

func (g *Gate) serve(t *testing.T, target string) {
	for {
		in, err := g.listener.Accept()
		if err != nil {
			return
		}
		out, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", target)
		g.mu.Lock()
		if g.shut || err != nil {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			g.mu.Unlock()
			continue
		}
		g.conns = append(g.conns, in, out)
		g.mu.Unlock()
		go g.pass(in, out)
		go g.pass(out, in)
	}
}

// pass copies from one side to the other while the gate lets it.
func (g *Gate) pass(to, from net.Conn) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		g.mu.Lock()
		for g.held {
			g.open.Wait()
		}
		g.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Shut ends all connections and refuses new ones, as a server does that has stopped.
func (g *Gate) Shut(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for _, c := range g.conns {
			_ = c.Close()
		}
		g.conns = nil
	}
}

// Hold lets nothing pass, and ends no connection, as a broken network does.
func (g *Gate) Hold(held bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = held
	g.open.Broadcast()
}
