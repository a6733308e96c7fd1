// Package openid asks an identity provider (OpenID Connect) who somebody is: the code flow with PKCE S256 and a nonce, and logout
// tokens. It knows no people and no database; internal/identity binds what a provider says to a person.
//
// Signatures, expiry, issuer and audience are verified by go-oidc, with the algorithms of the issuer's settings and the
// machine's clock. This package compares the nonce, the authorized party and the parameter iss of the answer (RFC 9207). Every
// address that it calls, and that to which it leads a browser, passes internal/address.
package openid

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc" // verifies ID tokens and logout tokens, and fetches keys that rotate
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"quittance/internal/address"
	"quittance/internal/call"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// Codes of refusals (operation.Error).
const (
	// CodeAway: the provider, or its keys, cannot be read. Nobody is signed in.
	CodeAway = "issuer.away"
	// CodeDeclined: the provider says that it did not sign the person in.
	CodeDeclined = "issuer.declined"
	// CodeOther: the answer, or the token, is of another provider.
	CodeOther = "issuer.other"
	// CodeCode: the provider does not take the code: it was used, it is late, or it is of another browser.
	CodeCode = "issuer.code"
	// CodeAlgorithm: the token is signed with an algorithm that the settings do not allow, or not at all.
	CodeAlgorithm = "issuer.algorithm"
	// CodeSignature: no key of the provider has signed the token.
	CodeSignature = "issuer.signature"
	// CodeAudience: the token is for another service.
	CodeAudience = "issuer.audience"
	// CodeNonce: the token is not the answer to this sign-in.
	CodeNonce = "issuer.nonce"
	// CodeLate: the token has expired by the machine's clock.
	CodeLate = "issuer.late"
	// CodeToken: the token lacks what it must have.
	CodeToken = "issuer.token"
)

// Algorithms are those that an issuer may sign with. HMAC is none of them: its key would be the client's secret.
var Algorithms = []string{string(jose.RS256), string(jose.ES256), string(jose.EdDSA)}

const (
	callTimeout = 10 * time.Second
	answerLimit = 1 << 20
	// rememberFor is how long the addresses of a provider are believed. Its keys are read again whenever a token names an
	// unknown one.
	rememberFor = time.Hour
	// logoutLife bounds exp of a logout token, and so how long used ones are remembered.
	logoutLife = 24 * time.Hour
)

// Issuer is a provider and how this service is known there.
type Issuer struct {
	// Address is the issuer (iss).
	Address, ClientID string
	Secret            secret.Text
	// Algorithms of ID tokens and logout tokens, out of Algorithms.
	Algorithms []string
	// Callback is where the provider sends browsers back; it is this issuer's alone.
	Callback string
}

// Claims are what a provider says of a person.
type Claims struct {
	Issuer, Subject string
	// Email is shown and never compared.
	Email string
}

// Logout is a logout token that was verified.
type Logout struct {
	Subject string
	ID      string // jti
	EndsAt  time.Time
}

// Config configures a Client.
type Config struct {
	// Loopback allows providers on this machine, in developer mode.
	Loopback bool
	// Roots are the trusted certificate authorities; nil: the system's.
	Roots *x509.CertPool
}

// Rule returns the rule of addresses of providers.
func Rule(loopback bool) address.Rule { return address.Rule{Backend: true, Loopback: loopback} }

// Client asks providers. Safe for concurrent use.
type Client struct {
	rule address.Rule
	http *http.Client

	mu    sync.Mutex
	known map[string]provider // by address
}

type provider struct {
	*oidc.Provider
	at time.Time
	// saysIss means that answers of the provider have the parameter iss (RFC 9207).
	saysIss bool
	// secretIn is where its token endpoint takes the client's secret.
	secretIn oauth2.AuthStyle
}

// New makes a Client.
func New(cfg Config) *Client {
	rule := Rule(cfg.Loopback)
	return &Client{rule: rule, http: call.New(call.Config{Rule: rule, Roots: cfg.Roots, Timeout: callTimeout}).HTTP(answerLimit), known: map[string]provider{}}
}

// Turn is a visit of a browser to a provider. All of it follows from a secret of the browser, which the service does not keep:
// an answer is that of the browser that has begun, or its state is another one.
type Turn struct{ browser secret.Text }

// TurnOf returns the visit of the browser with a secret.
func TurnOf(browser secret.Text) Turn { return Turn{browser} }

func (t Turn) derived(what string) string {
	sum := sha256.Sum256([]byte("quittance issuer " + what + " v1\n" + t.browser.Reveal()))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// state is the parameter by which the browser's answer is known, nonce that by which the token is.
func (t Turn) state() string    { return t.derived("state") }
func (t Turn) nonce() string    { return t.derived("nonce") }
func (t Turn) verifier() string { return t.derived("verifier") }

// Is reports whether an answer with a state belongs to the visit.
func (t Turn) Is(state string) bool {
	return !t.browser.Empty() && subtle.ConstantTimeCompare([]byte(state), []byte(t.state())) == 1
}

// Begin returns the address at the provider to which the browser goes. The error is an *operation.Error with CodeAway when the
// provider does not say it, or an address that may not be called.
func (c *Client) Begin(ctx context.Context, i Issuer, t Turn) (string, error) {
	p, err := c.provider(ctx, i)
	if err != nil {
		return "", err
	}
	if _, err := c.rule.Check(p.Endpoint().AuthURL); err != nil {
		return "", away(err)
	}
	return i.oauth(p).AuthCodeURL(t.state(), oidc.Nonce(t.nonce()), oauth2.S256ChallengeOption(t.verifier())), nil
}

// Finish returns who somebody is, from the parameters with which the provider has sent the browser back. The caller has found the
// visit by its state. A refusal is an *operation.Error with a code of this package.
func (c *Client) Finish(ctx context.Context, i Issuer, t Turn, answer url.Values) (Claims, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p, err := c.provider(ctx, i)
	if err != nil {
		return Claims{}, err
	}
	if iss := answer.Get("iss"); iss != i.Address && (iss != "" || p.saysIss) {
		return Claims{}, operation.Refuse(CodeOther, "", nil)
	}
	if answer.Get("error") != "" {
		return Claims{}, operation.Refuse(CodeDeclined, "", nil)
	}
	tokens, err := i.oauth(p).Exchange(oidc.ClientContext(ctx, c.http), answer.Get("code"), oauth2.VerifierOption(t.verifier()))
	var said *oauth2.RetrieveError
	switch {
	case errors.As(err, &said) && said.Response.StatusCode < http.StatusInternalServerError && !ofService(said):
		return Claims{}, operation.Refuse(CodeCode, "", nil)
	case said != nil: // whose text has the answer of the provider
		return Claims{}, away(fmt.Errorf("its token endpoint answers %d", said.Response.StatusCode))
	case err != nil:
		return Claims{}, away(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := p.Verifier(i.config()).Verify(ctx, raw)
	if err != nil {
		return Claims{}, i.refused(raw, err)
	}
	var more struct {
		Email           string `json:"email"`
		AuthorizedParty string `json:"azp"`
	}
	if err := token.Claims(&more); err != nil || token.Subject == "" {
		return Claims{}, operation.Refuse(CodeToken, "", nil)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(t.nonce())) != 1:
		return Claims{}, operation.Refuse(CodeNonce, "", nil)
	case more.AuthorizedParty != "" && more.AuthorizedParty != i.ClientID, len(token.Audience) > 1 && more.AuthorizedParty == "":
		return Claims{}, operation.Refuse(CodeAudience, "", nil)
	}
	return Claims{Issuer: token.Issuer, Subject: token.Subject, Email: more.Email}, nil
}

// ofService reports whether a token endpoint refuses this service, or has too many calls of it, and not the code of a person:
// nobody can be signed in before somebody mends the settings.
func ofService(said *oauth2.RetrieveError) bool {
	switch said.Response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return true
	}
	return said.ErrorCode == "invalid_client" || said.ErrorCode == "unauthorized_client"
}

// Logout verifies a logout token (OpenID Connect Back-Channel Logout). The caller takes each ID once. A refusal is an
// *operation.Error with a code of this package.
func (c *Client) Logout(ctx context.Context, i Issuer, raw string) (Logout, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p, err := c.provider(ctx, i)
	if err != nil {
		return Logout{}, err
	}
	token, err := p.Verifier(i.config()).VerifyLogout(ctx, raw)
	if err != nil {
		return Logout{}, i.refused(raw, err)
	}
	if token.Subject == "" || time.Until(token.Expiry) > logoutLife {
		return Logout{}, operation.Refuse(CodeToken, "", nil)
	}
	return Logout{Subject: token.Subject, ID: token.TokenID, EndsAt: token.Expiry.UTC()}, nil
}

func (i Issuer) oauth(p provider) *oauth2.Config {
	at := p.Endpoint()
	at.AuthStyle = p.secretIn
	return &oauth2.Config{ClientID: i.ClientID, ClientSecret: i.Secret.Reveal(), Endpoint: at, RedirectURL: i.Callback, Scopes: []string{oidc.ScopeOpenID, "email"}}
}

// config has no clock: tokens expire by the machine's, as their makers do not know the service's.
func (i Issuer) config() *oidc.Config {
	return &oidc.Config{ClientID: i.ClientID, SupportedSigningAlgs: slices.Clone(i.Algorithms)}
}

// provider returns what a provider says of itself, for rememberFor.
func (c *Client) provider(ctx context.Context, i Issuer) (provider, error) {
	c.mu.Lock()
	p, ok := c.known[i.Address]
	c.mu.Unlock()
	if ok && time.Since(p.at) < rememberFor {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, c.http), i.Address)
	if err != nil {
		return provider{}, away(err)
	}
	var more struct {
		SaysIss bool     `json:"authorization_response_iss_parameter_supported"`
		Secrets []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&more); err != nil {
		return provider{}, away(err)
	}
	p = provider{found, time.Now(), more.SaysIss, oauth2.AuthStyleInHeader} // unless it says otherwise (OpenID Connect Discovery, section 3)
	if len(more.Secrets) > 0 && !slices.Contains(more.Secrets, "client_secret_basic") && slices.Contains(more.Secrets, "client_secret_post") {
		p.secretIn = oauth2.AuthStyleInParams
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[i.Address] = p
	return p, nil
}

// maxCause is the longest cause in the log: libraries put the provider's whole answer into their errors.
const maxCause = 200

// away says that nobody can be signed in because of the provider. Its cause is for the log.
func away(cause error) error {
	text := cause.Error()
	if len(text) > maxCause {
		text = strings.ToValidUTF8(text[:maxCause], "") + "…"
	}
	return errors.Join(operation.Refuse(CodeAway, "", nil), errors.New("asking the identity provider: "+text))
}

// refused says why a token that does not verify is refused. What it reads without verification chooses the words alone.
func (i Issuer) refused(raw string, why error) error {
	var late *oidc.TokenExpiredError
	if errors.As(why, &late) {
		return operation.Refuse(CodeLate, "", nil)
	}
	algorithms := make([]jose.SignatureAlgorithm, len(i.Algorithms))
	for n, a := range i.Algorithms {
		algorithms[n] = jose.SignatureAlgorithm(a)
	}
	parsed, err := jose.ParseSignedCompact(raw, algorithms)
	if err != nil {
		return operation.Refuse(CodeAlgorithm, "", nil)
	}
	var is struct {
		Issuer string `json:"iss"`
	}
	switch err := json.Unmarshal(parsed.UnsafePayloadWithoutVerification(), &is); {
	case strings.Contains(why.Error(), keysAway):
		return away(why)
	case strings.Contains(why.Error(), notSigned):
		return operation.Refuse(CodeSignature, "", nil)
	case err == nil && is.Issuer != i.Address:
		return operation.Refuse(CodeOther, "", nil)
	case strings.Contains(why.Error(), "audience"):
		return operation.Refuse(CodeAudience, "", nil)
	}
	return errors.Join(operation.Refuse(CodeToken, "", nil), why)
}

// Parts of the texts of go-oidc, which has no types for these errors. They choose the words of a refusal alone.
const keysAway, notSigned = "fetching keys", "failed to verify"
