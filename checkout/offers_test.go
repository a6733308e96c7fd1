package checkout_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/money"
)

// offerIDs lists the ids of checkout.Offers.
func offerIDs() (ids []string) {
	for _, o := range checkout.Offers {
		ids = append(ids, o.ID)
	}
	return ids
}

// allOffers matches a list of offers: the first one, and others after commas.
var allOffers = regexp.MustCompile(`\b` + checkout.OfferMomo + `(?:, ?\w+)+`)

// listed checks that every list of offers in a text is that of checkout.Offers, and that the
// text has at least so many.
func listed(t *testing.T, where, text string, least int) {
	t.Helper()
	lists := allOffers.FindAllString(text, -1)
	if len(lists) < least {
		t.Errorf("%s lists the offers %d times, want at least %d", where, len(lists), least)
	}
	for _, list := range lists {
		if ids := regexp.MustCompile(", ?").Split(list, -1); !slices.Equal(ids, offerIDs()) {
			t.Errorf("%s lists the offers %v, checkout.Offers are %v", where, ids, offerIDs())
		}
	}
}

// textsOf returns the texts of files by name.
func textsOf(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range patterns {
		names, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("no file is %s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(text)
		}
	}
	return texts
}

// Where descriptions of the API and of the columns repeat the offers, they repeat all.
func TestOffersInDescriptions(t *testing.T) {
	t.Parallel()
	for name, text := range textsOf(t, "ingress/*/openapi.yaml", "internal/postgres/migrations/*.sql", "docs/columns.fr.yaml") {
		least := map[string]int{"../ingress/ministry/openapi.yaml": 1, "../docs/columns.fr.yaml": 4}[name]
		listed(t, name, text, least)
	}
}

// The comment of each column of offers in ClickHouse lists them. A migration never changes:
// the last comment of a column counts.
func TestOffersInComments(t *testing.T) {
	t.Parallel()
	var (
		table    = regexp.MustCompile(`^(?:CREATE TABLE IF NOT EXISTS|CREATE OR REPLACE VIEW|ALTER TABLE) (\w+)`)
		column   = regexp.MustCompile(`^ +(?:COMMENT COLUMN )?offer_id .*'(.*)'`)
		comments = map[string]string{}
	)
	texts := textsOf(t, "reconciliation/migrations/*.sql", "reconciliation/views/*.sql")
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		var at string
		for line := range strings.Lines(texts[name]) {
			if m := table.FindStringSubmatch(line); m != nil {
				at = m[1]
			} else if m := column.FindStringSubmatch(line); m != nil {
				comments[at] = m[1]
			}
		}
	}
	for _, name := range []string{"journal", "receipt_rows", "expected_money", "sessions", "payments", "receipts", "chain"} {
		listed(t, name+".offer_id", comments[name], 1)
		delete(comments, name)
	}
	if len(comments) > 0 {
		t.Errorf("further columns of offers: %v", comments)
	}
}

// Pages have a name for every offer in every language.
func TestOffersHaveNames(t *testing.T) {
	t.Parallel()
	for _, id := range offerIDs() {
		for _, lang := range money.Languages {
			if page.OfferName(lang, id) == "" {
				t.Errorf("%s has no name in %s", id, lang)
			}
		}
	}
}
