package identity_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/test/registries"
)

const pin = "270419"

// remember lets the holder of a key sign in with the PIN on a device, and returns the device
// and the session.
func remember(t *testing.T, r registries.Instance, key, device, pin string) (string, string) {
	t.Helper()
	session := signIn(t, r, key)
	clerk, err := r.ClerkSession(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	device, err = r.RememberDevice(t.Context(), registries.Actor, clerk, session, device, pin)
	if err != nil {
		t.Fatal(err)
	}
	return device, session
}

func TestCheckPIN(t *testing.T) {
	t.Parallel()
	for pin, code := range map[string]string{
		"": "clerk.pin_malformed", "12345": "clerk.pin_malformed", "1234567890123": "clerk.pin_malformed", "27041a": "clerk.pin_malformed", "27 0419": "clerk.pin_malformed", "٢٧٠٤١٩": "clerk.pin_malformed",
		"000000": "clerk.pin_guessable", "123456": "clerk.pin_guessable", "7654321": "clerk.pin_guessable", "890123": "clerk.pin_guessable", "135791": "clerk.pin_guessable",
		pin: "", "112233": "", "270419270419": "",
	} {
		err := identity.CheckPIN(pin)
		refused := (*operation.Error)(nil)
		if code == "" && err != nil || code != "" && (!errors.As(err, &refused) || refused.Code != code || refused.Field != "pin") {
			t.Errorf("%q: %v, want %q", pin, err, code)
		}
	}
}

// A clerk chooses a PIN on a device, and signs in with it there and nowhere else.
func TestSignInWithPIN(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	var clock registries.Watch
	asInProduction := func(c *registries.Config) { c.PINCost = 0 }
	one, two := h.Open(t, clock.Wear, asInProduction), h.Open(t, clock.Wear, asInProduction)
	device, _ := remember(t, one, registries.ClerkTest, "", pin)
	session, err := two.SignInWithPIN(t.Context(), device, "c01", pin)
	if err != nil {
		t.Fatal(err)
	}
	c, err := one.ClerkSession(t.Context(), session)
	if err != nil || c.Ref() != "impots/c01" || c.Live || c.Device == "" {
		t.Errorf("signed in as %+v, %v", c, err)
	}
	for name, try := range map[string][3]string{
		"another device": {uuid.NewString(), "c01", pin}, "another clerk": {device, "c02", pin}, "another PIN": {device, "c01", "270418"}, "no PIN": {device, "c01", ""},
	} {
		if _, err := one.SignInWithPIN(t.Context(), try[0], try[1], try[2]); !errors.Is(err, identity.ErrPINWrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var stored string
	if err := h.Pool.QueryRow(t.Context(), `SELECT pin FROM clerk_devices`).Scan(&stored); err != nil || !strings.HasPrefix(stored, "$2a$12$") || strings.Contains(stored, pin) {
		t.Errorf("stored is %q, %v", stored, err)
	}

	// Two clerks share the device. A key of the other mode makes it another device.
	if shared, _ := remember(t, one, registries.ClerkTwo, device, "918273"); shared != device {
		t.Error("a second clerk gets another device")
	}
	if other, _ := remember(t, one, registries.ClerkLive, device, "918273"); other == device {
		t.Error("a live key uses the device of test keys")
	}

	// The device is forgotten after 90 days without use; a sign-in keeps it.
	clock.Set(89 * 24 * time.Hour)
	if _, err := one.SignInWithPIN(t.Context(), device, "c01", pin); err != nil {
		t.Errorf("after 89 days: %v", err)
	}
	clock.Set(91 * 24 * time.Hour)
	if _, err := one.SignInWithPIN(t.Context(), device, "c02", "918273"); !errors.Is(err, identity.ErrPINWrong) {
		t.Errorf("after 91 days: %v", err)
	}
	if _, err := one.SignInWithPIN(t.Context(), device, "c01", pin); err != nil {
		t.Errorf("two days after the last use: %v", err)
	}
}

// Four instances try PINs at the same time. Together they compare no more than five wrong
// ones; then the right one opens nothing either, until the clerk uses the key.
func TestAttemptsAreLimitedExactly(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	var instances []registries.Instance
	for range 4 {
		instances = append(instances, h.Open(t))
	}
	device, _ := remember(t, instances[0], registries.ClerkTest, "", pin)
	// The right PIN sets the count back.
	for range identity.MaxWrongPINs - 1 {
		if _, err := instances[1].SignInWithPIN(t.Context(), device, "c01", "111213"); !errors.Is(err, identity.ErrPINWrong) {
			t.Fatal(err)
		}
	}
	if _, err := instances[2].SignInWithPIN(t.Context(), device, "c01", pin); err != nil {
		t.Fatal(err)
	}
	var wrong, usedUp atomic.Int32
	var wg sync.WaitGroup
	for _, r := range instances {
		for range 5 {
			wg.Go(func() {
				switch _, err := r.SignInWithPIN(t.Context(), device, "c01", "111213"); {
				case errors.Is(err, identity.ErrPINWrong):
					wrong.Add(1)
				case errors.Is(err, identity.ErrPINUsedUp):
					usedUp.Add(1)
				default:
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if wrong.Load() != identity.MaxWrongPINs-1 || usedUp.Load() != 20-(identity.MaxWrongPINs-1) {
		t.Errorf("%d wrong, %d used up", wrong.Load(), usedUp.Load())
	}
	if _, err := instances[3].SignInWithPIN(t.Context(), device, "c01", pin); !errors.Is(err, identity.ErrPINUsedUp) {
		t.Errorf("the right PIN after that: %v", err)
	}
	if again, _ := remember(t, instances[0], registries.ClerkTest, device, "482915"); again != device {
		t.Error("the clerk gets another device")
	}
	if _, err := instances[3].SignInWithPIN(t.Context(), device, "c01", "482915"); err != nil {
		t.Errorf("the new PIN: %v", err)
	}
}

// A forgotten device ends its sessions at once on every instance, also that in which the PIN
// was chosen. A revoked key ends the PIN.
func TestForgetDevices(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	one, two := h.Open(t), h.Open(t)
	device, chosen := remember(t, one, registries.ClerkTest, "", pin)
	_, second := remember(t, one, registries.ClerkTwo, device, pin)
	session, err := one.SignInWithPIN(t.Context(), device, "c01", pin)
	if err != nil {
		t.Fatal(err)
	}
	withKey := signIn(t, two, registries.ClerkTest) // perhaps on the same device: no row says so
	devices, err := identity.ListDevices(t.Context(), h.Pool, registries.Epoch)
	if err != nil || len(devices) != 2 || devices[0].Clerk != "impots/c01" || devices[1].Clerk != "impots/c02" || devices[0].Live {
		t.Fatalf("%+v, %v", devices, err)
	}
	for _, which := range []string{"impots/c09", "x", uuid.NewString()} {
		refused := (*operation.Error)(nil)
		if _, err := identity.ForgetDevices(t.Context(), h.Pool, registries.Actor, which, registries.Epoch); !errors.As(err, &refused) || refused.Field != "id" {
			t.Errorf("%s: %v", which, err)
		}
	}
	if gone, err := identity.ForgetDevices(t.Context(), h.Pool, registries.Actor, devices[0].ID, registries.Epoch); err != nil || len(gone) != 1 || gone[0].ID != devices[0].ID {
		t.Errorf("forgot %+v, %v", gone, err)
	}
	for _, r := range []registries.Instance{one, two} {
		for _, id := range []string{chosen, session, withKey} {
			if _, err := r.ClerkSession(t.Context(), id); !errors.Is(err, identity.ErrUnauthorized) {
				t.Errorf("a session of the clerk lives: %v", err)
			}
		}
		if _, err := r.ClerkSession(t.Context(), second); err != nil {
			t.Errorf("the other clerk: %v", err)
		}
		if _, err := r.SignInWithPIN(t.Context(), device, "c01", pin); !errors.Is(err, identity.ErrPINWrong) {
			t.Errorf("a forgotten device: %v", err)
		}
	}
	for action, want := range map[string]int{"clerk.remember_device": 2, "clerk.forget_device": 1} {
		n := 0
		if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = $1 AND detail ->> 'clerk' LIKE 'impots/c0_' AND detail::text NOT LIKE '%' || $2 || '%'`, action, pin).Scan(&n); err != nil || n != want {
			t.Errorf("%d audit rows of %s, %v", n, action, err)
		}
	}
	if _, _, err := identity.RevokeClerkKeys(t.Context(), h.Pool, h.Keys, registries.Actor, "impots/c02", registries.Epoch); err != nil {
		t.Fatal(err)
	}
	three := h.Open(t) // has read the revocation
	if _, err := three.SignInWithPIN(t.Context(), device, "c02", pin); !errors.Is(err, identity.ErrUnauthorized) || errors.Is(err, identity.ErrPINWrong) {
		t.Errorf("a revoked key: %v", err)
	}
	// A session that began before the revocation reached the instance ends, too.
	if id, err := two.SignInWithPIN(t.Context(), device, "c02", pin); err == nil {
		if _, err := two.ClerkSession(t.Context(), id); !errors.Is(err, identity.ErrUnauthorized) {
			t.Errorf("a session of a revoked key: %v", err)
		}
	}
}
