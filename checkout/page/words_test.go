package page

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var verb = regexp.MustCompile(`%[a-z]`)

// Both languages say everything, and with the same verbs for fmt.
func TestBothLanguagesSayEverything(t *testing.T) {
	t.Parallel()
	fr, en := reflect.ValueOf(french), reflect.ValueOf(english)
	for i := range fr.NumField() {
		name := fr.Type().Field(i).Name
		switch f, e := fr.Field(i), en.Field(i); f.Kind() {
		case reflect.String:
			same(t, name, f.String(), e.String())
		case reflect.Map:
			if f.Len() == 0 || f.Len() != e.Len() {
				t.Errorf("%s has %d texts in French, %d in English", name, f.Len(), e.Len())
			}
			for _, key := range f.MapKeys() {
				text := e.MapIndex(key)
				if !text.IsValid() {
					t.Errorf("%s lacks %s in English", name, key)
					continue
				}
				same(t, name+" "+key.String(), f.MapIndex(key).String(), text.String())
			}
		case reflect.Array:
			for m := range f.Len() {
				same(t, name, f.Index(m).String(), e.Index(m).String())
			}
		default:
			t.Errorf("%s is a %s, which this test does not know", name, f.Kind())
		}
	}
	if len(french.Errors) != len(ErrorCodes) {
		t.Errorf("words for %d faults of forms, want %d", len(french.Errors), len(ErrorCodes))
	}
	for _, code := range ErrorCodes {
		if french.Errors[code] == "" {
			t.Errorf("no words for %s", code)
		}
	}
	for code := range maps.Keys(definite) {
		if french.Failures[code] == "" {
			t.Errorf("definite refusal %s has no words", code)
		}
	}
}

func same(t *testing.T, name, fr, en string) {
	t.Helper()
	if strings.TrimSpace(fr) == "" || strings.TrimSpace(en) == "" {
		t.Errorf("%s is empty in a language", name)
	}
	if f, e := verb.FindAllString(fr, -1), verb.FindAllString(en, -1); !slices.Equal(f, e) {
		t.Errorf("%s takes %v in French and %v in English", name, f, e)
	}
	// An ordinary space there lets the line begin with the punctuation.
	if regexp.MustCompile(` [:;?!»]|« `).MatchString(fr) {
		t.Errorf("%s breaks before its punctuation: %q", name, fr)
	}
}
