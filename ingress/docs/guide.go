package docs

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

// marks are the comments around the parts of a guide that a program writes.
var marks = regexp.MustCompile(`(?m)^<!-- .* -->\n`)

// renderGuide returns the body of a page from a guide of the folder docs, which is Markdown.
// A heading of a translation names the id of the original: `## Titre {#title}`.
func renderGuide(markdown []byte) (template.HTML, error) {
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Typographer), goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithHeadingAttribute()))
	var b bytes.Buffer
	if err := md.Convert(marks.ReplaceAll(markdown, nil), &b); err != nil {
		return "", fmt.Errorf("rendering a guide: %w", err)
	}
	// Wide examples are scrolled, also with the keyboard.
	body := strings.ReplaceAll(b.String(), "<pre>", `<pre tabindex="0">`)
	return template.HTML(body), nil //nolint:gosec // our own file, and the renderer omits raw HTML
}
