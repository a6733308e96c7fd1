package staff

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"quittance/ingress/web"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// The names of the cookies. Over https they begin with __Host-, which only https may set.
const (
	cookieSession = "quittance_staff"
	// cookieBrowser is a secret of the browser, to which a challenge is bound, for the time of a sign-in.
	cookieBrowser = "quittance_staff_browser"
)

// browserSeconds is how long a browser is remembered for a sign-in. It covers the life of a challenge.
const browserSeconds = 600

func (v *Visit) cookieOf(name string) web.Cookie {
	return web.Cookie{Base: name, PublicURL: v.site.cfg.URL, SameSite: http.SameSiteStrictMode}
}

// cookie returns the value of a cookie that the browser has sent once. Two cookies of a name are none: one of them was
// set by somebody else.
func (v *Visit) cookie(name string) (value secret.Text, present bool) {
	found := v.R.CookiesNamed(v.cookieOf(name).Name())
	if len(found) != 1 || found[0].Value == "" {
		return secret.Text{}, false
	}
	return secret.NewText(found[0].Value), true
}

// own are the routes of the frame that need a session.
func (s *Site) own() []Route {
	own := []Route{
		{Method: http.MethodGet, Path: "/sessions", Do: (*Visit).showSessions},
		{Method: http.MethodPost, Path: "/sessions/end", Do: (*Visit).endSessions},
	}
	if s.cfg.Demo != nil {
		own = append(own, Route{Method: http.MethodPost, Path: demoAnswer, Do: (*Visit).answerDemo})
	}
	return own
}

// askToSignIn leads somebody without a session to the sign-in. ended says that the browser had one. Its cookie stays: it opens
// nothing, and meanwhile another tab may have been given a new one, which this answer would take. A form, and what a page asks by
// itself, are answered with 401.
func (v *Visit) askToSignIn(ended bool) {
	switch {
	case v.R.Method != http.MethodGet:
		v.writeSignIn(http.StatusUnauthorized, v.w.EndedInForm)
	case v.Asks():
		http.Error(v.W, "signed out", http.StatusUnauthorized)
	case !ended && v.R.Header.Get("Sec-Fetch-Site") == "cross-site":
		// The browser keeps the cookie back from a request of another site. It sends it when our own page asks again.
		v.W.Header().Set("Refresh", "0; url="+v.R.URL.RequestURI())
		v.Write(http.StatusOK, "again", &explainView{View: v.View(v.w.AgainTitle, ""), Text: v.w.Again, BackURL: v.R.URL.RequestURI(), Back: v.w.Continue})
	default:
		query := []string{"next", v.R.URL.RequestURI()}
		if ended {
			query = append(query, "ended", "1")
		}
		v.See("sign-in", query...)
	}
}

// signInView is the page on which people sign in.
type signInView struct {
	View
	// Next is where the person goes afterwards.
	Next string
	// Finish is where the answer of a passkey goes.
	Finish string
	Host   string
	// Demo are people who sign in with one press.
	Demo []string
}

// showSignIn is GET /sign-in.
func (v *Visit) showSignIn() {
	said := ""
	if v.Query("ended") != "" {
		said = v.w.Ended
	}
	v.writeSignIn(http.StatusOK, said)
}

// writeSignIn answers with the page on which people sign in, and with a word about why.
func (v *Visit) writeSignIn(status int, said string) {
	out := &signInView{View: v.View(v.w.SignInTitle, "sign-in", "next", v.next()), Next: v.next(), Finish: v.URL("sign-in/finish", "next", v.next()), Host: v.site.host}
	out.Notice = said
	if v.site.cfg.Demo != nil {
		out.Demo = v.site.cfg.Demo.Names()
	}
	v.Write(status, "signin", out)
}

// next returns where a person goes after the sign-in: an address of this site.
func (v *Visit) next() string {
	next := v.Query("next")
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.HasPrefix(next, "/\\") || strings.HasPrefix(u.Path, "/sign-") {
		return v.URL("work")
	}
	return next
}

// beginSignIn is POST /sign-in/begin. It answers with the options for navigator.credentials.get.
func (v *Visit) beginSignIn() {
	browser, present := v.cookie(cookieBrowser)
	if !present {
		browser = secret.NewText(rand.Text())
		v.cookieOf(cookieBrowser).Set(v.W, browser.Reveal(), browserSeconds)
	}
	options, err := v.site.cfg.Desk.BeginSignIn(v.Context(), browser)
	if err != nil {
		v.AnswerUnavailable("beginning a sign-in", err)
		return
	}
	v.AnswerJSON(http.StatusOK, options)
}

// finishSignIn is POST /sign-in/finish, with the answer of a passkey.
func (v *Visit) finishSignIn() {
	browser, _ := v.cookie(cookieBrowser)
	answer, err := v.ReadAnswer()
	if err != nil || browser.Empty() {
		v.refuseSignIn(operation.Refuse(codePasskeyRefused, "", nil))
		return
	}
	in, err := v.site.cfg.Desk.SignIn(v.Context(), browser, answer, v.next(), web.Client(v.R))
	var refusal *operation.Error
	switch {
	case errors.As(err, &refusal):
		v.refuseSignIn(err)
		return
	case err != nil:
		v.AnswerUnavailable("signing in", err)
		return
	}
	v.cookieOf(cookieBrowser).Set(v.W, "", -1)
	if err := v.endBefore(); err != nil {
		v.AnswerUnavailable("ending the session before", err)
		return
	}
	if in.Session.Empty() {
		v.turnCookie().Set(v.W, in.Turn.Reveal(), turnSeconds)
		v.AnswerJSON(http.StatusOK, map[string]string{"state": "at_issuer", "next": v.URL("sign-in/issuer")})
		return
	}
	v.signedIn(in.Session)
	v.AnswerJSON(http.StatusOK, map[string]string{"state": "signed_in"})
}

// endBefore ends the session that the browser has when somebody proves a passkey in it.
func (v *Visit) endBefore() error {
	before, present := v.cookie(cookieSession)
	if !present {
		return nil
	}
	return v.site.cfg.Desk.SignOut(v.Context(), before)
}

// signedIn gives the browser a session.
func (v *Visit) signedIn(session secret.Text) {
	v.site.signIns.WithLabelValues(signedIn).Inc()
	v.cookieOf(cookieSession).Set(v.W, session.Reveal(), 0)
}

func (v *Visit) refuseSignIn(err error) {
	v.site.signIns.WithLabelValues(signInRefused).Inc()
	v.AnswerRefusal(http.StatusUnauthorized, err)
}

// ReadAnswer returns the answer of a passkey, which is the body of the request in JSON.
func (v *Visit) ReadAnswer() ([]byte, error) {
	if !strings.HasPrefix(v.R.Header.Get("Content-Type"), "application/json") {
		return nil, errors.New("the answer of a passkey is not JSON")
	}
	return io.ReadAll(v.R.Body) // bounded like a form
}

// ReadPress reads the fields of a Press and the answer of the passkey, which is not verified yet.
func (v *Visit) ReadPress() (form url.Values, answer []byte, err error) {
	var sent struct{ Form, Answer string }
	body, err := v.ReadAnswer()
	if err == nil {
		err = json.Unmarshal(body, &sent)
	}
	if err == nil {
		form, err = url.ParseQuery(sent.Form)
	}
	return form, []byte(sent.Answer), err
}

// AnswerJSON answers the script of a page.
func (v *Visit) AnswerJSON(status int, body any) {
	h := v.W.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	v.W.WriteHeader(status)
	_ = json.NewEncoder(v.W).Encode(body) // the reader may be gone
}

// AnswerRefusal tells the script of a page why something was refused, in the reader's language.
func (v *Visit) AnswerRefusal(status int, err error) {
	v.AnswerJSON(status, map[string]string{"said": v.Refusal(err)})
}

// AnswerUnavailable tells the script of a page that the service cannot answer.
func (v *Visit) AnswerUnavailable(doing string, err error) {
	v.log(doing, err)
	v.AnswerJSON(http.StatusServiceUnavailable, map[string]string{"said": v.w.Unavailable})
}

// signOut is POST /sign-out. The browser keeps the cookie until the session has ended: whoever copied the cookie would
// stay signed in otherwise.
func (v *Visit) signOut() {
	if session, present := v.cookie(cookieSession); present {
		if err := v.site.cfg.Desk.SignOut(v.Context(), session); err != nil {
			v.Unavailable("signing out", err)
			return
		}
	}
	v.cookieOf(cookieSession).Set(v.W, "", -1)
	v.W.Header().Set("Clear-Site-Data", `"cache"`)
	v.See("sign-in")
}

// sessionsView lists the sessions of the person.
type sessionsView struct {
	View
	List []sessionRow
}

type sessionRow struct {
	Begun, Used string
	Own         bool
}

// showSessions is GET /sessions.
func (v *Visit) showSessions() {
	list, err := v.site.cfg.Desk.Sessions(v.Context(), v.Acting)
	if err != nil {
		v.Unavailable("reading sessions", err)
		return
	}
	out := &sessionsView{View: v.View(v.w.SessionsTitle, "sessions")}
	if v.Query("done") != "" {
		out.Notice = v.w.SessionsEnded
	}
	for _, s := range list {
		out.List = append(out.List, sessionRow{v.At(s.BegunAt), v.At(s.UsedAt), s.Own})
	}
	v.Write(http.StatusOK, "sessions", out)
}

// endSessions is POST /sessions/end.
func (v *Visit) endSessions() {
	if err := v.site.cfg.Desk.SignOutOthers(v.Context(), v.Acting); err != nil {
		v.Unavailable("ending sessions", err)
		return
	}
	v.See("sessions", "done", "ended")
}

// Host returns the name of the host to which passkeys are bound.
func (v *Visit) Host() string { return v.site.host }
