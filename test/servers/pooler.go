package servers

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// PoolerTurn is which of its free sessions a pooler takes for a transaction.
type PoolerTurn string

// The turns: PgBouncer takes the session that was used last, with server_round_robin = 1 the
// one that was free for the longest time.
const (
	PoolerUsedLast   PoolerTurn = "used last"
	PoolerRoundRobin PoolerTurn = "round robin"
)

// TransactionPooler returns the address of the database at dsn behind a pooler with two sessions,
// which gives each transaction one of them, as PgBouncer does with pool_mode = transaction.
func TransactionPooler(t testing.TB, dsn string, turn PoolerTurn) string {
	t.Helper()
	const sessions = 2
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{turn: turn, clients: map[net.Conn]bool{}}
	p.released.L = &p.mu
	for range sessions {
		conn, err := pgconn.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		session, err := conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		p.all, p.free = append(p.all, session), append(p.free, session)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.close()
		serving.Wait()
	})
	at.Host = listener.Addr().String()
	return at.String()
}

type pooler struct {
	turn PoolerTurn
	all  []*pgconn.HijackedConn

	mu       sync.Mutex
	released sync.Cond
	free     []*pgconn.HijackedConn
	clients  map[net.Conn]bool
	closed   bool
}

func (p *pooler) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.released.Broadcast()
	for client := range p.clients {
		_ = client.Close()
	}
	for _, session := range p.all {
		_ = session.Conn.Close()
	}
}

// take waits for a free session; nil after close.
func (p *pooler) take() *pgconn.HijackedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) == 0 && !p.closed {
		p.released.Wait()
	}
	if p.closed {
		return nil
	}
	i := 0
	if p.turn == PoolerUsedLast {
		i = len(p.free) - 1
	}
	session := p.free[i]
	p.free = append(p.free[:i], p.free[i+1:]...)
	return session
}

func (p *pooler) release(session *pgconn.HijackedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, session)
	p.released.Signal()
}

// serve is the connection of a client until it ends.
func (p *pooler) serve(client net.Conn) {
	p.mu.Lock()
	p.clients[client] = true
	p.mu.Unlock()
	defer func() {
		_ = client.Close()
		p.mu.Lock()
		delete(p.clients, client)
		p.mu.Unlock()
	}()
	front := pgproto3.NewBackend(client, client)
	if !p.welcome(front) {
		return
	}
	var session *pgconn.HijackedConn
	for {
		message, err := front.Receive()
		if _, ends := message.(*pgproto3.Terminate); err != nil || ends {
			if session != nil { // its transaction ends with the client
				session.Frontend.Send(&pgproto3.Query{String: "ROLLBACK"})
				if answer(session, pgproto3.NewBackend(client, io.Discard)) == nil {
					p.release(session)
				}
			}
			return
		}
		if session == nil {
			if session = p.take(); session == nil {
				return
			}
		}
		session.Frontend.Send(message)
		switch message.(type) {
		case *pgproto3.Sync, *pgproto3.Query:
			if answer(session, front) != nil {
				return
			}
			if session.TxStatus == 'I' {
				p.release(session)
				session = nil
			}
		}
	}
}

// welcome answers the start of a client's connection.
func (p *pooler) welcome(front *pgproto3.Backend) bool {
	message, err := front.ReceiveStartupMessage()
	if _, ok := message.(*pgproto3.StartupMessage); err != nil || !ok {
		return false // the tests ask for no encryption
	}
	front.Send(&pgproto3.AuthenticationOk{})
	for name, value := range p.all[0].ParameterStatuses {
		front.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	front.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: make([]byte, 4)})
	front.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	return front.Flush() == nil
}

// answer passes what a session answers to a client, until the session is ready again.
func answer(session *pgconn.HijackedConn, client *pgproto3.Backend) error {
	if err := session.Frontend.Flush(); err != nil {
		return err
	}
	for {
		message, err := session.Frontend.Receive()
		if err != nil {
			return err
		}
		client.Send(message)
		if ready, ok := message.(*pgproto3.ReadyForQuery); ok {
			session.TxStatus = ready.TxStatus
			return client.Flush()
		}
	}
}
