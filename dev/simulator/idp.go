package simulator

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-jose/go-jose/v4"
)

// Faults of an identity provider.
const (
	IdPNoNonce    = "no_nonce"    // the ID token has no nonce
	IdPOtherNonce = "other_nonce" // it has that of another sign-in
	IdPNone       = "alg_none"    // it is not signed
	IdPHMAC       = "hs256"       // it is signed with HMAC, with the public key as its key
	IdPForeignKey = "foreign_key" // a key that is not the provider's has signed it, under the name of one that is
	IdPOtherIss   = "other_iss"   // it says that another provider has made it
	IdPAnswerIss  = "answer_iss"  // the browser comes back with another provider's iss
	IdPNoIss      = "no_iss"      // the browser comes back without iss
	IdPAudience   = "audience"    // it is for another client
	IdPLate       = "late"        // it has expired
	IdPKeysAway   = "keys_away"   // the keys cannot be read
	IdPAway       = "away"        // nothing answers
)

var idpFaults = []string{IdPNoNonce, IdPOtherNonce, IdPNone, IdPHMAC, IdPForeignKey, IdPOtherIss, IdPAnswerIss, IdPNoIss, IdPAudience, IdPLate, IdPKeysAway, IdPAway}

// idpAlgorithms are those with which a provider can sign.
var idpAlgorithms = []string{string(jose.RS256), string(jose.ES256), string(jose.EdDSA)}

// idpLife is the life of codes and tokens.
const idpLife = 5 * time.Minute

// idps are the identity providers, which exist when they are asked.
type idps struct {
	mu     sync.Mutex
	byName map[string]*idp
}

// idp is an identity provider.
type idp struct {
	mu        sync.Mutex
	fault     string
	algorithm string
	generated int // keys so far; their names count them
	key       jose.JSONWebKey
	codes     map[string]idpCode
}

// idpCode is what a code stands for, once.
type idpCode struct {
	client, redirect, nonce, challenge, subject, email string
	at                                                 time.Time
}

func (s *Simulator) idp(name string) *idp {
	s.idps.mu.Lock()
	defer s.idps.mu.Unlock()
	p := s.idps.byName[name]
	if p == nil {
		p = &idp{algorithm: string(jose.RS256), codes: map[string]idpCode{}}
		s.idps.byName[name] = p
	}
	return p
}

// rotate makes a new key in place of the one before. The caller holds the lock.
func (p *idp) rotate() {
	var private crypto.Signer
	var err error
	switch p.algorithm {
	case string(jose.ES256):
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case string(jose.EdDSA):
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		panic("making a key of a simulated identity provider: " + err.Error())
	}
	p.generated++
	p.key = jose.JSONWebKey{Key: private, KeyID: "key-" + string(rune('0'+p.generated%10)), Algorithm: p.algorithm, Use: "sig"}
}

// state returns the fault and the key, which it makes at first.
func (p *idp) state() (fault string, key jose.JSONWebKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.generated == 0 {
		p.rotate()
	}
	return p.fault, p.key
}

func (s *Simulator) idpRoutes(r chi.Router) {
	r.Use(nameChecked("provider"))
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if fault, _ := s.idp(chi.URLParam(r, "provider")).state(); fault == IdPAway || fault == IdPKeysAway && strings.HasSuffix(r.URL.Path, "/keys") {
				writeProblem(w, http.StatusServiceUnavailable, "This identity provider is away, as /control has it.")
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	r.Get("/.well-known/openid-configuration", s.idpConfiguration)
	r.Get("/keys", s.idpKeys)
	r.Get("/authorize", s.idpAsk)
	r.Post("/authorize", s.idpAnswer)
	r.Post("/token", s.idpToken)
}

// idpAddress is the issuer of a request.
func idpAddress(r *http.Request) string {
	return "http://" + r.Host + "/idp/" + chi.URLParam(r, "provider")
}

func (s *Simulator) idpConfiguration(w http.ResponseWriter, r *http.Request) {
	at := idpAddress(r)
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "jwks_uri": at + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": idpAlgorithms,
		"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true, "backchannel_logout_supported": true,
	})
}

func (s *Simulator) idpKeys(w http.ResponseWriter, r *http.Request) {
	_, key := s.idp(chi.URLParam(r, "provider")).state()
	writeJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}})
}

// Subjects of the demo people of the staff pages.
const (
	IdPAccountant = "demo-comptable"
	IdPApprover   = "demo-approbateur"
)

// idpAccounts are offered on the page. Any other may be typed.
var idpAccounts = [][2]string{{IdPAccountant, "comptable@example.org"}, {IdPApprover, "approbateur@example.org"}}

var idpTemplate = template.Must(template.New("idp").Parse(`<!doctype html>
<html lang="fr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Fournisseur d’identité (simulation)</title>
<style>{{.Style}}</style>
</head>
<body>
<main>
<p class="note">Fournisseur d’identité simulé, pour le développement.</p>
<h1>{{.Name}}</h1>
<p>{{.Client}}</p>
{{range .Accounts}}<form method="post" action="authorize">
{{range $.Hidden}}<input type="hidden" name="{{index . 0}}" value="{{index . 1}}">
{{end}}<input type="hidden" name="email" value="{{index . 1}}">
<button class="main" name="subject" value="{{index . 0}}">{{index . 0}} ({{index . 1}})</button>
</form>
{{end}}<form method="post" action="authorize">
{{range .Hidden}}<input type="hidden" name="{{index . 0}}" value="{{index . 1}}">
{{end}}<label for="subject">Autre compte (sub)</label>
<input id="subject" name="subject" autocomplete="off" required>
<label for="email">E-mail</label>
<input id="email" name="email" autocomplete="off">
<button>Se connecter</button>
</form>
</main>
</body>
</html>
`))

// idpParameters are those of a request for a code.
var idpParameters = []string{"client_id", "redirect_uri", "state", "nonce", "code_challenge"}

// idpRequest reads a request for a code. What a provider refuses is a page, because the redirect URI is not trusted.
func idpRequest(w http.ResponseWriter, q url.Values) bool {
	to, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || !to.IsAbs() || q.Get("client_id") == "" || q.Get("state") == "" || q.Get("nonce") == "" || q.Get("code_challenge") == "" {
		writeProblem(w, http.StatusBadRequest, "A request for a code has client_id, redirect_uri, state, nonce and code_challenge.")
		return false
	}
	return true
}

func (s *Simulator) idpAsk(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !idpRequest(w, q) {
		return
	}
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || !strings.Contains(" "+q.Get("scope")+" ", " openid ") {
		writeProblem(w, http.StatusBadRequest, "This provider answers to response_type=code with the scope openid and code_challenge_method=S256.")
		return
	}
	var hidden [][2]string
	for _, name := range idpParameters {
		hidden = append(hidden, [2]string{name, q.Get(name)})
	}
	cardHeaders(w, q.Get("redirect_uri"))
	_ = idpTemplate.Execute(w, map[string]any{
		"Name": idpAddress(r), "Client": q.Get("client_id"), "Hidden": hidden, "Accounts": idpAccounts, "Style": template.CSS(cardStyle), //nolint:gosec // a constant
	})
}

func (s *Simulator) idpAnswer(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxCardForm)
	if err := r.ParseForm(); err != nil || !idpRequest(w, r.PostForm) {
		return
	}
	p := s.idp(chi.URLParam(r, "provider"))
	fault, _ := p.state()
	q := r.PostForm
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = idpCode{q.Get("client_id"), q.Get("redirect_uri"), q.Get("nonce"), q.Get("code_challenge"), q.Get("subject"), q.Get("email"), time.Now()}
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {idpAddress(r)}}
	switch fault {
	case IdPAnswerIss:
		back.Set("iss", idpAddress(r)+"-other")
	case IdPNoIss:
		back.Del("iss")
	}
	if q.Get("subject") == "" {
		back.Del("code")
		back.Set("error", "access_denied")
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther) //nolint:gosec // a simulator: any address
}

// idpToken is the token endpoint: a code works once, with its verifier.
func (s *Simulator) idpToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxCardForm)
	client, secret, basic := r.BasicAuth()
	if err := r.ParseForm(); err != nil || !basic || client == "" || secret == "" {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	p := s.idp(chi.URLParam(r, "provider"))
	p.mu.Lock()
	code, known := p.codes[r.PostForm.Get("code")]
	delete(p.codes, r.PostForm.Get("code"))
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if !known || code.client != client || code.redirect != r.PostForm.Get("redirect_uri") || time.Since(code.at) > idpLife || base64.RawURLEncoding.EncodeToString(sum[:]) != code.challenge {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	now := time.Now()
	claims := map[string]any{"iss": idpAddress(r), "sub": code.subject, "aud": client, "nonce": code.nonce, "email": code.email, "iat": now.Unix(), "exp": now.Add(idpLife).Unix()}
	fault, key := p.state()
	switch fault {
	case IdPNoNonce:
		delete(claims, "nonce")
	case IdPOtherNonce:
		claims["nonce"] = "of another sign-in"
	case IdPOtherIss:
		claims["iss"] = idpAddress(r) + "-other"
	case IdPAudience:
		claims["aud"] = client + "-other"
	case IdPLate:
		claims["iat"], claims["exp"] = now.Add(-time.Hour).Unix(), now.Add(-time.Minute).Unix()
	}
	token, err := idpSigned(claims, fault, key)
	if err != nil {
		writeProblem(w, http.StatusInternalServerError, "The token was not signed: "+err.Error()+".")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(idpLife.Seconds()), "id_token": token})
}

// idpSigned signs claims with the key of a provider, or wrongly.
func idpSigned(claims map[string]any, fault string, key jose.JSONWebKey) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	by := jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}
	switch fault {
	case IdPNone:
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload) + ".", nil
	case IdPHMAC:
		public, err := x509.MarshalPKIXPublicKey(key.Public().Key)
		if err != nil {
			return "", err
		}
		by = jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), KeyID: key.KeyID}}
	case IdPForeignKey:
		foreign := &idp{algorithm: key.Algorithm}
		foreign.rotate()
		by.Key = jose.JSONWebKey{Key: foreign.key.Key, KeyID: key.KeyID}
	}
	signer, err := jose.NewSigner(by, nil)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// controlIdP is POST /control/idp/{provider}: a fault until another call, another algorithm, or a new key in place of the one before.
func (s *Simulator) controlIdP(w http.ResponseWriter, r *http.Request) {
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	var fault, algorithm string
	var rotate, reset bool
	f.take("reset", &reset, "true or false")
	f.take("rotate", &rotate, "true or false")
	set := f.take("fault", &fault, "one of "+strings.Join(idpFaults, ", "))
	if set && !slices.Contains(idpFaults, fault) {
		f.fail("fault", "is not a fault", "one of "+strings.Join(idpFaults, ", "))
	}
	if f.take("algorithm", &algorithm, "one of "+strings.Join(idpAlgorithms, ", ")) && !slices.Contains(idpAlgorithms, algorithm) {
		f.fail("algorithm", "is not an algorithm", "one of "+strings.Join(idpAlgorithms, ", "))
	}
	if !f.accepted(w) {
		return
	}
	p := s.idp(chi.URLParam(r, "provider"))
	p.mu.Lock()
	defer p.mu.Unlock()
	if set || reset {
		p.fault = fault
	}
	if algorithm != "" {
		p.algorithm = algorithm
	}
	if rotate || algorithm != "" {
		p.rotate()
	}
	w.WriteHeader(http.StatusNoContent)
}

// controlIdPLogout is POST /control/idp/{provider}/logout. It answers with a logout token of a subject for a client, in the words of
// the provider's fault. The caller sends it to the service, as often as it likes.
func (s *Simulator) controlIdPLogout(w http.ResponseWriter, r *http.Request) {
	f, ok := readForm(w, r)
	if !ok {
		return
	}
	var client, subject string
	f.take("client_id", &client, "a string")
	f.take("subject", &subject, "a string")
	if client == "" || subject == "" {
		f.fail("subject", "is missing", `send {"client_id": "quittance", "subject": "agent-1"}`)
	}
	if !f.accepted(w) {
		return
	}
	now := time.Now()
	claims := map[string]any{
		"iss": strings.Replace(idpAddress(r), "/control", "", 1), "sub": subject, "aud": client, "iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(), "jti": rand.Text(),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}
	fault, key := s.idp(chi.URLParam(r, "provider")).state()
	switch fault {
	case IdPOtherNonce:
		claims["nonce"] = "an ID token has one"
	case IdPLate:
		claims["exp"] = now.Add(-time.Minute).Unix()
	}
	token, err := idpSigned(claims, fault, key)
	if err != nil {
		writeProblem(w, http.StatusInternalServerError, "The token was not signed: "+err.Error()+".")
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"logout_token": token})
}
