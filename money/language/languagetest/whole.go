// Package languagetest checks the rules that the texts of all pages share.
package languagetest

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quittance/money"
	"quittance/money/language"
)

var verb = regexp.MustCompile(`%[a-z]`)

// Whole fails the test for a text that is missing in a language, and for one with other
// verbs of package fmt than the French text. If also is given, Whole calls it with the
// name and the French version of each text.
func Whole[W any](t testing.TB, table language.Table[W], also ...func(name, french string)) {
	t.Helper()
	for _, lang := range money.Languages {
		words, ok := table[lang]
		if !ok {
			t.Errorf("the table has no texts in %s", lang)
			continue
		}
		compare(t, string(lang), reflect.ValueOf(table[money.French]), reflect.ValueOf(words), also)
	}
}

func compare(t testing.TB, name string, fr, other reflect.Value, also []func(name, french string)) {
	t.Helper()
	switch fr.Kind() {
	case reflect.Pointer:
		compare(t, name, fr.Elem(), other.Elem(), also)
	case reflect.Struct:
		for i := range fr.NumField() {
			compare(t, name+" "+fr.Type().Field(i).Name, fr.Field(i), other.Field(i), also)
		}
	case reflect.Map:
		if fr.Len() == 0 || fr.Len() != other.Len() {
			t.Errorf("%s: %d texts, %d in French", name, other.Len(), fr.Len())
		}
		for _, key := range fr.MapKeys() {
			if text := other.MapIndex(key); text.IsValid() {
				compare(t, name+" "+key.String(), fr.MapIndex(key), text, also)
			} else {
				t.Errorf("%s: no text for %s", name, key)
			}
		}
	case reflect.Array:
		for i := range fr.Len() {
			compare(t, name, fr.Index(i), other.Index(i), also)
		}
	case reflect.String:
		if strings.TrimSpace(fr.String()) == "" || strings.TrimSpace(other.String()) == "" {
			t.Errorf("%s is empty", name)
		}
		if a, b := verb.FindAllString(fr.String(), -1), verb.FindAllString(other.String(), -1); !slices.Equal(a, b) {
			t.Errorf("%s takes %v, in French %v", name, b, a)
		}
		for _, check := range also {
			check(name, fr.String())
		}
	default:
		t.Errorf("%s is a %s, which this check does not know", name, fr.Kind())
	}
}
