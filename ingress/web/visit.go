package web

import (
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"quittance/ingress/problem"
	"quittance/internal/form"
	"quittance/money"
)

// Visit is one request of a browser to a Site.
type Visit struct {
	W    http.ResponseWriter
	R    *http.Request
	Lang money.Language
	// Form is the form of a POST, else empty. Unread is the status to answer if it cannot be read, else 0. See ReadForm.
	Form   url.Values
	Unread int
	site   *Site
}

// Visit reads the language and the form of a request.
func (s *Site) Visit(w http.ResponseWriter, r *http.Request) Visit {
	form, unread := ReadForm(w, r) // an unreadable form is an empty one: its handler asks for the fields
	return Visit{W: w, R: r, Lang: Language(r, form), Form: form, Unread: unread, site: s}
}

// RetryAfter says when a page that is refused may be asked for again. A time that is not positive says nothing.
func (v Visit) RetryAfter(d time.Duration) {
	if d > 0 {
		v.W.Header().Set("Retry-After", strconv.Itoa(problem.Seconds(d)))
	}
}

// URL returns the address of a page of the site, in the visit's language. The path is
// below the site's Prefix and may be empty. Names and values of query alternate.
func (v Visit) URL(path string, query ...string) string {
	q := url.Values{FieldLanguage: {string(v.Lang)}}
	for i := 0; i+1 < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	if path != "" || v.site.cfg.Prefix == "" {
		path = "/" + path
	}
	return v.site.cfg.Prefix + path + "?" + q.Encode()
}

// See sends the browser to a page of the site. The arguments are those of URL.
func (v Visit) See(path string, query ...string) {
	v.site.setHeaders(v.W.Header())
	http.Redirect(v.W, v.R, v.URL(path, query...), http.StatusSeeOther) //nolint:gosec // an address of ours
}

// Write answers with the page of the template NAME.html. The page is a pointer to a
// struct that embeds View.
func (v Visit) Write(status int, name string, page pageView) {
	v.site.write(v.W, v.R, status, name, page)
}

// View is what the layout shows. The view of a page embeds it.
type View struct {
	// L are the texts of the layout.
	L *Words
	// Title is the page's title, Site the name of the set of pages.
	Title, Site string
	// Owner is who runs the pages, such as an agency; the Site when empty.
	Owner string
	// Test says that no real money moves.
	Test bool
	// Who is signed in; empty for nobody. SignOutURL takes the form that signs out.
	Who, SignOutURL string
	// Notice reports what was just done.
	Notice string
	// Faults are what is wrong with the form. A fault without a field is one of the
	// whole form.
	Faults []form.Fault
	// Typed are the values of the form, by field, to be shown again.
	Typed map[string]string

	Style, LanguageURL string
	// Wide is that of the site.
	Wide bool
	// Script is the address of the site's script, for a page that has a use for it; see
	// Visit.ScriptPath. Fetches says that the script calls the service.
	Script  string
	Fetches bool
	// Tagged gives a page with status 200 an ETag, by which the script asks whether it has changed.
	Tagged bool

	// Nav are links to the other pages, and Search is the box that finds things; empty and nil for a site
	// without them.
	Nav       []NavItem
	SearchBox *Search
	// Command is the command that shows or does the same as the page; empty for none.
	Command string
	// Moved says how far the service's clock is from the machine's, where it was moved; empty otherwise.
	Moved string
}

// NavItem is a link to another page. The page that is shown is Current.
type NavItem struct {
	URL, Label string
	Current    bool
}

// Search is a box that finds things. Its form is posted to URL with the field Name, because what people type may not
// stand in an address.
type Search struct{ URL, Name, Label, Button, Value string }

// Theirs marks the texts of agencies, which are in French, on a page in another language.
func (v *View) Theirs() template.HTMLAttr {
	if v.L.Code == string(money.French) {
		return ""
	}
	return ` lang="fr"`
}

// pageView is a pointer to a View, or to a struct that embeds one.
type pageView interface{ layout() *View }

func (v *View) layout() *View { return v }

// View returns the layout of a page. The path is that of the page, for the link to
// the other language.
func (v Visit) View(site, title, path string) View {
	l := words.In(v.Lang)
	other := v
	other.Lang = money.Language(l.OtherTag)
	return View{
		L: l, Title: title, Site: site, Style: v.site.stylePath, Wide: v.site.cfg.Wide, LanguageURL: other.URL(path), SignOutURL: v.site.cfg.Prefix + "/sign-out",
		Typed: map[string]string{},
	}
}

// ScriptPath returns the address of the site's script; empty without one.
func (v Visit) ScriptPath() string { return v.site.scriptPath }

// Fault adds a fault of a field of the page. Typed is what the field shows again.
func (v *View) Fault(field, message, typed string) {
	v.Faults = append(v.Faults, form.Fault{Field: field, Message: message})
	v.Typed[field] = typed
}

// Field returns what the layout's template "field" shows above an input.
func (v *View) Field(name, label, hint string) Field {
	f := Field{Name: name, Label: label, Hint: hint}
	for _, fault := range v.Faults {
		if fault.Field == name && f.Fault == "" {
			f.Fault = fault.Message
		}
	}
	return f
}

// Field is an input of a form: its label, its hint and what is wrong with it.
type Field struct{ Name, Label, Hint, Fault string }
