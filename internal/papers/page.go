package papers

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"quittance/checkout/page"
	"quittance/document"
	"quittance/money"
	"quittance/money/language"
)

//go:embed templates
var templates embed.FS

//go:embed assets/paper.css
var stylesheet string

// pageWords are what a page of a paper says beside the paper.
type pageWords struct{ Skip, Back, Download, Print, Other, OtherTag, QR, Verify string }

var pageTexts = language.Table[pageWords]{
	money.French: {
		Skip: "Aller au contenu", Back: "Retour", Download: "Télécharger en PDF", Print: "Imprimer", Other: "English", OtherTag: "en",
		QR: "Code QR de ce document", Verify: "Ouvrir la page de vérification",
	},
	money.English: {
		Skip: "Skip to content", Back: "Back", Download: "Download as PDF", Print: "Print", Other: "Français", OtherTag: "fr",
		QR: "QR code of this document", Verify: "Open the page that checks it",
	},
}

// Links are the addresses on the page of a paper. PDF is required.
type Links struct {
	PDF      string
	Language string // the page in the other language
	Back     string // where the visitor came from
}

// Pages renders papers as HTML, which is their accessible form. It is safe for concurrent
// use.
type Pages struct {
	notice, receipt *template.Template
	style           string
	script          string
}

// NewPages parses the embedded templates. script is the address of the script of package
// checkout/page, which shows the button that prints. An error means a faulty build.
func NewPages(script string) (*Pages, error) {
	p := &Pages{style: strings.ReplaceAll(stylesheet, "\n  ", "\n"), script: script}
	for name, to := range map[string]**template.Template{"notice": &p.notice, "receipt": &p.receipt} {
		t, err := template.New("layout.html").Funcs(template.FuncMap{"num": unbroken, "sums": sums}).ParseFS(templates, "templates/layout.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("parsing the page of a %s: %w", name, err)
		}
		*to = t
	}
	return p, nil
}

// Headers are the header fields of a page of a paper.
func (p *Pages) Headers() []page.Header { return page.StyledHeaders(p.style) }

// sheetContent is what the templates show.
type sheetContent struct {
	W      pageWords
	Lang   money.Language
	Style  template.CSS
	Script string
	Links  Links
	Logo   template.URL
	QR     template.HTML
	// Address is what the code of a receipt holds.
	Address string
	Paper   any
}

func (p *Pages) content(lang money.Language, agency document.Agency, qr code, links Links, paper any) sheetContent {
	c := sheetContent{
		W: pageTexts.In(lang), Lang: lang, Style: template.CSS(p.style), Script: p.script, Links: links, //nolint:gosec // our own file
		Paper: paper,
	}
	c.QR = qr.svg(c.W.QR)
	if len(agency.Logo) > 0 {
		c.Logo = template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(agency.Logo)) //nolint:gosec // base64
	}
	return c
}

// Notice writes the page of a payment notice. It writes nothing when it returns an error.
func (p *Pages) Notice(w io.Writer, n document.Notice, links Links) error {
	qr, err := newNoticeCode(n.QR)
	if err != nil {
		return err
	}
	return render(w, p.notice, p.content(n.Lang, n.Agency, qr, links, n))
}

// Receipt writes the page of a receipt. address is what its QR code holds, see
// receipts.Address. It writes nothing when it returns an error.
func (p *Pages) Receipt(w io.Writer, r document.Receipt, address string, links Links) error {
	qr, err := newReceiptCode(address)
	if err != nil {
		return err
	}
	c := p.content(r.Lang, r.Agency, qr, links, r)
	c.Address = address
	return render(w, p.receipt, c)
}

func render(w io.Writer, t *template.Template, c sheetContent) error {
	var b bytes.Buffer
	if err := t.Execute(&b, c); err != nil {
		return fmt.Errorf("rendering the page of a paper: %w", err)
	}
	_, err := b.WriteTo(w)
	return err
}

// svg returns the code as a picture with a white border.
func (c code) svg(label string) template.HTML {
	var path strings.Builder
	for y, row := range c.modules {
		for x := 0; x < len(row); x++ {
			if !row[x] {
				continue
			}
			begin := x
			for x+1 < len(row) && row[x+1] {
				x++
			}
			fmt.Fprintf(&path, "M%d %dh%dv1H%dz", begin+quiet, y+quiet, x-begin+1, begin+quiet)
		}
	}
	size := strconv.Itoa(len(c.modules) + 2*quiet)
	return template.HTML(`<svg class="qr" viewBox="0 0 ` + size + ` ` + size + `" role="img" aria-label="` + template.HTMLEscapeString(label) + //nolint:gosec // numbers, and an escaped text
		`" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h` + size + `v` + size + `H0z"/><path d="` + path.String() + `"/></svg>`)
}

// unbroken returns a text that never breaks inside. The style makes a long one smaller.
func unbroken(text string) template.HTML {
	const wide = 15 // characters
	class := "n"
	if utf8.RuneCountInString(text) > wide {
		class = "n long"
	}
	return template.HTML(`<span class="` + class + `">` + template.HTMLEscapeString(text) + `</span>`) //nolint:gosec // it is escaped
}

// sums are the known amounts of a line with their labels.
func sums(labels document.Labels, l document.Line) []string {
	var out []string
	for _, v := range [][2]string{{labels.Original, l.Original}, {labels.Outstanding, l.Outstanding}, {labels.Added, l.Added}, {labels.Minimum, l.Minimum}} {
		if v[1] != "" {
			out = append(out, v[0]+" "+v[1])
		}
	}
	return out
}

// ContentType is the Content-Type of the PDFs.
const ContentType = "application/pdf"

// Disposition is the Content-Disposition of a PDF with a name of this package, without its
// ending: letters, digits and hyphens.
func Disposition(name string) string { return `attachment; filename="` + name + `.pdf"` }
