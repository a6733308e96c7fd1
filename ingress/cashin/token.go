package cashin

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"quittance/ingress/problem"
	"quittance/ingress/web"
)

// longestCredential is the most characters of apiKey and secretKey.
const longestCredential = 500

// guessBuckets is the number of quotas that wrong credentials share, by their client. It bounds
// what a flood from many clients costs. Right credentials have no part in them.
const guessBuckets = 4096

// generate answers POST /generate-application-access-token. A call with the right credentials
// counts against the quota of its access alone. Wrong ones count against the networks of their
// client, and never against the access: whoever knows an apiKey, which is no secret, does not lock
// its owner out. Neither the answers nor the work tell whether anybody has the apiKey. A secretKey
// has 256 random bits, so that guesses from many clients find none.
func (a *API) generate(c call) error {
	o, err := readObject(c)
	if err != nil {
		return err
	}
	apiKey, secretKey := o.text("apiKey", true, 1, longestCredential), o.text("secretKey", true, 1, longestCredential)
	if err := o.faults.err(); err != nil {
		return err
	}
	p, right, err := a.cfg.Credentials.Check(c.r.Context(), apiKey, secretKey)
	if err != nil {
		return err
	}
	if p.PairID != "" {
		*c.by = p
	}
	if !right {
		return a.guessed(c)
	}
	if err := a.count(c, p.PairID); err != nil {
		return err
	}
	token, expiresAt, err := a.cfg.Credentials.Generate(c.r.Context(), p.PairID)
	if err != nil {
		return err
	}
	write(c.w, http.StatusOK, struct {
		Token     string `json:"token"`
		ExpiresAt string `json:"expiresAt"`
	}{token.Reveal(), iso(expiresAt)})
	return nil
}

// guessed returns the answer to wrong credentials. The quota of the client is that of all
// instances, the limits of its wider networks are those of this one.
func (a *API) guessed(c call) error {
	digest := sha256.Sum256([]byte(web.Client(c.r)))
	if err := a.count(c, made("guess", binary.BigEndian.Uint32(digest[:])%guessBuckets)); err != nil {
		return err
	}
	if !a.guesses.Allow(c.r) {
		return tooMany(untilNextMinute(a.now()))
	}
	return unauthorized()
}

// made returns the id of an access that is no pair.
func made(name string, bucket uint32) string {
	return uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s %d", name, bucket)).String()
}

// revoke answers POST /revoke-application-access-token. Its body does not matter.
func (a *API) revoke(c call) error {
	p, _, err := a.authenticate(c)
	if err != nil {
		return err
	}
	if err := a.count(c, p.PairID); err != nil {
		return err
	}
	if err := a.cfg.Credentials.RevokeToken(c.r.Context(), problem.Bearer(c.r)); err != nil {
		return err
	}
	write(c.w, http.StatusOK, struct {
		Message string `json:"message"`
	}{"Access token revoked."})
	return nil
}
