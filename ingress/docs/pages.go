package docs

import (
	"bytes"
	"embed"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strings"

	"quittance"
	"quittance/checkout"
	guides "quittance/docs"
	"quittance/ingress/problem"
	"quittance/sdk"
)

// page is a page of the documentation. Its text is the one file pages/en/NAME.html, and
// pages/fr/NAME.html if it has a French title.
type page struct {
	name            string
	english, french string
}

// pages are the pages in the order of the navigation. The first one is /docs.
var pages = []page{
	{"index", "Quittance API", "API Quittance"},
	{"quickstart", "Quickstart", "Premiers pas"},
	{"keys", "Keys, endpoints and origins", "Clés, points de réception et origines"},
	{"webhooks", "Webhooks", "Webhooks"},
	{"events", "Events", "Événements"},
	{"embed", "Embedded checkout", "Paiement intégré"},
	{"sdks", "SDKs for Go and Node", "SDK pour Go et Node"},
	{"testing", "Testing", "Essais"},
	{"reference", "Reference", "Référence"},
	{"errors", "Errors", "Erreurs"},
	{"limits", "Limits and versions", "Limites et versions"},
	{"counter", "Counter API", "API du guichet"},
	{"citizen", "Citizen API", "API des usagers"},
	{"erp", "For ERP vendors", "Pour les éditeurs d’ERP"},
	{"receipts", "Checking receipts", "Vérifier les reçus"},
	{"analysts", "Reports and analysis", "États et analyse"},
	{"views", "Columns of the views", "Colonnes des vues"},
	{"cash-in", "The deprecated cash-in API", "L’ancienne API d’encaissement (cash-in)"},
	{"changelog", "Changelog", "Journal des modifications"},
	{"changelog-earlier", "Earlier changes", "Modifications antérieures"},
}

// The languages of the pages.
const (
	english = "en"
	french  = "fr"
)

// in returns the title of the page in a language, empty when it is not translated.
func (p page) in(lang string) string {
	if lang == french {
		return p.french
	}
	return p.english
}

// path returns the address of the page in a language.
func (p page) path(lang string) string {
	path := "/docs"
	if lang == french {
		path += "/fr"
	}
	switch p.name {
	case "index":
		return path
	case "errors":
		if lang == english {
			return problem.TypePrefix // the pages of the codes are below it
		}
	}
	return path + "/" + p.name
}

// content is what the pages show. It is the same for all pages of a language.
type content struct {
	// Errors are the codes of the integrators' API, CounterErrors and CitizenErrors those that
	// only the counter's or the citizens' API has.
	Errors, CounterErrors, CitizenErrors []code
	Reference, Counter, Citizen          reference

	Samples     []sample
	SDKs        []kit
	Generators  []generator
	Events      []event
	Failures    []failure
	Numbers     []testNumber
	SDKVersion  string
	EmbedSample string
	// Analysts is the guide for reports.
	Analysts template.HTML
	// Views describes every column of every view in ClickHouse.
	Views template.HTML
	// Cashin is the guide to move from the deprecated cash-in API.
	Cashin template.HTML
	// ERP is the guide for vendors of agencies' ERPs.
	ERP template.HTML
	// Receipts is the guide for those who check receipts.
	Receipts template.HTML
	// Changelog are the releases, the newest first.
	Changelog []release
}

// failure is a failure code with its meaning.
type failure struct {
	Code    checkout.FailureCode
	Message string
}

// navigation is a link to a page. Lang is set when the page is in another language.
type navigation struct {
	Href, Title, Lang string
	Current           bool
}

// section is a heading of the second level.
type section struct{ ID, Title string }

// view is one page: the content and what the layout shows around it.
type view struct {
	content
	Lang, Title string
	// Address is that of the service.
	Address string
	Style   template.CSS
	Nav     []navigation
	// Other is the address of the same page in OtherLang, empty when there is none.
	Other, OtherLang string
	Sections         []section
	Content          template.HTML
	// Error is the code of the page.
	Error problem.Entry
}

// code is an error code with its page. Lang is set when the page is in another language.
type code struct {
	problem.Entry
	Href, Lang string
}

// codes returns the error codes in a language, each in English if it has no other text.
func codes(entries []problem.Entry, lang string) (out []code) {
	for _, e := range entries {
		c := code{Entry: e, Href: errorHref(e.Code)}
		if lang == french {
			var translated bool
			if c.Entry, translated = e.InFrench(); translated {
				c.Href = frenchHref(e.Code)
			} else {
				c.Lang = english
			}
		}
		out = append(out, c)
	}
	return out
}

// frenchHref returns the address of a code's page in French.
func frenchHref(code string) string { return "/docs/fr/errors/" + code }

// only are the codes that no other API has.
func only(api problem.API) (out []problem.Entry) {
	for _, e := range problem.Catalogue(api) {
		if len(e.In) == 1 {
			out = append(out, e)
		}
	}
	return out
}

// Say returns the text in the language of the page.
func (v view) Say(inEnglish, inFrench string) string {
	if v.Lang == french {
		return inFrench
	}
	return inEnglish
}

// Name is the title of the documentation.
func (v view) Name() string { return pages[0].in(v.Lang) }

// Home is the address of the first page.
func (v view) Home() string { return pages[0].path(v.Lang) }

//go:embed templates pages
var files embed.FS

// site renders pages.
type site struct {
	address  string
	style    template.CSS
	contents map[string]content // by language
}

// viewOf returns the view of a page in a language. A page that is not in the table has the
// zero page.
func (s site) viewOf(of page, lang string) view {
	v := view{content: s.contents[lang], Lang: lang, Title: of.in(lang), Address: s.address, Style: s.style, OtherLang: french}
	v.Errors, v.CounterErrors, v.CitizenErrors = codes(problem.Catalogue(problem.Ministry), lang), codes(only(problem.Counter), lang), codes(only(problem.Citizen), lang)
	if lang == french {
		v.OtherLang = english
	}
	if of.in(v.OtherLang) != "" {
		v.Other = of.path(v.OtherLang)
	}
	for _, p := range pages {
		n := navigation{Href: p.path(lang), Title: p.in(lang), Current: p == of}
		if n.Title == "" {
			n = navigation{Href: p.path(english), Title: p.english, Lang: english}
		}
		v.Nav = append(v.Nav, n)
	}
	return v
}

// headings are those of the second level in a rendered page.
var headings = regexp.MustCompile(`(?s)<h2 id="([^"]+)">(.*?)</h2>`)

var tags = regexp.MustCompile(`<[^>]*>`)

// render renders the text in a file of the templates within the layout.
func (s site) render(file string, v view) (resource, error) {
	t, err := template.New(file).Funcs(template.FuncMap{
		"anchor": func(s string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(strings.ToLower(s)) },
		"spans":  func(s string) []span { return spans(s, nil) },
		"say":    v.Say,
		// Programs have many quotes, and quotes in text need no escape.
		"verbatim": func(s string) template.HTML {
			return template.HTML(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)) //nolint:gosec // escaped here
		},
	}).ParseFS(files, "templates/layout.html", "templates/parts.html", file)
	if err != nil {
		return resource{}, fmt.Errorf("reading the template %s: %w", file, err)
	}
	var body bytes.Buffer
	if err := t.ExecuteTemplate(&body, "content", v); err != nil {
		return resource{}, fmt.Errorf("rendering %s: %w", file, err)
	}
	text := strings.TrimSpace(body.String())
	if v.Lang == french {
		text = unbroken(text)
	}
	return around(t, v, text)
}

// beforeMarks are spaces that French has beside a mark, and the parts of a page that stay.
var beforeMarks = regexp.MustCompile(`(?s)<pre.*?</pre>|<code>.*?</code>| [:;?!»]|« `)

// unbroken keeps French marks on the line of their words.
func unbroken(text string) string {
	return beforeMarks.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "<") {
			return found
		}
		return strings.ReplaceAll(found, " ", "\u00a0")
	})
}

// around renders the layout around the text of a page.
func around(t *template.Template, v view, body string) (resource, error) {
	for _, m := range headings.FindAllStringSubmatch(body, -1) {
		v.Sections = append(v.Sections, section{ID: m[1], Title: html.UnescapeString(tags.ReplaceAllString(m[2], ""))})
	}
	v.Content = template.HTML(body) //nolint:gosec // our own text, rendered
	var whole bytes.Buffer
	if err := t.ExecuteTemplate(&whole, "layout.html", v); err != nil {
		return resource{}, fmt.Errorf("rendering %s: %w", v.Title, err)
	}
	return newResource("text/html; charset=utf-8", whole.Bytes()), nil
}

// embedSample is the page of an integrator with the checkout in it.
const embedSample = `<div id="pay"></div>
<script src="https://{sdk_host}/sdk/v1.js"></script>
<script>
  Quittance.initEmbeddedCheckout({
    clientSecret: "chs_…:chs_secret_…",
    onComplete: ({ completion_token }) => fetch("/verify", { method: "POST", body: completion_token }),
    onSessionEnd: () => { /* failed, expired or cancelled: a new try is a new session */ },
  }).then((checkout) => checkout.mount("#pay"));
</script>`

// frenchTexts are the French of the texts that the pages take from the OpenAPI files and
// from the domain.
//
//go:embed french.yaml
var frenchTexts []byte

// newContents makes the content of the pages by language. A text without French is shown in
// English; TestEverythingIsInFrench finds it.
func newContents(ministry, counter, citizen node) (map[string]content, error) {
	inEnglish, err := newContent(ministry, counter, citizen, nil)
	if err != nil {
		return nil, err
	}
	texts, err := guides.ReadPhrases(frenchTexts)
	if err != nil {
		return nil, err
	}
	inFrench, err := newContent(ministry, counter, citizen, texts)
	if err != nil {
		return nil, err
	}
	return map[string]content{english: inEnglish, french: inFrench}, nil
}

// guide is a file of the folder docs in both languages, and where its page shows it.
type guide struct {
	shown           *template.HTML
	english, french []byte
}

func guidesOf(c *content) []guide {
	return []guide{
		{&c.Analysts, guides.Analysts, guides.AnalystsFrench},
		{&c.Views, guides.Views, guides.ViewsFrench},
		{&c.Cashin, guides.Cashin, guides.CashinFrench},
		{&c.ERP, guides.ERP, guides.ERPFrench},
		{&c.Receipts, guides.Receipts, guides.ReceiptsFrench},
	}
}

// newContent makes the content of the pages in one language from the descriptions of the
// APIs and the catalogue of errors. Without French texts it is English.
func newContent(ministry, counter, citizen node, texts *guides.Phrases) (c content, err error) {
	lang, home := english, "/docs/"
	if texts != nil {
		lang, home = french, "/docs/fr/"
	}
	hrefs := map[string]string{}
	for _, e := range codes(problem.Catalogue(problem.Ministry, problem.Counter, problem.Citizen), lang) {
		hrefs[e.Code] = e.Href
	}
	c.Generators = generators
	c.Numbers, c.SDKVersion, c.EmbedSample = testNumbers, sdk.Version, embedSample
	for _, code := range checkout.FailureCodes() {
		message := code.Message()
		if texts != nil {
			message = texts.French(message)
		}
		c.Failures = append(c.Failures, failure{code, message})
	}
	if c.Reference, err = (&reader{root: ministry, codes: hrefs, home: home + "reference", french: texts}).read(); err != nil {
		return c, err
	}
	if c.Counter, err = (&reader{root: counter, codes: hrefs, home: home + "counter", french: texts}).read(); err != nil {
		return c, err
	}
	if c.Citizen, err = (&reader{root: citizen, codes: hrefs, home: home + "citizen", french: texts}).read(); err != nil {
		return c, err
	}
	if c.Events, err = events(c.Reference.Webhooks); err != nil {
		return c, err
	}
	for _, g := range guidesOf(&c) {
		text := g.english
		if texts != nil {
			text = g.french
		}
		if *g.shown, err = renderGuide(text); err != nil {
			return c, err
		}
	}
	if c.Changelog, err = readChangelog(quittance.Changelog); err != nil {
		return c, err
	}
	if c.SDKs, err = readKits(); err != nil {
		return c, err
	}
	c.Samples, err = readSamples()
	return c, err
}
