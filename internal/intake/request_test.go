package intake_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/operation"
	"quittance/internal/statements"
	"quittance/test/registries"
)

// person makes a member of staff of an agency, or of operations.
func (o *office) person(name, agency string) identity.Staff {
	o.t.Helper()
	m, err := identity.AddStaff(o.t.Context(), o.Pool, o.Keys, registries.Actor, "", identity.StaffRequest{Name: name, Agency: agency}, time.Now())
	if err != nil {
		o.t.Fatal(err)
	}
	return m.Staff
}

// A group whose people have passkeys approves no file with an st_ key.
func TestOriginalIsNotApprovedWithAKey(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	r := o.imports(o.store(), "mtn", mtn(1), statements.VerdictAccepted)
	awa, ben := o.person("Awa", "impots"), o.person("Ben", "impots")
	now := time.Now().UTC()
	o.GivePasskeys(t, awa.ID, ben.ID)
	q, err := intake.RequestOriginal(t.Context(), o.Pool, o.Keys, withKey(awa), r.ImportID, "line 7 is disputed", now)
	if err != nil {
		t.Fatal(err)
	}
	var refused *operation.Error
	if _, err := intake.ApproveOriginal(t.Context(), o.Pool, o.Keys, withKey(ben), q.ID, now); !errors.As(err, &refused) || refused.Code != "staff.keys_propose" {
		t.Errorf("%v", err)
	}
}

// Two people of the agency agree that one of them reads the file of an import. Everybody else is
// refused, also later, and every step is in the audit table.
func TestOriginalByTwo(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	r := o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
	now := time.Now().UTC().Truncate(time.Millisecond)
	awa, ben, operations := o.person("Awa", "impots"), o.person("Ben", "impots"), o.person("Olga", "")
	other := ben
	other.AgencyID = registries.AgencyB
	refused := func(err error, want string) {
		t.Helper()
		var e *operation.Error
		if !errors.As(err, &e) || e.Code != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	request := func(by identity.Staff) intake.OriginalRequest {
		t.Helper()
		q, err := intake.RequestOriginal(t.Context(), o.Pool, o.Keys, withKey(by), r.ImportID, "line 7 is disputed", now)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	approve := func(by identity.Staff, id string, at time.Time) error {
		_, err := intake.ApproveOriginal(t.Context(), o.Pool, o.Keys, withKey(by), id, at)
		return err
	}
	read := func(by identity.Staff, id string, at time.Time) (string, error) {
		var file bytes.Buffer
		err := intake.ReadOriginal(t.Context(), o.Pool, o.Keys, withKey(by), id, at, &file)
		return file.String(), err
	}
	nobody := func(by identity.Staff, id string, at time.Time, want string) {
		t.Helper()
		file, err := read(by, id, at)
		if refused(err, want); file != "" {
			t.Errorf("%d bytes were shown", len(file))
		}
	}

	_, err := intake.RequestOriginal(t.Context(), o.Pool, o.Keys, withKey(other), r.ImportID, "x", now)
	refused(err, "statement.unknown")
	_, err = intake.RequestOriginal(t.Context(), o.Pool, o.Keys, withKey(awa), "x", "x", now)
	refused(err, "statement.unknown")
	_, err = intake.RequestOriginal(t.Context(), o.Pool, o.Keys, withKey(awa), r.ImportID, "", now)
	refused(err, "statement.reason_malformed")

	q := request(awa)
	nobody(awa, q.ID, now, "statement.request_waits")
	refused(approve(awa, q.ID, now), "statement.second_person")
	refused(approve(other, q.ID, now), "statement.request_unknown")
	refused(approve(ben, "x", now), "statement.request_unknown")
	refused(approve(ben, q.ID, now.Add(24*time.Hour+time.Second)), "statement.request_over")
	if list, err := intake.OriginalRequests(t.Context(), o.Pool, registries.AgencyA, now); err != nil || len(list) != 1 || list[0].RequestedBy != "Awa" || list[0].ApprovedBy != "" || list[0].Code != "mtn" {
		t.Errorf("%+v, %v", list, err)
	}
	at := now.Add(time.Hour)
	if err := approve(operations, q.ID, at); err != nil {
		t.Fatal(err)
	}
	refused(approve(ben, q.ID, at), "statement.request_approved")
	nobody(ben, q.ID, at, "statement.request_unknown") // the approver has no request
	nobody(operations, q.ID, at, "statement.request_unknown")
	nobody(awa, q.ID, at.Add(24*time.Hour+time.Second), "statement.request_over")
	if file, err := read(awa, q.ID, at.Add(23*time.Hour)); err != nil || file != mtn(1) {
		t.Errorf("%d bytes, %v", len(file), err)
	}
	if got := strings.Join(o.Audited(t), " "); !strings.HasSuffix(got, "statements.original.request statements.original.approve statements.original.read") {
		t.Errorf("audit: %s", got)
	}
	if list, err := intake.OriginalRequests(t.Context(), o.Pool, registries.AgencyB, now); err != nil || len(list) != 0 {
		t.Errorf("another agency sees %+v, %v", list, err)
	}

	// A person who was revoked meanwhile reads nothing.
	waits := request(awa)
	o.Write(t, `UPDATE staff SET revoked_at = now() WHERE name = 'Awa'`)
	nobody(awa, q.ID, at, "staff.revoked")
	refused(approve(ben, waits.ID, now), "statement.request_over")

	// What is stored is not the file: nothing passes for it.
	second := request(ben)
	if err := approve(operations, second.ID, now); err != nil {
		t.Fatal(err)
	}
	o.Exec(t, `UPDATE statement_original_parts SET content = set_byte(content, 0, 255 - get_byte(content, 0))`)
	if _, err := read(ben, second.ID, now); !errors.Is(err, intake.ErrOriginal) {
		t.Errorf("a damaged file: %v", err)
	}
	o.Exec(t, `UPDATE statement_imports SET digest = repeat('0', 64)`)
	nobody(ben, second.ID, now, "statement.not_believed") // people agreed on another one
}

// A file is deleted after the years that its account says; the import and its lines stay.
func TestOriginalsAreDeleted(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	first, second := o.imports(s, "mtn", mtn(1), statements.VerdictAccepted), o.imports(s, "airtel", airtel(1, 1), statements.VerdictAccepted)
	o.Exec(t, `UPDATE statement_accounts SET keep_years = 3 WHERE code = 'airtel'`)
	kept := func(years int, want int64, left ...string) {
		t.Helper()
		if n, err := intake.SweepOriginals(t.Context(), o.Pool, time.Now().AddDate(years, 0, 1)); err != nil || n != want {
			t.Errorf("after %d years: %d deleted, %v; want %d", years, n, err, want)
		}
		for _, id := range []string{first.ImportID, second.ImportID} {
			var there bool
			if err := o.Pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM statement_originals WHERE id = $1)`, id).Scan(&there); err != nil || there != strings.Contains(strings.Join(left, " "), id) {
				t.Errorf("after %d years: %s %t, %v", years, id, there, err)
			}
		}
	}
	kept(2, 0, first.ImportID, second.ImportID)
	kept(3, 1, first.ImportID)
	kept(9, 0, first.ImportID)
	kept(10, 1)
	if list, err := intake.List(t.Context(), o.Pool, intake.Filter{}); err != nil || len(list) != 2 {
		t.Errorf("%d imports, %v", len(list), err)
	}
	_, err := intake.RequestOriginal(t.Context(), o.Pool, o.Keys, withKey(o.person("Awa", "impots")), first.ImportID, "x", time.Now())
	var e *operation.Error
	if !errors.As(err, &e) || e.Code != "statement.original_deleted" {
		t.Errorf("a deleted file: %v", err)
	}
}
