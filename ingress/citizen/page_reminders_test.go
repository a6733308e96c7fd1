package citizen_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"quittance/internal/citizens"
)

// A citizen chooses reminders on a page without JavaScript, among the addresses that the account
// has proven, sees the choice, and ends it there.
func TestReminders(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	const path, none, sms = "/portal/reminders", `value="none" checked`, `value="sms" checked`
	page := b.page(http.MethodGet, path, nil).want(t, 200, "Rappels avant la date limite", "Par SMS au +242", none, "Aucun rappel")
	page.without(t, sms, `value="email"`, "<script")
	page.want(t, 200, "Aucune référence n’est encore rattachée", "Vous recevrez des rappels lorsque vous aurez ajouté une référence.", "/portal/references?lang=fr")
	choose := func(by string) shown {
		form := page.form(t, path)
		form.Set("reminders", by)
		return b.page(http.MethodPost, path, form)
	}
	if done := choose("sms").want(t, 303); done.location != path+"?done=reminders&lang=fr" {
		t.Errorf("leads to %s", done.location)
	}
	b.page(http.MethodGet, path+"?done=reminders", nil).want(t, 200, "Vous recevrez des rappels", sms).without(t, none)
	for _, wrong := range []string{"", "email", "letter"} {
		choose(wrong).want(t, 422, "Choisissez l’une des réponses proposées.", sms)
	}
	if all, err := w.accounts.Remind(t.Context(), false, 10, time.Minute); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if foreign := w.signedIn(2); strings.Contains(foreign.page(http.MethodGet, path, nil).want(t, 200, none).text, sms) {
		t.Error("somebody else's choice is shown")
	}
	b.page(http.MethodGet, path+"?lang=en", nil).want(t, 200, "Reminders before the due date", "By SMS to", sms)
	if done := choose("none").want(t, 303); done.location != path+"?done=reminders-ended&lang=fr" {
		t.Errorf("leads to %s", done.location)
	}
	b.page(http.MethodGet, path+"?done=reminders-ended", nil).want(t, 200, "Vous ne recevrez plus de rappels", none)
	w.wait(2 * citizens.SessionIdle)
	choose("sms").want(t, 401, "Votre session est terminée", `value="back=reminders"`)
	b.header.Set("Sec-Fetch-Site", "cross-site")
	b.page(http.MethodPost, path, url.Values{"reminders": {"sms"}}).want(t, 403)
}
