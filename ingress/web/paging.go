package web

import (
	"strconv"
)

// fieldPage names the page of a list in an address.
const fieldPage = "page"

// Paging is one page of a list. The layout's template "paging" shows its links.
type Paging struct {
	// Page begins at 1.
	Page, Size int
	// Total is the number of items on all pages. The caller sets it.
	Total int64
	url   func(page int) string
}

// Paging returns which page of a list the address asks for. The path is that of the
// list, and query what its links carry besides, as in Visit.URL.
func (v Visit) Paging(size int, path string, query ...string) Paging {
	n, err := strconv.Atoi(v.R.URL.Query().Get(fieldPage))
	if err != nil || n < 1 {
		n = 1
	}
	return Paging{Page: n, Size: size, url: func(page int) string {
		return v.URL(path, append(query, fieldPage, strconv.Itoa(page))...)
	}}
}

// PreviousURL is the address of the page before; empty for the first page.
func (p Paging) PreviousURL() string {
	if p.Page == 1 {
		return ""
	}
	return p.url(p.Page - 1)
}

// NextURL is the address of the page after; empty for the last page.
func (p Paging) NextURL() string {
	if int64(p.Page)*int64(p.Size) >= p.Total {
		return ""
	}
	return p.url(p.Page + 1)
}
