package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// createPath is the path of a creation.
const createPath = "/api/v1/checkout/sessions"

// callTimeout is longer than ingress lets a request wait, so that the client sees the
// answer of ingress and not its own timeout.
const callTimeout = 5 * time.Second

// creator is an integrator's client with one persistent connection, which it writes and
// reads itself. The client of net/http needs three goroutines for a request; on a shared
// machine their CPU time would count as the service's.
type creator struct {
	addr string
	key  string
	run  string
	n    *atomic.Int64 // number of the last creation of the run

	conn net.Conn
	in   *bufio.Reader
	out  bytes.Buffer
	body bytes.Buffer
}

// call creates one session. Any answer but 201 is an error.
func (c *creator) call(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			c.hangUp()
		}
	}()
	if c.conn == nil {
		d := net.Dialer{Timeout: callTimeout}
		if c.conn, err = d.DialContext(ctx, "tcp", c.addr); err != nil {
			return fmt.Errorf("connecting to ingress: %w", err)
		}
		c.in = bufio.NewReader(c.conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return fmt.Errorf("creating a session: %w", err)
	}
	c.request()
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return fmt.Errorf("creating a session: %w", err)
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return fmt.Errorf("creating a session: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return fmt.Errorf("creating a session: %s: %s", resp.Status, bytes.TrimSpace(text))
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("creating a session: %w", err)
	}
	return nil
}

// request writes the next creation into c.out, with an order and an Idempotency-Key of
// its own and all fields that integrators usually fill.
func (c *creator) request() {
	n := c.n.Add(1)
	c.body.Reset()
	fmt.Fprintf(&c.body, `{"order_id":"%s-%08d","amount":%d,"currency":"XAF","mode":"hosted","service_code":"%s",`+
		`"description":"Contribution de la patente, exercice 2026","note":"Dossier %08d, centre des impôts",`+
		`"customer":{"name":"Marie-Claire Ngoma Itoua","email":"contribuable.%08d@example.org","phone":"+242066%06d"},"customer_id":"NIU-%012d",`+
		`"metadata":{"erp_due_ref":"DUE-%s-%08d","fiscal_year":"2026","office":"centre-1","teller":"guichet-%d"},`+
		`"success_url":"https://guichet.example/dossiers/%08d/merci","cancel_url":"https://guichet.example/dossiers/%08d"}`,
		c.run, n, 5000+n%95000, ServiceCode, n, n, n%1_000_000, n, c.run, n, n%40, n, n)
	c.out.Reset()
	fmt.Fprintf(&c.out, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: quittance-bench\r\nAccept: application/json\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nIdempotency-Key: %s-%08d\r\nContent-Length: %s\r\n\r\n",
		createPath, c.addr, c.key, c.run, n, strconv.Itoa(c.body.Len()))
	c.out.Write(c.body.Bytes())
}

func (c *creator) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}
