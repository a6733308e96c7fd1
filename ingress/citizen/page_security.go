package citizen

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"quittance/money/language"
)

// The fieldKeep of somebody who comes back to the page of passkeys, or of reminders.
const (
	backToSecurity  = fieldBack + "=security"
	backToReminders = fieldBack + "=reminders"
)

// passkeyView is what a page's script for passkeys needs.
type passkeyView struct {
	// Host is the only name at which browsers make and use the passkeys.
	Host string
	// First says that this browser has a passkey: it is asked for first.
	First bool
}

// securityView is what the page of passkeys shows.
type securityView struct {
	Passkeys []passkeyRow
}

type passkeyRow struct {
	ID, Added, Used string
	Synced          bool
}

// usesPasskeys gives the page the script for passkeys, where browsers allow them.
func (v visit) usesPasskeys(out *view) {
	host := v.p.service.passkeys.Host()
	if host == "" {
		return
	}
	out.Passkey = &passkeyView{Host: host, First: v.p.service.cookie(v.R, cookiePasskey) == passkeyUsed}
	out.Script, out.Fetches = v.ScriptPath(), true
}

// offerPasskey offers a passkey to whoever has just signed in by a code, has none, and has not
// put it off in this browser.
func (v visit) offerPasskey(out *view) {
	if v.R.Method != http.MethodGet || v.p.service.cookie(v.R, cookiePasskey) != "" {
		return
	}
	offered, err := v.p.service.passkeys.Offered(v.R.Context(), v.p.service.SessionOf(v.R))
	if err == nil && offered { // without the offer the page is whole
		v.usesPasskeys(out)
	}
}

// showSecurity is GET /portal/security.
func (v visit) showSecurity() {
	all, err := v.p.service.Passkeys(v.R.Context(), v.who)
	if err != nil {
		v.unavailable("reading passkeys", err)
		return
	}
	out := v.view(v.w.Security, "security", "security")
	out.Security = &securityView{}
	for _, p := range all.List {
		out.Security.Passkeys = append(out.Security.Passkeys, passkeyRow{ID: p.ID, Added: language.Day(v.Lang, p.CreatedAt), Used: language.Day(v.Lang, p.UsedAt), Synced: p.Synced})
	}
	v.usesPasskeys(out)
	v.Write(http.StatusOK, "security", out)
}

// signInAgain asks somebody who is signed in to do it again, and leads back to the page of
// passkeys.
func (v visit) signInAgain(status int) {
	v.showSignIn(status, "", v.w.SignInAgain, backToSecurity)
}

// proveAddress is GET /portal/security/prove. It asks somebody who is signed in for an address of
// the account, to which a code is sent: a passkey would prove nothing of it. The code leads back to
// the page of passkeys.
func (v visit) proveAddress() {
	out := v.view(v.w.ProveTitle, "security", "security/prove")
	out.Keep, out.Text = backToSecurity, v.w.ProveText
	v.Write(http.StatusOK, "prove", out)
}

// removePasskey is POST /portal/security/passkeys/{id}/remove. A second click finds nothing to
// do.
func (v visit) removePasskey() {
	session := v.p.service.SessionOf(v.R)
	err := v.p.service.RemovePasskey(v.R.Context(), session, chi.URLParam(v.R, "id"))
	switch code := RefusalOf(err).Code; {
	case err != nil && code == CodeSignInAgain:
		v.signInAgain(http.StatusForbidden)
		return
	case err != nil && code != CodePasskeyNotFound:
		v.unavailable("removing a passkey", err)
		return
	}
	if all, err := v.p.service.Passkeys(v.R.Context(), v.who); err == nil && len(all.List) == 0 {
		v.p.service.putOffPasskeys(v.W) // nothing to ask for first
	}
	v.See("security", queryDone, donePasskeyRemoved)
}

// noPasskeyNow is POST /portal/security/later: this browser is not offered a passkey for a
// while.
func (v visit) noPasskeyNow() {
	v.p.service.putOffPasskeys(v.W)
	v.See("")
}

// signOutEverywhere is POST /portal/security/sign-out.
func (v visit) signOutEverywhere() {
	if err := v.p.service.SignOutEverywhere(v.R.Context(), v.p.service.SessionOf(v.R)); err != nil {
		v.unavailable("signing out everywhere", err)
		return
	}
	v.p.service.EndSession(v.W)
	v.See("", queryDone, doneEverywhere)
}

// resume is POST /portal/resume, which the script sends after a sign-in with a passkey: it goes
// on where a code would have led.
func (v visit) resume() {
	if v.Form == nil {
		v.Form = url.Values{}
	}
	v.afterSignIn(v.p.service.SessionOf(v.R), false)
}
