// Package smtp sends e-mail by a mail server of the installation (RFC 5321, RFC 6409). The
// protocol is github.com/wneessen/go-mail's.
//
// A server answers each step with a code: 4xx means later, 5xx means never. It has the
// message when it has answered the end of the text with 250. An error before that end means
// that it has not; no answer to that end means that nobody knows.
package smtp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/mail"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	client "github.com/wneessen/go-mail/smtp"

	"quittance/internal/provider"
)

// Name is the provider's short name.
const Name = "smtp"

// Schemes of the address.
const (
	schemeTLS   = "smtps"
	schemePlain = "smtp+plain"
)

// Registration is the registration of SMTP.
var Registration = provider.Registration{
	Name: Name, Channel: provider.ChannelEmail, Schemes: []string{schemeTLS, schemePlain},
	Form: "smtp://USER@HOST:587?from=ADDRESS (STARTTLS), smtps://USER@HOST:465?from=ADDRESS, or smtp+plain://127.0.0.1:25?from=ADDRESS for a server on this machine; further settings are name and ca_file (the secret is the user's password)",
	New:  func(s provider.Settings) (provider.Provider, error) { return New(s) },
}

// Ports of submission (RFC 6409, RFC 8314) and of relaying.
const (
	portSubmission = 587
	portTLS        = 465
	portRelay      = 25
)

// Server sends e-mail by one mail server. Safe for concurrent use.
type Server struct {
	client      *gomail.Client
	connections connections
	from        mail.Address
	host        string // of message ids
}

// New makes the provider of an installation.
func New(s provider.Settings) (*Server, error) {
	from, err := mail.ParseAddress(s.Text("from"))
	if err != nil {
		return nil, errors.New("from: must be the e-mail address that messages come from, such as no-reply@pay.example")
	}
	from.Name = s.Text("name")
	config, err := s.TLS()
	if err = errors.Join(err, s.Unknown()); err != nil {
		return nil, err
	}
	user := s.Address.User.Username()
	switch {
	case s.Address.Hostname() == "":
		return nil, errors.New("the host is missing")
	case s.Address.Scheme == schemePlain && !s.IsLoopback():
		return nil, errors.New("smtp+plain is for a server on this machine only: use smtp (STARTTLS) or smtps")
	case user != "" && s.Secret.Empty():
		return nil, errors.New("the secret is missing: the password of the user")
	case user == "" && !s.Secret.Empty():
		return nil, errors.New("there is a password, but no user: smtp://USER@HOST")
	}
	helo, err := os.Hostname()
	if err != nil || helo == "" {
		helo = "localhost"
	}
	port, policy := portSubmission, gomail.TLSMandatory
	options := []gomail.Option{gomail.WithTimeout(s.Timeout), gomail.WithTLSConfig(config), gomail.WithoutNoop(), gomail.WithoutRset(), gomail.WithHELO(helo)}
	switch s.Address.Scheme {
	case schemeTLS:
		port = portTLS
		options = append(options, gomail.WithSSL())
	case schemePlain:
		port, policy = portRelay, gomail.NoTLS
	}
	if text := s.Address.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil {
			return nil, errors.New("the port is no number")
		}
	}
	options = append(options, gomail.WithPort(port), gomail.WithTLSPolicy(policy))
	if user != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(user), gomail.WithPassword(s.Secret.Reveal()))
	}
	cl, err := gomail.NewClient(s.Address.Hostname(), options...)
	if err != nil {
		return nil, fmt.Errorf("preparing SMTP: %w", err)
	}
	_, host, _ := strings.Cut(from.Address, "@")
	return &Server{client: cl, connections: connections{client: cl}, from: *from, host: host}, nil
}

// Name returns the provider's short name.
func (*Server) Name() string { return Name }

const doing = "sending an e-mail"

// Send hands a message over. Its Message-ID is made of the message's id, so it is the same
// at every attempt.
func (s *Server) Send(ctx context.Context, m provider.Message) error {
	msg, err := s.message(m)
	if err != nil {
		return err
	}
	if c := s.connections.take(); c != nil {
		again, err := s.hand(ctx, c, msg)
		if !again {
			return err
		}
	}
	cl, err := s.dial(ctx, doing)
	if err != nil {
		return err
	}
	_, err = s.hand(ctx, &connection{Client: cl}, msg)
	return err
}

// hand sends a message on a connection. On success it keeps the connection; after an error it closes
// it. again reports that the error is the connection's: a kept one that the server has ended, or on
// which it takes no more messages. The server does not have the message then.
func (s *Server) hand(ctx context.Context, c *connection, msg *gomail.Msg) (again bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err = s.client.SendWithSMTPClient(c.Client, msg)
	switch open := stop(); {
	case takenBriefly(err):
		_ = c.Close() // the server has the message
	case err != nil && !msg.IsDelivered():
		_ = c.Close()
		return ofConnection(err), judge(err)
	case err != nil || !open:
		_ = c.Close() // the server has the message
	default:
		s.connections.put(c)
	}
	return false, nil
}

// ofConnection reports whether an error before the text says nothing of the message: no answer, the
// answer 421 (RFC 5321, 3.8), or any refusal of MAIL, with which servers also say that a connection has
// had enough messages or is not signed in any more.
func ofConnection(err error) bool {
	var failed *gomail.SendError
	if !errors.As(err, &failed) {
		return false
	}
	code := codeOf(failed)
	unanswered := code == 0 || code == 421
	return failed.Reason == gomail.ErrConnCheck || failed.Reason == gomail.ErrSMTPMailFrom ||
		unanswered && (failed.Reason == gomail.ErrSMTPRcptTo || failed.Reason == gomail.ErrSMTPData)
}

// takenBriefly reports that the server has answered the end of the text with 250 alone. The protocol
// permits a code without a text (RFC 5321, 4.2), which net/textproto reports as an error.
func takenBriefly(err error) bool {
	var failed *gomail.SendError
	return errors.As(err, &failed) && failed.Reason == gomail.ErrSMTPDataClose && codeOf(failed) == 250
}

// codeOf returns the code of the server's answer, also of one that is a code alone; 0 without an answer.
func codeOf(failed *gomail.SendError) int {
	if code := failed.ErrorCode(); code != 0 {
		return code
	}
	_, rest, _ := strings.Cut(failed.Error(), `short response: "`)
	brief, _, _ := strings.Cut(rest, `"`)
	code, err := strconv.Atoi(brief)
	if err != nil || len(brief) != 3 {
		return 0
	}
	return code
}

// message returns the message in go-mail's form.
func (s *Server) message(m provider.Message) (*gomail.Msg, error) {
	out := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	out.FromMailAddress(&s.from)
	if out.To(m.To) != nil {
		return nil, &provider.Error{Doing: doing, Fault: provider.FaultRefused, Code: "address_malformed"}
	}
	out.Subject(m.Subject)
	out.SetMessageIDWithValue(m.ID + "@" + s.host)
	out.SetDateWithValue(m.At)
	out.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: nobody answers it by a program
	out.SetBodyString(gomail.TypeTextPlain, m.Text)
	for _, a := range m.Attachments {
		if out.AttachReader(a.Name, bytes.NewReader(a.Content), gomail.WithFileContentType(gomail.ContentType(a.ContentType))) != nil {
			return nil, &provider.Error{Doing: doing, Fault: provider.FaultRefused, Code: "attachment"}
		}
	}
	return out, nil
}

// dial connects and signs in. An error means that the message was not sent.
func (s *Server) dial(ctx context.Context, doing string) (*client.Client, error) {
	cl, err := s.client.DialToSMTPClientWithContext(ctx)
	if err == nil {
		return cl, nil
	}
	e := &provider.Error{Doing: doing, Fault: provider.FaultNotSent, Code: "connection"}
	var reply *textproto.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &reply):
		e.Code = "smtp_" + strconv.Itoa(reply.Code)
		if reply.Code == 535 || reply.Code == 534 || reply.Code == 530 {
			e.Fault = provider.FaultCredentials
		}
	case errors.Is(err, gomail.ErrNoSupportedAuthDiscovered), errors.Is(err, gomail.ErrPlainAuthNotSupported):
		e.Fault, e.Code = provider.FaultCredentials, "no_authentication"
	case errors.As(err, &certificate):
		e.Code = "tls_certificate"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		e.Code = "timeout"
	}
	return nil, e
}

// judge returns the Error of a message that the server has not confirmed.
func judge(err error) *provider.Error {
	out := &provider.Error{Doing: doing, Fault: provider.FaultUnknown}
	var failed *gomail.SendError
	if !errors.As(err, &failed) {
		return out
	}
	code := codeOf(failed)
	switch {
	case code >= 500:
		out.Fault = provider.FaultRefused
		out.Unknown = failed.Reason == gomail.ErrSMTPRcptTo && noMailbox(failed.EnhancedStatusCode())
	case code >= 400:
		out.Fault = provider.FaultBusy
	case failed.Reason != gomail.ErrSMTPDataClose && failed.Reason != gomail.ErrWriteContent:
		out.Fault = provider.FaultNotSent // the server does not have the text
	}
	if out.Code = "no_answer"; code != 0 {
		out.Code = "smtp_" + strconv.Itoa(code)
	}
	return out
}

// noMailbox reports whether the enhanced status code (RFC 3463) of a refused addressee says that
// the mailbox does not exist. A bare 550 does not: a relay that is misconfigured for an hour
// answers so to everybody.
func noMailbox(enhanced string) bool {
	switch enhanced {
	case "5.1.1", "5.1.2", "5.1.3", "5.1.6":
		return true
	}
	return false
}

// checkWithin bounds Check.
const checkWithin = 10 * time.Second

// Check connects and signs in.
func (s *Server) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	cl, err := s.dial(ctx, "signing in at the mail server")
	if err != nil {
		return err
	}
	s.connections.quit(cl)
	return nil
}
