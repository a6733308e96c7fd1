package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"

	"quittance/checkout/page"
	"quittance/money"
)

// maxForm is the size of the largest form that is read, in bytes. It is more than any
// of our forms needs.
const maxForm = 16 << 10

// FieldLanguage names the language in forms and addresses: "fr" or "en".
const FieldLanguage = page.FieldLanguage

// ReadForm reads the form of a POST. It never takes values from the address, because
// addresses are logged. A form that cannot be read is empty, and fault is the status
// to answer: 413 or 422, otherwise 0.
func ReadForm(w http.ResponseWriter, r *http.Request) (form url.Values, fault int) {
	if r.Method != http.MethodPost {
		return url.Values{}, 0
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err := r.ParseForm()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return url.Values{}, http.StatusRequestEntityTooLarge
	case err != nil:
		return url.Values{}, http.StatusUnprocessableEntity
	}
	return r.PostForm, 0
}

// Language returns the language of the answer to a request: that of the form, else
// that of the address, else what the browser prefers. Parameters are further names
// under which an address may have it.
func Language(r *http.Request, form url.Values, parameters ...string) money.Language {
	asked := cmp.Or(form.Get(FieldLanguage), r.URL.Query().Get(FieldLanguage))
	for _, name := range parameters {
		asked = cmp.Or(asked, r.URL.Query().Get(name))
	}
	return page.Negotiate(asked, r.Header.Get("Accept-Language"))
}
