package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/address"
	"quittance/internal/digests"
	"quittance/internal/form"
	"quittance/internal/identity/internal/db"
	"quittance/internal/openid"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

const (
	// MaxOutage is the longest outage that is declared at once.
	MaxOutage = 24 * time.Hour
	// maxIssuerText is the greatest length of a client id, a client secret and a subject (OpenID Connect Core, section 2: 255).
	maxIssuerText = 255
)

// operations names the group of the service's people.
const operations = "operations"

// Issuer is the identity provider at which the people of a group sign in, after the passkey.
type Issuer struct {
	ID string
	// Address is the issuer (iss); ClientID is the service's name there.
	Address, ClientID string
	// AgencyID is the group; empty for operations.
	AgencyID string
	// Algorithms of its tokens, out of openid.Algorithms.
	Algorithms []string
	CreatedAt  time.Time
	// OutageUntil is until when a passkey alone signs in; zero for no outage.
	OutageUntil  time.Time
	OutageReason string
	// Forged means that the row is not as it was signed: nobody of the group signs in.
	Forged bool

	sealed []byte
}

func toIssuer(r issuerRow, forged bool) Issuer {
	return Issuer{
		ID: r.ID, Address: r.Address, ClientID: r.ClientID, AgencyID: value(r.AgencyID), Algorithms: r.Algorithms, CreatedAt: r.CreatedAt.UTC(),
		OutageUntil: value(r.OutageUntil), OutageReason: r.OutageReason, Forged: forged, sealed: r.SecretSealed,
	}
}

// Away reports whether an outage is declared at a time.
func (i Issuer) Away(now time.Time) bool { return now.Before(i.OutageUntil) }

// aad is what the client's secret is bound to.
func (i Issuer) aad() []byte { return registry.IssuerAAD(i.ID, i.Address, given(i.AgencyID)) }

// IssuerEntry is an issuer as operators see it.
type IssuerEntry struct {
	Issuer
	Agency string // slug; empty for operations
	// Bound and Unbound count the people of the group, without revoked ones, whose subject is known, or is not.
	Bound, Unbound int
}

// Group names whose people sign in there.
func (e IssuerEntry) Group() string { return cmp.Or(e.Agency, operations) }

// IssuerRequest asks for an issuer.
type IssuerRequest struct {
	Address, ClientID string
	Secret            secret.Text
	Agency            string // by id or slug; empty for operations
	// Algorithms are some of openid.Algorithms; none means RS256.
	Algorithms []string
	// Loopback allows an issuer on this machine, in developer mode.
	Loopback bool
}

// check refuses a request that cannot be carried out.
func (r IssuerRequest) check() error {
	var wrong *address.Error
	switch err := openid.Rule(r.Loopback).CheckNew(r.Address); {
	case errors.As(err, &wrong):
		return operation.Refuse("issuer.address_refused", "address", operation.Args{"why": wrong.Error()})
	case err != nil:
		return err
	case !form.IsLine(r.ClientID, maxIssuerText):
		return operation.Refuse("issuer.client_malformed", "client-id", operation.Args{"most": maxIssuerText})
	case !form.IsLine(r.Secret.Reveal(), maxIssuerText):
		return operation.Refuse("issuer.secret_malformed", "secret", operation.Args{"most": maxIssuerText})
	}
	for _, a := range r.Algorithms {
		if !slices.Contains(openid.Algorithms, a) {
			return operation.Refuse("issuer.algorithm_unknown", "algorithm", operation.Args{"algorithms": openid.Algorithms})
		}
	}
	return nil
}

// readIssuers reads all issuers, the oldest first.
func readIssuers(ctx context.Context, tx pgx.Tx, v *signed.Verifier, forged func(signed.Row) bool) (out []Issuer, err error) {
	err = signed.Read(ctx, tx, v, "staff_issuers", func(r issuerRow, row signed.Row) { out = append(out, toIssuer(r, forged(row))) })
	return out, err
}

// issuerOf returns the issuer of a group as its row says it; the zero Issuer for none.
func issuerOf(ctx context.Context, tx pgx.Tx, v *signed.Verifier, forged func(signed.Row) bool, agencyID string) (Issuer, error) {
	list, err := readIssuers(ctx, tx, v, forged)
	if n := slices.IndexFunc(list, func(i Issuer) bool { return i.AgencyID == agencyID }); n >= 0 {
		return list[n], err
	}
	return Issuer{}, err
}

// issuer finds an issuer by its id or its group.
func (t *Tx) issuer(ctx context.Context, named string) (IssuerEntry, error) {
	list, err := readIssuers(ctx, t.tx, nil, t.tx.Forged)
	if err != nil {
		return IssuerEntry{}, err
	}
	n := slices.IndexFunc(list, func(i Issuer) bool { return i.ID == named || t.issuerEntry(i).Group() == named })
	if n < 0 {
		return IssuerEntry{}, operation.Refuse("issuer.unknown", "id", nil)
	}
	return t.issuerEntry(list[n]), nil
}

func (s *snapshot) issuerEntry(i Issuer) IssuerEntry {
	e := IssuerEntry{Issuer: i, Agency: s.registry.Agencies[i.AgencyID].Slug}
	for _, m := range s.staff {
		switch {
		case m.AgencyID != i.AgencyID || !m.RevokedAt.IsZero():
		case m.Issuer == i.Address:
			e.Bound++
		default:
			e.Unbound++
		}
	}
	return e
}

// ListIssuers lists all issuers, the oldest first. With a verifier it says which are forged; nil lists the rows as they are.
func ListIssuers(ctx context.Context, pool *pgxpool.Pool, v *signed.Verifier) (out []IssuerEntry, err error) {
	forged := func(r signed.Row) bool { return v != nil && !r.Verified }
	err = registry.View(ctx, pool, "", func(tx pgx.Tx, reg *registry.Snapshot) error {
		s, err := load(ctx, tx, reg, v, forged)
		if err != nil {
			return err
		}
		list, err := readIssuers(ctx, tx, v, forged)
		for _, i := range list {
			out = append(out, s.issuerEntry(i))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing issuers: %w", err)
	}
	return out, nil
}

// FindIssuer returns an issuer by its id, or the name of its group. A refusal is an *operation.Error with the field id.
func FindIssuer(ctx context.Context, pool *pgxpool.Pool, named string) (IssuerEntry, error) {
	list, err := ListIssuers(ctx, pool, nil)
	if err != nil {
		return IssuerEntry{}, err
	}
	if n := slices.IndexFunc(list, func(i IssuerEntry) bool { return i.ID == named || i.Group() == named }); n >= 0 {
		return list[n], nil
	}
	return IssuerEntry{}, operation.Refuse("issuer.unknown", "id", nil)
}

// AddIssuer makes an issuer the one of a group. From then on its people sign in there, too, and their sessions end; whoever is
// not bound to a subject (BindSubject, or a new invitation) signs in no more. The same address again replaces client, secret and
// algorithms, and people stay bound. A refusal is an *operation.Error with the field
// address, client-id, secret, algorithm or agency. After an error nothing has changed.
func AddIssuer(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, req IssuerRequest, now time.Time) (added IssuerEntry, err error) {
	if err := req.check(); err != nil {
		return IssuerEntry{}, err
	}
	i := Issuer{ID: uuid.Must(uuid.NewV7()).String(), Address: req.Address, ClientID: req.ClientID, Algorithms: req.Algorithms}
	if len(i.Algorithms) == 0 {
		i.Algorithms = openid.Algorithms[:1]
	}
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		if req.Agency != "" {
			a, err := t.agency(req.Agency)
			if err != nil {
				return err
			}
			i.AgencyID = a.ID
		}
		known, err := issuerOf(ctx, t.tx, nil, t.tx.Forged, i.AgencyID)
		switch {
		case err != nil:
			return err
		case known.ID != "" && (known.Address != i.Address || known.Forged):
			return operation.Refuse("issuer.known", "agency", operation.Args{"group": t.issuerEntry(known).Group(), "id": known.ID})
		case known.ID != "": // another secret, or other algorithms: people stay bound
			i.ID = known.ID
		default:
			if err := t.endSessions(ctx, i.AgencyID); err != nil {
				return err
			}
		}
		if err := t.tx.PutStaffIssuer(ctx, registry.StaffIssuer{
			ID: i.ID, Address: i.Address, ClientID: i.ClientID, Secret: req.Secret, AgencyID: given(i.AgencyID), Algorithms: i.Algorithms, CreatedAt: now,
		}); err != nil {
			return err
		}
		if added, err = t.issuer(ctx, i.ID); err != nil {
			return err
		}
		return t.recordIssuer(ctx, actor, "staff.issuer_add", added, nil)
	})
	if err != nil {
		return IssuerEntry{}, fmt.Errorf("adding an issuer: %w", err)
	}
	return added, nil
}

// endSessions signs the people of a group out.
func (t *Tx) endSessions(ctx context.Context, agencyID string) error {
	for _, m := range t.staff {
		if m.AgencyID == agencyID {
			if err := t.q.EndSessionsOfStaff(ctx, m.ID); err != nil {
				return fmt.Errorf("ending sessions: %w", err)
			}
		}
	}
	return nil
}

// RemoveIssuer ends the issuer of a group: its people are bound to no subject any more, and sign in with passkeys alone. named
// is the id or the group. A refusal is an *operation.Error with the field id. After an error nothing has changed.
func RemoveIssuer(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named string, now time.Time) (removed IssuerEntry, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) (err error) {
		if removed, err = t.issuer(ctx, named); err != nil {
			return err
		}
		for _, m := range t.staff {
			if m.AgencyID == removed.AgencyID && m.Issuer != "" {
				if err := t.q.BindStaff(ctx, db.BindStaffParams{ID: m.ID}); err != nil {
					return fmt.Errorf("unbinding %s: %w", m.ID, err)
				}
			}
		}
		if err := t.tx.RemoveStaffIssuer(ctx, removed.ID); err != nil {
			return err
		}
		return t.recordIssuer(ctx, actor, "staff.issuer_remove", removed, nil)
	})
	if err != nil {
		return IssuerEntry{}, fmt.Errorf("removing an issuer: %w", err)
	}
	return removed, nil
}

// BindSubject says who a known person is at the issuer of the group, when the group gets one. It gives nobody a way in: the
// person still proves the passkey. An invitation binds by itself. named is the id or the name. A refusal is an *operation.Error
// with the field id or subject. After an error nothing has changed.
func BindSubject(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named, subject string, now time.Time) (bound StaffEntry, err error) {
	if !form.IsLine(subject, maxIssuerText) {
		return StaffEntry{}, operation.Refuse("issuer.subject_malformed", "subject", operation.Args{"most": maxIssuerText})
	}
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		m, err := t.staffNamed(named)
		if err != nil {
			return err
		}
		i, err := issuerOf(ctx, t.tx, nil, t.tx.Forged, m.AgencyID)
		switch {
		case err != nil:
			return err
		case i.ID == "":
			return operation.Refuse("issuer.none", "id", operation.Args{"group": t.group(m.AgencyID)})
		case m.State() == StaffStateRevoked:
			return operation.Refuse("staff.is_revoked", "id", operation.Args{"name": m.Name})
		}
		if err := t.bind(ctx, m, i.Address, subject); err != nil {
			return err
		}
		if _, err := t.reread(ctx, ""); err != nil {
			return err
		}
		bound = t.staffEntry(t.member(m.ID))
		return t.recordStaff(ctx, actor, "staff.issuer_bind", bound)
	})
	if err != nil {
		return StaffEntry{}, fmt.Errorf("binding a member of staff to a subject: %w", err)
	}
	return bound, nil
}

// bind stores who a person is at an issuer. Sessions and visits of the one before end.
func (t *Tx) bind(ctx context.Context, m Staff, issuer, subject string) error {
	if err := t.subjectFree(m.ID, issuer, subject); err != nil {
		return err
	}
	if err := errors.Join(
		t.q.BindStaff(ctx, db.BindStaffParams{ID: m.ID, Issuer: &issuer, Subject: &subject}),
		t.q.EndSessionsOfStaff(ctx, m.ID),
	); err != nil {
		return fmt.Errorf("binding %s to a subject: %w", m.ID, err)
	}
	return nil
}

// subjectFree refuses a subject that is another person's.
func (t *Tx) subjectFree(staffID, issuer, subject string) error {
	for _, m := range t.staff {
		if m.ID != staffID && m.RevokedAt.IsZero() && m.Issuer == issuer && m.Subject == subject {
			return operation.Refuse("issuer.subject_taken", "subject", nil)
		}
	}
	return nil
}

// BeginOutage lets the people of an issuer's group sign in with the passkey alone for a time, because the issuer is away. It
// ends by itself. The people of the group are told. named is the id or the group. A refusal is an *operation.Error with the
// field id, hours or reason. After an error nothing has changed.
func BeginOutage(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named string, life time.Duration, reason string, now time.Time) (IssuerEntry, error) {
	if life <= 0 || life > MaxOutage {
		return IssuerEntry{}, operation.Refuse("issuer.hours_malformed", "hours", operation.Args{"most": int(MaxOutage.Hours())})
	}
	if !form.IsLine(reason, maxStaffReason) {
		return IssuerEntry{}, operation.Refuse("staff.reason_malformed", "reason", operation.Args{"most": maxStaffReason})
	}
	return outage(ctx, pool, keys, actor, named, now.Add(life), reason, now)
}

// EndOutage ends an outage before its time. Sessions that have begun stay. named is the id or the group. A refusal is an
// *operation.Error with the field id. After an error nothing has changed.
func EndOutage(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named string, now time.Time) (IssuerEntry, error) {
	return outage(ctx, pool, keys, actor, named, time.Time{}, "", now)
}

func outage(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, named string, until time.Time, reason string, now time.Time) (set IssuerEntry, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) (err error) {
		if set, err = t.issuer(ctx, named); err != nil {
			return err
		}
		action, detail := "staff.outage_end", map[string]any{}
		switch {
		case set.Forged:
			return operation.Refuse(signed.CodeForged, "", operation.Args{"table": "staff_issuers", "key": set.ID})
		case !until.IsZero():
			action, detail = "staff.outage", map[string]any{"until": stamp(until), "reason": reason}
		case !set.Away(now):
			return operation.Refuse("issuer.no_outage", "id", operation.Args{"group": set.Group()})
		}
		if err := t.tx.SetStaffIssuerOutage(ctx, set.ID, unlessZero(until), reason); err != nil {
			return err
		}
		if set, err = t.issuer(ctx, set.ID); err != nil {
			return err
		}
		if !until.IsZero() {
			if err := t.tellOutage(ctx, set); err != nil {
				return err
			}
		}
		return t.recordIssuer(ctx, actor, action, set, detail)
	})
	if err != nil {
		return IssuerEntry{}, fmt.Errorf("changing the outage of an issuer: %w", err)
	}
	return set, nil
}

// CountOutages returns for how many groups an outage is declared at a time. Rows that do not verify declare none.
func CountOutages(ctx context.Context, pool *pgxpool.Pool, v *signed.Verifier, now time.Time) (n int, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		list, err := readIssuers(ctx, tx, v, notVerified)
		for _, i := range list {
			if !i.Forged && i.Away(now) {
				n++
			}
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("counting outages of issuers: %w", err)
	}
	return n, nil
}

// tellOutage tells the people of a group, and the service's security officers, until when a passkey alone signs in.
func (t *Tx) tellOutage(ctx context.Context, i IssuerEntry) error {
	var told []string
	for _, m := range t.staff {
		if !m.Forged && m.State() == StaffStateActive && t.contacts[m.ID].Email != "" && (m.AgencyID == i.AgencyID || m.Operations() && m.May(MayManagePeople)) {
			told = append(told, m.ID)
		}
	}
	named := i.Address // the host alone: messages have no links but the service's own
	if u, err := url.Parse(i.Address); err == nil {
		named = u.Hostname()
	}
	return digests.TellAtOnce(ctx, t.tx, told, digests.Item{Topic: digests.TopicOutage, Subject: named + " (" + i.Group() + ")", Detail: stamp(i.OutageUntil.UTC()), Since: t.tx.Now}, t.tx.Now)
}

func (t *Tx) recordIssuer(ctx context.Context, actor operation.Actor, action string, i IssuerEntry, detail map[string]any) error {
	said := map[string]any{"group": i.Group(), "address": i.Address, "client_id": i.ClientID, "algorithms": i.Algorithms}
	for name, is := range detail {
		said[name] = is
	}
	return operation.Record(ctx, t.tx, actor, t.tx.Now, operation.Entry{Action: action, Subject: i.ID, AgencyID: i.AgencyID, Detail: said})
}
