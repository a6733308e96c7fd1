package smtp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quittance/dev/simulator"
	"quittance/internal/provider"
	"quittance/internal/provider/smtp"
	"quittance/test/providers"
)

// relay passes connections on to a mail server and counts them. It may end them as a server does.
type relay struct {
	server   string
	accepted atomic.Int64
	mu       sync.Mutex
	open     []net.Conn
	// goodbye answers the next command of connections up to the number last, and ends them. cut
	// ends a connection without an answer after these bytes of the client.
	goodbye string
	last    int64
	cut     []byte
}

func newRelay(t *testing.T, server string) (r *relay, address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r = &relay{server: server}
	t.Cleanup(func() { _ = l.Close(); r.end() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			number := r.accepted.Add(1)
			to, err := net.Dial("tcp", r.server)
			if err != nil {
				_ = c.Close()
				continue
			}
			r.mu.Lock()
			r.open = append(r.open, c, to)
			r.mu.Unlock()
			go func() { _, _ = io.Copy(c, to); _ = c.Close() }()
			go r.pass(number, c, to)
		}
	}()
	return r, l.Addr().String()
}

// pass passes what the client writes.
func (r *relay) pass(number int64, c, to net.Conn) {
	defer func() { _ = to.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.Read(buffer)
		r.mu.Lock()
		goodbye, cut := r.goodbye, r.cut
		if number > r.last {
			goodbye = ""
		}
		r.mu.Unlock()
		switch {
		case err != nil:
			return
		case goodbye != "":
			_, _ = io.WriteString(c, goodbye)
			_ = c.Close()
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
		if cut != nil && bytes.Contains(buffer[:n], cut) {
			_ = c.Close()
			time.Sleep(200 * time.Millisecond) // the server takes the message
			return
		}
	}
}

// end ends all connections.
func (r *relay) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		_ = c.Close()
	}
	r.open = nil
}

func (r *relay) set(goodbye string, last int64, cut []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.goodbye, r.last, r.cut = goodbye, last, cut
}

// A connection serves many messages. One that the server has ended meanwhile costs nothing: its
// message goes out on another. A message whose answer is missing is never sent again by itself.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := providers.NewSimulator(t)
	r, address := newRelay(t, s.Mail(simulator.MailServer{}))
	p, err := smtp.Registration.New(providers.Settings(t, "smtp+plain://"+address+query, ""))
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	send := func() error {
		sent++
		return p.Send(t.Context(), provider.Message{ID: fmt.Sprint("msg_", sent), To: "citoyen@example.org", Subject: "s", Text: "x", At: time.Now()})
	}
	arrived := func(what string, messages int, connections int64) {
		t.Helper()
		seen := map[string]int{}
		for _, m := range s.Inbox(provider.ChannelEmail) {
			if seen[m.ID]++; seen[m.ID] > 1 {
				t.Errorf("%s: %s arrived twice", what, m.ID)
			}
		}
		if len(seen) != messages || r.accepted.Load() != connections {
			t.Errorf("%s: %d messages arrived on %d connections, want %d on %d", what, len(seen), r.accepted.Load(), messages, connections)
		}
	}
	for range 5 {
		if err := send(); err != nil {
			t.Fatal(err)
		}
	}
	arrived("one after the other", 5, 1)

	r.end()
	if err := send(); err != nil {
		t.Error("after the server has ended the connection: ", err)
	}
	arrived("the server has ended the connection", 6, 2)

	// By such an answer servers also say that a connection has had enough messages.
	r.set("554 5.5.1 no more messages on this connection\r\n", 2, nil)
	if err := send(); err != nil {
		t.Error("after a refusal of the kept connection: ", err)
	}
	arrived("a refusal of the kept connection", 7, 3)

	r.set("421 4.4.2 idle for too long\r\n", 100, nil)
	var e *provider.Error
	if err := send(); !errors.As(err, &e) || e.Code != "smtp_421" { // also on the new connection
		t.Errorf("a server that closes: %v, want 421", err)
	}
	arrived("a server that closes", 7, 4)
	r.set("", 0, nil)
	if err := send(); err != nil {
		t.Fatal(err)
	}
	arrived("the server is back", 8, 5)

	s.Control("mail", `{"status":450,"at":"rcpt","times":1}`)
	if err := send(); !errors.As(err, &e) || e.Fault != provider.FaultBusy {
		t.Errorf("a refusal for now: %v", err)
	}
	arrived("a refusal for now is the message's", 8, 5)
	if err := send(); err != nil {
		t.Fatal(err)
	}
	arrived("a connection with a refusal is not kept", 9, 6)

	r.set("", 0, []byte("\r\n.\r\n"))
	if err := send(); !errors.As(err, &e) || e.Fault != provider.FaultUnknown {
		t.Errorf("no answer to the text: %v, want %s", err, provider.FaultUnknown)
	}
	r.set("", 0, nil)
	arrived("no answer to the text", 10, 6)

	for range 101 {
		if err := send(); err != nil {
			t.Fatal(err)
		}
	}
	arrived("more messages than a connection takes", 111, 8)

	// At once: each message has a connection, and the connections are kept.
	for range 2 {
		var group sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			sent++
			m := provider.Message{ID: fmt.Sprint("msg_", sent), To: "citoyen@example.org", Subject: "s", Text: "x", At: time.Now()}
			group.Go(func() { errs[i] = p.Send(t.Context(), m) })
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.accepted.Load(); n > 11 {
		t.Errorf("%d connections for at most four messages at once", n)
	}
}
