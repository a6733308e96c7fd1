package citizen_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"quittance/ingress/citizen"
)

func TestLinks(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	id := b.link(agency, "TP-1001")
	proof := object{"tenant_id": agency, "subject_ref": "TP-1001", "link_code": strings.ToLower(w.linkCode(agency, "TP-1001"))}
	if again := b.want(b.call(http.MethodPost, "/links", proof), http.StatusOK, ""); again.text("id") != id || again.text("agency_name") != "Direction générale des impôts" {
		t.Errorf("a repeated proof answers %s", again.raw)
	}
	if me := b.call(http.MethodGet, "/me", nil); !strings.Contains(me.raw, id) {
		t.Errorf("the account is %s", me.raw)
	}
	thief := w.signedIn(2)
	thief.want(thief.call(http.MethodDelete, "/links/"+id, nil), http.StatusNotFound, citizen.CodeLinkNotFound)
	b.want(b.call(http.MethodDelete, "/links/"+id, nil), http.StatusNoContent, "")
	b.want(b.call(http.MethodDelete, "/links/"+id, nil), http.StatusNotFound, citizen.CodeLinkNotFound)
	b.want(b.call(http.MethodDelete, "/links/x", nil), http.StatusNotFound, citizen.CodeLinkNotFound)
}

// A wrong code has the same answer whether the reference exists, is another's, or is of no
// agency at all.
func TestAWrongLinkCodeTellsNothing(t *testing.T) {
	t.Parallel()
	w := serve(t)
	owner := w.signedIn(1)
	owner.link(agency, "TP-1001")
	b := w.signedIn(2)
	code := w.linkCode(agency, "TP-1002")
	var first string
	for _, proof := range []object{
		{"tenant_id": agency, "subject_ref": "TP-1001", "link_code": code},
		{"tenant_id": agency, "subject_ref": "unknown", "link_code": code},
		{"tenant_id": other, "subject_ref": "TP-1002", "link_code": code},
		{"tenant_id": "018f0000-0000-7000-8000-00000000ffff", "subject_ref": "TP-1002", "link_code": code},
		{"tenant_id": agency, "subject_ref": "TP-1001", "link_code": "nonsense"},
	} {
		a := b.want(b.call(http.MethodPost, "/links", proof), http.StatusUnprocessableEntity, citizen.CodeLinkRefused)
		delete(a.body, "request_id")
		if said := fmt.Sprint(a.body); first == "" {
			first = said
		} else if said != first {
			t.Errorf("%v answers %s, another one %s", proof, said, first)
		}
	}
	// Five are used up. The right code is refused too until tomorrow, and the owner's is not.
	b.want(b.call(http.MethodPost, "/links", object{"tenant_id": agency, "subject_ref": "TP-1002", "link_code": code}), http.StatusTooManyRequests, "generic.rate_limited")
	owner.link(agency, "TP-1002")
}

func TestFaultsOfLinks(t *testing.T) {
	t.Parallel()
	b := serve(t).signedIn(1)
	for body, fields := range map[string][]string{
		`{}`: {"link_code", "subject_ref", "tenant_id"},
		`{"tenant_id":"impots","subject_ref":"TP-1001","link_code":"x"}`:                                  {"tenant_id"},
		`{"tenant_id":"` + agency + `","subject_ref":"a\u0007b","link_code":"x"}`:                         {"subject_ref"},
		`{"tenant_id":"` + agency + `","subject_ref":"` + strings.Repeat("é", 101) + `","link_code":"x"}`: {"subject_ref"},
		`{"tenant_id":"` + agency + `","subject_ref":"TP","link_code":"` + strings.Repeat("x", 65) + `"}`: {"link_code"},
		`{"tenant_id":"` + agency + `","subject_ref":"TP","link_code":"x","code":"y"}`:                    {"code"},
	} {
		a := b.want(b.call(http.MethodPost, "/links", body), http.StatusUnprocessableEntity, "generic.validation_failed")
		if !slices.Equal(a.fields(), fields) {
			t.Errorf("%s has faults in %v, want %v", body, a.fields(), fields)
		}
	}
}
