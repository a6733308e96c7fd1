package citizen_test

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/ingress/citizen"
	"quittance/test/await"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

const (
	session = "__Host-quittance_citizen"
	asked   = "__Host-quittance_browser"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.browse()
	b.want(b.call(http.MethodGet, "/me", nil), http.StatusUnauthorized, citizen.CodeSignedOut)
	typed, to := numbered(t, 1)
	if a := b.want(b.call(http.MethodPost, "/sign-in", object{"phone": typed, "locale": "en"}), http.StatusAccepted, ""); a.raw != "" {
		t.Errorf("a sign-in answers %s", a.raw)
	}
	code := w.code(to)

	stranger := w.browse()
	stranger.want(stranger.call(http.MethodPost, "/sign-in/verify", object{"phone": typed, "code": code}), http.StatusUnauthorized, citizen.CodeInvalid)
	wrong := "000000"
	if wrong == code {
		wrong = "000001"
	}
	b.want(b.call(http.MethodPost, "/sign-in/verify", object{"phone": typed, "code": wrong}), http.StatusUnauthorized, citizen.CodeInvalid)
	b.want(b.call(http.MethodPost, "/sign-in/verify", object{"phone": typed, "code": code}), http.StatusNoContent, "")
	if _, ok := b.cookies[asked]; ok {
		t.Error("the browser's secret is kept after the sign-in")
	}
	w.mu.Lock()
	if !slices.Equal(w.reached, []string{to}) {
		t.Errorf("%d addresses count as reached; want the one whose code was entered", len(w.reached))
	}
	w.mu.Unlock()
	me := b.want(b.call(http.MethodGet, "/me", nil), http.StatusOK, "")
	if me.text("locale") != "en" || strings.Contains(me.raw, "600 00 01") || !strings.Contains(me.raw, "••\u00a001") {
		t.Errorf("the account is %s", me.raw)
	}

	// The code is used up, and the session opens nothing after the sign-out.
	thief := w.browse()
	thief.cookies = maps.Clone(b.cookies)
	thief.want(thief.call(http.MethodGet, "/me", nil), http.StatusOK, "")
	b.want(b.call(http.MethodPost, "/sign-out", nil), http.StatusNoContent, "")
	if b.cookies[session] != "" {
		t.Error("the cookie stays after the sign-out")
	}
	b.want(b.call(http.MethodPost, "/sign-out", nil), http.StatusNoContent, "")
	thief.want(thief.call(http.MethodGet, "/me", nil), http.StatusUnauthorized, citizen.CodeSignedOut)
	b.want(b.call(http.MethodPost, "/sign-in/verify", object{"phone": typed, "code": code}), http.StatusUnauthorized, citizen.CodeInvalid)
}

func TestANewSignInEndsTheOldSession(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	thief := w.browse()
	thief.cookies = maps.Clone(b.cookies)
	b.signIn(2)
	if b.cookies[session] == thief.cookies[session] {
		t.Error("the new session has the old cookie")
	}
	thief.want(thief.call(http.MethodGet, "/me", nil), http.StatusUnauthorized, citizen.CodeSignedOut)
	b.want(b.call(http.MethodGet, "/me", nil), http.StatusOK, "")
}

func TestASessionEnds(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	w.wait(29 * time.Minute)
	b.want(b.call(http.MethodGet, "/me", nil), http.StatusOK, "")
	w.wait(29 * time.Minute)
	b.want(b.call(http.MethodGet, "/me", nil), http.StatusOK, "")
	w.wait(31 * time.Minute)
	b.want(b.call(http.MethodGet, "/me", nil), http.StatusUnauthorized, citizen.CodeSignedOut)
	if b.cookies[session] != "" {
		t.Error("the cookie of an ended session stays")
	}
}

// Two cookies of a name mean that somebody else has set one of them.
func TestTwoCookiesAreNone(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	b.header.Set("Cookie", session+"=another")
	b.want(b.call(http.MethodGet, "/me", nil), http.StatusUnauthorized, citizen.CodeSignedOut)
}

func TestFaultsOfSignIn(t *testing.T) {
	t.Parallel()
	b := serve(t).browse()
	for body, fields := range map[string][]string{
		`{}`: {"phone"},
		`{"phone":"06 600 00 01","email":"usager@example.org"}`: {"email"},
		`{"phone":"+33 6 12 34 56 78"}`:                         {"phone"},
		`{"phone":7}`:                                           {"phone"},
		`{"email":"nobody"}`:                                    {"email"},
		`{"phone":"06 600 00 01","locale":"de"}`:                {"locale"},
		`{"phone":"06 600 00 01","telephone":"x"}`:              {"telephone"},
	} {
		a := b.want(b.call(http.MethodPost, "/sign-in", body), http.StatusUnprocessableEntity, "generic.validation_failed")
		if !slices.Equal(a.fields(), fields) {
			t.Errorf("%s has faults in %v, want %v", body, a.fields(), fields)
		}
		if strings.Contains(a.raw, "12 34") || strings.Contains(a.raw, "usager") {
			t.Errorf("the answer repeats the address: %s", a.raw)
		}
	}
	a := b.want(b.call(http.MethodPost, "/sign-in/verify", object{"phone": "06 600 00 01"}), http.StatusUnprocessableEntity, "generic.validation_failed")
	if !slices.Equal(a.fields(), []string{"code"}) {
		t.Errorf("the faults are in %v", a.fields())
	}
	b.want(b.call(http.MethodPost, "/sign-in", `{`), http.StatusBadRequest, "generic.malformed_json")
	b.want(b.call(http.MethodGet, "/nothing", nil), http.StatusNotFound, "generic.not_found")
	if a := b.want(b.call(http.MethodGet, "/links/7", nil), http.StatusMethodNotAllowed, "generic.method_not_allowed"); a.header.Get("Allow") != http.MethodDelete {
		t.Errorf("Allow is %q", a.header.Get("Allow"))
	}
	b.header.Set("Content-Type", "text/plain")
	b.want(b.call(http.MethodPost, "/sign-in", `{}`), http.StatusUnsupportedMediaType, "generic.unsupported_media_type")
}

// A code and the session that it opens were lost when the session that the browser had before
// could not be ended.
func TestTheCodeStaysValidWhenTheOldSessionDoesNotEnd(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	thief := w.browse()
	thief.cookies = maps.Clone(b.cookies)
	typed, to := numbered(t, 2)
	b.want(b.call(http.MethodPost, "/sign-in", object{"phone": typed}), http.StatusAccepted, "")
	code := w.code(to)
	if _, err := w.pool.Exec(t.Context(), `CREATE FUNCTION stays() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''stays''; END';
		CREATE TRIGGER stays BEFORE DELETE ON citizen_sessions FOR EACH ROW EXECUTE FUNCTION stays()`); err != nil {
		t.Fatal(err)
	}
	b.want(b.call(http.MethodPost, "/sign-in/verify", object{"phone": typed, "code": code}), http.StatusServiceUnavailable, "generic.unavailable")
	if _, err := w.pool.Exec(t.Context(), `DROP TRIGGER stays ON citizen_sessions`); err != nil {
		t.Fatal(err)
	}
	b.want(b.call(http.MethodPost, "/sign-in/verify", object{"phone": typed, "code": code}), http.StatusNoContent, "")
	b.want(b.call(http.MethodGet, "/me", nil), http.StatusOK, "")
	thief.want(thief.call(http.MethodGet, "/me", nil), http.StatusUnauthorized, citizen.CodeSignedOut)
}

// A browser that has signed in before gets a code when strangers have used up those of its
// number. It says so in a cookie, which stays after the sign-out and signs nobody in.
func TestAKnownBrowserGetsItsCode(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	b.want(b.call(http.MethodPost, "/sign-out", nil), http.StatusNoContent, "")
	known := b.cookies["__Host-quittance_known"]
	if known == "" || len(b.cookies) != 1 {
		t.Fatalf("the browser has %d cookies after the sign-out", len(b.cookies))
	}
	b.want(b.call(http.MethodGet, "/me", nil), http.StatusUnauthorized, citizen.CodeSignedOut)
	typed, to := numbered(t, 1)
	codes := 1
	ask := func(b *browser) (sent bool) {
		b.want(b.call(http.MethodPost, "/sign-in", object{"phone": typed}), http.StatusAccepted, "")
		if err := w.pool.QueryRow(t.Context(), `SELECT sent FROM sign_in_requests ORDER BY id DESC LIMIT 1`).Scan(&sent); err != nil {
			t.Fatal(err)
		}
		if sent {
			codes++
		}
		return sent
	}
	for ask(w.browse()) {
		w.wait(5 * time.Minute)
	}
	if !ask(b) {
		t.Fatal("strangers have used up the codes of the owner's browser")
	}
	await.Until(t, "a code is sent", func() bool { return len(w.codes(to)) >= codes })
	b.want(b.call(http.MethodPost, "/sign-in/verify", object{"phone": typed, "code": w.code(to)}), http.StatusNoContent, "")
	b.want(b.call(http.MethodGet, "/me", nil), http.StatusOK, "")
}
