// Package passkeys is the service's part of WebAuthn (Level 3) for the owners of any noun:
// discoverable credentials, for which the authenticator verifies the user.
//
//	BeginRegistration ─► Keep ─► Take ─► Register   an owner adds a passkey
//	BeginSignIn ───────► Keep ─► Take ─► Verify     somebody proves a passkey
//
// A Party is one host. The noun holds its owners' credentials in a table of its own, with the
// limits of an owner; the challenges of all nouns are in passkey_challenges.
package passkeys

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn" // the server's part of WebAuthn: attestation formats, COSE keys, CBOR
	"github.com/google/uuid"
)

var (
	// ErrRefused says that an answer to a challenge does not prove a passkey: its challenge is
	// missing, used or too old, or belongs to another browser, or the answer is malformed, of
	// another origin, without verification of the user, or wrongly signed.
	ErrRefused = errors.New("the passkey is not valid")
	// ErrUnavailable says that the service has no address at which browsers allow passkeys.
	ErrUnavailable = errors.New("passkeys need a name of the host, not a number")
)

// Party makes and verifies the passkeys of a host. Safe for concurrent use.
type Party struct {
	party *webauthn.WebAuthn // nil where browsers allow none
}

// New makes the Party of a service at an address. Browsers allow passkeys for names of hosts
// only; at a loopback address they are those of localhost.
func New(publicURL string) (*Party, error) {
	u, err := url.Parse(publicURL)
	if err != nil || u.Host == "" {
		return nil, errors.New("passkeys: the address of the service must be one such as https://pay.example")
	}
	host, origin := u.Hostname(), u.Scheme+"://"+u.Host
	if ip, err := netip.ParseAddr(host); err == nil {
		if !ip.IsLoopback() {
			return &Party{}, nil
		}
		if host, origin = "localhost", u.Scheme+"://localhost"; u.Port() != "" {
			origin += ":" + u.Port()
		}
	}
	timeout := webauthn.TimeoutConfig{Timeout: ChallengeLifetime}
	party, err := webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: host, RPOrigins: []string{origin}, AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: protocol.VerificationRequired,
		},
		Timeouts: webauthn.TimeoutsConfig{Login: timeout, Registration: timeout},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys: %w", err)
	}
	return &Party{party}, nil
}

// Available reports whether browsers allow passkeys at the address of the service.
func (p *Party) Available() bool { return p.party != nil }

// Host is the name of the host at which browsers make and use the passkeys; empty without one.
func (p *Party) Host() string {
	if p.party == nil {
		return ""
	}
	return p.party.Config.RPID
}

// Credential is a passkey as a noun stores it, in JSON, with its count of signatures.
type Credential webauthn.Credential

// UnmarshalJSON reads a passkey as the library does, which converts what its earlier versions wrote.
func (c *Credential) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, (*webauthn.Credential)(c))
}

// Synced reports whether the owner's other devices may have the passkey too.
func (c Credential) Synced() bool { return c.Flags.BackupState }

// Owner is who has passkeys, or adds one.
type Owner struct {
	ID uuid.UUID
	// Name is shown by authenticators.
	Name string
	// Credentials are those that the owner may not make again, or may prove.
	Credentials []Credential
}

// user is an owner as the library wants it.
type user struct{ Owner }

// WebAuthnID implements webauthn.User.
func (u user) WebAuthnID() []byte { return u.ID[:] }

// WebAuthnName implements webauthn.User.
func (u user) WebAuthnName() string { return u.Name }

// WebAuthnDisplayName implements webauthn.User.
func (u user) WebAuthnDisplayName() string { return u.Name }

// WebAuthnCredentials implements webauthn.User.
func (u user) WebAuthnCredentials() []webauthn.Credential {
	out := make([]webauthn.Credential, len(u.Credentials))
	for i, c := range u.Credentials {
		out[i] = webauthn.Credential(c)
	}
	return out
}

// BeginRegistration returns the options with which a browser makes a passkey for an owner
// (PublicKeyCredentialCreationOptionsJSON, below publicKey), and the challenge to Keep.
func (p *Party) BeginRegistration(o Owner) (json.RawMessage, Challenge, error) {
	if p.party == nil {
		return nil, Challenge{}, ErrUnavailable
	}
	u := user{o}
	options, data, err := p.party.BeginRegistration(u, webauthn.WithExclusions(webauthn.Credentials(u.WebAuthnCredentials()).CredentialDescriptors()))
	return begun(options, data, err)
}

// begun returns the options and the challenge of a begin of the library.
func begun(options any, data *webauthn.SessionData, err error) (json.RawMessage, Challenge, error) {
	if err != nil {
		return nil, Challenge{}, err
	}
	data.Expires = time.Time{} // Take compares the time of the service
	text, err := json.Marshal(options)
	return text, Challenge(*data), err
}

// Register verifies the passkey that a browser has made for a challenge
// (RegistrationResponseJSON). The error is ErrRefused, also for a passkey at an address that
// allows none.
func (p *Party) Register(o Owner, c Challenge, response []byte) (Credential, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil || p.party == nil {
		return Credential{}, ErrRefused
	}
	made, err := p.party.CreateCredential(user{o}, webauthn.SessionData(c), parsed)
	if err != nil {
		return Credential{}, ErrRefused
	}
	made.Attestation = webauthn.CredentialAttestation{} // verified, and never looked at again
	return Credential(*made), nil
}

// BeginSignIn returns the options with which a browser proves a passkey
// (PublicKeyCredentialRequestOptionsJSON, below publicKey), and the challenge to Keep. The
// options name no passkey, so that they tell nothing about an owner.
func (p *Party) BeginSignIn() (json.RawMessage, Challenge, error) {
	if p.party == nil {
		return nil, Challenge{}, ErrUnavailable
	}
	options, data, err := p.party.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	return begun(options, data, err)
}

// Assertion is the answer of a browser that proves a passkey, not verified yet.
type Assertion struct {
	parsed *protocol.ParsedCredentialAssertionData
}

// ParseAssertion reads an answer (AuthenticationResponseJSON). The error is ErrRefused.
func ParseAssertion(response []byte) (Assertion, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return Assertion{}, ErrRefused
	}
	return Assertion{parsed}, nil
}

// CredentialID is the id of the credential that the answer names.
func (a Assertion) CredentialID() []byte { return a.parsed.RawID }

// Verify verifies that an answer to a challenge proves a passkey of an owner, and returns the
// passkey to be stored, with its new count of signatures and its flags of today. The error is
// ErrRefused.
//
// A count that does not rise means that somebody may have a copy of the key. A passkey that is
// on one device is refused then. Devices that share a passkey count each for itself, or not at
// all: for a passkey that may be synced the new count is taken, and fell is true.
func (p *Party) Verify(o Owner, c Challenge, a Assertion) (proven Credential, fell bool, err error) {
	return p.verify(o, a, func(owner user) (*webauthn.Credential, error) {
		_, made, err := p.party.ValidatePasskeyLogin(func(_, _ []byte) (webauthn.User, error) { return owner, nil }, webauthn.SessionData(c), a.parsed)
		return made, err
	})
}

// verify is Verify for the check of a kind of answers.
func (p *Party) verify(o Owner, a Assertion, check func(user) (*webauthn.Credential, error)) (proven Credential, fell bool, err error) {
	if p.party == nil {
		return Credential{}, false, ErrRefused
	}
	data := a.parsed.Response.AuthenticatorData
	// The library refuses a passkey that was made on one device and may be synced now, and the
	// other way round, after it has verified the signature. So it is given the flag that the
	// signature covers; the caller stores it only if the answer is proven.
	owner := user{o}
	owner.Credentials = slices.Clone(o.Credentials)
	for i := range owner.Credentials {
		owner.Credentials[i].Flags.BackupEligible = data.Flags.HasBackupEligible()
	}
	made, err := check(owner)
	if err != nil {
		return Credential{}, false, ErrRefused
	}
	if fell = made.Authenticator.CloneWarning; fell {
		if !made.Flags.BackupEligible {
			return Credential{}, true, ErrRefused
		}
		made.Authenticator.CloneWarning, made.Authenticator.SignCount = false, data.Counter
	}
	return Credential(*made), fell, nil
}
