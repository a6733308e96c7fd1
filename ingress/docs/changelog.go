package docs

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// feedPath is the address of the changelog as an Atom feed.
const feedPath = "/docs/changelog.atom"

// changeKinds are the kinds of changes in their order.
var changeKinds = []string{"Additions", "Changes", "Corrections"}

// recentEntries is how many entries the page of the changelog has at most, so that a slow connection loads it. Releases
// beyond it are on a page of their own. The newest release is always on the first one.
const recentEntries = 250

// release is what changed on a day.
type release struct {
	Date  string // 2006-01-02
	Kinds []changes
	// Earlier is true of a release that is on the page of earlier changes.
	Earlier bool
}

// Path returns the address of the release, in the English pages.
func (r release) Path() string {
	if r.Earlier {
		return "/docs/changelog-earlier#" + r.Date
	}
	return "/docs/changelog#" + r.Date
}

// changes are the changes of a kind, each a line.
type changes struct {
	Kind    string
	Entries [][]span
}

// readChangelog reads CHANGELOG.md: releases as headings of the second level, the newest first,
// kinds as headings of the third level, and an entry a line.
func readChangelog(text []byte) (all []release, err error) {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		date, isRelease := strings.CutPrefix(line, "## ")
		kind, isKind := strings.CutPrefix(line, "### ")
		entry, isEntry := strings.CutPrefix(line, "- ")
		last := len(all) - 1
		switch {
		case isRelease:
			if _, err := time.Parse(time.DateOnly, date); err != nil || last >= 0 && all[last].Date <= date {
				return nil, fmt.Errorf("reading the changelog: %q is no date, or not before the one above it", date)
			}
			all = append(all, release{Date: date})
		case isKind && last >= 0:
			if !slices.Contains(changeKinds, kind) {
				return nil, fmt.Errorf("reading the changelog: %q is no kind of changes", kind)
			}
			all[last].Kinds = append(all[last].Kinds, changes{Kind: kind})
		case isEntry && last >= 0 && len(all[last].Kinds) > 0:
			in := &all[last].Kinds[len(all[last].Kinds)-1]
			in.Entries = append(in.Entries, spans(entry, nil))
		case line != "" && last >= 0:
			return nil, fmt.Errorf("reading the changelog: %q is neither a heading nor an entry", line)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("reading the changelog: it has no release")
	}
	entries := 0
	for i := range all {
		for _, kind := range changeKinds {
			entries += all[i].Count(kind)
		}
		all[i].Earlier = i > 0 && entries > recentEntries
	}
	return all, nil
}

// Count returns the number of changes of a kind.
func (r release) Count(kind string) (n int) {
	for _, c := range r.Kinds {
		if c.Kind == kind {
			n += len(c.Entries)
		}
	}
	return n
}

// feed is the changelog in Atom (RFC 4287), an entry for each release. Ids follow from dates and
// never change.
type feed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Links   []feedLink  `xml:"link"`
	Entries []feedEntry `xml:"entry"`
}

type feedLink struct {
	Rel  string `xml:"rel,attr"`
	Href string `xml:"href,attr"`
}

type feedEntry struct {
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Link    feedLink    `xml:"link"`
	Content feedContent `xml:"content"`
}

type feedContent struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

// feedID makes the ids of the feed and of its entries, from their dates.
func feedID(date string) string {
	space := uuid.MustParse("6d5a2ad4-7a0e-4f7b-9c1b-0f6f0a3d6e51") // of this feed, made at random
	return "urn:uuid:" + uuid.NewSHA1(space, []byte(date)).String()
}

// newFeed renders the changelog as a feed.
func newFeed(all []release) ([]byte, error) {
	midnight := func(date string) string { return date + "T00:00:00Z" }
	f := feed{
		ID: feedID(""), Title: "Quittance: changelog", Updated: midnight(all[0].Date), Author: "Quittance",
		Links: []feedLink{{"self", feedPath}, {"alternate", "/docs/changelog"}},
	}
	for _, r := range all {
		f.Entries = append(f.Entries, feedEntry{
			ID: feedID(r.Date), Title: "Changes of " + r.Date, Updated: midnight(r.Date),
			Link:    feedLink{"alternate", r.Path()},
			Content: feedContent{"html", r.html()},
		})
	}
	text, err := xml.MarshalIndent(f, "", " ")
	if err != nil {
		return nil, fmt.Errorf("rendering the feed: %w", err)
	}
	return append([]byte(xml.Header), text...), nil
}

// html returns the changes of a release as HTML.
func (r release) html() string {
	var b strings.Builder
	for _, c := range r.Kinds {
		fmt.Fprintf(&b, "<h3>%s</h3><ul>", html.EscapeString(c.Kind))
		for _, entry := range c.Entries {
			b.WriteString("<li>")
			for _, s := range entry {
				if text := html.EscapeString(s.Text); s.Code {
					b.WriteString("<code>" + text + "</code>")
				} else {
					b.WriteString(text)
				}
			}
		}
		b.WriteString("</ul>")
	}
	return b.String()
}
