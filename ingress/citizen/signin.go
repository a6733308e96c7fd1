package citizen

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/internal/secret"
	"quittance/money"
)

// clientRetry is the RetryAfter of a client that has asked for too many codes. Its limit is
// that of the last hour.
const clientRetry = 10 * time.Minute

// busyRetry is the RetryAfter of a sign-in that found too many others under way.
const busyRetry = 5 * time.Second

// SignInRequest asks for a code.
type SignInRequest struct {
	Address contact.Address
	// Browser is the secret of the browser (Browser): the code verifies only there.
	Browser secret.Text
	// Client is the network of the client, as web.Client returns it.
	Client string
	// Locale is the language of the message.
	Locale money.Language
	// Known is what KnownOf returns for the browser.
	Known secret.Text
}

// channels are the channels of messages by the kind of address.
var channels = map[contact.Kind]provider.Channel{contact.Phone: provider.ChannelSMS, contact.Email: provider.ChannelEmail}

// SignIn sends a code to an address, within the limits. It returns nil whether a code is sent
// or not, in the same time: the message is sent afterwards. Only a client that has asked too
// often is refused, with generic.rate_limited, any other while too many sign-ins are under way, and
// an e-mail address with citizen.mail_limited while too many codes go by e-mail, whether it has an
// account or not.
func (s *Service) SignIn(ctx context.Context, q SignInRequest) error {
	code, verdict, err := s.cfg.Citizens.Begin(ctx, citizens.Request{Address: q.Address, Browser: q.Browser, Client: q.Client, Known: q.Known})
	if verdict != "" {
		s.codes.WithLabelValues(string(verdict)).Inc()
	}
	switch {
	case errors.Is(err, citizens.ErrTooManyRequests):
		return limited(clientRetry)
	case errors.Is(err, citizens.ErrMailLimited):
		return &Refusal{Code: CodeMailLimited, RetryAfter: clientRetry}
	case err != nil:
		return s.signInError(err)
	case verdict != citizens.Sent:
		return nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	channel := channels[q.Address.Kind]
	m := notify.Message{
		ID: notify.MessageID(notify.SignInCode, channel, id.String()), Kind: notify.SignInCode, Channel: channel, To: q.Address.Text(), Locale: string(q.Locale),
		Variables: map[string]string{notify.VariableCode: code.Reveal()}, Live: s.cfg.Live, At: s.now(),
	}
	select {
	case s.messages <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signInError is the refusal of a sign-in for which there are too many others. Other errors stay
// as they are.
func (s *Service) signInError(err error) error {
	if errors.Is(err, citizens.ErrBusy) {
		s.busy.Inc()
		return limited(busyRetry)
	}
	return err
}

// VerifyRequest enters a code.
type VerifyRequest struct {
	Address contact.Address
	Browser secret.Text
	Code    string
	Locale  money.Language
	// Previous is the session that the browser had. It ends; empty for none.
	Previous secret.Text
}

// previous returns the sessions that end with a sign-in.
func previous(session secret.Text) []secret.Text {
	if session.Empty() {
		return nil
	}
	return []secret.Text{session}
}

// Verify signs in with a code and returns the secret of the new session. The previous one ends
// in the same transaction: if that fails, the code stays valid. The first sign-in of an address
// makes the account. A code that does not fit is refused with
// citizen.code_invalid, whatever is wrong with it.
func (s *Service) Verify(ctx context.Context, q VerifyRequest) (session secret.Text, who citizens.Citizen, err error) {
	session, who, err = s.cfg.Citizens.Enter(ctx, q.Address, q.Browser, q.Code, q.Locale, previous(q.Previous)...)
	switch {
	case errors.Is(err, citizens.ErrCodeInvalid):
		s.signIns.WithLabelValues("refused").Inc()
		return secret.Text{}, citizens.Citizen{}, refused(CodeInvalid)
	case err != nil:
		return secret.Text{}, citizens.Citizen{}, s.signInError(err)
	case who.First:
		s.signIns.WithLabelValues("first").Inc()
	default:
		s.signIns.WithLabelValues("ok").Inc()
	}
	if err := s.cfg.Messages.Reached(ctx, channels[q.Address.Kind], q.Address.Text(), s.now()); err != nil {
		s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "an address that reached nobody gets no messages although a code was entered", slog.Any("error", err))
	}
	return session, who, nil
}

// Visitor is who has signed in, with the session.
type Visitor struct {
	citizens.Citizen

	session secret.Text
}

// Session returns who has a session, and counts the call as a use of it. A session that has
// ended is refused with citizen.signed_out.
func (s *Service) Session(ctx context.Context, session secret.Text) (Visitor, error) {
	if session.Empty() {
		return Visitor{}, refused(CodeSignedOut)
	}
	who, err := s.cfg.Citizens.Session(ctx, session)
	if errors.Is(err, citizens.ErrSignedOut) {
		return Visitor{}, refused(CodeSignedOut)
	}
	return Visitor{who, session}, err
}

// SignOut ends a session on all instances. It may be repeated, and the session may be empty.
func (s *Service) SignOut(ctx context.Context, session secret.Text) error {
	if session.Empty() {
		return nil
	}
	return s.cfg.Citizens.SignOut(ctx, session)
}
