package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// term is a term of citizens, clerks and agencies, and the words that do not stand for it.
type term struct{ say, not string }

// The glossary, by language. A text that has one of the other words is a fault.
var glossary = map[string][]term{
	"fr": {
		{"avis", `bordereaux? de paiement|bordereau|facture`},
		{"référence de paiement", `numéros? de paiement|références? du paiement`},
		{"administration", `organismes?|agences?`},
		{"rattachement, rattaché", `liaisons?|liée?s? à (?:votre|son|un|le) compte|liée?s? à (?:cette|une|la|votre) référence|personnes liées`},
		{"courriel", `e-?mails?|mails?|méls?|courriers? électroniques?|adresses? électroniques?`},
		{"restitué", `rembours\pL+|sommes? (?:vous )?(?:a|ont) été rendues?|sommes? rendues?`},
		{"encaissé le", `recu le`},
		{"Montant réglé (hors frais)", `sommes? dues? payées?|montant payé`},
		{"Recommencer sur le site de l’administration", `recommencer sur le site\s*:`},
		{"y compris les majuscules", `(?:avec|aussi) (?:ses|les) majuscules`},
		{"n’a réglé aucune créance", `ne paie rien`},
		{"vous remettra", `vous (?:le |la |les )?remet`},
		{"Adressez-vous à …", `demandez(?:-l[ea])? à l[’']administration`},
	},
	"en": {
		{"This key is unknown or revoked", `opens nothing`},
		{"Pay selected", `pay what is chosen`},
		{"Don’t share it", `give it to (?:nobody|anybody)`},
		{"Amount paid", `amount due paid`},
		{"Check a receipt", `verify a receipt`},
		{"The agency has been told", `agency is (?:told|informed)`},
	},
}

// says is a text and where it is.
type says struct{ at, text string }

// All texts for citizens, clerks and agencies use one word for a thing: those in the catalogues of
// the programs, the messages, and the French guides. Two sites called the same paper avis and
// bordereau, and an SMS wrote reçu without its cedilla.
func TestGlossary(t *testing.T) {
	t.Parallel()
	for lang, terms := range glossary {
		texts := append(catalogues(t, lang), written(t, lang)...)
		const least = 200 // a catalogue that nobody finds would pass
		if len(texts) < least {
			t.Errorf("%d texts in %s, want at least %d", len(texts), lang, least)
		}
		for _, term := range terms {
			wrong := regexp.MustCompile(`(?i)(?:^|[^\pL\pN_./@-])(` + term.not + `)(?:$|[^\pL\pN_/@-])`)
			for _, s := range texts {
				if found := wrong.FindStringSubmatch(s.text); found != nil {
					t.Errorf("%s: %q stands for %q: %.200s", s.at, found[1], term.say, s.text)
				}
			}
		}
	}
}

// catalogues returns the texts of a language in the program: those of variables such as french or
// frenchDay, and of the key money.French of a table.
func catalogues(t *testing.T, lang string) (out []says) {
	t.Helper()
	name := map[string]string{"fr": "french", "en": "english"}[lang]
	for _, root := range []string{"checkout", "document", "ingress", "internal", "sinks"} {
		walk(t, filepath.Join("..", root), func(path string) {
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					if strings.HasPrefix(strings.ToLower(n.Names[0].Name), name) {
						out = append(out, literals(set, n)...)
						return false
					}
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.SelectorExpr); ok && strings.EqualFold(key.Sel.Name, name) {
						out = append(out, literals(set, n.Value)...)
						return false
					}
				}
				return true
			})
		})
	}
	return out
}

// literals returns the texts below a node.
func literals(set *token.FileSet, n ast.Node) (out []says) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value) // the parser has read it
			out = append(out, says{set.Position(lit.Pos()).String(), text})
		}
		return true
	})
	return out
}

// code is what readers do not read as words: code, addresses and tags.
var code = regexp.MustCompile("(?s)<!--.*?-->|<pre.*?</pre>|<code.*?</code>|```.*?```|`[^`]*`|\\]\\([^)]*\\)|<[^>]*>|https?://\\S+|\\{\\{.*?\\}\\}")

// written returns the lines of a language in messages and guides. English guides are for
// developers and operators, and have words of their own.
func written(t *testing.T, lang string) (out []says) {
	t.Helper()
	for _, root := range []string{"../internal/notify/templates", "../ingress", "../docs"} {
		walk(t, root, func(path string) {
			slash := filepath.ToSlash(path)
			message := strings.Contains(slash, "/templates/") && strings.Contains(slash, "."+lang+".")
			guide := lang == "fr" && (strings.Contains(slash, "/pages/fr/") || strings.HasSuffix(slash, ".fr.md") || strings.HasSuffix(slash, ".fr.yaml"))
			if !message && !guide {
				return
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.SplitSeq(code.ReplaceAllString(string(text), " "), "\n") {
				out = append(out, says{slash, strings.TrimSpace(line)})
			}
		})
	}
	return out
}

// walk calls do for each file below a folder.
func walk(t *testing.T, root string, do func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			do(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
