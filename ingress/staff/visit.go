package staff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/problem"
	"quittance/ingress/web"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/internal/sessions"
)

// HeaderAsks marks a request that the script of a page makes by itself. It prolongs no session and is not recorded.
const HeaderAsks = "Quittance-Asks"

// Visit is one request of a member of staff.
type Visit struct {
	web.Visit
	// Acting is who asks; the zero value when nobody is signed in.
	Acting identity.Acting
	// Now is the time of the request by the service's clock, UTC, in milliseconds, as records hold it.
	Now time.Time

	site    *Site
	w       *words
	session secret.Text
}

// visit reads a request.
func (s *Site) visit(w http.ResponseWriter, r *http.Request) *Visit {
	v := s.site.Visit(w, r)
	return &Visit{Visit: v, Now: s.cfg.Now().UTC().Truncate(time.Millisecond), site: s, w: texts.In(v.Lang)}
}

// Context returns the context of the request.
func (v *Visit) Context() context.Context { return v.R.Context() }

// Param returns a part of the address.
func (v *Visit) Param(name string) string { return chi.URLParam(v.R, name) }

// Query returns a condition in the address, without spaces around it.
func (v *Visit) Query(name string) string { return strings.TrimSpace(v.R.URL.Query().Get(name)) }

// Asks reports whether the script of a page asks by itself.
func (v *Visit) Asks() bool { return v.R.Header.Get(HeaderAsks) != "" }

// open runs a handler for anybody, within the limits of a network.
func (s *Site) open(do func(*Visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := s.visit(w, r)
		if v.admitted() {
			do(v)
		}
	}
}

// admitted counts a request without a session. It answers one beyond the limits with 429.
func (v *Visit) admitted() bool {
	if v.site.calls.Allow(v.R) {
		return true
	}
	v.site.signIns.WithLabelValues(signInLimited).Inc()
	v.RetryAfter(time.Second)
	v.explain(http.StatusTooManyRequests, v.w.TooManyTitle, v.w.TooMany)
	return false
}

// guarded runs the handler of a route for a person who is signed in and may use it.
func (s *Site) guarded(route Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := r.Body
		v := s.visit(w, r) // which reads a form of any other type, and bounds the body by what those have
		session, present := v.cookie(cookieSession)
		if !present {
			if v.admitted() {
				v.askToSignIn(false)
			}
			return
		}
		a, err := s.cfg.Desk.Session(r.Context(), session, v.Asks(), web.Client(r))
		switch {
		case errors.Is(err, identity.ErrStaffSessionEnded):
			if v.admitted() { // somebody who guesses sessions is counted, too
				v.askToSignIn(true)
			}
			return
		case err != nil:
			v.Unavailable("reading a session of staff", err)
			return
		}
		v.Acting, v.session = a, session
		if err := route.permits(a); err != nil {
			v.refusePermission(route, err)
			return
		}
		if route.Upload > 0 {
			r.Body = http.MaxBytesReader(w, body, route.Upload)
		}
		route.Do(v)
	}
}

// refusePermission answers 403 to a person whose roles do not allow a route. It says nothing of what is there.
func (v *Visit) refusePermission(route Route, err error) {
	lacks := string(route.May)
	if route.Service && !v.Acting.Service() || route.Agency && v.Acting.Service() {
		lacks = route.group()
	}
	v.site.refused.WithLabelValues(lacks).Inc()
	if err := v.site.cfg.Record(v.Context(), v.Acting.Actor, v.Now, operation.Entry{
		Action: "staff.refused", Subject: v.Acting.Person.ID, AgencyID: v.Acting.Person.AgencyID, Detail: map[string]any{"route": route.Method + " " + route.Path, "permission": lacks},
	}); err != nil {
		v.Unavailable("recording a refusal", err)
		return
	}
	v.explain(http.StatusForbidden, v.w.NotPermittedTitle, v.Refusal(err))
}

// Record adds a row about what the person has read or asked for to the audit table; none for what a page asks by
// itself. After an error the page must not be shown: the error has been answered.
func (v *Visit) Record(action, subject, agencyID string, detail map[string]any) bool {
	if v.Asks() {
		return true
	}
	err := v.Note(operation.Entry{Action: action, Subject: subject, AgencyID: agencyID, Detail: detail})
	if err != nil {
		v.Unavailable("recording who reads", err)
	}
	return err == nil
}

// Note adds a row about what the person has done to the audit table, also when the browser does not wait for the answer any
// more: it is done. It answers nothing.
func (v *Visit) Note(e operation.Entry) error {
	ctx, cancel := operation.Done(v.Context())
	defer cancel()
	return v.site.cfg.Record(ctx, v.Acting.Actor, v.Now, e)
}

// MaySearch counts a search of the person. It answers one beyond the limit with 429.
func (v *Visit) MaySearch() bool {
	if v.site.searches.AllowAs(v.Acting.Person.ID) {
		return true
	}
	v.RetryAfter(2 * time.Second)
	v.explain(http.StatusTooManyRequests, v.w.TooManyTitle, fmt.Sprintf(v.w.TooManySearches, searchesPerMinute))
	return false
}

// explainView is a page that says one thing.
type explainView struct {
	View
	Text, BackURL, Back string
}

// explain answers with a page that says one thing, and leads to /work or to the sign-in.
func (v *Visit) explain(status int, title, text string) {
	v.Write(status, "explain", &explainView{View: v.View(title, ""), Text: text, BackURL: v.URL("work"), Back: v.w.Work})
}

// Unknown answers that there is nothing at the address, in the same bytes for what is another agency's.
func (v *Visit) Unknown() {
	v.explain(http.StatusNotFound, v.w.UnknownTitle, v.w.Unknown)
}

// Unavailable says that the service cannot answer, and that nothing was done.
func (v *Visit) Unavailable(doing string, err error) {
	v.log(doing, err)
	v.explain(http.StatusServiceUnavailable, v.w.UnavailableTitle, v.w.Unavailable)
}

// LogFailure logs why a page cannot do something, for one that answers in words of its own.
func (v *Visit) LogFailure(doing string, err error) { v.log(doing, err) }

func (v *Visit) log(doing string, err error) {
	if v.Context().Err() == nil {
		v.site.cfg.Log.LogAttrs(v.Context(), slog.LevelWarn, "a page of staff is unavailable", slog.String("doing", doing),
			slog.String("request_id", problem.RequestID(v.Context())), slog.Any("error", err))
	}
}

// Failed answers an error of a noun: a refusal in the reader's language with 409, an unknown session with 404, and
// anything else as Unavailable.
func (v *Visit) Failed(doing string, err error) {
	var refusal *operation.Error
	switch {
	case errors.Is(err, sessions.ErrNotFound):
		v.Unknown()
	case errors.As(err, &refusal) && strings.HasSuffix(refusal.Code, ".unknown"):
		v.Unknown()
	case errors.As(err, &refusal):
		v.explain(StatusOf(err), v.w.RefusedTitle, v.Refusal(err))
	default:
		v.Unavailable(doing, err)
	}
}

// View is what a page of a portal shows. The view of a page embeds it.
type View struct {
	web.View
	// S are the texts of the frame.
	S *words
	// DemoAnswer is where the passkey of the demo person who is signed in answers; empty for others.
	DemoAnswer string
	// Files are the addresses of the rows as files; nil for none.
	Files *Files
	// Back is an address of a page above; empty for none.
	BackURL, BackText string
}

// View returns the frame of a page. The path is that of the page, with its conditions, for the link to the other
// language.
func (v *Visit) View(title, path string, query ...string) View {
	out := View{View: v.Visit.View(v.w.Title, title, path), S: v.w}
	other := *v
	other.Lang = texts.other(v.Lang)
	out.LanguageURL = other.URL(path, query...)
	out.Script, out.Fetches = v.ScriptPath(), true
	if moved := time.Until(v.Now).Round(time.Minute); moved != 0 {
		out.Moved = fmt.Sprintf(v.w.Moved, v.At(v.Now))
	}
	if !v.Acting.SignedIn() {
		return out
	}
	out.Who = fmt.Sprintf(v.w.SignedInAs, v.Acting.Person.Name)
	if v.isDemo() {
		out.DemoAnswer = demoAnswer
	}
	if a, ok := v.site.cfg.Agencies.Agency(v.Acting.Person.AgencyID); ok {
		out.Owner = a.Name
	}
	for _, p := range v.site.parts {
		for _, link := range p.Nav {
			if v.mayOpen(link.Path) {
				current := v.R.URL.Path == link.Path || strings.HasPrefix(v.R.URL.Path, link.Path+"/")
				out.Nav = append(out.Nav, web.NavItem{URL: v.URL(strings.TrimPrefix(link.Path, "/")), Label: cmp.Or(link.Labels[v.Lang], link.Path), Current: current})
			}
		}
		if i := slices.IndexFunc(p.SearchPaths, v.mayOpen); i >= 0 {
			out.SearchBox = &web.Search{URL: p.SearchPaths[i], Name: "q", Label: v.w.SearchLabel, Button: v.w.Search}
		}
	}
	return out
}

// mayOpen reports whether the person may use the route of a path without parameters.
func (v *Visit) mayOpen(path string) bool {
	for _, r := range v.site.routes {
		if r.Path == path {
			return r.permits(v.Acting) == nil
		}
	}
	return false
}
