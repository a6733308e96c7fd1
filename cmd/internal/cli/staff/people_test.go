package staff_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/staff"
	device "quittance/dev/staff"
	"quittance/internal/identity"
	"quittance/internal/secret"
	"quittance/test/office"
)

// The first two people of an agency come by the commands: invited with a link, confirmed with the digits. Then the commands refuse and
// say where the people of the agency decide; suspending stays.
func TestPeopleByCommand(t *testing.T) {
	o := office.Open(t, "impots", nil)
	t.Setenv("QUITTANCE_POSTGRES", o.DSN)
	t.Setenv("QUITTANCE_MASTER_KEYS", o.Keys.Reveal())
	t.Setenv("QUITTANCE_REFERENCE_KEY", secret.GenerateReferenceKey().Reveal())
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := clitest.Run(t, staff.Command(), append([]string{"staff"}, args...)...)
		if code != want {
			t.Fatalf("%v: %d %s %s", args, code, stdout, stderr)
		}
		return stdout + stderr
	}
	join := func(link string) (digits string) {
		t.Helper()
		i, browser, err := identity.AcceptInvitation(t.Context(), o.Pool, o.Keys, secret.NewText(link[strings.Index(link, "inv_"):]), "", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for n := range 2 {
			d, err := device.NewDevice(uuid.MustParse(i.StaffID), office.URL)
			if err != nil {
				t.Fatal(err)
			}
			options, err := identity.BeginInvitedPasskey(t.Context(), o.Pool, o.Keys, o.Party(), browser, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			response, err := d.Register(options)
			if err != nil {
				t.Fatal(err)
			}
			if i, err = identity.AddInvitedPasskey(t.Context(), o.Pool, o.Keys, o.Party(), browser, fmt.Sprint("Key ", n), response, "", time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		return i.Digits()
	}
	run(2, "invite")
	run(2, "invite", "--name", "Awa", "--lost")
	if said := run(1, "invite", "--name", "Awa", "--agency", "impots", "--role", "lead"); !strings.Contains(said, "agency-admin") {
		t.Errorf("a role of others: %s", said)
	}
	for _, name := range []string{"Awa", "Ben"} {
		var made struct{ ID, Link string }
		if err := json.Unmarshal([]byte(run(0, "invite", "--name", name, "--agency", "impots", "--number", "47"+name, "--role", "agency-admin", "--staff-url", office.URL, "--json")), &made); err != nil || !strings.HasPrefix(made.Link, office.URL+"/join#inv_") {
			t.Fatalf("%+v, %v", made, err)
		}
		if said := run(1, "confirm", made.ID, "--digits", "12345678"); !strings.Contains(said, "has not made both passkeys") {
			t.Errorf("too early: %s", said)
		}
		digits := join(made.Link)
		if said := run(0, "invitations"); !strings.Contains(said, "ready") || strings.Contains(said, digits) || strings.Contains(said, made.Link) {
			t.Errorf("the list: %s", said)
		}
		if said := run(0, "confirm", made.ID, "--digits", digits); !strings.Contains(said, "agency-admin") {
			t.Errorf("confirmed: %s", said)
		}
	}
	if said := run(0, "passkeys", "Awa"); !strings.Contains(said, "Key 0") || !strings.Contains(said, "Key 1") {
		t.Errorf("passkeys: %s", said)
	}
	for _, args := range [][]string{{"invite", "--name", "Eve", "--agency", "impots"}, {"roles", "Awa", "--add", "reader"}} {
		if said := run(1, args...); !strings.Contains(said, "two people of impots decide about its people") {
			t.Errorf("%v: %s", args, said)
		}
	}
	run(0, "suspend", "Ben", "--reason", "a passkey is lost")
	if said := run(0, "list"); !strings.Contains(said, "suspended") {
		t.Errorf("the list: %s", said)
	}
	run(0, "roles", "Awa", "--add", "reader") // one is left who can decide
	run(0, "lift", "Ben", "--reason", "it was found")
	run(1, "roles", "Awa", "--remove", "reader")
}
