// Package language looks up the texts of pages by language. A surface keeps all its
// texts in one Table; languagetest.Whole holds every Table to the same rules.
package language

import "quittance/money"

// Table holds the texts of one surface in each language. W is a struct of texts, a
// pointer to one, or a map.
type Table[W any] map[money.Language]W

// In returns the texts in a language. They are French for a language that the table
// does not have.
func (t Table[W]) In(lang money.Language) W {
	if w, ok := t[lang]; ok {
		return w
	}
	return t[money.French]
}
