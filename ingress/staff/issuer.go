package staff

import (
	"errors"
	"net/http"

	"quittance/ingress/web"
	"quittance/internal/identity"
	"quittance/internal/openid"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// cookieTurn is the secret of a browser that is at an identity provider. Its answer is a request of another site, so the cookie is
// Lax. It opens nothing without the answer.
const cookieTurn = "quittance_staff_issuer"

// turnSeconds is how long a browser may be there.
const turnSeconds = int(identity.IssuerVisitLife / 1e9)

func (v *Visit) turnCookie() web.Cookie {
	return web.Cookie{Base: cookieTurn, PublicURL: v.site.cfg.URL, SameSite: http.SameSiteLaxMode}
}

// turn returns the secret of the browser's visit, which is empty when it has none.
func (v *Visit) turn() (turn secret.Text) {
	if found := v.R.CookiesNamed(v.turnCookie().Name()); len(found) == 1 {
		turn = secret.NewText(found[0].Value)
	}
	return turn
}

// issuerView leads to an identity provider by a link: the policy lets no form lead to another site.
type issuerView struct {
	View
	To, Issuer, Text string
}

// showIssuer is GET /sign-in/issuer.
func (v *Visit) showIssuer() {
	to, err := v.site.cfg.Desk.Depart(v.Context(), v.turn())
	if err != nil {
		v.failedAtIssuer("leading to an issuer", err)
		return
	}
	text := v.w.IssuerText
	if to.Invited {
		text = v.w.IssuerInvited
	}
	v.Write(http.StatusOK, "issuer", &issuerView{View: v.View(v.w.IssuerTitle, "sign-in/issuer"), To: to.To, Issuer: to.Issuer, Text: text})
}

// arrive is GET /sign-in/issuers/{issuer}, to which an identity provider sends the browser back. The browser keeps the Strict cookie
// of the session back from what follows a request of another site, so the page loads the next one itself.
func (v *Visit) arrive() {
	turn := v.turn() // whose cookie stays: it is used once, and another tab may have begun a visit since
	in, err := v.site.cfg.Desk.Arrive(v.Context(), turn, v.Param("issuer"), v.R.URL.Query(), web.Client(v.R))
	if err != nil {
		v.failedAtIssuer("signing in at an issuer", err)
		return
	}
	if !in.Session.Empty() {
		v.signedIn(in.Session)
	}
	v.W.Header().Set("Refresh", "0; url="+in.Next)
	v.Write(http.StatusOK, "again", &explainView{View: v.View(v.w.AgainTitle, ""), Text: v.w.SignedInThere, BackURL: in.Next, Back: v.w.Continue})
}

// failedAtIssuer says why an identity provider signs nobody in.
func (v *Visit) failedAtIssuer(doing string, err error) {
	var refusal *operation.Error
	if !errors.As(err, &refusal) {
		v.Unavailable(doing, err)
		return
	}
	v.site.signIns.WithLabelValues(signInRefused).Inc()
	status := http.StatusUnauthorized
	if refusal.Code == openid.CodeAway {
		v.log(doing, err)
		status = http.StatusServiceUnavailable
	}
	v.Write(status, "explain", &explainView{View: v.View(v.w.RefusedTitle, ""), Text: v.Refusal(err), BackURL: v.URL("sign-in"), Back: v.w.SignInTitle})
}

// logOut is POST /sign-in/issuers/{issuer}/logout, with a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.8).
func (v *Visit) logOut() {
	v.W.Header().Set("Cache-Control", "no-store")
	err := v.site.cfg.Desk.LogOut(v.Context(), v.Param("issuer"), v.Form.Get("logout_token"), web.Client(v.R))
	var refusal *operation.Error
	switch {
	case errors.As(err, &refusal) && refusal.Code != openid.CodeAway:
		http.Error(v.W, refusal.Code, http.StatusBadRequest)
	case err != nil:
		v.log("taking a logout token", err)
		http.Error(v.W, "unavailable", http.StatusServiceUnavailable)
	default:
		v.W.WriteHeader(http.StatusOK)
	}
}
