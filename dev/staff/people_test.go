package staff_test

import (
	"os"
	"path/filepath"
	"testing"

	"quittance/dev/staff"
	"quittance/internal/identity"
	"quittance/test/office"
	"quittance/test/registries"
)

// A demo person signs in and approves at once, with a passkey that the service verifies like any other. The person is
// the same after a restart, also when the data folder has lost the passkeys. Nobody else can sign in so.
func TestDemoPeople(t *testing.T) {
	t.Parallel()
	o := office.Open(t, "", nil)
	o.Seed(t, registries.Full+"  - {id: "+registries.AgencyB+", slug: "+staff.DemoAgency+", name: Direction générale des douanes}\n")
	file := filepath.Join(t.TempDir(), "staff.json")
	open := func() *staff.People {
		return staff.NewPeople(staff.PeopleConfig{File: file, Pool: o.Pool, Keys: o.Keys, Party: o.Party(), URL: office.URL, Now: o.Now})
	}
	signIn := func(p *staff.People, name string) identity.Acting {
		t.Helper()
		options, err := o.BeginSignIn(t.Context(), o.Browser)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := p.Answer(t.Context(), name, options)
		if err != nil {
			t.Fatal(err)
		}
		in, err := o.SignIn(t.Context(), o.Browser, answer, "/work", "")
		if err != nil || in.Who.Name != name {
			t.Fatalf("%s signed in as %q: %v", name, in.Who.Name, err)
		}
		a, err := o.Session(t.Context(), in.Session, false, "")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	people := open()
	names := people.Names()
	first := signIn(people, names[0])
	s := office.Statement("case_x#1")
	options, err := o.Challenge(t.Context(), first, s)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := people.Answer(t.Context(), names[0], options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := o.Answered(t.Context(), first, answer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Prove(t, signed, s); err != nil {
		t.Errorf("a demo person cannot approve: %v", err)
	}
	if again := signIn(open(), names[0]); again.Person.ID != first.Person.ID || len(again.Person.Passkeys) != identity.MinPasskeys {
		t.Errorf("after a restart: %+v", again.Person)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if again := signIn(open(), names[0]); again.Person.ID != first.Person.ID {
		t.Errorf("without the file: %+v", again.Person)
	}
	// Two security officers sign in, and everybody else still does.
	// Those of an agency with an identity provider go there after the passkey.
	at := staff.NewPeople(staff.PeopleConfig{File: filepath.Join(t.TempDir(), "staff.json"), Pool: o.Pool, Keys: o.Keys, Party: o.Party(), URL: office.URL, Now: o.Now, Issuer: "http://127.0.0.1:1/idp/impots"})
	if options, err = o.BeginSignIn(t.Context(), o.Browser); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Démo Approbateur", "Démo Comptable"} {
		if answer, err = at.Answer(t.Context(), name, options); err != nil {
			t.Fatal(err)
		}
	}
	if in, err := o.SignIn(t.Context(), o.Browser, answer, "/work", ""); err != nil || !in.Session.Empty() || in.Turn.Empty() || in.Who.Subject == "" {
		t.Errorf("with an identity provider: %+v, %v", in.Who, err)
	}
	if _, err := identity.RemoveIssuer(t.Context(), o.Pool, o.Keys, registries.Actor, "impots", o.Now()); err != nil {
		t.Fatal(err)
	}
	all := open()
	for n := len(names) - 1; n >= 0; n-- {
		a := signIn(all, names[n])
		if len(a.Person.Roles) != 1 || (a.Person.AgencyID == "") != a.Person.Roles[0].OfService() {
			t.Errorf("%s: %+v", names[n], a.Person)
		}
	}
	if _, err := people.Answer(t.Context(), "Awa", options); err == nil {
		t.Error("somebody else signs in")
	}
}
