package smtp

import (
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"
	client "github.com/wneessen/go-mail/smtp"
)

// A connection that has sent a message is kept for the next one. A new one costs a server the
// handshake of TLS and the sign-in, and us several answers to wait for.
const (
	keepIdle     = 16               // connections that wait for a message
	keepFor      = 10 * time.Second // a server under load closes idle ones after that time (Postfix, "stress")
	keepMessages = 100              // many servers take no more on one connection
	quitWithin   = 5 * time.Second
)

// connection is a connection that is signed in.
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
	if c.messages++; c.messages < keepMessages {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.idle) < keepIdle {
			c.idle = time.AfterFunc(keepFor, func() { p.remove(c); p.quit(c.Client) })
			p.idle = append(p.idle, c)
			return
		}
	}
	go p.quit(c.Client)
}

func (p *connections) remove(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.idle {
		if other == c {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			return
		}
	}
}

// quit ends a connection.
func (p *connections) quit(cl *client.Client) {
	_ = cl.UpdateDeadline(quitWithin)
	if p.client.CloseWithSMTPClient(cl) != nil {
		_ = cl.Close()
	}
}
