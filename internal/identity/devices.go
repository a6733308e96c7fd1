package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/crypto/bcrypt"

	"quittance/internal/form"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// DeviceLifetime is how long a device is remembered after its last sign-in with a PIN.
const DeviceLifetime = 90 * 24 * time.Hour

// MaxWrongPINs is how many wrong PINs a device takes from a clerk. After that the clerk
// needs the key and chooses a new PIN.
const MaxWrongPINs = 5

// A PIN has MinPIN to MaxPIN digits.
const (
	MinPIN = 6
	MaxPIN = 12
)

// Errors of SignInWithPIN. They wrap ErrUnauthorized.
var (
	// ErrPINWrong says that the device does not know the clerk, or that the PIN is not the
	// clerk's.
	ErrPINWrong = fmt.Errorf("%w: wrong code or PIN", ErrUnauthorized)
	// ErrPINUsedUp says that the device takes no further PIN of the clerk.
	ErrPINUsedUp = fmt.Errorf("%w: too many wrong PINs", ErrUnauthorized)
)

// Device is a device on which a clerk signs in with a PIN.
type Device struct {
	ID string
	// Clerk is AGENCY/CODE.
	Clerk string
	Live  bool
	// Wrong is the number of wrong PINs since the last right one.
	Wrong                 int
	CreatedAt, LastUsedAt time.Time
}

// CheckPIN returns an *operation.Error with the field pin for a text that is no PIN, or that
// anybody would try first.
func CheckPIN(pin string) error {
	if n := len(pin); n < MinPIN || n > MaxPIN || strings.Trim(pin, "0123456789") != "" {
		return operation.Refuse("clerk.pin_malformed", "pin", operation.Args{"least": MinPIN, "most": MaxPIN})
	}
	steps := map[int]bool{}
	for i := 1; i < len(pin); i++ {
		steps[(int(pin[i])-int(pin[i-1])+10)%10] = true
	}
	if len(steps) == 1 { // 000000, 123456, 987654, 246802
		return operation.Refuse("clerk.pin_guessable", "pin", nil)
	}
	return nil
}

// RememberDevice lets a clerk sign in with a PIN on a device. The clerk has the session,
// which ends with the device from now on. deviceID is that of the device's cookie, or empty;
// the result is the one to keep there. It differs when the device was remembered for another
// agency or mode. A refusal is an *operation.Error with the field pin.
func (i *Identities) RememberDevice(ctx context.Context, actor operation.Actor, clerk ClerkPrincipal, session, deviceID, pin string) (string, error) {
	if err := CheckPIN(pin); err != nil {
		return "", err
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(pin), i.cfg.PINCost)
	if err != nil {
		return "", fmt.Errorf("hashing a PIN: %w", err)
	}
	now := i.cfg.Now()
	err = pgx.BeginFunc(ctx, i.cfg.Pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		foreign := deviceID == ""
		if !foreign {
			if foreign, err = q.ForeignDevice(ctx, db.ForeignDeviceParams{DeviceID: deviceID, AgencyID: clerk.AgencyID, Live: clerk.Live}); err != nil {
				return err
			}
		}
		if foreign {
			deviceID = uuid.NewString()
		}
		row := db.ClerkDevice{DeviceID: deviceID, KeyID: clerk.KeyID, AgencyID: clerk.AgencyID, ClerkCode: clerk.Code, Live: clerk.Live, Pin: string(hash)}
		id, err := q.PutDevice(ctx, db.PutDeviceParams{
			ID: uuid.Must(uuid.NewV7()).String(), DeviceID: row.DeviceID, KeyID: row.KeyID, AgencyID: row.AgencyID, ClerkCode: row.ClerkCode, Live: row.Live, Pin: row.Pin, Now: now,
			Mac: deviceMAC(i.macs, row),
		})
		if err != nil {
			return err
		}
		if err := i.bind(ctx, q, session, clerk.KeyID, id); err != nil {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "clerk.remember_device", Subject: id, AgencyID: clerk.AgencyID, Detail: map[string]any{"clerk": clerk.Ref(), "live": clerk.Live}})
	})
	if err != nil {
		return "", fmt.Errorf("remembering a clerk's device: %w", err)
	}
	return deviceID, nil
}

// bind makes a session end with a device. A session that has ended stays so.
func (i *Identities) bind(ctx context.Context, q *db.Queries, session, keyID, device string) error {
	begun, err := q.ClerkSessionBegan(ctx, db.ClerkSessionBeganParams{ID: session, KeyID: keyID})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return q.BindClerkSession(ctx, db.BindClerkSessionParams{Device: &device, ID: session, KeyID: keyID, Mac: i.sessionMAC(session, keyID, &device, begun)})
}

// deviceMAC proves whose a device is and what its PIN is. It does not cover the number of wrong PINs.
func deviceMAC(macs *secret.MACs, d db.ClerkDevice) []byte {
	return signed.MAC(macs, "clerk_devices", deviceValues(d)...)
}

func deviceValues(d db.ClerkDevice) []any {
	return []any{d.DeviceID, d.KeyID, d.AgencyID, d.ClerkCode, d.Live, d.Pin}
}

// proves reports whether a device is as this role has remembered it.
func (i *Identities) proves(d db.ClerkDevice) bool {
	return signed.VerifyMAC(i.macs, d.Mac, "clerk_devices", deviceValues(d)...)
}

// ProveDevices proves the devices that an earlier release has remembered, in the transaction that signs
// the rows of people for the first time.
func ProveDevices(ctx context.Context, tx *registry.Tx) error {
	macs, err := tx.Keys().MACs(LabelSignIns)
	if err != nil {
		return fmt.Errorf("proving the devices of clerks: %w", err)
	}
	q := db.New(tx)
	devices, err := q.Devices(ctx)
	for _, d := range devices {
		if d.Mac != nil {
			continue
		}
		err = errors.Join(err, q.ProveDevice(ctx, db.ProveDeviceParams{ID: d.ID, Mac: deviceMAC(macs, d)}))
	}
	if err != nil {
		return fmt.Errorf("proving the devices of clerks: %w", err)
	}
	return nil
}

// SignInWithPIN signs a clerk in on a remembered device and returns the id of the session.
// Errors are ErrPINWrong, ErrPINUsedUp, others that wrap ErrUnauthorized, and ErrStale; any
// other means that Postgres does not answer.
func (i *Identities) SignInWithPIN(ctx context.Context, deviceID, code, pin string) (session string, err error) {
	if err := i.Fresh(); err != nil {
		return "", err
	}
	now, q := i.cfg.Now(), db.New(i.cfg.Pool)
	after := now.Add(-DeviceLifetime)
	try, err := q.TryPIN(ctx, db.TryPINParams{DeviceID: deviceID, ClerkCode: code, Most: MaxWrongPINs, UsedAfter: after})
	if errors.Is(err, pgx.ErrNoRows) {
		known, err := q.DeviceKnown(ctx, db.DeviceKnownParams{DeviceID: deviceID, ClerkCode: code, UsedAfter: after})
		switch {
		case err != nil:
			return "", fmt.Errorf("reading a clerk's device: %w", err)
		case known:
			return "", ErrPINUsedUp
		}
		return "", ErrPINWrong
	}
	if err != nil {
		return "", fmt.Errorf("counting a PIN: %w", err)
	}
	if !i.proves(try) {
		return "", ErrPINUsedUp // somebody else has written it: the clerk needs the key
	}
	if bcrypt.CompareHashAndPassword([]byte(try.Pin), []byte(pin)) != nil {
		if try.Wrong >= MaxWrongPINs {
			return "", ErrPINUsedUp
		}
		return "", ErrPINWrong
	}
	if _, err := i.ClerkByKey(try.KeyID); err != nil {
		return "", err // the key was revoked, or the clerk is not active
	}
	err = pgx.BeginFunc(ctx, i.cfg.Pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		if err := q.PINWasRight(ctx, db.PINWasRightParams{ID: try.ID, Now: now, Mac: deviceMAC(i.macs, try)}); err != nil {
			return err
		}
		session, err = i.beginSession(ctx, q, try.KeyID, try.ID)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("beginning a clerk's session: %w", err)
	}
	return session, nil
}

// ListDevices lists the devices on which clerks sign in with a PIN, by clerk and age. now is
// the time of the service's clock.
func ListDevices(ctx context.Context, pool *pgxpool.Pool, now time.Time) (out []Device, err error) {
	err = registry.View(ctx, pool, "", func(tx pgx.Tx, reg *registry.Snapshot) error {
		rows, err := db.New(tx).Devices(ctx)
		for _, r := range rows {
			if r.LastUsedAt.After(now.Add(-DeviceLifetime)) {
				out = append(out, toDevice(r, reg))
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the devices of clerks: %w", err)
	}
	slices.SortStableFunc(out, func(a, b Device) int { return strings.Compare(a.Clerk, b.Clerk) })
	return out, nil
}

func toDevice(r db.ClerkDevice, reg *registry.Snapshot) Device {
	return Device{ID: r.ID, Clerk: reg.Agencies[r.AgencyID].Slug + "/" + r.ClerkCode, Live: r.Live, Wrong: int(r.Wrong), CreatedAt: r.CreatedAt, LastUsedAt: r.LastUsedAt}
}

// ForgetDevices makes devices forget their clerks: the device with an id, or for AGENCY/CODE
// all devices of that clerk. All sessions of the clerk end at once, on every instance: also
// one that began with the key, which no row ties to its device. On a forgotten device the
// clerk needs the key. now is the time of the service's clock. A refusal is an
// *operation.Error with the field id.
func ForgetDevices(ctx context.Context, pool *pgxpool.Pool, actor operation.Actor, which string, now time.Time) (forgotten []Device, err error) {
	err = change(ctx, pool, nil, now, func(t *Tx) error {
		var params db.ForgetDevicesParams
		if agency, code, ok := strings.Cut(which, "/"); ok {
			c, found := t.findClerk(agency, code)
			if !found {
				return operation.Refuse("clerk.unknown", "id", nil)
			}
			params.AgencyID, params.ClerkCode = &c.AgencyID, &c.Code
		} else if id, ok := form.CanonicalUUID(which); ok {
			params.ID = &id
		} else {
			return operation.Refuse("clerk.not_a_device", "id", nil)
		}
		rows, err := t.q.ForgetDevices(ctx, params)
		if err != nil {
			return err
		}
		if params.ID != nil {
			if len(rows) == 0 {
				return operation.Refuse("clerk.device_unknown", "id", operation.Args{"id": *params.ID})
			}
			params.AgencyID, params.ClerkCode = &rows[0].AgencyID, &rows[0].ClerkCode
		}
		if err := t.q.EndSessionsOfClerk(ctx, db.EndSessionsOfClerkParams{AgencyID: params.AgencyID, ClerkCode: params.ClerkCode}); err != nil {
			return err
		}
		for _, r := range rows {
			d := toDevice(r, t.registry)
			if err := operation.Record(ctx, t.tx, actor, now, operation.Entry{Action: "clerk.forget_device", Subject: d.ID, AgencyID: r.AgencyID, Detail: map[string]any{"clerk": d.Clerk, "live": d.Live}}); err != nil {
				return err
			}
			forgotten = append(forgotten, d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("forgetting devices of clerks: %w", err)
	}
	return forgotten, nil
}

// ForgetDevice is ForgetDevices for the device of a signed-in clerk. A clerk without a
// remembered device is no error.
func (i *Identities) ForgetDevice(ctx context.Context, actor operation.Actor, clerk ClerkPrincipal) error {
	if clerk.Device == "" {
		return nil
	}
	_, err := ForgetDevices(ctx, i.cfg.Pool, actor, clerk.Device, i.cfg.Now())
	if refused := (*operation.Error)(nil); errors.As(err, &refused) {
		return nil // forgotten meanwhile
	}
	return err
}
