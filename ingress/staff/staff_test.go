package staff_test

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	device "quittance/dev/staff"
	"quittance/ingress/staff"
	"quittance/ingress/web"
	"quittance/internal/identity"
	"quittance/internal/secret"
	"quittance/test/backoffice"
	"quittance/test/office"
	"quittance/test/registries"
)

// Somebody signs in with a passkey, works and signs out. A copy of the cookie opens nothing afterwards; a session of
// yesterday leads to the sign-in with a word, and a form that meets it says that nothing was saved.
func TestSignIn(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	b := w.NewBrowser()
	if a := b.Get("/ops/payments?mode=test"); a.Code != http.StatusSeeOther || a.Header().Get("Location") != "/sign-in?lang=fr&next=%2Fops%2Fpayments%3Fmode%3Dtest" {
		t.Errorf("without a session: %d to %s", a.Code, a.Header().Get("Location"))
	}
	page := b.Get("/sign-in?next=" + url.QueryEscape("/ops/payments?mode=test"))
	backoffice.Want(t, page, http.StatusOK, `data-next="/ops/payments?mode=test"`, `data-host="staff.example"`, "<noscript>", "Autorisez JavaScript")
	if cookie := page.Header().Get("Set-Cookie"); cookie != "" {
		t.Errorf("the page sets %s", cookie)
	}
	if policy := page.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "require-trusted-types-for 'script'; trusted-types region") || !strings.Contains(policy, "script-src 'self'; connect-src 'self'") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the policy is %s", policy)
	}
	if cache := page.Header().Get("Cache-Control"); cache != "no-store" {
		t.Errorf("Cache-Control is %s", cache)
	}
	for _, next := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "javascript:alert(1)", "", "/sign-out"} {
		backoffice.Want(t, b.Get("/sign-in?next="+url.QueryEscape(next)), http.StatusOK, `data-next="/work?lang=fr"`)
	}

	b = w.Enter(t, "Olive")
	cookie := b.Cookies()["__Host-quittance_staff"]
	if len(b.Cookies()) != 1 || len(cookie) < 43 {
		t.Errorf("the cookies after the sign-in: %d, %d characters", len(b.Cookies()), len(cookie))
	}
	backoffice.Want(t, b.Get("/work"), http.StatusOK, "Connecté\u00a0: Olive", `action="/sign-out"`, "Paiements")
	backoffice.Want(t, b.Get("/sessions"), http.StatusOK, "Celle-ci")

	// A copy of the cookie, after the sign-out.
	stolen := w.NewBrowser()
	stolen.Cookies()["__Host-quittance_staff"] = cookie
	backoffice.Want(t, stolen.Get("/work"), http.StatusOK)
	if a := b.Post("/sign-out", nil); a.Code != http.StatusSeeOther || a.Header().Get("Location") != "/sign-in?lang=fr" {
		t.Errorf("the sign-out: %d to %s", a.Code, a.Header().Get("Location"))
	}
	if a := stolen.Get("/work"); a.Code != http.StatusSeeOther || !strings.Contains(a.Header().Get("Location"), "ended=1") {
		t.Errorf("a stolen cookie after the sign-out: %d", a.Code)
	}

	// Yesterday's session.
	b = w.Enter(t, "Olive")
	w.MoveTo(w.Now().Add(24 * time.Hour))
	form := w.NewBrowser()
	form.Cookies()["__Host-quittance_staff"] = b.Cookies()["__Host-quittance_staff"]
	backoffice.Want(t, form.Post("/sessions/end", nil), http.StatusUnauthorized, "rien n’a été enregistré")
	a := b.Get("/work")
	if a.Code != http.StatusSeeOther {
		t.Fatalf("yesterday's session: %d", a.Code)
	}
	backoffice.Want(t, b.Get(a.Header().Get("Location")), http.StatusOK, "Votre session a pris fin")
}

// A session that somebody plants in a browser before the sign-in is none afterwards: the sign-in makes a new one. A
// second browser's challenge does not sign this one in, and the passkey of a person who is suspended does not either.
func TestSignInRefused(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive", "Opale")
	planted := w.NewBrowser()
	planted.Cookies()["__Host-quittance_staff"] = strings.Repeat("A", 43)
	if a := planted.Prove(t, "Olive", "/sign-in/begin", nil, "/sign-in/finish"); a.Code != http.StatusOK || planted.Cookies()["__Host-quittance_staff"] == strings.Repeat("A", 43) {
		t.Errorf("a planted session: %d, %v", a.Code, planted.Cookies())
	}

	one, two := w.NewBrowser(), w.NewBrowser()
	options := one.Post("/sign-in/begin", nil)
	answer, err := w.Devices["Olive"][0].Answer(options.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	two.Post("/sign-in/begin", nil)
	backoffice.Want(t, two.Send("/sign-in/finish", answer), http.StatusUnauthorized, "Cette clé d’accès n’est pas reconnue")
	backoffice.Want(t, one.Send("/sign-in/finish", []byte("{}")), http.StatusUnauthorized, "Cette clé d’accès n’est pas reconnue")
	backoffice.Want(t, one.Post("/sign-in/finish", url.Values{"id": {"x"}}), http.StatusUnauthorized)

	w.Write(t, `UPDATE staff SET suspended_at = created_at WHERE id = $1`, w.IDs["Opale"])
	b := w.NewBrowser()
	backoffice.Want(t, b.Prove(t, "Opale", "/sign-in/begin", nil, "/sign-in/finish"), http.StatusUnauthorized, "est suspendu")

	// A post of another site is refused before anything else.
	foreign := w.NewBrowser()
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	backoffice.Want(t, foreign.Post("/sign-in/begin", nil), http.StatusForbidden, "autre site")
	if got := sample(t, w.Metrics, "quittance_staff_sign_ins_total", "refused"); got < 3 {
		t.Errorf("%g refused sign-ins are counted", got)
	}
}

// sample returns the value of a counter with a label's value.
func sample(t *testing.T, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// A link in a message comes from another site, whose requests bring no Strict cookie. The page loads itself again.
func TestLinkOfAnotherSite(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	b := w.NewBrowser()
	b.Header.Set("Sec-Fetch-Site", "cross-site")
	a := b.Get("/ops/cases/" + backoffice.LateCase + "?lang=fr")
	backoffice.Want(t, a, http.StatusOK, `href="/ops/cases/case_late?lang=fr"`)
	if a.Header().Get("Refresh") != "0; url=/ops/cases/case_late?lang=fr" {
		t.Errorf("Refresh is %q", a.Header().Get("Refresh"))
	}
}

// Requests without a session are limited by network; a person who is signed in is not counted among them.
func TestFloodOfSignIns(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	w.Add(t, "", []identity.Role{identity.RoleOperator}, "Olive")
	b := w.Enter(t, "Olive")
	w.Limit(t, web.Multiples(0.1))
	stranger := w.NewBrowser()
	limited := 0
	for range 20 {
		if a := stranger.Post("/sign-in/begin", nil); a.Code == http.StatusTooManyRequests {
			limited++
			if a.Header().Get("Retry-After") == "" {
				t.Error("a limited answer does not say when to come again")
			}
		}
	}
	if limited < 15 {
		t.Errorf("%d of 20 sign-ins of one network are refused", limited)
	}
	backoffice.Want(t, b.Get("/work"), http.StatusOK)
}

// Every refusal that the nouns of these pages can give has words in both languages.
func TestRefusalsHaveWords(t *testing.T) {
	t.Parallel()
	codes := map[string]bool{}
	for file, pattern := range map[string]string{
		"../../internal/cases/propose.go":           `Refuse\("([a-z_.]+)"`,
		"../../internal/cases/list.go":              `Refuse\("([a-z_.]+)"`,
		"../../internal/deliveries/retry.go":        `Refuse\((Code\w+)`,
		"../../internal/deliveries/destination.go":  `Refuse\((Code\w+)`,
		"../../internal/identity/proof.go":          `Refuse\("([a-z_.]+)"`,
		"../../internal/identity/acting.go":         `Refuse\("([a-z_.]+)"`,
		"../../internal/identity/staffsignin.go":    `Refuse\("([a-z_.]+)"`,
		"../../internal/identity/invitations.go":    `Refuse\("([a-z_.]+)"`,
		"../../internal/identity/staffchanges.go":   `Refuse\("([a-z_.]+)"`,
		"../../internal/identity/staffroles.go":     `Refuse\("([a-z_.]+)"`,
		"../../internal/identity/suspension.go":     `Refuse\("([a-z_.]+)"`,
		"../../internal/identity/issuersignin.go":   `Refuse\("([a-z_.]+)"`,
		"../../internal/openid/openid.go":           `Code\w+ += "([a-z_.]+)"`,
		"../../internal/identity/staffpasskey.go":   `Refuse\("([a-z_.]+)"`,
		"../../internal/identity/peoplerequests.go": `code\w+ += "([a-z_.]+)"`,
		"../../internal/jobs/jobs.go":               `Code\w+ += "([a-z_.]+)"`,
		"../../internal/keyset/keyset.go":           `Refuse\("([a-z_.]+)"`,
		"../../internal/decisions/sign.go":          `Refuse\("([a-z_.]+)"`,
		"../../internal/decisions/decisions.go":     `Refuse\("([a-z_.]+)"`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s refuses nothing", file)
		}
		for _, one := range found {
			codes[one[1]] = true
		}
	}
	constants, err := os.ReadFile("../../internal/deliveries/list.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range regexp.MustCompile(`(Code\w+) += "([a-z_.]+)"`).FindAllStringSubmatch(string(constants), -1) {
		if codes[c[1]] {
			delete(codes, c[1])
			codes[c[2]] = true
		}
	}
	for code := range codes {
		// Refunds are opened by a command.
		if strings.HasPrefix(code, "case.due_") || code == "case.session_unknown" || code == "case.not_paid" || code == "case.refund_requested" {
			continue
		}
		if !staff.Says(code) {
			t.Errorf("no words for %s", code)
		}
	}
}

// An invited person uses the link, makes two passkeys on two devices and reads eight digits. The link works once, its
// secret is in no address, and another browser that has the link sees nothing.
func TestJoin(t *testing.T) {
	t.Parallel()
	w := backoffice.New(t)
	invited, err := identity.InviteStaff(t.Context(), w.Pool, w.Keys, identity.By{Actor: registries.Actor}, identity.InvitationRequest{Person: identity.StaffRequest{Name: "Nadège", Roles: []identity.Role{identity.RoleSupport}}}, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	b := w.NewBrowser()
	backoffice.Want(t, b.Get("/join"), http.StatusOK, `data-hash="link"`, "<noscript>", "Autorisez JavaScript")
	backoffice.Want(t, b.Post("/join/accept", url.Values{"link": {"inv_nothing"}}), http.StatusConflict, "Ce lien n’est plus valable")
	backoffice.Want(t, b.Post("/join/passkey/begin", nil), http.StatusConflict, "Ce lien n’est plus valable")
	link := url.Values{"link": {invited.Secret.Reveal()}}
	if a := b.Post("/join/accept", link); a.Code != http.StatusSeeOther || a.Header().Get("Location") != "/join?lang=fr" {
		t.Fatalf("the link: %d to %s", a.Code, a.Header().Get("Location"))
	}
	thief := w.NewBrowser()
	backoffice.Want(t, thief.Post("/join/accept", link), http.StatusConflict, "Ce lien n’est plus valable")
	backoffice.Want(t, b.Get("/join"), http.StatusOK, "Nadège", "assistance", "Clé d’accès 1 sur 2")
	for n := range 2 {
		options := b.Post("/join/passkey/begin", nil)
		backoffice.Want(t, options, http.StatusOK, "challenge")
		made, err := device.NewDevice(uuid.MustParse(invited.StaffID), office.URL)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := made.Register(options.Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		backoffice.Want(t, b.Send("/join/passkey", answer), http.StatusOK, `"next":"/join?lang=fr"`)
		if n == 0 {
			backoffice.Want(t, b.Send("/join/passkey", answer), http.StatusConflict, "La clé d’accès n’est pas créée") // its challenge is used up
		}
	}
	i, err := identity.InvitationOf(t.Context(), w.Pool, w.Keys, secret.NewText(b.Cookies()["__Host-quittance_staff_joining"]), w.Now())
	if err != nil || len(i.Digits()) != 8 {
		t.Fatalf("the digits are %q, %v", i.Digits(), err)
	}
	backoffice.Want(t, b.Get("/join"), http.StatusOK, i.Digits()[:4]+" "+i.Digits()[4:], "de vive voix")
}
