package intake_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/statements"
	"quittance/test/registries"
)

// quarantined imports a file that contradicts an accepted one, and returns both and the import in quarantine.
func (o *office) quarantined(s *intake.Store) (accepted, held, importID string) {
	o.t.Helper()
	accepted, held = exported(0, row{1, 0, 300}, row{1, 1, 200}), exported(0, row{1, 0, 400}, row{1, 1, 200})
	o.imports(s, "mtn", accepted, statements.VerdictAccepted)
	return accepted, held, o.imports(s, "mtn", held, statements.VerdictQuarantined).ImportID
}

func (o *office) releases(by identity.Staff, importID string, at time.Time) intake.Release {
	o.t.Helper()
	r, err := intake.RequestRelease(o.t.Context(), o.Pool, o.Keys, withKey(by), importID, "MTN says so", at)
	if err != nil {
		o.t.Fatal(err)
	}
	return r
}

func (o *office) approves(by identity.Staff, releaseID string, at time.Time) error {
	_, err := intake.ApproveRelease(o.t.Context(), o.Pool, o.Keys, withKey(by), releaseID, at)
	return err
}

// One person let a file into the books. Two people of the agency do it, within a day each, and whoever asked takes it back.
func TestReleaseByTwo(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	awa, ben := o.people()
	_, held, id := o.quarantined(s)
	other := ben
	other.AgencyID = registries.AgencyB
	at := yearEnd
	_, err := intake.RequestRelease(t.Context(), o.Pool, o.Keys, withKey(other), id, "r", at)
	o.refusedAs(err, "statement.unknown")
	r := o.releases(awa, id, at)
	o.imports(s, "mtn", held, statements.VerdictQuarantined)
	o.refusedAs(o.approves(awa, r.ID, at), "statement.release_second_person")
	o.refusedAs(o.approves(other, r.ID, at), "statement.release_unknown")
	o.refusedAs(o.approves(ben, "x", at), "statement.release_unknown")
	o.refusedAs(o.approves(ben, r.ID, at.Add(25*time.Hour)), "statement.release_over")
	if _, err := intake.RejectRelease(t.Context(), o.Pool, o.Keys, withKey(awa), r.ID, at); err != nil {
		t.Error(err)
	}
	o.refusedAs(o.approves(ben, r.ID, at), "statement.release_decided")

	r = o.releases(awa, id, at)
	if err := o.approves(ben, r.ID, at); err != nil {
		t.Fatal(err)
	}
	list, err := intake.Releases(t.Context(), o.Pool, registries.AgencyA)
	if err != nil || len(list) != 2 || list[1].State != intake.ReleaseApproved || list[1].RequestedBy != "Awa" || list[1].DecidedBy != "Ben" || !list[1].Until().Equal(at.Add(24*time.Hour)) {
		t.Errorf("%+v, %v", list, err)
	}
	// A day later it is in quarantine again, and is released once more.
	late := o.request("mtn", held)
	late.Now = at.Add(25 * time.Hour)
	if got, err := s.Import(t.Context(), late); err != nil || got.State != statements.VerdictQuarantined {
		t.Fatalf("%+v, %v", got, err)
	}
	if c := o.covers(); !slices.Equal(c.Quarantined, []string{id}) || o.audits("statements.quarantine") != 1 {
		t.Errorf("%+v", c)
	}
	if err := o.approves(ben, o.releases(awa, id, at).ID, at); err != nil {
		t.Fatal(err)
	}
	o.imports(s, "mtn", held, statements.VerdictAccepted)
	if o.audits("statements.release.request") != 3 || o.audits("statements.release") != 2 || o.audits("statements.release.reject") != 1 {
		t.Errorf("audit: %v", o.Audited(t))
	}
}

// A group whose people have passkeys neither releases a file with an st_ key nor rejects what another person has asked
// for. Whoever has asked takes it back.
func TestReleaseIsNotApprovedWithAKey(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	_, _, id := o.quarantined(o.store())
	awa, ben := o.people()
	o.GivePasskeys(t, awa.ID, ben.ID)
	r := o.releases(awa, id, yearEnd)
	o.refusedAs(o.approves(ben, r.ID, yearEnd), "staff.keys_propose")
	_, err := intake.RejectRelease(t.Context(), o.Pool, o.Keys, withKey(ben), r.ID, yearEnd)
	o.refusedAs(err, "staff.keys_propose")
	if _, err := intake.RejectRelease(t.Context(), o.Pool, o.Keys, withKey(awa), r.ID, yearEnd); err != nil {
		t.Error(err)
	}
}

// Whoever could write to Postgres released a file from quarantine: its lines counted beside those of the accepted one at the
// next import of a nightly job.
func TestForgedRelease(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	awa, ben := o.people()
	_, held, id := o.quarantined(s)
	release := `UPDATE statement_imports SET state = 'released', released_at = now(), released_by = 'Awa', released_reason = 'r' WHERE id = $1`
	stays := func(how string) {
		t.Helper()
		before := o.audits("statements.quarantine")
		o.Exec(t, release, id)
		if c := o.covers(); !slices.Contains(c.Quarantined, id) {
			t.Errorf("%s: %+v", how, c)
		}
		o.imports(s, "mtn", held, statements.VerdictQuarantined)
		if n := o.audits("statements.quarantine"); n != before+1 {
			t.Errorf("%s: %d refusals in the audit table, had %d", how, n, before)
		}
	}
	stays("a state")
	o.Exec(t, `INSERT INTO statement_exits (id, import_id, verdict, state, reason, requested_by, requested_at, decided_by, decided_at) VALUES ($1, $2, 'released', 'approved', 'r', $3, now(), $4, now())`, uuid.NewString(), id, awa.ID, ben.ID)
	stays("an inserted decision")
	r := o.releases(awa, id, yearEnd)
	o.Exec(t, `UPDATE statement_exits SET state = 'approved', decided_by = $2, decided_at = requested_at, decided_signature = requested_signature WHERE id = $1`, r.ID, ben.ID)
	stays("one person's signature twice")
	o.Exec(t, `UPDATE statement_exits SET state = 'requested', decided_by = NULL, decided_at = NULL, decided_signature = NULL, reason = 'x' WHERE id = $1`, r.ID)
	o.refusedAs(o.approves(ben, r.ID, yearEnd), "statement.not_believed")
	o.Exec(t, `UPDATE statement_exits SET reason = $2 WHERE id = $1`, r.ID, r.Reason)

	// A dismissal of one person is made a release of two, and the release of another file is that of this one.
	if err := intake.Dismiss(t.Context(), o.Pool, o.Keys, withKey(awa), id, "r", yearEnd); err != nil {
		t.Fatal(err)
	}
	o.Exec(t, `UPDATE statement_exits SET verdict = 'released', decided_by = $2, decided_at = requested_at, decided_signature = requested_signature WHERE import_id = $1 AND verdict = 'dismissed'`, id, ben.ID)
	o.Exec(t, `UPDATE statement_imports SET dismissed_at = NULL, state = 'quarantined' WHERE id = $1`, id)
	stays("a dismissal")
	third := exported(0, row{1, 0, 500}, row{1, 1, 200})
	another := o.imports(s, "mtn", third, statements.VerdictQuarantined).ImportID
	if err := o.approves(ben, o.releases(awa, another, yearEnd).ID, yearEnd); err != nil {
		t.Fatal(err)
	}
	o.Exec(t, `UPDATE statement_exits SET import_id = $1 WHERE import_id = $2`, id, another)
	stays("the release of another file")

	if err := o.approves(ben, r.ID, yearEnd); err != nil {
		t.Fatal(err)
	}
	o.imports(s, "mtn", held, statements.VerdictAccepted)
	o.imports(s, "mtn", third, statements.VerdictQuarantined) // whose release was moved away
}

// Whoever could write to Postgres took a file in quarantine out of the way of a close: he marked it as dismissed, or as
// withdrawn.
func TestForgedDismissal(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.closing("", "")
	awa, ben := o.people()
	_, held, id := o.quarantined(s)
	dismiss := func() {
		t.Helper()
		o.Exec(t, `UPDATE statement_imports SET state = 'dismissed', dismissed_at = now(), dismissed_by = 'Awa', dismissed_reason = 'r' WHERE id = $1`, id)
	}
	waits := func(how string) {
		t.Helper()
		if c := o.covers(); !slices.Equal(c.Quarantined, []string{id}) {
			t.Errorf("%s: %+v", how, c)
		}
	}
	dismiss()
	waits("a state")
	o.Exec(t, `INSERT INTO statement_exits (id, import_id, verdict, state, reason, requested_by, requested_at) VALUES ($1, $2, 'dismissed', 'approved', 'r', $3, now())`, uuid.NewString(), id, awa.ID)
	waits("an inserted decision")
	r := o.imports(s, "mtn", held, statements.VerdictQuarantined) // not refused as dismissed
	if o.audits("statements.quarantine") != 1 || r.ImportID != id {
		t.Errorf("%+v", r)
	}
	dismiss()
	if err := intake.Dismiss(t.Context(), o.Pool, o.Keys, withKey(awa), id, "the first one is right", yearEnd); err != nil { // as after an upgrade
		t.Fatal(err)
	}
	if c := o.covers(); len(c.Quarantined) != 0 {
		t.Errorf("%+v", c)
	}
	o.Exec(t, `UPDATE statement_exits SET reason = 'x' WHERE import_id = $1`, id)
	waits("a changed reason")
	o.Exec(t, `UPDATE statement_exits SET reason = 'the first one is right' WHERE import_id = $1`, id)
	o.imports(s, "mtn", held, statements.VerdictRefused)

	// Another file is said to be withdrawn, with the place of the records of an import that was.
	late := exported(0, row{1, 0, 300}, row{1, 1, 200}, row{1, 3, 7})
	third := o.imports(s, "mtn", late, statements.VerdictAccepted).ImportID
	if n := o.withdraws(s, awa, ben, third); n != 1 {
		t.Fatalf("%d lines", n)
	}
	again := o.imports(s, "mtn", late, statements.VerdictQuarantined).ImportID
	if c := o.covers(); !slices.Equal(c.Quarantined, []string{again}) {
		t.Errorf("%+v", c)
	}
	o.Exec(t, `UPDATE statement_imports q SET state = 'withdrawn', partition = w.partition, from_offset = w.from_offset FROM statement_imports w WHERE q.id = $1 AND w.id = $2`, again, third)
	if got := o.unproved(); got != again {
		t.Errorf("a file in quarantine that is said to be withdrawn is proved: %q", got)
	}
	o.Exec(t, `UPDATE statement_imports SET state = 'quarantined' WHERE id = $1`, again)

	// The withdrawal of a release that did not sign is proved by Kafka.
	o.Exec(t, `UPDATE statement_withdrawals SET digest = NULL, requested_signature = NULL, decided_signature = NULL`)
	if got := o.unproved(); got != "" {
		t.Errorf("an unsigned withdrawal that Kafka has is not proved: %q", got)
	}
}

// A dismissal was for ever. It can be taken back while the file is kept.
func TestReopen(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	awa, ben := o.people()
	_, held, id := o.quarantined(s)
	reopen := func(id, reason string) error {
		return intake.Reopen(t.Context(), o.Pool, o.Keys, withKey(ben), id, reason, yearEnd)
	}
	o.refusedAs(reopen(id, "r"), "statement.not_dismissed")
	if err := intake.Dismiss(t.Context(), o.Pool, o.Keys, withKey(awa), id, "the first one is right", yearEnd); err != nil {
		t.Fatal(err)
	}
	o.imports(s, "mtn", held, statements.VerdictRefused)
	o.refusedAs(reopen("x", "r"), "statement.unknown")
	o.refusedAs(reopen(id, ""), "statement.reason_malformed")
	if err := reopen(id, "MTN withdrew the first one"); err != nil {
		t.Fatal(err)
	}
	if c := o.covers(); !slices.Equal(c.Quarantined, []string{id}) || o.audits("statements.reopen") != 1 {
		t.Errorf("%+v", c)
	}
	o.Exec(t, `UPDATE statement_imports SET state = 'dismissed', dismissed_at = now() WHERE id = $1`, id) // the dismissal that was taken back
	if c := o.covers(); !slices.Equal(c.Quarantined, []string{id}) {
		t.Errorf("%+v", c)
	}
	o.imports(s, "mtn", held, statements.VerdictQuarantined)
	if err := o.approves(ben, o.releases(awa, id, yearEnd).ID, yearEnd); err != nil {
		t.Fatal(err)
	}
	if err := intake.Dismiss(t.Context(), o.Pool, o.Keys, withKey(awa), id, "the first one is right", yearEnd); err != nil {
		t.Fatal(err)
	}
	o.Exec(t, `DELETE FROM statement_originals WHERE id = $1`, id)
	o.refusedAs(reopen(id, "r"), "statement.original_deleted")
}

// A process of an earlier release, which did not sign, carried out a withdrawal and died before it said so. The next import undid
// the withdrawal although Kafka had it: its lines counted in Postgres and not in the books. Rows of which Kafka has nothing
// are still undone.
func TestWithdrawalOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	for _, step := range []string{intake.StepPending, intake.StepCommitted} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			s := o.closing("", "")
			awa, ben := o.people()
			id := o.imports(s, "mtn", mtn(1), statements.VerdictAccepted).ImportID
			w, err := s.RequestWithdrawal(t.Context(), withKey(awa), id, "the wrong day", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			dying := o.closing("", "")
			dying.Kill(func(at string) bool { return at == step })
			if _, _, err := dying.ApproveWithdrawal(t.Context(), withKey(ben), w.ID, time.Now()); !errors.Is(err, intake.ErrKilled) {
				t.Fatal(err)
			}
			o.Exec(t, `UPDATE statement_withdrawals SET digest = NULL, requested_signature = NULL, decided_signature = NULL`)
			o.Exec(t, `DELETE FROM statement_withdrawn_lines`)
			if step == intake.StepPending {
				o.imports(s, "mtn", mtn(1), statements.VerdictUnchanged)
				o.counts("mtn", 3, 2970)
				return
			}
			r := o.imports(s, "mtn", mtn(1), statements.VerdictQuarantined)
			if !strings.Contains(r.Faults[0].Detail, "Awa and Ben") || o.audits("statements.withdraw") != 1 || o.audits("statements.withdraw.refuse") != 0 {
				t.Errorf("%+v", r)
			}
			o.counts("mtn", 0, 0)
			// The lines have another life when they come again.
			o.decidesAs(awa, r.ImportID, intake.Released, "it was right", "")
			o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
			o.counts("mtn", 3, 2970)
		})
	}
}

// Somebody edits each column of what people signed about files in quarantine: none of it is believed then.
func TestTamperedExits(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	awa, ben := o.people()
	_, held, id := o.quarantined(s)
	other := o.imports(s, "mtn", exported(0, row{1, 0, 500}, row{1, 1, 200}), statements.VerdictQuarantined).ImportID
	rows, _ := o.Pool.Query(t.Context(), `SELECT column_name::text, udt_name::text FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'statement_exits' ORDER BY 1`)
	type column struct{ Name, Kind string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil || len(columns) < 12 {
		t.Fatal(columns, err)
	}
	// The proof of another decision.
	proof := uuid.NewString()
	o.GivePasskeys(t, awa.ID)
	o.Exec(t, `INSERT INTO decisions (id, at, staff_id, kind, subject, verdict, agency_id, statement, challenge, passkey_id, public_key, client_data, authenticator_data, assertion)
		SELECT $1, $2, staff_id, 'case', 'case_1#1', 'approved', NULL, 's', 'c', id, 'k', 'd', 'a', 'a' FROM staff_passkeys LIMIT 1`, proof, yearEnd)
	change := map[string]string{
		"id": `gen_random_uuid()`, "import_id": `'` + other + `'`, "verdict": `CASE verdict WHEN 'released' THEN 'dismissed' ELSE 'released' END`, "state": `'rejected'`, "reason": `reason || 'x'`,
		"requested_by": `'` + ben.ID + `'`, "decided_by": `(SELECT id FROM staff WHERE id NOT IN ('` + awa.ID + `', '` + ben.ID + `') LIMIT 1)`,
		"requested_at": `requested_at + interval '1 second'`, "decided_at": `decided_at + interval '1 second'`,
		"requested_proof": `'` + proof + `'`, "decided_proof": `'` + proof + `'`, "digest": `'\x00'`, "requested_signature": `'\x00'`, "decided_signature": `'\x00'`,
	}
	// A third person, whom somebody names as the second one.
	o.Exec(t, `INSERT INTO staff (id, name, folded, agency_id, created_at, approved_at) SELECT gen_random_uuid(), 'Third', 'third', agency_id, created_at, approved_at FROM staff WHERE id = $1`, awa.ID)
	released := func() bool {
		req := o.request("mtn", held)
		req.Try = true
		got, err := s.Import(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return got.State == statements.VerdictAccepted
	}
	dismissed := func() bool { return !slices.Contains(o.covers().Quarantined, id) }
	tried, believed := 0, 0
	for _, verdict := range []intake.Decision{intake.Released, intake.Dismissed} {
		holds := released
		if verdict == intake.Dismissed {
			holds = dismissed
			if err := intake.Dismiss(t.Context(), o.Pool, o.Keys, withKey(awa), id, "r", yearEnd); err != nil {
				t.Fatal(err)
			}
		} else if err := o.approves(ben, o.releases(awa, id, yearEnd).ID, yearEnd); err != nil {
			t.Fatal(err)
		}
		if !holds() {
			t.Fatalf("%s does not hold", verdict)
		}
		o.Exec(t, `CREATE TABLE before_`+string(verdict)+` AS SELECT * FROM statement_exits`)
		for _, c := range columns {
			to, known := change[c.Name]
			if !known {
				t.Fatalf("no other value of %s", c.Name)
			}
			if verdict == intake.Dismissed && strings.HasPrefix(c.Name, "decided") {
				continue // a dismissal has no second person
			}
			tried++
			if _, err := o.Pool.Exec(t.Context(), `UPDATE statement_exits SET `+c.Name+` = `+to+` WHERE import_id = $1 AND verdict = $2 AND state = 'approved'`, id, verdict); err != nil {
				if !strings.Contains(err.Error(), "SQLSTATE 23514") { // the table refuses it
					t.Fatal(err)
				}
			} else if holds() {
				believed++
				t.Errorf("%s of a file that is %s is believed", c.Name, verdict)
			}
			o.Exec(t, `DELETE FROM statement_exits`)
			o.Exec(t, `INSERT INTO statement_exits SELECT * FROM before_`+string(verdict))
		}
		if !holds() {
			t.Errorf("%s does not hold any more", verdict)
		}
	}
	t.Logf("tried=%d believed=%d", tried, believed)
}
