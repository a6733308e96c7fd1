package problem_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"quittance/checkout"
	"quittance/ingress/citizen"
	"quittance/ingress/counter"
	"quittance/ingress/ministry"
	"quittance/ingress/problem"
)

// Each API's openapi.yaml lists exactly the codes that the catalogue has for it.
func TestCatalogueIsDescribed(t *testing.T) {
	t.Parallel()
	type schema struct {
		Enum       []string          `yaml:"enum"`
		Properties map[string]schema `yaml:"properties"`
	}
	for api, text := range map[problem.API][]byte{problem.Ministry: ministry.OpenAPI(), problem.Counter: counter.OpenAPI(), problem.Citizen: citizen.OpenAPI()} {
		var file struct {
			Components struct {
				Schemas struct {
					Problem     schema `yaml:"Problem"`
					ProblemCode schema `yaml:"ProblemCode"`
				}
			}
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		described := file.Components.Schemas.ProblemCode.Enum
		if len(described) == 0 {
			described = file.Components.Schemas.Problem.Properties["code"].Enum
		}
		var codes []string
		for _, e := range problem.Catalogue(api) {
			codes = append(codes, e.Code)
		}
		slices.Sort(described)
		slices.Sort(codes)
		if !slices.Equal(codes, described) {
			t.Errorf("the catalogue has %v, openapi.yaml of API %s has %v", codes, api, described)
		}
	}
}

// Every entry is complete, has its own code, and makes its problem.
func TestEntriesAreWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range problem.Catalogue(problem.Ministry, problem.Counter, problem.Citizen) {
		if seen[e.Code] || e.Title == "" || e.Detail == "" || e.Meaning == "" || len(e.Causes) == 0 || len(e.Mend) == 0 || e.Status < 400 {
			t.Errorf("the entry of %s is incomplete or repeated", e.Code)
		}
		seen[e.Code] = true
		p := problem.New(e.Code)
		if p.Code != e.Code || p.Status != e.Status || p.Title != e.Title || p.Detail != e.Detail || (p.RetryAfter > 0) != (e.Status == 429 || e.Status == 503) {
			t.Errorf("New(%s) is %+v", e.Code, p)
		}
	}
	if p := problem.New("generic.unheard_of"); p.Code != "generic.unavailable" || p.Status != 503 {
		t.Errorf("an unknown code is answered as %+v", p)
	}
}

// A code of the processors that a caller gets is in the catalogue.
func TestCodesOfTheProcessorsAreInTheCatalogue(t *testing.T) {
	t.Parallel()
	for _, code := range []checkout.Code{
		checkout.CodeValidationFailed, checkout.CodeRateLimited, checkout.CodeKeyReused, checkout.CodeOriginsRequired, checkout.CodeNoChannel,
		checkout.CodeSessionNotFound, checkout.CodeSessionEnded, checkout.CodeOrderOpen, checkout.CodeOrderPaid, checkout.CodeDueInPayment, checkout.CodeNotCompleted,
		checkout.CodeTokenNotFound, checkout.CodeTokenExpired, checkout.CodeTokenConsumed, checkout.CodeReserved, checkout.CodeNotTaken,
		checkout.CodeTooMany, checkout.CodeSecondPerson, checkout.CodeReversalLate, checkout.CodeInFlight, checkout.CodePreviousUndecided,
		checkout.CodeOfferUnknown, checkout.CodeTotalChanged, checkout.CodePaymentLimit, checkout.CodeDayLimit,
	} {
		if p := problem.New(code); p.Code != string(code) {
			t.Errorf("%s is answered as %s", code, p.Code)
		}
	}
}

// A code that a handler writes out is in the catalogue.
func TestCodesInUseAreInTheCatalogue(t *testing.T) {
	t.Parallel()
	used := 0
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "../oversight/actions.go" { // names of audit actions
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`"((?:generic|idempotency|counter|citizen)\.[a-z_]+)"`).FindAllSubmatch(text, -1) {
			used++
			if problem.New(string(m[1])).Code != string(m[1]) {
				t.Errorf("%s: the catalogue has no code %s", path, m[1])
			}
		}
		return err
	})
	if err != nil || used == 0 {
		t.Errorf("%d codes found: %v", used, err)
	}
}

// Each code of the integrators' API has French texts, with a cause for each cause and a mend
// for each mend. No French text is of an unknown code.
func TestFrenchTexts(t *testing.T) {
	t.Parallel()
	translated := 0
	for _, e := range problem.Catalogue(problem.Ministry, problem.Counter, problem.Citizen) {
		f, ok := e.InFrench()
		if !ok {
			if slices.Contains(e.In, problem.Ministry) {
				t.Errorf("%s has no French texts", e.Code)
			}
			continue
		}
		translated++
		if f.Title == "" || f.Meaning == "" || f.Meaning == e.Meaning || len(f.Causes) != len(e.Causes) || len(f.Mend) != len(e.Mend) || f.Detail != e.Detail || f.Status != e.Status {
			t.Errorf("the French texts of %s do not match the English ones", e.Code)
		}
		for _, code := range regexp.MustCompile("`[^`]+`").FindAllString(strings.Join(append(f.Causes, f.Meaning), " "), -1) {
			if !strings.Contains(strings.Join(append(append([]string{}, e.Causes...), e.Meaning), " "), code) && code != "`order_id`" {
				t.Errorf("the French texts of %s name %s, the English ones do not", e.Code, code)
			}
		}
	}
	text, err := os.ReadFile("catalogue.fr.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if codes := regexp.MustCompile(`(?m)^[a-z_.]+:$`).FindAll(text, -1); len(codes) != translated {
		t.Errorf("catalogue.fr.yaml has %d codes, %d of them are in the catalogue", len(codes), translated)
	}
}
