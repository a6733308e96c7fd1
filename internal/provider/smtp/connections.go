package smtp

import (
	"slices"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"
	client "github.com/wneessen/go-mail/smtp"
)

// A connection that has sent a message is kept for the next one. A new one costs a server the
// handshake of TLS and the sign-in, and costs us five more round trips.
const (
	keepIdle     = 4               // connections that wait for a message; servers limit those of a client
	keepFor      = 5 * time.Second // below the 10 s after which a server under load ends idle ones (Postfix, "stress")
	keepMessages = 100             // many servers take no more on one connection
	quitWithin   = 5 * time.Second
)

// connection is an SMTP connection that is ready for a message.
type connection struct {
	*client.Client
	messages int // that it has sent
	idle     *time.Timer
}

// connections are those that wait for a message, the last one used first.
type connections struct {
	client *gomail.Client
	mu     sync.Mutex
	idle   []*connection
}

// take returns a connection that waits; nil if there is none.
func (p *connections) take() *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		last := len(p.idle) - 1
		c := p.idle[last]
		p.idle[last], p.idle = nil, p.idle[:last]
		if c.idle.Stop() { // else its time is over, and it is about to be closed
			return c
		}
	}
	return nil
}

// put keeps a connection that has sent a message, or ends it.
func (p *connections) put(c *connection) {
	c.messages++
	if !p.keep(c) {
		p.quit(c.Client)
	}
}

func (p *connections) keep(c *connection) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.messages >= keepMessages || len(p.idle) >= keepIdle {
		return false
	}
	c.idle = time.AfterFunc(keepFor, func() { p.remove(c); p.quit(c.Client) })
	p.idle = append(p.idle, c)
	return true
}

func (p *connections) remove(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = slices.DeleteFunc(p.idle, func(other *connection) bool { return other == c })
}

// quit ends a connection.
func (p *connections) quit(cl *client.Client) {
	_ = cl.UpdateDeadline(quitWithin)
	if p.client.CloseWithSMTPClient(cl) != nil {
		_ = cl.Close()
	}
}
