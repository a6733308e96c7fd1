// Package office gives tests the desk at which staff sign in, with people and their passkeys.
package office

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/dev/staff"
	"quittance/internal/identity"
	"quittance/internal/passkeys"
	"quittance/internal/secret"
	"quittance/test/registries"
	"quittance/test/servers"
)

// URL is the address of the pages of staff, Host its name.
const (
	URL  = "https://staff.example"
	Host = "staff.example"
)

// Office is the desk of the pages of staff, with a clock and two passkeys of each person.
type Office struct {
	registries.House
	*identity.Desk
	// IDs and Devices are by the name of the person.
	IDs     map[string]string
	Devices map[string][]*staff.Device
	// Browser is the secret of the browser in which people sign in.
	Browser secret.Text

	now *atomic.Pointer[time.Time]
}

// Open makes people of a group (the slug of an agency, or empty for operations) with two passkeys each, which approve
// from the beginning, and with roles. The clock stands at registries.Epoch.
func Open(t *testing.T, agency string, roles []identity.Role, names ...string) Office {
	t.Helper()
	o := Office{House: registries.SetUp(t), now: &atomic.Pointer[time.Time]{}, IDs: map[string]string{}, Devices: map[string][]*staff.Device{}, Browser: secret.Mint("")}
	o.Seed(t, registries.Full)
	begin := registries.Epoch
	o.now.Store(&begin)
	var err error
	if o.Desk, err = identity.OpenDesk(identity.DeskConfig{Pool: o.Pool, Keys: o.Keys, URL: URL, Log: servers.Logger(t), Now: o.Now, Loopback: true}); err != nil {
		t.Fatal(err)
	}
	o.Add(t, agency, roles, names...)
	return o
}

// Now returns the time of the service's clock.
func (o Office) Now() time.Time { return *o.now.Load() }

// MoveTo moves the clock.
func (o Office) MoveTo(t time.Time) { o.now.Store(&t) }

// Add makes more people, as Open does.
func (o Office) Add(t *testing.T, agency string, roles []identity.Role, names ...string) {
	t.Helper()
	var known bool
	if err := o.Pool.QueryRow(t.Context(), `SELECT $1 = '' OR EXISTS (SELECT 1 FROM agencies WHERE slug = $1)`, agency).Scan(&known); err != nil || !known {
		t.Fatalf("no agency %q, %v: its people would be the service's", agency, err)
	}
	for _, name := range names {
		o.IDs[name] = uuid.NewString()
		o.Write(t, `INSERT INTO staff (id, name, folded, agency_id, created_at, approved_at) VALUES ($1, $2, lower($2), (SELECT id FROM agencies WHERE slug = $3), $4, $4)`, o.IDs[name], name, agency, registries.Epoch)
		for n := range 2 {
			o.GivePasskey(t, name, fmt.Sprint("Clé ", n+1), registries.Epoch)
		}
		for _, r := range roles {
			o.Write(t, `INSERT INTO staff_roles (staff_id, role, granted_at) VALUES ($1, $2, $3)`, o.IDs[name], string(r), registries.Epoch)
		}
	}
}

// GivePasskey makes a passkey of a person that approves from a time.
func (o Office) GivePasskey(t *testing.T, name, called string, from time.Time) {
	t.Helper()
	owner := passkeys.Owner{ID: uuid.MustParse(o.IDs[name]), Name: name}
	device, err := staff.NewDevice(owner.ID, URL)
	if err != nil {
		t.Fatal(err)
	}
	options, challenge, err := o.Party().BeginRegistration(owner)
	if err != nil {
		t.Fatal(err)
	}
	response, err := device.Register(options)
	if err != nil {
		t.Fatal(err)
	}
	made, err := o.Party().Register(owner, challenge, response)
	if err != nil {
		t.Fatal(err)
	}
	public, err := made.SPKI()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(public)
	credential, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	o.Write(t, `INSERT INTO staff_passkeys (id, staff_id, host, name, credential_id, spki_hash, credential, created_at, approves_from) VALUES (gen_random_uuid(), $1, '`+Host+`', $2, $3, $4, $5, $6, $6)`,
		o.IDs[name], called, made.ID, sum[:], credential, from)
	o.Devices[name] = append(o.Devices[name], device)
}

// SignInAs signs a person in.
func (o Office) SignInAs(t *testing.T, name string) (secret.Text, error) {
	t.Helper()
	options, err := o.BeginSignIn(t.Context(), o.Browser)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := o.Devices[name][0].Answer(options)
	if err != nil {
		t.Fatal(err)
	}
	in, err := o.SignIn(t.Context(), o.Browser, answer, "/work", "203.0.113.7")
	if err == nil && in.Who.Name != name {
		t.Errorf("%s signed in as %s", name, in.Who.Name)
	}
	return in.Session, err
}

// Acting signs a person in and returns who acts.
func (o Office) Acting(t *testing.T, name string) identity.Acting {
	t.Helper()
	session, err := o.SignInAs(t, name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := o.Session(t.Context(), session, false, "203.0.113.7")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Statement is a decision about something.
func Statement(subject string) identity.Statement {
	sum := sha256.Sum256([]byte("content of " + subject))
	return identity.Statement{Kind: "case", Subject: subject, Digest: hex.EncodeToString(sum[:]), Verdict: "approved", AgencyID: registries.AgencyA}
}

// Signs has the person's passkey sign a statement.
func (o Office) Signs(t *testing.T, a identity.Acting, name string, s identity.Statement) identity.Acting {
	t.Helper()
	options, err := o.Challenge(t.Context(), a, s)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := o.Devices[name][0].Answer(options)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = o.Answered(t.Context(), a, answer); err != nil {
		t.Fatal(err)
	}
	return a
}

// Prove is the transaction of a decision.
func (o Office) Prove(t *testing.T, a identity.Acting, s identity.Statement) (id string, err error) {
	t.Helper()
	err = pgx.BeginFunc(t.Context(), o.Pool, func(tx pgx.Tx) error {
		id, err = a.Prove(t.Context(), tx, s)
		return err
	})
	return id, err
}

// SessionOf signs a person in and returns the session.
func (o Office) SessionOf(t *testing.T, name string) secret.Text {
	t.Helper()
	s, err := o.SignInAs(t, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
