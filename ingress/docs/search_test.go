package docs

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// The index of the search has each section of each page under the address of its heading, and the list for
// programs has each page.
func TestSearch(t *testing.T) {
	t.Parallel()
	h := server(t)
	for lang, path := range map[string]string{english: "/docs/search.json", french: "/docs/fr/search.json"} {
		var all []found
		if err := json.Unmarshal([]byte(get(t, h, path)), &all); err != nil {
			t.Fatal(err)
		}
		of := map[string]int{}
		for _, e := range all {
			at, anchor, has := strings.Cut(e.Href, "#")
			of[at]++
			if has && (e.Section == "" || !strings.Contains(get(t, h, at), ` id="`+anchor+`"`)) {
				t.Errorf("%s: %+v", path, e)
			}
		}
		for _, p := range pages {
			if of[p.path(lang)] == 0 {
				t.Errorf("%s lacks %s", path, p.path(lang))
			}
		}
		if of[errorHref("checkout.order_open")]+of[frenchHref("checkout.order_open")] != 1 {
			t.Errorf("%s lacks the page of an error", path)
		}
	}
	list := get(t, h, "/llms.txt")
	for _, p := range pages {
		if !strings.Contains(list, "- ["+p.english+"]("+Placeholder+p.path(english)+")") {
			t.Errorf("/llms.txt lacks %s", p.name)
		}
	}
	if !strings.HasPrefix(list, "# Quittance API\n\n> Create a checkout session") {
		t.Errorf("/llms.txt begins with %.80q", list)
	}
	script := ask(h, http.MethodGet, scriptPath)
	if script.Code != http.StatusOK || script.Header().Get("Content-Type") != "text/javascript; charset=utf-8" || strings.Contains(script.Body.String(), "://") {
		t.Errorf("the script: %d %v", script.Code, script.Header())
	}
}
