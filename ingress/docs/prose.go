package docs

import (
	"regexp"
	"strings"
)

// block is a paragraph or a list of a description in the OpenAPI file. Descriptions are
// Markdown with paragraphs, lists with dashes or numbers, and code in backticks only.
type block struct {
	List    bool
	Ordered bool     // a list with numbers
	Items   [][]span // one for a paragraph
}

// span is a run of text. Href is set where it names an error code.
type span struct {
	Text string
	Code bool
	Href string
}

// errorHref returns the address of a code's page.
func errorHref(code string) string { return "/docs/errors/" + code }

// prose reads a description. It joins the lines of a paragraph or an item.
func prose(text string, codes map[string]string) (out []block) {
	var current *block
	end := func() { current = nil }
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		item, list := strings.CutPrefix(line, "- ")
		ordered := false
		if m := numbered.FindString(line); m != "" {
			item, list, ordered = line[len(m):], true, true
		}
		switch {
		case line == "":
			end()
		case list && (current == nil || !current.List):
			out = append(out, block{List: true, Ordered: ordered})
			current = &out[len(out)-1]
			fallthrough
		case list:
			current.Items = append(current.Items, []span{{Text: item}})
		case current == nil:
			out = append(out, block{Items: [][]span{{{Text: line}}}})
			current = &out[len(out)-1]
		default:
			current.Items[len(current.Items)-1][0].Text += " " + line
		}
	}
	for _, b := range out {
		for i, item := range b.Items {
			b.Items[i] = spans(item[0].Text, codes)
		}
	}
	return out
}

var numbered = regexp.MustCompile(`^[0-9]+\. `)

var codePattern = regexp.MustCompile("`[^`]+`")

func spans(text string, codes map[string]string) (out []span) {
	at := 0
	for _, m := range codePattern.FindAllStringIndex(text, -1) {
		if m[0] > at {
			out = append(out, span{Text: text[at:m[0]]})
		}
		s := span{Text: text[m[0]+1 : m[1]-1], Code: true}
		s.Href = codes[s.Text]
		out = append(out, s)
		at = m[1]
	}
	if at < len(text) {
		out = append(out, span{Text: text[at:]})
	}
	return out
}
