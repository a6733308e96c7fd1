package simulator

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// email is a message that the simulated mail server has accepted. It never changes.
type email struct {
	ID          int64        `json:"id"`
	ReceivedAt  time.Time    `json:"received_at"`
	From        string       `json:"from"`
	To          string       `json:"to"`
	Subject     string       `json:"subject"`
	Text        string       `json:"text"`
	HTML        string       `json:"html"`
	Attachments []attachment `json:"attachments"`
	MessageID   string       `json:"message_id"`
}

type attachment struct {
	Name        string `json:"name"`
	ContentType string `json:"content_type"`
	Size        int    `json:"size"`
}

func (m email) row() []string {
	var names []string
	for _, a := range m.Attachments {
		names = append(names, a.Name)
	}
	return []string{spelled(m.ReceivedAt), m.To, m.From, m.Subject, m.Text, strings.Join(names, ", ")}
}

// Values of "at" in POST /control/mail: the step that the status refuses.
const (
	mailAtRecipient = "rcpt"
	mailAtData      = "data"
)

const (
	maxMail     = 10 << 20
	mailTimeout = 5 * time.Minute
)

// MailServer configures the simulated mail server. The zero value has no TLS and accepts
// every caller.
type MailServer struct {
	// TLS offers STARTTLS.
	TLS *tls.Config
	// User and Password are required of callers unless User is empty.
	User, Password string
}

// ServeMail runs the simulated mail server on a listener until ctx ends. Then it returns
// nil.
func (s *Simulator) ServeMail(ctx context.Context, l net.Listener, cfg MailServer) error {
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &mailSession{s: s, cfg: cfg, signedIn: cfg.User == ""}, nil
	}))
	server.Domain, server.TLSConfig, server.MaxMessageBytes, server.MaxRecipients = "localhost", cfg.TLS, maxMail, 1
	server.AllowInsecureAuth, server.EnableSMTPUTF8 = cfg.TLS == nil, true
	server.ReadTimeout, server.WriteTimeout = mailTimeout, mailTimeout
	server.ErrorLog = log.New(logWriter{s.cfg.Log}, "", 0)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); err != nil && !errors.Is(err, smtp.ErrServerClosed) && ctx.Err() == nil {
		return fmt.Errorf("serving simulated mail: %w", err)
	}
	return nil
}

// logWriter passes the server's own errors on. They may have an address, so only their
// number is told.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Debug("simulated mail server: a connection failed", slog.Int("bytes", len(p)))
	return len(p), nil
}

// mailSession is one connection to the mail server.
type mailSession struct {
	s        *Simulator
	cfg      MailServer
	signedIn bool
	from, to string
	now      conduct
}

// AuthMechanisms lists what AUTH offers.
func (c *mailSession) AuthMechanisms() []string {
	if c.cfg.User == "" {
		return nil
	}
	return []string{sasl.Plain}
}

// Auth signs a caller in.
func (c *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != c.cfg.User || password != c.cfg.Password {
			return smtp.ErrAuthFailed
		}
		c.signedIn = true
		return nil
	}), nil
}

// Mail begins a message.
func (c *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if !c.signedIn {
		return smtp.ErrAuthRequired
	}
	c.from = from
	return nil
}

// Rcpt takes the recipient, or refuses as set by /control.
func (c *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	c.now = c.s.mail.behaviour.next()
	if c.now.refuseCode != mailAtData && c.now.status != 0 {
		return refusal(c.now.status)
	}
	c.to = to
	return nil
}

func refusal(status int) error {
	code := smtp.EnhancedCode{status / 100, 0, 0}
	if status == 550 { // RFC 3463: there is no such mailbox
		code = smtp.EnhancedCode{5, 1, 1}
	}
	return &smtp.SMTPError{Code: status, EnhancedCode: code, Message: "refused by /control"}
}

// Data takes the message, then answers as set by /control.
func (c *mailSession) Data(r io.Reader) error {
	if c.now.status != 0 {
		_, _ = io.Copy(io.Discard, r)
		return refusal(c.now.status)
	}
	m, err := readMail(r)
	if err != nil {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "the message is malformed: " + err.Error()}
	}
	m.To = c.to
	c.s.mail.add(func(id int64) email {
		m.ID, m.ReceivedAt = id, c.s.cfg.Now()
		return m
	})
	if c.now.hang {
		c.now.delay = mailTimeout
	}
	c.s.wait(context.Background(), c.now.delay)
	return nil
}

// Reset forgets the message.
func (c *mailSession) Reset() { c.from, c.to, c.now = "", "", conduct{} }

// Logout ends the connection.
func (c *mailSession) Logout() error { return nil }

// readMail reads a message (RFC 5322, RFC 2045).
func readMail(r io.Reader) (email, error) {
	in, err := mail.ReadMessage(r)
	if err != nil {
		return email{}, err
	}
	words := mime.WordDecoder{}
	out := email{Attachments: []attachment{}, MessageID: strings.Trim(in.Header.Get("Message-Id"), "<>")}
	if out.Subject, err = words.DecodeHeader(in.Header.Get("Subject")); err != nil {
		return out, err
	}
	if out.From, err = words.DecodeHeader(in.Header.Get("From")); err != nil {
		return out, err
	}
	return out, out.read(in.Header.Get("Content-Type"), in.Header.Get("Content-Transfer-Encoding"), "", in.Body)
}

// read adds a part of the message.
func (m *email) read(contentType, encoding, name string, body io.Reader) error {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return err
	}
	if strings.HasPrefix(media, "multipart/") {
		for parts := multipart.NewReader(body, params["boundary"]); ; {
			part, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := m.read(part.Header.Get("Content-Type"), part.Header.Get("Content-Transfer-Encoding"), part.FileName(), part); err != nil {
				return err
			}
		}
	}
	switch strings.ToLower(encoding) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	switch {
	case name != "":
		m.Attachments = append(m.Attachments, attachment{name, media, len(content)})
	case media == "text/html":
		m.HTML += text
	default:
		m.Text += text
	}
	return nil
}
