package docs

import (
	"encoding/xml"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance"
)

// The changelog is a page with every release and every entry, and a feed that readers accept.
func TestChangelog(t *testing.T) {
	t.Parallel()
	h := server(t)
	all, err := readChangelog(quittance.Changelog)
	if err != nil || len(all) < 7 {
		t.Fatalf("%d releases, %v", len(all), err)
	}
	page, earlier, inFrench := get(t, h, "/docs/changelog"), get(t, h, "/docs/changelog-earlier"), get(t, h, "/docs/fr/changelog")+get(t, h, "/docs/fr/changelog-earlier")
	entries := 0
	for _, r := range all {
		on, notOn := page, earlier
		if r.Earlier {
			on, notOn = earlier, page
		}
		heading := `<h2 id="` + r.Date + `">`
		if !strings.Contains(on, heading) || strings.Contains(notOn, heading) || strings.Count(inFrench, heading) != 1 || !strings.Contains(inFrench, `href="`+r.Path()+`"`) {
			t.Errorf("the release %s is not on one page, or not in French", r.Date)
		}
		for _, c := range r.Kinds {
			entries += len(c.Entries)
			if len(c.Entries) == 0 || r.Count(c.Kind) != len(c.Entries) {
				t.Errorf("%s: %s has %d entries", r.Date, c.Kind, len(c.Entries))
			}
		}
	}
	if all[0].Earlier || !all[len(all)-1].Earlier {
		t.Error("the newest release is an earlier one, or none is")
	}
	if shown := strings.Count(page[strings.Index(page, "<main"):], "<li>") + strings.Count(earlier[strings.Index(earlier, "<main"):], "<li>"); shown != entries || strings.Count(string(quittance.Changelog), "\n- ") != entries {
		t.Errorf("the pages have %d entries, the file %d", shown, entries)
	}

	answer := ask(h, http.MethodGet, "/docs/changelog.atom")
	var got struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		ID      string   `xml:"id"`
		Title   string   `xml:"title"`
		Updated string   `xml:"updated"`
		Author  string   `xml:"author>name"`
		Links   []struct {
			Rel  string `xml:"rel,attr"`
			Href string `xml:"href,attr"`
		} `xml:"link"`
		Entries []struct {
			ID      string `xml:"id"`
			Title   string `xml:"title"`
			Updated string `xml:"updated"`
			Link    struct {
				Href string `xml:"href,attr"`
			} `xml:"link"`
			Content struct {
				Type string `xml:"type,attr"`
				Text string `xml:",chardata"`
			} `xml:"content"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if answer.Header().Get("Content-Type") != "application/atom+xml; charset=utf-8" || got.Title == "" || got.Author == "" || len(got.Entries) != len(all) || len(got.Links) != 2 || got.Links[0].Rel != "self" {
		t.Errorf("%s, %+v", answer.Header(), got)
	}
	ids := map[string]bool{}
	for i, e := range got.Entries {
		ids[e.ID] = true
		if at, err := time.Parse(time.RFC3339, e.Updated); err != nil || at.Format(time.DateOnly) != all[i].Date || e.Title == "" || e.Content.Type != "html" {
			t.Errorf("%+v, %v", e, err)
		}
		if e.Link.Href != all[i].Path() || strings.Count(e.Content.Text, "<li>") != all[i].Count("Additions")+all[i].Count("Changes")+all[i].Count("Corrections") {
			t.Errorf("%+v", e)
		}
		if !regexp.MustCompile(`^urn:uuid:[0-9a-f-]{36}$`).MatchString(e.ID) {
			t.Errorf("%s is no id", e.ID)
		}
	}
	// A reader takes an entry for new when its id is new, so ids never change.
	if oldest := got.Entries[len(got.Entries)-1]; len(ids) != len(all) || ids[got.ID] || got.ID != "urn:uuid:b51ccb8a-9ffe-5c76-b2fb-a97b42284282" || oldest.ID != "urn:uuid:775db2af-df8b-5a56-9303-a4510760e66f" {
		t.Errorf("%d ids; of the feed %s, of %s %s", len(ids), got.ID, oldest.Title, oldest.ID)
	}
}

// A changelog of another form is an error.
func TestChangelogRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"# Changelog\n":                  "no release",
		"## today\n":                     "is no date",
		"## 2026-11-21\n## 2026-11-22\n": "not before the one above it",
		"## 2026-11-21\n### News\n":      "no kind of changes",
		"## 2026-11-21\n### Additions\n- one\n  and a second line\n": "neither a heading nor an entry",
		"## 2026-11-21\n- one\n": "neither a heading nor an entry",
	} {
		if _, err := readChangelog([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Links of a guide lead to files in the repository and to pages where they are served.
func TestGuideLinks(t *testing.T) {
	t.Parallel()
	got, err := served([]byte("[a](views.md#x) [b](analysts.fr.md) [c](../ingress/docs/pages/en/errors.html) [d](../ingress/cashin/openapi.yaml) [e](https://www.example)"))
	if want := "[a](/docs/views#x) [b](/docs/fr/analysts) [c](/docs/errors/) [d](/cashin/openapi.yaml) [e](https://www.example)"; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := served([]byte("[a](personal-data.md)")); err == nil || !strings.Contains(err.Error(), "which is not served") {
		t.Errorf("%v", err)
	}
}
