package readmodel_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/comparison"
	"quittance/internal/disbursements"
	processor "quittance/processors/disbursement"
	"quittance/schemas"
	"quittance/sinks/readmodel"
	"quittance/test/await"
	"quittance/test/payouts"
	"quittance/test/payroll"
	"quittance/test/servers"
)

// The read model has each batch, line, step, policy and roster as the processor's last event has it, also after it has read
// all events once more.
func TestBatchesInTheReadModel(t *testing.T) {
	t.Parallel()
	i := payouts.Install(t)
	i.Process()
	_, pool := servers.Database(t)
	store := disbursements.NewStore(pool, i.Codec)
	run := func() (stop func()) {
		b, err := readmodel.NewBatches(readmodel.BatchesConfig{Kafka: i.Kafka, Store: store, Log: servers.Logger(t), Metrics: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	}
	stop := run()
	i.Agency()
	b := i.Released("dsb_1", payroll.Line("line-a", "mtn", "", 1000), payroll.Line("line-b", "mtn", "", 2000), payroll.Line("line-c", "airtel", "", 3000))
	draft := i.OK(processor.SenderOperator, "dsb_2", payroll.Opening("ref-2", i.Now().Format(time.DateOnly)))
	await.Until(t, "the lines are sent", func() bool {
		got, _ := store.Batch(t.Context(), disbursements.Scope{}, b.ID)
		return got.Lines.Sent.Count == 3
	})
	i.OK(processor.SenderDisburse, b.ID, disbursement.Word{Position: 1, Attempt: 1, Try: 1, Source: disbursement.FromRequest, Kind: disbursement.WordPaid, Amount: 2000, Currency: "XAF", OperatorRef: "op-7"})
	i.OK(processor.SenderDisburse, b.ID, disbursement.Word{Position: 2, Attempt: 1, Try: 1, Source: disbursement.FromEnquiry, Kind: disbursement.WordRefused, Code: "PAYEE_NOT_FOUND"})
	last := i.OK(processor.SenderOperator, b.ID, disbursement.SetHold{By: "cleo", Reason: "a doubt"})
	caughtUp := func() bool {
		got, err := store.Batch(t.Context(), disbursements.Scope{TenantID: payroll.Tenant}, b.ID)
		return err == nil && got.Sequence == last.Sequence
	}
	await.Until(t, "the hold is in the read model", caughtUp)
	check := func() {
		t.Helper()
		got, err := store.Batch(t.Context(), disbursements.Scope{TenantID: payroll.Tenant}, b.ID)
		if err != nil || !reflect.DeepEqual(got.Batch, last) {
			t.Errorf("got\n%+v (%v)\nwant\n%+v", got.Batch, err, last)
		}
		if len(got.Sealing.Approvals) != 1 || got.Sealing.Approvals[0].Person != "ben" || got.Sealing.Content.Sum != 6000 {
			t.Errorf("%+v", got.Sealing)
		}
		for _, in := range []disbursements.Scope{{TenantID: "another agency"}} {
			if _, err := store.Batch(t.Context(), in, b.ID); !errors.Is(err, disbursements.ErrUnknown) {
				t.Errorf("another agency sees the batch: %v", err)
			}
			if list, err := store.List(t.Context(), in, disbursements.Query{Size: 10}); err != nil || len(list) > 0 {
				t.Errorf("another agency sees %d batches, %v", len(list), err)
			}
		}
		lines, err := store.Lines(t.Context(), b.ID, disbursements.LineQuery{Size: 10})
		if err != nil || len(lines) != 3 {
			t.Fatalf("%d lines, %v", len(lines), err)
		}
		for n, status := range []disbursement.LineStatus{disbursement.LineSent, disbursement.LinePaid, disbursement.LineRefused} {
			if l := lines[n]; l.Status != status || l.Position != n || string(l.Sealed) != string(payroll.Line(l.Ref, b.Accounts[l.Account].Code, "", l.Amount).Sealed) {
				t.Errorf("line %d: %+v", n, l)
			}
		}
		if lines[1].OperatorRef != "op-7" || lines[2].Code != "PAYEE_NOT_FOUND" {
			t.Errorf("%+v", lines)
		}
		refused, err := store.Lines(t.Context(), b.ID, disbursements.LineQuery{Status: disbursement.LineRefused, Size: 10})
		if err != nil || len(refused) != 1 || refused[0].Position != 2 {
			t.Errorf("%+v, %v", refused, err)
		}
		steps, err := store.Steps(t.Context(), b.ID)
		if err != nil || len(steps) != int(last.Sequence) || steps[len(steps)-1].Detail[disbursement.DetailReason] != "a doubt" {
			t.Errorf("%d steps of %d, %v", len(steps), last.Sequence, err)
		}
		for n, x := range steps {
			if x.Sequence != int64(n+1) || n > 0 && x.Offset <= steps[n-1].Offset {
				t.Errorf("step %d: %+v", n, x)
			}
		}
		list, err := store.List(t.Context(), disbursements.Scope{TenantID: payroll.Tenant}, disbursements.Query{Size: 10})
		if err != nil || len(list) != 2 || list[0].ID != draft.ID || list[1].ID != b.ID {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := store.List(t.Context(), disbursements.Scope{}, disbursements.Query{Held: true, Size: 10}); err != nil || len(list) != 1 || list[0].ID != b.ID {
			t.Errorf("held: %+v, %v", list, err)
		}
		if list, err := store.List(t.Context(), disbursements.Scope{}, disbursements.Query{Live: true, Size: 10}); err != nil || len(list) != 0 {
			t.Errorf("live: %+v, %v", list, err)
		}
		agency, roster, err := store.Agency(t.Context(), payroll.Tenant, false)
		if err != nil || len(agency.Batches) == 0 && agency.Next.Version == 0 || len(roster.People) != 3 || roster.Origin != payroll.Origin {
			t.Errorf("%+v, %+v, %v", agency, roster, err)
		}
	}
	check()
	stop()
	if _, err := pool.Exec(t.Context(), `DELETE FROM disbursement_positions`); err != nil {
		t.Fatal(err)
	}
	stop = run()
	defer func() { stop() }()
	await.Until(t, "all events are applied again", func() bool {
		p, err := store.Positions(t.Context(), i.Topology.Name("disbursement.events"))
		return err == nil && len(p) > 0 && caughtUp()
	})
	check()

	// It is what the events make, and each column that somebody changes by hand is found.
	tampered(t, i, pool, store)
}

// tampered compares the read model with Kafka, as it is and after a change of each column of each table.
func tampered(t *testing.T, i *payouts.Installation, pool *pgxpool.Pool, store *disbursements.Store) {
	t.Helper()
	compare := func() comparison.Result {
		t.Helper()
		got, err := store.Comparison().Verify(t.Context(), comparison.Config{Kafka: i.Kafka, Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	ends, err := kadm.NewClient(i.Producer).ListEndOffsets(t.Context(), i.Topology.Name(schemas.Disbursement.Events))
	if err != nil {
		t.Fatal(err)
	}
	var events int64
	ends.Each(func(o kadm.ListedOffset) { events += o.Offset })
	if got := compare(); got.Records == 0 || got.Records > events {
		t.Errorf("%d records were read of %d: each is read once for all tables", got.Records, events)
	}
	exec := func(sql string) error {
		_, err := pool.Exec(t.Context(), sql)
		return err
	}
	columns, found := 0, 0
	for _, table := range []string{"disbursement_batches", "disbursement_lines", "disbursement_steps", "disbursement_agencies"} {
		if got := compare(); len(got.Differences) > 0 || got.Rows == 0 || got.Unreadable > 0 {
			t.Fatalf("%s: %+v", table, got)
		}
		rows, _ := pool.Query(t.Context(), `SELECT column_name || ' ' || data_type FROM information_schema.columns WHERE table_name = $1 AND table_schema = current_schema()`, table) // the rows carry its error
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if err := exec(`CREATE TABLE kept_` + table + ` AS SELECT * FROM ` + table); err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			name, kind, _ := strings.Cut(c, " ")
			name = `"` + name + `"`
			change := map[string]string{
				"text": name + ` || 'x'`, "boolean": `NOT ` + name, "integer": name + ` + 1000`, "bigint": name + ` + 1000`, "timestamp with time zone": name + ` + interval '1 second'`,
				"jsonb": name + ` || '{"by": "nobody"}'`, "bytea": `coalesce(` + name + `, '') || '\x01'`,
			}[kind]
			if change == "" {
				t.Fatalf("no change of a column of type %s", kind)
			}
			columns++
			if err := exec(`UPDATE ` + table + ` SET ` + name + ` = ` + change); err != nil {
				if !strings.Contains(err.Error(), "23514") { // the database refuses it
					t.Fatal(err)
				}
				found++
				continue
			}
			if got := compare(); len(got.Differences) == 0 || got.Differences[0].Table != table {
				t.Errorf("a change of %s of %s is not found", name, table)
			} else {
				found++
			}
			if err := errors.Join(exec(`DELETE FROM `+table), exec(`INSERT INTO `+table+` SELECT * FROM kept_`+table)); err != nil {
				t.Fatal(err)
			}
		}
		if err := exec(`DELETE FROM ` + table); err != nil {
			t.Fatal(err)
		}
		if got := compare(); len(got.Differences) == 0 || got.Differences[0].Fault != comparison.FaultMissing || got.Differences[0].Table != table {
			t.Errorf("missing rows of %s are not found: %+v", table, got)
		}
		if err := exec(`INSERT INTO ` + table + ` SELECT * FROM kept_` + table); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("tamper columns=%d found=%d", columns, found)
}

// An account is paused from its first refusal for want of funds until it pays, for as long as a batch waits.
func TestPausedAccounts(t *testing.T) {
	t.Parallel()
	i := payouts.Install(t)
	i.Process()
	_, pool := servers.Database(t)
	store, metrics := disbursements.NewStore(pool, i.Codec), prometheus.NewRegistry()
	b, err := readmodel.NewBatches(readmodel.BatchesConfig{Kafka: i.Kafka, Store: store, Now: i.Now, Log: servers.Logger(t), Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	i.Agency()
	batch := i.Released("dsb_1", payroll.Line("line-a", "mtn", "", 1000), payroll.Line("line-b", "mtn", "", 2000))
	await.Until(t, "the lines are sent", func() bool {
		got, _ := store.Batch(t.Context(), disbursements.Scope{}, batch.ID)
		return got.Lines.Sent.Count == 2
	})
	since := func() map[bool]time.Time {
		t.Helper()
		got, err := store.PausedAccounts(t.Context(), disbursements.Scope{TenantID: payroll.Tenant})
		if err != nil {
			t.Fatal(err)
		}
		out := map[bool]time.Time{}
		for _, a := range got {
			if a.Code != "mtn" || a.Closed || a.Reason != "EMPTY" || a.Batch != batch.ID {
				t.Errorf("%+v", a)
			}
			if a.Waits {
				out[a.Live] = a.Since
			}
		}
		return out
	}
	if got := since(); len(got) != 0 {
		t.Errorf("before: %v", got)
	}
	word := func(w disbursement.Word) {
		t.Helper()
		w.Attempt, w.Try, w.Source = 1, 1, disbursement.FromEnquiry
		i.OK(processor.SenderDisburse, batch.ID, w)
	}
	word(disbursement.Word{Position: 0, Kind: disbursement.WordNoFunds, Code: "EMPTY"})
	await.Until(t, "the account is paused", func() bool { return len(since()) == 1 })
	if at, ok := since()[false]; !ok || i.Now().Sub(at) > time.Minute || at.After(i.Now()) {
		t.Errorf("paused since %v", since())
	}
	held := i.OK(processor.SenderOperator, batch.ID, disbursement.SetHold{By: "cleo", Reason: "a doubt"})
	await.Until(t, "nothing waits for the account", func() bool { return len(since()) == 0 })
	i.OK(processor.SenderOffice, batch.ID, disbursement.Lift{Signed: [2]disbursement.Signed{payroll.Step(batch.Digest, "ben", held.Holds, digest.Resume), payroll.Step(batch.Digest, "cleo", held.Holds, digest.Resume)}})
	await.Until(t, "the batch waits again", func() bool { return len(since()) == 1 })
}
