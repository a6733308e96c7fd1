package docs

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"quittance/ingress/problem"
)

// scriptPath is the script of search and copy buttons, llmsPath the list of pages for programs that
// read for people (https://llmstxt.org).
const (
	scriptPath = "/docs/docs.js"
	llmsPath   = "/llms.txt"
)

// searchPath returns the path of the index of a language.
func searchPath(lang string) string {
	if lang == french {
		return "/docs/fr/search.json"
	}
	return "/docs/search.json"
}

// found is a section of a page as the script searches it.
type found struct {
	Page    string `json:"page"`
	Section string `json:"section"`
	Href    string `json:"href"`
	Text    string `json:"text"`
}

// longestText is the most bytes of a section's text in the index.
const longestText = 2000

var (
	inMain = regexp.MustCompile(`(?s)<main[^>]*>(.*)</main>`)
	parts  = regexp.MustCompile(`(?s)<h[23] id="([^"]+)">(.*?)</h[23]>`)
	spaces = regexp.MustCompile(`\s+`)
)

// textOf returns the text of HTML.
func textOf(markup string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString(markup, " ")), " "))
}

// sectionsOf returns the sections of a page: what is before the first heading, and each heading.
func sectionsOf(title, path string, page []byte) (out []found) {
	m := inMain.FindSubmatch(page)
	if m == nil {
		return nil
	}
	body := string(m[1])
	at := parts.FindAllStringSubmatchIndex(body, -1)
	begin := len(body)
	if len(at) > 0 {
		begin = at[0][0]
	}
	out = append(out, found{title, "", path, shortened(textOf(body[:begin]))})
	for i, h := range at {
		end := len(body)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out = append(out, found{title, textOf(body[h[4]:h[5]]), path + "#" + body[h[2]:h[3]], shortened(textOf(body[h[1]:end]))})
	}
	return out
}

func shortened(text string) string {
	if len(text) <= longestText {
		return text
	}
	cut := longestText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// addSearch adds the index of each language, of the pages that have been rendered.
func (h *Handler) addSearch() error {
	for _, lang := range []string{english, french} {
		var all []found
		for _, p := range pages {
			if p.in(lang) != "" {
				all = append(all, sectionsOf(p.in(lang), p.path(lang), h.resources[p.path(lang)].body)...)
			}
		}
		for _, e := range problem.Catalogue(problem.Ministry, problem.Counter, problem.Citizen) {
			path := errorHref(e.Code)
			if lang == french {
				path = frenchHref(e.Code)
			}
			if r, ok := h.resources[path]; ok {
				all = append(all, sectionsOf(e.Code, path, r.body)...)
			}
		}
		text, err := json.Marshal(all)
		if err != nil {
			return fmt.Errorf("writing the index of the search: %w", err)
		}
		h.resources[searchPath(lang)] = newResource("application/json", text)
	}
	return nil
}

// llms returns the list of the English pages, with the sections of each.
func (h *Handler) llms(address, summary string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n> %s\n\n## Documentation\n\n", pages[0].english, summary)
	for _, p := range pages {
		var names []string
		for _, s := range sectionsOf(p.english, p.path(english), h.resources[p.path(english)].body) {
			if s.Section != "" && len(names) < 12 {
				names = append(names, s.Section)
			}
		}
		fmt.Fprintf(&b, "- [%s](%s%s)", p.english, address, p.path(english))
		if len(names) > 0 {
			fmt.Fprintf(&b, ": %s", strings.Join(names, ", "))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\n## For programs\n\n- [openapi.yaml](%[1]s/openapi.yaml): the API for integrators, OpenAPI 3.1\n- [openapi.json](%[1]s/openapi.json): the same as JSON\n", address)
	return []byte(b.String())
}
