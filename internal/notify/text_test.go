package notify_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quittance/internal/notify"
	"quittance/internal/provider"
)

// Every SMS text is GSM-7 and takes the one segment that its kind promises, in both languages,
// with the host's name as long as those of agencies are.
func TestTexts(t *testing.T) {
	t.Parallel()
	texts, err := notify.NewTemplates("https://paiement.finances.gouv.cg/", "https://agents.finances.gouv.cg/")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range notify.Kinds() {
		for _, channel := range kind.Channels {
			seen := map[string]string{}
			for _, locale := range notify.Locales {
				text, err := texts.Render(kind.Template(), channel, locale, true, kind.Samples)
				if err != nil {
					t.Fatal(err)
				}
				if other, same := seen[text.Body]; same {
					t.Errorf("%s by %s is the same in %s and %s", kind.Name, channel, other, locale)
				}
				seen[text.Body] = locale
				for name, value := range kind.Samples {
					if channel == provider.ChannelSMS && slices.Contains(kind.InEmail, name) {
						continue
					}
					if !strings.Contains(text.Body, value) {
						t.Errorf("%s by %s in %s does not say the %s", kind.Name, channel, locale, name)
					}
				}
				switch channel {
				case provider.ChannelSMS:
					n, ok := notify.Septets(text.Body)
					if !ok || text.Subject != "" || kind.OneSegment && (text.Segments != 1 || n > 160) {
						t.Errorf("%s in %s: %d septets, %v, %d segments: %q", kind.Name, locale, n, ok, text.Segments, text.Body)
					}
				case provider.ChannelEmail:
					if text.Subject == "" || strings.Contains(text.Subject, "\n") || text.Segments != 0 {
						t.Errorf("%s in %s: the subject is %q", kind.Name, locale, text.Subject)
					}
				}
			}
		}
	}
	if other, err := texts.Render(notify.SignInCode.Template(), provider.ChannelSMS, "ln", true, notify.SignInCode.Samples); err != nil || !strings.Contains(other.Body, "est votre code") {
		t.Errorf("a language without texts: %v, %v", other, err)
	}
}

// What a text must not be is refused before anybody gets it.
func TestTextsThatAreRefused(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"pay.example": "must be one such as",
		"":            "must be one such as",
		"https://" + strings.Repeat("long.", 12) + "example": "too long",
	} {
		if _, err := notify.NewTemplates(address, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", address, err, want)
		}
	}
	texts, err := notify.NewTemplates("https://pay.example", "")
	if err != nil {
		t.Fatal(err)
	}
	for variable, want := range map[string]string{
		"see https://evil.example":           "link",
		"www.evil.example":                   "link",
		"https://pay.example.evil.example/x": "link",
		"https://pay.example@evil.example/":  "link",
	} {
		_, err := texts.Render(notify.SignInCode.Template(), provider.ChannelEmail, "fr", true, map[string]string{"code": variable})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "evil") {
			t.Errorf("%q: %v", variable, err)
		}
	}
	if _, err := texts.Render(notify.SignInCode.Template(), provider.ChannelEmail, "fr", true, nil); err == nil || !strings.Contains(err.Error(), "variable") {
		t.Errorf("without a variable: %v", err)
	}
	if _, err := texts.Render("sign_in_code.99", provider.ChannelSMS, "fr", true, nil); err == nil {
		t.Error("a version that does not exist has a text")
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Reçu : 5\u202f000\u00a0FCFA":           "Recu : 5 000 FCFA",
		"« forêt d’œuvre »":                     `"foret d'oeuvre"`,
		"à é è ù ò ì Ç É ñ ü € {[~]}":           "à é è ù ò ì Ç É ñ ü € {[~]}",
		"â ê î ô û ë ï À Ê":                     "a e i o u e i A E",
		"e\u0301 decomposed, e\u0302 too":       "é decomposed, e too",
		"\u202eright to left\u200f, zero\u200b": "right to left, zero",
		"العربية 😀":                             "??????? ?",
		"tab\tand\u0000null":                    "tab andnull",
		"Ngo–Mbé…":                              "Ngo-Mbé...",
	} {
		if got := notify.Fold(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "text")
		folded := notify.Fold(in)
		if _, ok := notify.Septets(folded); !ok {
			t.Fatalf("%q becomes %q, which is not GSM-7", in, folded)
		}
		if again := notify.Fold(folded); again != folded {
			t.Fatalf("%q becomes %q, then %q", in, folded, again)
		}
	})
	for septets, want := range map[int]int{1: 1, 160: 1, 161: 2, 306: 2, 307: 3} {
		if got := notify.Segments(septets); got != want {
			t.Errorf("%d septets are %d segments, want %d", septets, got, want)
		}
	}
}
