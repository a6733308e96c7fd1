package staff

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"quittance/ingress/web"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// demoAnswer is where the script of a page has the passkey of a demo person answer, who is signed in.
const demoAnswer = "/demo/answer"

// isDemo reports whether a demo person is signed in, whose passkey the browser does not have.
func (v *Visit) isDemo() bool {
	return v.site.cfg.Demo != nil && v.Acting.SignedIn() && slices.Contains(v.site.cfg.Demo.Names(), v.Acting.Person.Name)
}

// signInDemo is POST /demo/sign-in, in developer mode. It does what a browser with the person's passkey does.
func (v *Visit) signInDemo() {
	browser := secret.NewText(rand.Text())
	options, err := v.site.cfg.Desk.BeginSignIn(v.Context(), browser)
	var answer []byte
	if err == nil {
		answer, err = v.site.cfg.Demo.Answer(v.Context(), v.Form.Get("person"), options)
	}
	if err != nil {
		v.Unavailable("signing in a demo person", err)
		return
	}
	in, err := v.site.cfg.Desk.SignIn(v.Context(), browser, answer, v.next(), web.Client(v.R))
	var refusal *operation.Error
	switch {
	case errors.As(err, &refusal):
		v.site.signIns.WithLabelValues(signInRefused).Inc()
		v.explain(http.StatusUnauthorized, v.w.RefusedTitle, v.Refusal(err))
		return
	case err != nil:
		v.Unavailable("signing in", err)
		return
	}
	if in.Session.Empty() {
		v.turnCookie().Set(v.W, in.Turn.Reveal(), turnSeconds)
		v.See("sign-in/issuer")
		return
	}
	v.signedIn(in.Session)
	http.Redirect(v.W, v.R, v.next(), http.StatusSeeOther) //nolint:gosec // next is an address of this site
}

// answerDemo is POST /demo/answer, in developer mode.
func (v *Visit) answerDemo() {
	options, err := v.ReadAnswer()
	if err != nil || !v.isDemo() {
		v.AnswerRefusal(http.StatusForbidden, operation.Refuse(codePasskeyRefused, "", nil))
		return
	}
	answer, err := v.site.cfg.Demo.Answer(v.Context(), v.Acting.Person.Name, options)
	if err != nil {
		v.AnswerUnavailable("asking the passkey of a demo person", err)
		return
	}
	v.AnswerJSON(http.StatusOK, json.RawMessage(answer))
}
