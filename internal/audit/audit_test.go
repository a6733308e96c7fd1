package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/audit"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/servers"
)

// registry is a schema registry in memory.
type registry struct{ texts []string }

func (*registry) IDs(context.Context, string) ([]int, error) { return nil, nil }

func (r *registry) ID(_ context.Context, _, schema string, _ bool) (int, error) {
	r.texts = append(r.texts, schema)
	return len(r.texts), nil
}

func (*registry) Schema(_ context.Context, id int) (string, error) {
	return "", fmt.Errorf("schema %d: %w", id, schemas.ErrUndecodable)
}

var (
	epoch = time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)
	actor = operation.Actor{Kind: operation.ActorPerson, Name: "0198aaaa-0000-7000-8000-000000000001", Origin: "192.0.2.77"}
)

// world has an audit table, its topic, and a clock that each row moves by a minute.
type world struct {
	t     *testing.T
	pool  *pgxpool.Pool
	kafka kafka.Config
	codec *schemas.Codec
	cl    *kgo.Client
	now   time.Time
	rows  int
	keys  *secret.Keys
	// metrics are those of the last relay.
	metrics *prometheus.Registry
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: epoch, keys: secret.GenerateKeys()}
	_, w.pool = servers.Database(t, operation.SignedBy(func() operation.Signer { return w.keys }))
	topic := slices.IndexFunc(schemas.Topics(), func(t schemas.Topic) bool { return t.Name == schemas.TopicAudit })
	w.kafka = kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Replication: 1, Topics: schemas.Topics()[topic : topic+1]}
	w.migrate()
	return w
}

func (w *world) migrate() {
	w.t.Helper()
	var err error
	if w.cl, err = w.kafka.Producer(kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.cl.Close)
	if _, err := kafka.Migrate(w.t.Context(), w.kafka, w.cl); err != nil {
		w.t.Fatal(err)
	}
	if w.codec, err = schemas.NewCodec(w.t.Context(), &registry{}, true); err != nil {
		w.t.Fatal(err)
	}
}

// record writes n rows.
func (w *world) record(n int) {
	w.t.Helper()
	for range n {
		w.recordIn(w.pool)
	}
}

func (w *world) recordIn(tx operation.Execer) {
	w.t.Helper()
	w.rows++
	w.now = w.now.Add(time.Minute)
	err := operation.Record(w.t.Context(), tx, actor, w.now, operation.Entry{
		Action: "case.reject", Subject: fmt.Sprintf("case_%d", w.rows), Detail: map[string]any{"reason": "Mireille has called", "proposal": w.rows, "amounts": []any{1.50, nil, true}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// relay records all rows with a relay that has just begun.
func (w *world) relay() {
	w.t.Helper()
	topology, err := kafka.Load(w.t.Context(), w.kafka, w.cl)
	if err != nil {
		w.t.Fatal(err)
	}
	w.metrics = prometheus.NewRegistry()
	r, err := audit.NewRelay(audit.RelayConfig{
		Kafka: w.kafka, Topology: topology, Codec: w.codec, Client: w.cl, Pool: w.pool, Verify: w.keys.Subset("cases", []secret.Use{{Purpose: secret.PurposeVerify, Label: operation.LabelAudit}}).VerifySignature,
		Now: func() time.Time { return w.now }, Log: servers.Logger(w.t), Metrics: w.metrics,
	})
	if err == nil {
		err = r.Relay(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) config() audit.VerifyConfig {
	return audit.VerifyConfig{Kafka: w.kafka, Codec: w.codec, Pool: w.pool, AllRecords: true, Within: time.Millisecond}
}

func (w *world) verify() audit.Verified {
	w.t.Helper()
	v, err := audit.Verify(w.t.Context(), w.config())
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// finds expects findings, as fault and number.
func (w *world) finds(after string, want ...string) {
	w.t.Helper()
	got := []string{}
	for _, f := range w.verify().Findings {
		if !f.Accepted {
			got = append(got, fmt.Sprintf("%s %d", f.Fault, f.Sequence))
		}
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("after %s: found %q, want %q", after, got, want)
	}
}

// edit changes the tables as whoever owns the database can.
func (w *world) edit(statements ...string) {
	w.t.Helper()
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		for _, s := range append([]string{`SET LOCAL session_replication_role = replica`}, statements...) {
			if _, err := tx.Exec(w.t.Context(), s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// records returns the records of the topic.
func (w *world) records() (out []*record.AuditRow, values [][]byte) {
	w.t.Helper()
	_, err := w.kafka.ReadAll(w.t.Context(), w.kafka.Prefix+schemas.TopicAudit, func(r *kgo.Record) error {
		var rec record.AuditRow
		out, values = append(out, &rec), append(values, r.Value)
		return w.codec.Decode(r.Value, &rec)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out, values
}

// Somebody with the database's password changed the row of an approval, and nothing showed it. Each change of a column,
// each row that is removed and each row that is written beside the service is named.
func TestEveryEditIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record(6)
	w.relay()
	w.finds("nothing")
	rows, _ := w.pool.Query(t.Context(), `SELECT column_name FROM information_schema.columns WHERE table_name = 'audit' AND table_schema = current_schema() AND column_name <> 'signature'`) // the record says whether it held
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(columns) < 9 {
		t.Fatalf("columns %v, %v", columns, err)
	}
	edits := map[string]string{
		"id": "id = 99", "at": "at = at + interval '1 second'", "detail": `detail = detail || '{"proposal": 7}'`, "salt": "salt = gen_random_uuid()",
		"agency_id": "agency_id = coalesce(agency_id, '') || 'x'",
	}
	for _, column := range columns {
		set := edits[column]
		if set == "" {
			set = column + " = " + column + " || 'x'"
		}
		w.edit(`CREATE TABLE kept AS SELECT * FROM audit WHERE id = 3`, `ALTER TABLE audit ALTER id SET GENERATED BY DEFAULT`, `UPDATE audit SET `+set+` WHERE id = 3`, `UPDATE audit_sequence SET row_id = (SELECT id FROM audit WHERE id IN (3, 99)) WHERE sequence = 3`)
		w.finds(column+" was edited", "changed 3")
		if f := w.verify().Findings; len(f) == 1 && len(f[0].Columns) != 0 && !slices.Contains([]string{"origin", "detail", "salt", "agency_id"}, column) && f[0].Columns[0].Name != column {
			t.Errorf("the edit of %s is told as %+v", column, f[0].Columns)
		}
		w.edit(`DELETE FROM audit WHERE id IN (3, 99)`, `INSERT INTO audit OVERRIDING SYSTEM VALUE SELECT * FROM kept`, `UPDATE audit_sequence SET row_id = 3 WHERE sequence = 3`, `DROP TABLE kept`)
		w.finds(column + " was put back")
	}
	w.edit(`UPDATE audit_sequence SET sequence = CASE sequence WHEN 1 THEN 2 ELSE 1 END + 100 WHERE sequence < 3`, `UPDATE audit_sequence SET sequence = sequence - 100 WHERE sequence > 100`)
	w.finds("two numbers were exchanged", "changed 1", "changed 2")
	w.edit(`UPDATE audit_sequence SET sequence = 3 - sequence + 100 WHERE sequence < 3`, `UPDATE audit_sequence SET sequence = sequence - 100 WHERE sequence > 100`)

	w.edit(`DELETE FROM audit_sequence WHERE sequence = 4`, `DELETE FROM audit WHERE id = 4`)
	w.finds("a row was removed", "missing 4")
	w.edit(`INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail) VALUES (now(), 'person', 'p', '', 'case.approve', 'case_1', '{}')`,
		`INSERT INTO audit_sequence SELECT 40, max(id) FROM audit`)
	w.finds("a row was added with a number of its own", "missing 4", "added 40")
	w.edit(`DELETE FROM audit_sequence WHERE sequence = 40`, `DELETE FROM audit WHERE action = 'case.approve'`)
	w.edit(`INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail) VALUES ('2026-11-29 07:00Z', 'person', 'p', '', 'case.approve', 'case_1', '{}')`)
	w.finds("a row was added while no relay runs", "missing 4", "added 0")
	w.relay()
	w.finds("the relay recorded a row of the past", "missing 4", "late 7")
}

// Somebody inserted a row by SQL, with the present time: a colleague was said to have approved a payment. Such a row is
// told apart from those of programs, by the relay at once and by every verification. So is one that was copied with its
// signature, and an acceptance that somebody inserted accepts nothing.
func TestInsertedRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record(2)
	// As Postgres returns it, a detail has other spaces, another order and numbers, and a time whole microseconds.
	if err := operation.Record(t.Context(), w.pool, actor, w.now.Add(123456789), operation.Entry{Action: "x.y", Subject: "<&>", Detail: map[string]any{
		"z": "<&> \u2028 é \U0001F600 \\ \"", "a": []any{0.1, 1e6, int64(1) << 62, -7, nil, false}, "aa": map[string]string{"b": "", "a": "1"}, "time": w.now,
	}}); err != nil {
		t.Fatal(err)
	}
	w.relay()
	w.finds("rows of a program")
	const insert = `INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail) VALUES `
	forge := func(statement string, args ...any) error {
		t.Helper()
		_, err := w.pool.Exec(t.Context(), statement, args...)
		return err
	}
	for _, err := range []error{
		forge(insert+`($1, 'person', 'p', '', 'case.approve', 'case_1', '{}')`, w.now),
		forge(`INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail, signature) SELECT at, actor_kind, actor, origin, action, subject, detail, signature FROM audit WHERE id = 1`),
		forge(`INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail, salt, signature) SELECT at, actor_kind, 'p', origin, action, subject, detail, gen_random_uuid(), signature FROM audit WHERE id = 1`),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := forge(`INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail, salt, signature) SELECT at, actor_kind, actor, origin, action, subject, detail, salt, signature FROM audit WHERE id = 1`); err == nil {
		t.Error("a row was repeated")
	}
	w.record(1)
	w.relay()
	w.finds("three rows were inserted", "unsigned 4", "unsigned 5", "unsigned 6")
	if n := w.unsigned(); n != 3 {
		t.Errorf("%g rows counted, want 3", n)
	}
	if err := forge(insert+`($1, 'person', 'p', '', 'audit.accept', '4-6', '{"reason": "r", "accepted": ["unsigned 4", "unsigned 5", "unsigned 6"]}')`, w.now); err != nil {
		t.Fatal(err)
	}
	w.relay()
	w.finds("an acceptance was inserted", "unsigned 4", "unsigned 5", "unsigned 6", "unsigned 8")
	if _, err := audit.Accept(t.Context(), w.config(), actor, 4, 8, "looked into", w.now); err != nil {
		t.Fatal(err)
	}
	w.relay()
	w.finds("they were accepted")
}

// Rows of before programs signed them are accepted, up to the moment that the topic records: the first signed row. Who
// moves the mark in Postgres later hides no row.
func TestRowsOfBeforeSignatures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := w.keys
	w.keys = nil
	w.record(3)
	w.keys = keys
	w.edit(`UPDATE audit_position SET unsigned_until = 3`) // as the migration does
	w.record(1)
	w.relay()
	w.finds("the upgrade")
	if n := w.unsigned(); n != 0 {
		t.Errorf("%g rows counted", n)
	}
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO audit (at, actor_kind, actor, origin, action, subject, detail) VALUES ($1, 'person', 'p', '', 'case.approve', 'case_1', '{}')`, w.now); err != nil {
		t.Fatal(err)
	}
	w.edit(`UPDATE audit_position SET unsigned_until = 1000`)
	w.relay()
	w.finds("the mark was moved", "unsigned 5")
}

// unsigned returns how many rows the last relay has counted.
func (w *world) unsigned() (n float64) {
	w.t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "quittance_audit_unsigned_total" {
			n += f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return n
}

// No role can change or remove rows: the table refuses it.
func TestRowsStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record(1)
	w.relay()
	for _, statement := range []string{
		`UPDATE audit SET actor = 'x'`, `DELETE FROM audit`, `TRUNCATE audit CASCADE`, `DELETE FROM audit WHERE false`, `UPDATE audit_sequence SET sequence = 9`, `DELETE FROM audit_sequence`, `TRUNCATE audit_sequence`,
	} {
		if _, err := w.pool.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "written once and stay") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	w.finds("refused changes")
}

// Postgres was restored from yesterday's backup. The ids of today's rows are given again. The relay goes on above the
// topic's highest number; what was lost is named with who did it, until somebody has accepted it.
func TestRestoredDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record(3)
	w.relay()
	w.record(2) // not recorded yet when the backup was made
	w.edit(`CREATE TABLE backup_audit AS SELECT * FROM audit`, `CREATE TABLE backup_sequence AS SELECT * FROM audit_sequence`, `CREATE TABLE backup_position AS SELECT * FROM audit_position`)
	w.relay()
	w.record(4)
	w.relay()
	w.edit(`TRUNCATE audit, audit_sequence, audit_position`, `INSERT INTO audit OVERRIDING SYSTEM VALUE SELECT * FROM backup_audit`, `INSERT INTO audit_sequence SELECT * FROM backup_sequence`,
		`INSERT INTO audit_position SELECT * FROM backup_position`, `ALTER TABLE audit ALTER id RESTART WITH 6`)
	w.finds("the restore, before a relay runs", "missing 6", "missing 7", "missing 8", "missing 9")
	w.record(2)
	w.relay()
	w.finds("the restore", "missing 6", "missing 7", "missing 8", "missing 9")
	if lost := w.verify().Findings[0]; lost.Actor != actor.Name || lost.Action != "case.reject" || lost.Subject != "case_6" || !lost.At.Equal(epoch.Add(6*time.Minute)) {
		t.Errorf("the lost row is told as %+v", lost)
	}
	got, _ := w.records()
	for i, r := range got {
		if r.Sequence != int64(i+1) {
			t.Errorf("record %d has the number %d", i, r.Sequence)
		}
	}
	if len(got) != 11 {
		t.Errorf("%d records, want 11", len(got))
	}

	if _, err := audit.Accept(t.Context(), w.config(), actor, 6, 9, "", w.now); !refused(err, "audit.reason_malformed") {
		t.Errorf("without a reason: %v", err)
	}
	if _, err := audit.Accept(t.Context(), w.config(), actor, 1, 5, "r", w.now); !refused(err, "audit.nothing_to_accept") {
		t.Errorf("rows that hold: %v", err)
	}
	if accepted, err := audit.Accept(t.Context(), w.config(), actor, 6, 8, "backup of 2026-11-28", w.now); err != nil || len(accepted) != 3 {
		t.Fatalf("%d accepted, %v", len(accepted), err)
	}
	w.finds("an acceptance that is not recorded", "missing 6", "missing 7", "missing 8", "missing 9", "added 0")
	w.relay()
	w.finds("the acceptance", "missing 9")
	w.edit(`UPDATE audit SET detail = jsonb_set(detail, '{accepted}', '["missing 6-9"]') WHERE action = 'audit.accept'`)
	w.finds("an acceptance was edited", "missing 6", "missing 7", "missing 8", "missing 9", "changed 12")
}

// A changed row is accepted as it is; another change is a new finding.
func TestAcceptedChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record(3)
	w.relay()
	w.edit(`UPDATE audit SET subject = 'x' WHERE id = 2`)
	if _, err := audit.Accept(t.Context(), w.config(), actor, 2, 2, "a correction", w.now); err != nil {
		t.Fatal(err)
	}
	w.relay()
	w.finds("the acceptance")
	w.edit(`UPDATE audit SET subject = 'y' WHERE id = 2`)
	w.finds("another change", "changed 2")
}

// A transaction takes an id and commits after one with a higher id was recorded. Its row gets the next number.
func TestRowsThatCommitLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	w.recordIn(tx)
	w.record(2)
	w.relay()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.relay()
	w.finds("the late commit")
	got, _ := w.records()
	if len(got) != 3 || got[2].Sequence != 3 || got[2].RowID != 1 {
		t.Errorf("the topic has %+v", got)
	}
}

// The relay was killed after its records were written and before its transaction committed. The rows get the numbers of
// their records, and no other record.
func TestInterruptedRelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record(3)
	w.relay()
	w.edit(`DELETE FROM audit_sequence WHERE sequence > 1`, `UPDATE audit_position SET sequence = 1, next = 1`)
	w.record(1)
	w.relay()
	w.finds("the crash")
	if got, _ := w.records(); len(got) != 4 || got[3].Sequence != 4 {
		t.Errorf("the topic has %+v", got)
	}
	w.edit(`DELETE FROM audit_position`)
	w.relay()
	w.finds("the position was removed")
	if got, _ := w.records(); len(got) != 4 {
		t.Errorf("the topic has %+v", got)
	}
}

// Kafka lost the topic. Postgres has the rows and their numbers: their records are written again.
func TestTopicLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record(3)
	w.relay()
	w.kafka.Prefix = servers.Prefix(t)
	w.migrate()
	w.finds("the loss", "added 1", "added 2", "added 3")
	w.record(1)
	w.relay()
	w.finds("the relay")
	if got, _ := w.records(); len(got) != 4 || got[0].Sequence != 1 || got[3].Sequence != 4 {
		t.Errorf("the topic has %+v", got)
	}
}

// Records stay for ever, so they have ids only: no address of a machine, no words of people. A record of another program
// does not stop the relay.
func TestRecordsHaveIDsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record(2)
	w.relay()
	_, values := w.records()
	for _, v := range values {
		if strings.Contains(string(v), "Mireille") || strings.Contains(string(v), actor.Origin) || !strings.Contains(string(v), actor.Name) {
			t.Errorf("a record has %q", v)
		}
	}
	if err := w.cl.ProduceSync(t.Context(), &kgo.Record{Topic: w.kafka.Prefix + schemas.TopicAudit, Value: []byte("other")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.record(1)
	w.relay()
	if v := w.verify(); !v.Holds() || v.Unreadable != 1 || v.Rows != 3 || v.Records != 3 {
		t.Errorf("%+v", v)
	}
}

// Since selects rows and records by the time of the operation.
func TestVerifySince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record(4)
	w.relay()
	w.edit(`DELETE FROM audit_sequence WHERE sequence IN (1, 4)`, `DELETE FROM audit WHERE id IN (1, 4)`)
	cfg := w.config()
	cfg.Since = epoch.Add(3 * time.Minute)
	v, err := audit.Verify(t.Context(), cfg)
	if err != nil || len(v.Findings) != 1 || v.Findings[0].Sequence != 4 || v.Rows != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func refused(err error, code string) bool {
	var e *operation.Error
	return errors.As(err, &e) && e.Code == code
}
