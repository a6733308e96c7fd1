package citizen

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/citizens"
)

type passkeyJSON struct {
	ID        string `json:"id"`
	CreatedAt string `json:"created_at"`
	UsedAt    string `json:"used_at"`
	Synced    bool   `json:"synced"`
}

func toPasskeyJSON(p citizens.Passkey) passkeyJSON {
	return passkeyJSON{ID: p.ID, CreatedAt: timestamp(p.CreatedAt), UsedAt: timestamp(p.UsedAt), Synced: p.Synced}
}

type passkeysJSON struct {
	Available bool          `json:"available"`
	Passkeys  []passkeyJSON `json:"passkeys"`
}

func listPasskeys(c *call) (int, any, error) {
	all, err := c.Passkeys(c.r.Context(), c.who)
	out := passkeysJSON{Available: all.Available, Passkeys: []passkeyJSON{}}
	for _, p := range all.List {
		out.Passkeys = append(out.Passkeys, toPasskeyJSON(p))
	}
	return http.StatusOK, out, err
}

func beginPasskey(c *call) (int, any, error) {
	options, err := c.BeginPasskey(c.r.Context(), c.SessionOf(c.r))
	return http.StatusOK, options, err
}

func finishPasskey(c *call) (int, any, error) {
	response, err := problem.ReadBody(c.w, c.r)
	if err != nil {
		return 0, nil, err
	}
	p, err := c.FinishPasskey(c.r.Context(), c.SessionOf(c.r), response)
	if err == nil {
		c.PasskeyUsed(c.w)
	}
	return http.StatusCreated, toPasskeyJSON(p), err
}

func removePasskey(c *call) (int, any, error) {
	return http.StatusNoContent, nil, c.RemovePasskey(c.r.Context(), c.SessionOf(c.r), chi.URLParam(c.r, "id"))
}

func beginPasskeySignIn(c *call) (int, any, error) {
	options, err := c.BeginPasskeySignIn(c.r.Context(), c.RememberBrowser(c.w, c.r, web.Language(c.r, nil)))
	return http.StatusOK, options, err
}

func finishPasskeySignIn(c *call) (int, any, error) {
	response, err := problem.ReadBody(c.w, c.r)
	if err != nil {
		return 0, nil, err
	}
	session, _, err := c.SignInWithPasskey(c.r.Context(), PasskeySignIn{Browser: c.BrowserOf(c.r).Secret, Response: response, Previous: c.SessionOf(c.r)})
	if err != nil {
		return 0, nil, err
	}
	c.BeginSession(c.w, session)
	c.PasskeyUsed(c.w)
	return http.StatusNoContent, nil, nil
}
