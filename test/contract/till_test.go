package contract_test

import (
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"quittance/test/httpclient"

	"quittance/dev/stack/program"
	"quittance/test/harness"
)

// deskBrowser is a clerk's browser at a counter, in English and without scripts.
type deskBrowser struct {
	t *testing.T
	u *harness.Up
}

func newDeskBrowser(t *testing.T, u *harness.Up) deskBrowser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return deskBrowser{t, &harness.Up{Port: u.Port, Client: &http.Client{Transport: httpclient.Transport, Jar: jar}}}
}

// open opens a page below /counter, which must say all texts, and returns its first form.
func (b deskBrowser) open(path string, says ...string) harness.PageForm {
	b.t.Helper()
	return b.shown(b.u.Call(b.t, http.MethodGet, "http://"+program.Local(b.u.Port)+"/counter"+path+"?lang=en", ""), says)
}

// send fills a form in and sends it. Names and values of fields alternate.
func (b deskBrowser) send(f harness.PageForm, fields []string, says ...string) harness.PageForm {
	b.t.Helper()
	for i := 0; i+1 < len(fields); i += 2 {
		f.Fields.Set(fields[i], fields[i+1])
	}
	return b.shown(b.u.Call(b.t, http.MethodPost, "http://"+program.Local(b.u.Port)+f.Action, f.Fields.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"), says)
}

func (b deskBrowser) shown(a harness.Answer, says []string) harness.PageForm {
	b.t.Helper()
	for _, text := range says {
		if !strings.Contains(string(a.Body), text) {
			b.t.Fatalf("the counter answers %d without %q:\n%s", a.Status, text, a.Body)
		}
	}
	return harness.ReadForm(string(a.Body))
}

// fill lists fields of a form with their values.
func fill(fields ...string) []string { return fields }

// tillOfTheDay is the end of a clerk's day: c02 has taken 5000 and has given back 5000 of
// c01's. The list and the till have both, c01 signs, and c02 signs in with a PIN that the
// command line ends.
func tillOfTheDay(t *testing.T, u *harness.Up) {
	second, first := newDeskBrowser(t, u), newDeskBrowser(t, u)
	second.send(second.open(""), fill("key", clerk2), "Look a payment up")
	second.open("/day", "Received (1)", "Given back (1)", "Receipt R-2", "FCFA\u00a05,000")
	closed := second.open("/till", "Not counted by a till yet: FCFA\u00a00 (payments: 1, restitutions: 1)")
	opened := second.send(closed, fill("opening", "1 000"), "Till no. 1")
	second.send(opened, fill("counted", "900"), "The amount counted is not the amount expected")
	second.send(opened, fill("counted", "1000"), "Till report", "Received (1)", "Given back (1)", "one thousand CFA francs", "Waits for another clerk")

	first.send(first.open(""), fill("key", clerk1), "Look a payment up")
	list := first.u.Call(t, http.MethodGet, "http://"+program.Local(u.Port)+"/counter/till?lang=en", "")
	_, rest, found := strings.Cut(string(list.Body), `href="/counter/till/`)
	id, _, _ := strings.Cut(rest, "?")
	if !found {
		t.Fatalf("the first clerk has no till to sign:\n%s", list.Body)
	}
	report := first.open("/till/"+id, "Till report", "Your signature is final")
	first.send(report, fill("counted", "1001"), "is not that of the report")
	first.send(report, fill("counted", "1000"), "c01, on")

	second.send(second.open("/pin"), fill("key", clerk2, "pin", "270419", "again", "270419"), "The PIN is saved")
	out := second.open("/pin")
	out.Action = "/counter/sign-out"
	signIn := second.send(out, nil, "With the counter key")
	second.send(signIn, fill("code", "c02", "pin", "270418"), "Wrong counter code or PIN")
	second.send(signIn, fill("code", "c02", "pin", "270419"), "Look a payment up")
	third := newDeskBrowser(t, u)
	third.send(third.open(""), fill("key", clerk2), "Look a payment up")
	third.send(third.open("/pin"), fill("key", clerk2, "pin", "918273", "again", "918273"), "The PIN is saved")
	o := harness.Operator{Up: u}
	var devices []struct{ ID, Clerk string }
	o.JSON(t, &devices, "clerks", "devices")
	if len(devices) != 2 || devices[0].Clerk != "impots/c02" || devices[1].Clerk != "impots/c02" {
		t.Fatalf("the devices are %+v", devices)
	}
	o.Misused(t, "This makes 2 devices forget impots/c02", "clerks", "forget", "impots/c02")
	o.Says(t, "no device knows impots/c01", "clerks", "forget", "impots/c01")
	o.Refused(t, "quittance-dev clerks devices", "clerks", "forget", "x")
	o.Says(t, "has forgotten impots/c02", "clerks", "forget", devices[0].ID)
	second.open("", "You have been signed out")
	second.send(signIn, fill("code", "c02", "pin", "270419"), "Wrong counter code or PIN")
}
