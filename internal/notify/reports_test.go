package notify_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/notify"
	"quittance/internal/provider"
	"quittance/internal/secret"
	"quittance/test/servers"
)

const (
	carrier = "infobip"
	someone = "sms_00000000000000000000000000000001"
)

// desk is a store of reports over a database of the test's own.
type desk struct {
	t         *testing.T
	pool      *pgxpool.Pool
	reports   *notify.Reports
	addresses *notify.Addresses
	now       time.Time
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	_, pool := servers.Database(t)
	return &desk{t, pool, notify.NewReports(pool), notify.NewAddresses(pool), time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)}
}

// begin begins a call about a message and returns its id.
func (d *desk) begin(about string) string {
	d.t.Helper()
	id := notify.MessageID(notify.Reversed, provider.ChannelSMS, about)
	if err := d.reports.Begin(d.t.Context(), id, someone, carrier, d.now); err != nil {
		d.t.Fatal(err)
	}
	return id
}

func (d *desk) apply(id string, r provider.Report) (changed bool) {
	d.t.Helper()
	r.MessageID = id
	changed, err := d.reports.Apply(d.t.Context(), carrier, r, d.now)
	if err != nil {
		d.t.Fatal(err)
	}
	return changed
}

func (d *desk) of(id string) notify.Reported {
	d.t.Helper()
	got, err := d.reports.Of(d.t.Context(), []string{id})
	if err != nil {
		d.t.Fatal(err)
	}
	return got[id]
}

// unknown returns the answers and reports in a row at the address, and whether it is suppressed.
func (d *desk) unknown() (n int, suppressed bool) {
	d.t.Helper()
	err := d.pool.QueryRow(d.t.Context(), `SELECT coalesce(max(unknown), 0), coalesce(bool_or(suppressed_at IS NOT NULL), false) FROM message_addresses WHERE destination_id = $1`, someone).Scan(&n, &suppressed)
	if err != nil {
		d.t.Fatal(err)
	}
	return n, suppressed
}

func (d *desk) counts(when string, want int, wantSuppressed bool) {
	d.t.Helper()
	if n, suppressed := d.unknown(); n != want || suppressed != wantSuppressed {
		d.t.Errorf("%s: %d in a row, suppressed %v; want %d, %v", when, n, suppressed, want, wantSuppressed)
	}
}

var (
	pending     = provider.Report{State: provider.ReportPending}
	delivered   = provider.Report{State: provider.ReportDelivered}
	phoneOff    = provider.Report{State: provider.ReportUndelivered, Code: "EC_ABSENT_SUBSCRIBER"}
	nobody      = provider.Report{State: provider.ReportUndelivered, Code: "EC_UNKNOWN_SUBSCRIBER", Unknown: true}
	reportNames = map[provider.Report]string{pending: "pending", delivered: "delivered", phoneOff: "phone off", nobody: "nobody"}
)

// Reports come twice and in any order. A message only ever goes forward, and a report that says
// nothing new changes nothing.
func TestReportsOnlyGoForward(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n, row := range []struct {
		reports []provider.Report
		changed string // one letter for each report: y or n
		want    notify.ReportState
		reason  string
	}{
		{nil, "", notify.ReportSent, ""},
		{[]provider.Report{pending, pending}, "nn", notify.ReportSent, ""},
		{[]provider.Report{delivered, delivered}, "yn", notify.ReportDelivered, ""},
		{[]provider.Report{delivered, phoneOff, pending}, "ynn", notify.ReportDelivered, ""},
		{[]provider.Report{phoneOff, phoneOff}, "yn", notify.ReportUndelivered, phoneOff.Code},
		{[]provider.Report{phoneOff, nobody}, "yn", notify.ReportUndelivered, phoneOff.Code},
		{[]provider.Report{phoneOff, pending}, "yn", notify.ReportUndelivered, phoneOff.Code},
		{[]provider.Report{phoneOff, delivered, phoneOff}, "yyn", notify.ReportDelivered, ""},
	} {
		id := d.begin("forward " + strconv.Itoa(n))
		var names []string
		for i, r := range row.reports {
			names = append(names, reportNames[r])
			if changed := d.apply(id, r); changed != (row.changed[i] == 'y') {
				t.Errorf("%v: the report changed the message: %v", names, changed)
			}
		}
		got := d.of(id)
		if got.State != row.want || got.Reason != row.reason || got.At.IsZero() != (row.want == notify.ReportSent) {
			t.Errorf("%v: %+v, want %s %s", names, got, row.want, row.reason)
		}
	}
}

// A report is about a message that this provider got from us, or about none.
func TestReportsOnNoMessage(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	known := d.begin("known")
	for id, from := range map[string]string{
		notify.MessageID(notify.Reversed, provider.ChannelSMS, "never sent"): carrier,
		known:                        "mtnsms",
		"":                           carrier,
		"msg_\x00bcdefghijklmnopqrs": carrier, // Postgres refuses such a text
		strings.ToUpper(known):       carrier,
		known + "'; --":              carrier,
	} {
		changed, err := d.reports.Apply(t.Context(), from, provider.Report{MessageID: id, State: provider.ReportDelivered}, d.now)
		if !errors.Is(err, notify.ErrUnknownMessage) || changed {
			t.Errorf("%q from %s: %v, %v", id, from, changed, err)
		}
	}
	if got := d.of(known); got.State != notify.ReportSent {
		t.Errorf("the message is %s", got.State)
	}
}

// The worker asks before each call. A message that was accepted, or of which a report says that it
// was delivered, is done; one that nobody knows of, that was given up, or whose call is open is not.
func TestReportsSayWhatIsDone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	done := func(id string) bool {
		t.Helper()
		is, err := d.reports.Done(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	accepted, early, lost := d.begin("accepted"), d.begin("early"), d.begin("lost")
	if done(accepted) || done(early) || done(notify.MessageID(notify.Reversed, provider.ChannelSMS, "other")) {
		t.Error("a message is done before any answer")
	}
	if err := d.reports.Accepted(t.Context(), accepted, d.now); err != nil {
		t.Fatal(err)
	}
	first := d.now
	d.now = d.now.Add(time.Hour)
	if err := d.reports.Accepted(t.Context(), accepted, d.now); err != nil { // an outcome that came late
		t.Fatal(err)
	}
	var at time.Time
	if err := d.pool.QueryRow(t.Context(), `SELECT accepted_at FROM message_reports WHERE message_id = $1`, accepted).Scan(&at); err != nil || !at.Equal(first) {
		t.Errorf("accepted at %v, want the first time, %v: %v", at, first, err)
	}
	d.apply(early, delivered)
	d.apply(lost, phoneOff)
	if !done(accepted) || !done(early) || done(lost) {
		t.Errorf("done: accepted %v, delivered %v, given up %v", done(accepted), done(early), done(lost))
	}
	d.begin("early") // by an operator, say
	if got := d.of(early); got.State != notify.ReportDelivered {
		t.Errorf("another call made the message %s", got.State)
	}
}

// A number is suppressed after three messages in a row that reach nobody, whether an answer or a
// report says so. A phone that is off does not count, a message counts once, and one that is
// delivered begins anew.
func TestReportsCountAtTheAddress(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	sent := func() {
		t.Helper()
		if err := d.addresses.Sent(t.Context(), someone, true, d.now); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(id string, unknown bool) {
		t.Helper()
		if err := d.reports.Refused(t.Context(), id, unknown, d.now); err != nil {
			t.Fatal(err)
		}
	}
	id := d.begin("1")
	sent()
	d.apply(id, nobody)
	d.apply(id, nobody)
	d.counts("a report twice", 1, false)
	id = d.begin("2")
	sent()
	d.counts("the next message is accepted", 1, false)
	d.apply(id, phoneOff)
	d.counts("a phone that is off", 1, false)
	refused(d.begin("3"), true)
	d.counts("an answer", 2, false)
	id = d.begin("4")
	d.apply(id, nobody) // before the answer
	refused(id, true)
	d.counts("a report and an answer on one message", 3, true)
	id = d.begin("a code")
	d.apply(id, delivered)
	d.counts("a code to a suppressed number is delivered: it may be somebody else's now", 3, true)

	if _, err := d.pool.Exec(t.Context(), `UPDATE message_addresses SET unknown = 2, suppressed_at = NULL`); err != nil {
		t.Fatal(err)
	}
	d.apply(d.begin("5"), delivered)
	d.counts("a message is delivered", 0, false)
	if err := d.addresses.Sent(t.Context(), someone, false, d.now); err != nil {
		t.Fatal(err)
	}
	d.counts("without reports an acceptance counts as before", 0, false)
}

// After a definite refusal no report is awaited, unless an earlier call may have been accepted.
func TestRefusedMessagesAwaitNoReport(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	refused := func(id string) {
		t.Helper()
		if err := d.reports.Refused(t.Context(), id, false, d.now); err != nil {
			t.Fatal(err)
		}
	}
	once := d.begin("once")
	refused(once)
	if got := d.of(once); got.State != "" {
		t.Errorf("a refused message is %s", got.State)
	}
	twice := d.begin("twice") // its answer never came
	d.begin("twice")
	refused(twice)
	if got := d.of(twice); got.State != notify.ReportSent {
		t.Errorf("a message whose first call may have been accepted is %q", got.State)
	}
	if !d.apply(twice, delivered) {
		t.Error("the report on its first call is not recorded")
	}
	refused(twice)
	if got := d.of(twice); got.State != notify.ReportDelivered {
		t.Errorf("a refusal made a delivered message %q", got.State)
	}
}

// After three days without a report nobody knows; a late report is still recorded. After 60 days
// the row is gone.
func TestReportsAreNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	silent, told := d.begin("silent"), d.begin("told")
	d.apply(told, phoneOff)
	sweep := func(after time.Duration) map[string]int {
		t.Helper()
		n, err := d.reports.Sweep(t.Context(), d.now.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := sweep(71 * time.Hour); len(n) != 0 {
		t.Errorf("after 71 hours: %v", n)
	}
	if n := sweep(73 * time.Hour); len(n) != 1 || n[carrier] != 1 {
		t.Errorf("after 73 hours: %v, want one of %s", n, carrier)
	}
	if got := d.of(silent).State; got != notify.ReportUnknown || d.of(told).State != notify.ReportUndelivered {
		t.Errorf("they are %s and %s", got, d.of(told).State)
	}
	if d.apply(silent, pending) || d.of(silent).State != notify.ReportUnknown {
		t.Error("a message on its way is not awaited again")
	}
	if !d.apply(silent, delivered) || d.of(silent).State != notify.ReportDelivered {
		t.Error("the late report is not recorded")
	}
	if sweep(59 * 24 * time.Hour); d.of(told).State == "" {
		t.Error("a row is deleted after 59 days")
	}
	if sweep(61 * 24 * time.Hour); d.of(told).State != "" || d.of(silent).State != "" {
		t.Error("rows are kept for more than 60 days")
	}
}

// The MAC of an address is for one provider and one message, or for all of one provider.
func TestReportURL(t *testing.T) {
	t.Parallel()
	keys := secret.GenerateKeys()
	mac := func(keys *secret.Keys, providerName, messageID string) string {
		address := notify.ReportURL(keys, "https://pay.example/", providerName, messageID)
		want := "https://pay.example/callbacks/messages/" + providerName + "/"
		if messageID != "" {
			want += messageID + "/"
		}
		rest, ok := strings.CutPrefix(address, want)
		if !ok || strings.Contains(rest, "/") {
			t.Errorf("the address is %s", address)
		}
		return rest
	}
	good := mac(keys, "infobip", "msg_a")
	if !notify.VerifyReportURL(keys, "infobip", "msg_a", good) || !notify.VerifyReportURL(keys, "mtnsms", "", mac(keys, "mtnsms", "")) {
		t.Error("our own address is refused")
	}
	for name, ok := range map[string]bool{
		"of another message":  notify.VerifyReportURL(keys, "infobip", "msg_b", good),
		"of all messages":     notify.VerifyReportURL(keys, "infobip", "", good),
		"of another provider": notify.VerifyReportURL(keys, "mtnsms", "msg_a", good),
		"of another key":      notify.VerifyReportURL(keys, "infobip", "msg_a", mac(secret.GenerateKeys(), "infobip", "msg_a")),
		"cut":                 notify.VerifyReportURL(keys, "infobip", "msg_a", good[:len(good)-1]),
		"missing":             notify.VerifyReportURL(keys, "infobip", "msg_a", ""),
		"long":                notify.VerifyReportURL(keys, "infobip", "msg_a", good+strings.Repeat("A", 100)),
	} {
		if ok {
			t.Errorf("an address %s is accepted", name)
		}
	}
}
