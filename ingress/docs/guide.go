package docs

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

// marks are the comments around the parts of a guide that a program writes.
var marks = regexp.MustCompile(`(?m)^<!-- .* -->\n`)

// guideLinks are links from a guide to another guide or to a page of this package, and to the
// description of the cash-in API, as they lead somewhere in the repository.
var guideLinks = regexp.MustCompile(`\]\((?:([a-z-]+?)(\.fr)?\.md|\.\./ingress/docs/pages/(en|fr)/([a-z-]+)\.html|\.\./ingress(/cashin/openapi\.yaml))(#[\w-]+)?\)`)

// served replaces the links of a guide by the addresses at which their files are served. The
// error names a file that is no page.
func served(markdown []byte) (_ []byte, err error) {
	out := guideLinks.ReplaceAllFunc(markdown, func(link []byte) []byte {
		m := guideLinks.FindSubmatch(link)
		to, name, lang := string(m[5]), string(m[1])+string(m[4]), english
		if len(m[2]) > 0 || string(m[3]) == french {
			lang = french
		}
		if to == "" {
			i := slices.IndexFunc(pages, func(p page) bool { return p.name == name && p.in(lang) != "" })
			if i < 0 {
				err = fmt.Errorf("rendering a guide: it leads to %s, which is not served", link)
				return link
			}
			to = pages[i].path(lang)
		}
		return []byte("](" + to + string(m[6]) + ")")
	})
	return out, err
}

// renderGuide returns the body of a page from a guide of the folder docs, which is Markdown.
// A heading of a translation names the id of the original: `## Titre {#title}`.
func renderGuide(markdown []byte) (template.HTML, error) {
	markdown, err := served(markdown)
	if err != nil {
		return "", err
	}
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Typographer), goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithHeadingAttribute()))
	var b bytes.Buffer
	if err := md.Convert(marks.ReplaceAll(markdown, nil), &b); err != nil {
		return "", fmt.Errorf("rendering a guide: %w", err)
	}
	// Wide examples are scrolled, also with the keyboard.
	body := strings.ReplaceAll(b.String(), "<pre>", `<pre tabindex="0">`)
	return template.HTML(body), nil //nolint:gosec // our own file, and the renderer omits raw HTML
}
