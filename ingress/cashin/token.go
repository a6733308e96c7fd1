package cashin

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"quittance/ingress/problem"
)

// longestCredential is the most characters of apiKey and secretKey.
const longestCredential = 500

// guessBuckets is the number of quotas that wrong credentials share. It bounds what made-up
// apiKeys cost.
const guessBuckets = 4096

// generate answers POST /generate-application-access-token. Each call counts against the
// quota of its access. Wrong credentials also count against a quota of guesses at the apiKey
// and against the client, and these two decide their answer: neither the answers nor the
// work tell whether anybody has the apiKey.
func (a *API) generate(c call) error {
	o, err := readObject(c)
	if err != nil {
		return err
	}
	apiKey, secretKey := o.text("apiKey", true, 1, longestCredential), o.text("secretKey", true, 1, longestCredential)
	if err := o.faults.err(); err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(apiKey))
	bucket := binary.BigEndian.Uint32(digest[:]) % guessBuckets
	access, guesses := made("stranger", bucket), made("guess", bucket)
	p, right, err := a.cfg.Credentials.Check(c.r.Context(), apiKey, secretKey)
	if err != nil {
		return err
	}
	if p.PairID != "" {
		*c.by, access = p, p.PairID
	}
	err = a.count(c, access)
	if !right {
		return a.guessed(c, err, guesses)
	}
	if err != nil {
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

// made returns the id of an access that is no pair.
func made(name string, bucket uint32) string {
	return uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s %d", name, bucket)).String()
}

// guessed returns the answer to wrong credentials. counted is the outcome of counting them
// against their access: only that a quota is away shows.
func (a *API) guessed(c call, counted error, guesses string) error {
	var refused *refusal
	if counted != nil && !errors.As(counted, &refused) {
		return counted
	}
	if err := a.count(c, guesses); err != nil {
		return err
	}
	if !a.guesses.Allow(c.r) {
		return tooMany(untilNextMinute(a.now()))
	}
	return unauthorized()
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
