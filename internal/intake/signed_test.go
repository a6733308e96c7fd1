package intake_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/intake"
	"quittance/internal/statements"
)

// Whoever could write to Postgres inserted the request of a colleague, and the next person took the lines of a right file
// back; or he marked an import as withdrawn, so that the same file was accepted twice. Nothing of that is carried out,
// and people can withdraw the import all the same.
func TestForgedWithdrawal(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.closing("", "")
	awa, ben := o.people()
	r := o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
	insert := func(id string) {
		t.Helper()
		o.Exec(t, `INSERT INTO statement_withdrawals (id, import_id, state, reason, requested_by, requested_at) VALUES ($1, $2, 'requested', 'the wrong day', $3, now())`, id, r.ImportID, awa.ID)
	}
	believed := func(id string) {
		t.Helper()
		_, lines, err := s.ApproveWithdrawal(t.Context(), withKey(ben), id, time.Now())
		if o.refusedAs(err, "statement.not_believed"); lines != 0 {
			t.Errorf("%d lines", lines)
		}
		o.counts("mtn", 3, 2970)
	}
	forged := uuid.NewString()
	insert(forged)
	believed(forged)

	// The signature of another request, and a request whose reason was changed.
	w, err := s.RequestWithdrawal(t.Context(), withKey(awa), r.ImportID, "the wrong day", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	o.Exec(t, `UPDATE statement_withdrawals f SET digest = w.digest, requested_signature = w.requested_signature, requested_at = w.requested_at FROM statement_withdrawals w WHERE w.id = $1 AND f.id = $2`, w.ID, forged)
	believed(forged)
	o.Exec(t, `UPDATE statement_withdrawals SET reason = 'x' WHERE id = $1`, w.ID)
	believed(w.ID)
	o.Exec(t, `UPDATE statement_withdrawals SET reason = 'the wrong day' WHERE id = $1`, w.ID)
	o.Exec(t, `UPDATE statement_imports SET from_offset = from_offset + 1 WHERE id = $1`, r.ImportID) // its records are said to be elsewhere
	believed(w.ID)
	o.Exec(t, `UPDATE statement_imports SET from_offset = from_offset - 1 WHERE id = $1`, r.ImportID)

	// An approved row whose records seem to be in the topic: those of the import itself, because it has its id.
	o.Exec(t, `INSERT INTO statement_withdrawals (id, import_id, state, reason, requested_by, requested_at, decided_by, decided_at, partition, from_offset, actor)
		SELECT id, id, 'approved', 'r', $2, now(), $3, now(), partition, from_offset, '{"kind": "staff", "name": "x"}' FROM statement_imports WHERE id = $1`, r.ImportID, awa.ID, ben.ID)
	o.imports(s, "mtn", mtn(1), statements.VerdictUnchanged) // settles it
	o.counts("mtn", 3, 2970)
	if n := o.audits("statements.withdraw.refuse"); n != 1 || o.audits("statements.withdraw") != 0 || o.covers().Pending {
		t.Errorf("%d refusals are in the audit table", n)
	}
	believed(r.ImportID)

	for _, id := range []string{forged, r.ImportID} {
		if _, err := s.RejectWithdrawal(t.Context(), withKey(ben), id, time.Now()); err != nil {
			t.Error(err)
		}
	}
	if _, lines, err := s.ApproveWithdrawal(t.Context(), withKey(ben), w.ID, time.Now()); err != nil || lines != 3 {
		t.Errorf("the true one: %d lines, %v", lines, err)
	}
	o.counts("mtn", 0, 0)

	// The withdrawn import is said to be accepted: its days count as covered, and have no line.
	o.Exec(t, `UPDATE statement_imports SET state = 'accepted' WHERE id = $1`, r.ImportID)
	if id := o.unproved(); id != r.ImportID {
		t.Errorf("a withdrawn import is proved: %q", id)
	}
	o.Exec(t, `UPDATE statement_imports SET state = 'withdrawn' WHERE id = $1`, r.ImportID)
	o.decidesAs(awa, o.imports(s, "mtn", mtn(1), statements.VerdictQuarantined).ImportID, intake.Released, "it was right", "")
	again := o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
	if id := o.unproved(); id != "" {
		t.Errorf("the file that was imported again is not proved: %q, it is %s", id, again.ImportID)
	}
}

// unproved returns the accepted import of February that Kafka does not prove.
func (o *office) unproved() string {
	o.t.Helper()
	id, err := o.covers().Unproved(o.t.Context(), intake.Records{Kafka: o.kafka, Topology: o.topo, Codec: o.codec})
	if err != nil {
		o.t.Fatal(err)
	}
	return id
}

// Whoever could write to Postgres approved his own request to read the names and numbers of payers.
func TestForgedRequest(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	r := o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
	now := time.Now().UTC()
	awa, ben := o.people()
	unread := func(id string) {
		t.Helper()
		var file bytes.Buffer
		err := intake.ReadOriginal(t.Context(), o.Pool, o.Keys, withKey(awa), id, now, &file)
		if o.refusedAs(err, "statement.not_believed"); file.Len() != 0 {
			t.Errorf("%d bytes were shown", file.Len())
		}
	}
	forged := uuid.NewString()
	o.Exec(t, `INSERT INTO statement_original_requests (id, import_id, reason, requested_by, requested_at, approved_by, approved_at) VALUES ($1, $2, 'r', $3, now(), $4, now())`, forged, r.ImportID, awa.ID, ben.ID)
	unread(forged)
	q, err := intake.RequestOriginal(t.Context(), o.Pool, o.Keys, withKey(awa), r.ImportID, "line 7 is disputed", now)
	if err != nil {
		t.Fatal(err)
	}
	o.Exec(t, `UPDATE statement_original_requests SET approved_by = $2, approved_at = requested_at, approved_signature = requested_signature WHERE id = $1`, q.ID, ben.ID)
	unread(q.ID)
	o.Exec(t, `UPDATE statement_original_requests SET approved_by = NULL, approved_at = NULL, approved_signature = NULL, reason = 'all of it' WHERE id = $1`, q.ID)
	_, err = intake.ApproveOriginal(t.Context(), o.Pool, o.Keys, withKey(ben), q.ID, now)
	o.refusedAs(err, "statement.not_believed")
	o.Exec(t, `UPDATE statement_original_requests SET reason = 'line 7 is disputed' WHERE id = $1`, q.ID)
	if _, err := intake.ApproveOriginal(t.Context(), o.Pool, o.Keys, withKey(ben), q.ID, now); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := intake.ReadOriginal(t.Context(), o.Pool, o.Keys, withKey(awa), q.ID, now, &file); err != nil || file.String() != mtn(1) {
		t.Errorf("%q, %v", file.String(), err)
	}
}
