package citizen

import (
	"context"
	"encoding/json"
	"errors"

	"quittance/internal/citizens"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
)

// Passkeys are the passkeys of an account as its owner sees them.
type Passkeys struct {
	// Available says whether a browser can make and use passkeys at this address.
	Available bool
	// List has the oldest first.
	List []citizens.Passkey
}

// Passkeys returns the passkeys of an account.
func (s *Service) Passkeys(ctx context.Context, who Visitor) (Passkeys, error) {
	list, err := s.passkeys.List(ctx, who.ID)
	return Passkeys{s.passkeys.Available(), list}, err
}

// BeginPasskey returns the options with which the browser of a session makes a passkey
// (PublicKeyCredentialCreationOptionsJSON below publicKey). A sign-in that is not recent is
// refused with citizen.sign_in_again.
func (s *Service) BeginPasskey(ctx context.Context, session secret.Text) (json.RawMessage, error) {
	options, err := s.passkeys.BeginRegistration(ctx, session)
	return options, passkeyRefusal(err, CodePasskeyInvalid)
}

// FinishPasskey adds the passkey that the browser of a session has made
// (RegistrationResponseJSON). The account's addresses are told. An answer that does not fit is
// refused with citizen.passkey_invalid.
func (s *Service) FinishPasskey(ctx context.Context, session secret.Text, response []byte) (citizens.Passkey, error) {
	p, err := s.passkeys.FinishRegistration(ctx, session, response)
	return p, passkeyRefusal(err, CodePasskeyInvalid)
}

// RemovePasskey removes a passkey of the account of a session. The account's other sessions end,
// and its addresses are told. Another account's is refused with citizen.passkey_not_found, as
// one that does not exist, and a sign-in that is not recent with citizen.sign_in_again.
func (s *Service) RemovePasskey(ctx context.Context, session secret.Text, id string) error {
	ok, err := s.passkeys.Remove(ctx, session, id)
	if err == nil && !ok {
		return refused(CodePasskeyNotFound)
	}
	return passkeyRefusal(err, CodePasskeyInvalid)
}

// BeginPasskeySignIn returns the options with which a browser proves a passkey
// (PublicKeyCredentialRequestOptionsJSON below publicKey). They are the same for everybody.
func (s *Service) BeginPasskeySignIn(ctx context.Context, browser Browser) (json.RawMessage, error) {
	options, err := s.passkeys.BeginSignIn(ctx, browser.Secret)
	return options, s.signInError(passkeyRefusal(err, CodePasskeyRefused))
}

// PasskeySignIn signs in with a passkey.
type PasskeySignIn struct {
	Browser secret.Text
	// Response is AuthenticationResponseJSON.
	Response []byte
	// Previous is the session that the browser had. It ends; empty for none.
	Previous secret.Text
}

// SignInWithPasskey signs in and returns the secret of the new session. An answer that proves
// no passkey is refused with citizen.passkey_refused, whatever is wrong with it.
func (s *Service) SignInWithPasskey(ctx context.Context, q PasskeySignIn) (session secret.Text, who citizens.Citizen, err error) {
	session, who, err = s.passkeys.FinishSignIn(ctx, q.Browser, q.Response, previous(q.Previous)...)
	if err != nil {
		if err = s.signInError(passkeyRefusal(err, CodePasskeyRefused)); RefusalOf(err).Code == CodePasskeyRefused {
			s.signIns.WithLabelValues("passkey_refused").Inc()
		}
		return secret.Text{}, citizens.Citizen{}, err
	}
	s.signIns.WithLabelValues("passkey").Inc()
	return session, who, nil
}

// SignOutEverywhere ends all sessions of the account of a session, this one too. A session that
// has ended is no error: its account asks for nothing any more.
func (s *Service) SignOutEverywhere(ctx context.Context, session secret.Text) error {
	if err := s.cfg.Citizens.SignOutEverywhere(ctx, session); !errors.Is(err, citizens.ErrSignedOut) {
		return err
	}
	return nil
}

// passkeyRefusal is the refusal of an error of passkeys; invalid is that of a wrong answer.
// Other errors stay as they are.
func passkeyRefusal(err error, invalid string) error {
	for of, code := range map[error]string{
		passkeys.ErrRefused: invalid, citizens.ErrSignInAgain: CodeSignInAgain, citizens.ErrTooManyPasskeys: CodePasskeysFull,
		passkeys.ErrUnavailable: CodePasskeysUnavailable, citizens.ErrSignedOut: CodeSignedOut,
	} {
		if errors.Is(err, of) {
			return refused(code)
		}
	}
	return err
}
