package cashin

import (
	"errors"
	"net/http"

	"quittance/ingress/problem"
	"quittance/internal/cashin"
)

// longestCredential is the most characters of apiKey and secretKey.
const longestCredential = 500

// generate answers POST /generate-application-access-token. Wrong credentials count against
// the quota of the apiKey; an apiKey that nobody has counts against the client.
func (a *API) generate(c call) error {
	o, err := readObject(c)
	if err != nil {
		return err
	}
	apiKey, secretKey := o.text("apiKey", true, 1, longestCredential), o.text("secretKey", true, 1, longestCredential)
	if err := o.faults.err(); err != nil {
		return err
	}
	p, known, err := a.cfg.Credentials.Known(c.r.Context(), apiKey)
	switch {
	case err != nil:
		return err
	case known:
		*c.by = p
		err = a.count(c, p.PairID)
	case !a.unknown.Allow(c.r):
		err = tooMany(untilNextMinute(a.now()))
	}
	if err != nil {
		return err
	}
	token, expiresAt, err := a.cfg.Credentials.Generate(c.r.Context(), apiKey, secretKey)
	if errors.Is(err, cashin.ErrUnauthorized) {
		return unauthorized()
	}
	if err != nil {
		return err
	}
	write(c.w, http.StatusOK, struct {
		Token     string `json:"token"`
		ExpiresAt string `json:"expiresAt"`
	}{token.Reveal(), iso(expiresAt)})
	return nil
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
