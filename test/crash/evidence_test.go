package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/test/httpclient"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/dev/bench/measure"
	"quittance/dev/bench/topics"
	"quittance/internal/sessions"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/test/harness"
)

// witness reads the topics, stores and simulators with clients of its own.
type witness struct {
	*topics.Topics
	stack  *harness.Stack
	http   *http.Client
	people *staff // nil when nobody resolves cases
}

func newWitness(ctx context.Context, s *harness.Stack) (*witness, error) {
	t, err := harness.OpenTopics(ctx, s)
	return &witness{Topics: t, stack: s, http: &http.Client{Transport: httpclient.Transport, Timeout: time.Minute}}, err
}

// tally counts the events of the log while a run is under way.
type tally struct {
	events   *topics.Reading
	codec    *schemas.Codec
	count    int64
	sum      int64 // sum of the last sequences of all sessions
	inFlight map[string]bool
	webhooks int
	confirms int
	notices  int                // unsigned webhooks to partners
	cases    map[string]casesOf // by session
}

// casesOf are the numbers of a session's cases.
type casesOf struct{ all, open int }

func (w *witness) tally(ctx context.Context) (*tally, error) {
	r, err := w.Read(ctx, schemas.TopicEvents)
	return &tally{events: r, codec: w.Codec, inFlight: map[string]bool{}, cases: map[string]casesOf{}}, err
}

func (t *tally) catchUp(ctx context.Context) error {
	return t.events.Next(ctx, func(rec *kgo.Record) error {
		var e record.Event
		if err := t.codec.Decode(rec.Value, &e); err != nil {
			return err
		}
		t.count++
		if checkout.EventType(e.Type).Webhook() {
			t.webhooks++
		}
		if e.Session == nil {
			return nil
		}
		if e.Session.Cashin != nil && slices.Contains(noticeKinds, e.Type) {
			t.notices++
		}
		t.sum++ // each event increases its session's sequence by one
		if e.Type == kindCompleted {
			t.confirms += len(duesOf(e.Session))
		}
		if len(e.Session.Cases) > 0 {
			n := casesOf{all: len(e.Session.Cases)}
			for _, c := range e.Session.Cases {
				if c.Resolution == "" {
					n.open++
				}
			}
			t.cases[e.SessionID] = n
		}
		// A reservation whose clerk gave up ends with its window: no operator decides it.
		if c := e.Session.Collection; c != nil && c.Channel != string(checkout.ChannelCash) && (c.Status == "pending" || c.Status == "undecided") {
			t.inFlight[e.SessionID] = true
		} else {
			delete(t.inFlight, e.SessionID)
		}
		return nil
	})
}

// progress compares the log with the consumers behind it.
type progress struct {
	commandsLag           int64
	answersLag            int64 // what ERPs answered, not yet told to the processors
	inFlight              int
	events, journalled    int64
	sequences, readmodel  int64
	webhooks, delivered   int
	confirms, confirmed   int
	notices, told         int
	waiting, needOperator int
	cases, rows           casesOf // in the log, in the table
	approved, unresolved  int     // proposals that wait for the processor, cases that wait for staff
}

func (p progress) quiet() bool {
	return p.commandsLag == 0 && p.answersLag == 0 && p.inFlight == 0 && p.events == p.journalled && p.sequences == p.readmodel &&
		p.webhooks == p.delivered && p.confirms == p.confirmed && p.notices == p.told && p.waiting == 0 &&
		p.cases == p.rows && p.approved == 0 && p.unresolved == 0
}

func (p progress) String() string {
	return fmt.Sprintf("undecided commands %d; answers of ERPs not told %d; collections in flight %d; events %d, journalled %d; sequences %d, in the read model %d; webhooks %d, delivered %d; confirmations %d, delivered %d; unsigned webhooks %d, delivered %d; deliveries waiting %d, parked %d; cases (all open) %d, in the table %d; approved proposals waiting %d, cases without a proposal %d",
		p.commandsLag, p.answersLag, p.inFlight, p.events, p.journalled, p.sequences, p.readmodel, p.webhooks, p.delivered, p.confirms, p.confirmed, p.notices, p.told, p.waiting, p.needOperator, p.cases, p.rows, p.approved, p.unresolved)
}

func (w *witness) progress(ctx context.Context, t *tally) (progress, error) {
	var p progress
	lags, err := w.Admin.Lag(ctx, harness.Prefix+"processor", harness.Prefix+"erp-reporter")
	if err == nil {
		err = lags.Error()
	}
	if err != nil {
		return p, fmt.Errorf("asking for the lag of processors and reporters: %w", err)
	}
	p.commandsLag, p.answersLag = lags[harness.Prefix+"processor"].Lag.Total(), lags[harness.Prefix+"erp-reporter"].Lag.Total()
	if err := t.catchUp(ctx); err != nil {
		return p, err
	}
	p.inFlight, p.events, p.sequences, p.webhooks, p.confirms, p.notices = len(t.inFlight), t.count, t.sum, t.webhooks, t.confirms, t.notices
	if err := w.stack.Pool.QueryRow(ctx, `SELECT coalesce(sum(sequence), 0)::bigint FROM sessions`).Scan(&p.readmodel); err != nil {
		return p, err
	}
	for _, n := range t.cases {
		p.cases.all += n.all
		p.cases.open += n.open
	}
	if err := w.stack.Pool.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE resolution IS NULL) FROM cases WHERE in_session`).Scan(&p.rows.all, &p.rows.open); err != nil {
		return p, err
	}
	if p.approved, p.unresolved, err = w.unfinished(ctx); err != nil {
		return p, err
	}
	if w.people != nil {
		p.unresolved += int(w.people.outstanding.Load())
	}
	rows, err := w.stack.Pool.Query(ctx, `SELECT kind, state, count(*) FROM deliveries GROUP BY kind, state`)
	if err != nil {
		return p, err
	}
	var kind, state string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&kind, &state, &n}, func() error {
		switch {
		case state == "delivered" && kind == "webhook":
			p.delivered += n
		case (state == "delivered" || state == "superseded") && kind == "cashin":
			p.told += n
		case state == "delivered":
			p.confirmed += n
		case state == "needs_operator" || state == "exhausted":
			p.needOperator += n
		default:
			p.waiting += n
		}
		return nil
	}); err != nil {
		return p, err
	}
	lines, err := w.clickhouse(ctx, `SELECT count() FROM journal FINAL WHERE entry_type = 'event'`)
	if err != nil {
		return p, err
	}
	p.journalled, err = strconv.ParseInt(lines[0][0], 10, 64)
	return p, err
}

// settle waits until every consumer has caught up and nothing changes. The wait is
// bounded.
func (w *witness) settle(ctx context.Context, t *tally, bound time.Duration, logf func(format string, args ...any)) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	logged := time.Now()
	var last progress
	for still := 0; ; {
		p, err := w.progress(ctx, t)
		switch {
		case err == nil && p.quiet() && p == last:
			still++
		default:
			still = 0
		}
		if still >= 2 {
			return nil
		}
		if err == nil {
			last = p
		}
		if time.Since(logged) > 10*time.Second {
			logged = time.Now()
			logf("waiting for the consumers: %v %v", last, errText(err))
		}
		if !measure.Pause(ctx, 500*time.Millisecond) {
			return fmt.Errorf("the consumers have not caught up after %v: %v: %w", bound, last, errors.Join(err, ctx.Err()))
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return "(" + err.Error() + ")"
}

// clickhouse sends a query over HTTP and returns the columns of each line.
func (w *witness) clickhouse(ctx context.Context, sql string) ([][]string, error) {
	q := url.Values{"database": {harness.Database}, "default_format": {"TabSeparated"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.stack.ClickHouse+"/?"+q.Encode(), strings.NewReader(sql))
	if err != nil {
		return nil, err
	}
	text, err := w.do(req)
	if err != nil {
		return nil, fmt.Errorf("asking ClickHouse: %w", err)
	}
	var out [][]string
	for line := range strings.Lines(string(text)) {
		out = append(out, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return out, nil
}

func (w *witness) do(req *http.Request) ([]byte, error) {
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", req.URL.Path, resp.Status, text[:min(len(text), 500)])
	}
	return text, nil
}

// simulator reads JSON from the simulators.
func (w *witness) simulator(ctx context.Context, path string, into any) error {
	text, err := w.control(ctx, http.MethodGet, path, "")
	if err != nil {
		return fmt.Errorf("asking the simulators: %w", err)
	}
	return json.Unmarshal(text, into)
}

// control sends a request to the simulators.
func (w *witness) control(ctx context.Context, method, path, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.stack.Simulator+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return w.do(req)
}

// history reads everything except the answers that clients got.
func (w *witness) history(ctx context.Context) (h history, err error) {
	if h.events, err = w.events(ctx); err != nil {
		return h, err
	}
	if h.payments, err = w.payments(ctx); err != nil {
		return h, err
	}
	apps := slices.Concat(w.stack.Apps, w.stack.Portals)
	for _, c := range w.stack.Counters {
		apps = append(apps, c.Application)
	}
	for _, p := range w.stack.Partners {
		apps = append(apps, p.Application)
		told, err := w.notices(ctx, p.ID)
		if err != nil {
			return h, err
		}
		h.notices = append(h.notices, told...)
	}
	for _, app := range apps {
		messages, err := w.inbox(ctx, app.ID)
		if err != nil {
			return h, err
		}
		h.webhooks = append(h.webhooks, messages...)
	}
	for a := 0; a < len(w.stack.Apps); a += harness.AppsPerAgency {
		accepted, err := w.confirmations(ctx, w.stack.Apps[a])
		if err != nil {
			return h, err
		}
		h.confirmed = append(h.confirmed, accepted...)
	}
	if h.rows, err = w.caseRows(ctx); err != nil {
		return h, err
	}
	if h.receipts, err = w.readReceipts(ctx); err != nil {
		return h, err
	}
	if h.told, err = w.readReturns(ctx); err != nil {
		return h, err
	}
	state := func(ctx context.Context) (store, error) { return w.state(ctx, &h) }
	for _, read := range []func(context.Context) (store, error){state, w.readmodel, w.journal} {
		s, err := read(ctx)
		if err != nil {
			return h, err
		}
		h.stores = append(h.stores, s)
	}
	return h, nil
}

func (w *witness) events(ctx context.Context) ([]event, error) {
	r, err := w.Read(ctx, schemas.TopicEvents)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []event
	err = r.Next(ctx, func(rec *kgo.Record) error {
		var e record.Event
		if err := w.Codec.Decode(rec.Value, &e); err != nil {
			return err
		}
		got := event{
			id: e.EventID, kind: e.Type, session: e.SessionID, sequence: e.Sequence, collection: e.Detail[checkout.DetailCollectionID],
			late: e.Detail[checkout.DetailLate] == "true", caseID: e.Detail[checkout.DetailCaseID],
		}
		if s := e.Session; s != nil {
			got.application, got.tenant, got.order, got.reference = s.ApplicationID, s.TenantID, s.OrderID, s.PaymentRef
			got.cart, got.dues, got.after, got.mark = len(s.Items) > 0, duesOf(s), standingOf(s), markOf(s.SuccessURL)
			for _, d := range mapping.ToEvent(&e).Returned() {
				got.back = append(got.back, due{transaction: d.TransactionID, ref: d.ERPDueRef, amount: d.Amount, fee: d.Fee})
			}
			if c := s.Cashin; c != nil {
				got.partner, got.paymentID, got.number = c.Kind, c.PaymentID, c.Number
			}
			if s.Collection != nil {
				got.collection, got.paid = s.Collection.ID, s.Collection.Amount
			}
		}
		out = append(out, got)
		return nil
	})
	return out, err
}

// duesOf returns the dues that an ERP knows of a session.
func duesOf(s *record.Session) (out []due) {
	for _, i := range s.Items {
		out = append(out, due{transaction: i.TransactionID, ref: i.ERPDueRef, amount: i.Amount, fee: i.Fee})
	}
	if ref := s.Metadata[checkout.MetadataERPDueRef]; ref != "" && len(out) == 0 {
		out = append(out, due{transaction: s.TransactionID, ref: ref, amount: s.Amount})
	}
	return out
}

func itemsOf(s *record.Session) (sum int64) {
	for _, i := range s.Items {
		sum += i.Amount
	}
	return sum
}

func standingOf(s *record.Session) standing {
	out := standing{status: s.Status, sequence: s.Sequence, currency: s.Currency, amount: s.Amount}
	if c := s.Collection; c != nil {
		out.fee, out.total = c.Fee, c.Amount
	}
	return out
}

func (w *witness) payments(ctx context.Context) ([]payment, error) {
	const limit = 2000
	var out []payment
	for after := int64(0); ; {
		var page []struct {
			Seq            int64  `json:"seq"`
			ID             string `json:"id"`
			ExternalID     string `json:"external_id"`
			Status         string `json:"status"`
			ReportedAmount string `json:"reported_amount"`
			Currency       string `json:"currency"`
			Duplicates     int    `json:"duplicate_requests"`
		}
		if err := w.simulator(ctx, fmt.Sprintf("/control/collections?after=%d&limit=%d", after, limit), &page); err != nil {
			return nil, err
		}
		for _, c := range page {
			amount, err := strconv.ParseInt(c.ReportedAmount, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("amount of collection %s: %w", c.ID, err)
			}
			out = append(out, payment{
				id: c.ID, reference: c.ExternalID, approved: c.Status == "approved", amount: amount, currency: c.Currency, duplicates: c.Duplicates,
			})
			after = c.Seq
		}
		if len(page) < limit {
			return out, nil
		}
	}
}

// message is a call that arrived in an inbox of the simulators.
type message struct {
	ID             int64             `json:"id"`
	Headers        map[string]string `json:"headers"`
	Body           string            `json:"body"`
	SignatureValid *bool             `json:"signature_valid"`
	Answered       int               `json:"answered"`
}

func (m message) accepted() bool { return m.Answered/100 == 2 }

// messages reads an inbox.
func (w *witness) messages(ctx context.Context, inbox string) ([]message, error) {
	const limit = 2000
	var out []message
	for after := int64(0); ; {
		var page []message
		if err := w.simulator(ctx, fmt.Sprintf("/inbox/%s?after=%d&limit=%d", inbox, after, limit), &page); err != nil {
			return nil, err
		}
		out = append(out, page...)
		if len(page) < limit {
			return out, nil
		}
		after = page[len(page)-1].ID
	}
}

// inbox reads the signed webhooks to an application.
func (w *witness) inbox(ctx context.Context, application string) ([]webhook, error) {
	all, err := w.messages(ctx, application)
	if err != nil {
		return nil, err
	}
	var out []webhook
	for _, m := range all {
		var body struct {
			Event     string `json:"event"`
			SessionID string `json:"session_id"`
		}
		if err := json.Unmarshal([]byte(m.Body), &body); err != nil {
			return nil, fmt.Errorf("body of a webhook: %w", err)
		}
		out = append(out, webhook{
			inbox: application, id: m.Headers["webhook-id"], eventID: m.Headers["x-service-event-id"], kind: body.Event, session: body.SessionID,
			body: m.Body, signed: m.SignatureValid != nil && *m.SignatureValid, accepted: m.accepted(),
		})
	}
	return out, nil
}

// notices reads the unsigned webhooks to a partner.
func (w *witness) notices(ctx context.Context, application string) ([]notice, error) {
	all, err := w.messages(ctx, "partner-"+application)
	if err != nil {
		return nil, err
	}
	var out []notice
	for _, m := range all {
		n := notice{application: application, text: m.Body, accepted: m.accepted(), bare: true}
		if err := json.Unmarshal([]byte(m.Body), &n.body); err != nil {
			return nil, fmt.Errorf("body of an unsigned webhook: %w", err)
		}
		for name := range m.Headers {
			if !slices.Contains([]string{"content-type", "content-length", "host"}, strings.ToLower(name)) {
				n.bare = false
			}
		}
		out = append(out, n)
	}
	return out, nil
}

func (w *witness) confirmations(ctx context.Context, agency harness.Application) ([]confirmation, error) {
	const limit = 2000
	var out []confirmation
	for after := int64(0); ; {
		var page struct {
			Accepted []struct {
				ID            int64  `json:"id"`
				TransactionID string `json:"transaction_id"`
				Accepted      int    `json:"accepted"`
				Body          struct {
					DueRef     string `json:"erp_due_ref"`
					PaymentRef string `json:"payment_ref"`
					Amount     int64  `json:"amount_minor"`
				} `json:"body"`
			} `json:"accepted"`
		}
		if err := w.simulator(ctx, fmt.Sprintf("/control/erp/%s?after=%d&limit=%d", agency.Slug, after, limit), &page); err != nil {
			return nil, err
		}
		for _, c := range page.Accepted {
			out = append(out, confirmation{
				tenant: agency.Tenant, transaction: c.TransactionID, dueRef: c.Body.DueRef, reference: c.Body.PaymentRef, amount: c.Body.Amount, accepted: c.Accepted,
			})
			after = c.ID
		}
		if len(page.Accepted) < limit {
			return out, nil
		}
	}
}

// caseRows reads the table in which staff find cases.
func (w *witness) caseRows(ctx context.Context) (map[string]operatorCase, error) {
	rows, err := w.stack.Pool.Query(ctx, `SELECT id, session_id, kind, coalesce(resolution, '') FROM cases WHERE in_session`)
	if err != nil {
		return nil, err
	}
	all := map[string]operatorCase{}
	var id string
	var c operatorCase
	_, err = pgx.ForEachRow(rows, []any{&id, &c.session, &c.kind, &c.resolution}, func() error {
		all[id] = c
		return nil
	})
	return all, err
}

// state reads the processors' changelog; the last entry of each key counts. Besides the
// sessions it fills in their cases and the sessions that block their order.
func (w *witness) state(ctx context.Context, h *history) (store, error) {
	s := store{name: "the processors' state", sessions: map[string]standing{}, sums: map[sumKey]sum{}, items: map[string]int64{}}
	r, err := w.Read(ctx, schemas.TopicState)
	if err != nil {
		return s, err
	}
	defer r.Close()
	sessions, orders := map[string]record.Session{}, map[string]record.Order{}
	err = r.Next(ctx, func(rec *kgo.Record) error {
		switch kind, key, _ := strings.Cut(string(rec.Key), "\x00"); {
		case kind == "s" && len(rec.Value) == 0:
			delete(sessions, key)
		case kind == "s":
			var session record.Session
			err := w.Codec.Decode(rec.Value, &session)
			sessions[key] = session
			return err
		case kind == "o": // never removed
			var order record.Order
			err := w.Codec.Decode(rec.Value, &order)
			orders[key] = order
			return err
		}
		return nil
	})
	h.cases = map[string]operatorCase{}
	for id, session := range sessions {
		s.sessions[id], s.items[id] = standingOf(&session), itemsOf(&session)
		add(s.sums, s.sessions[id])
		for _, c := range session.Cases {
			h.cases[c.ID] = operatorCase{session: id, kind: c.Kind, resolution: c.Resolution}
		}
	}
	for _, o := range orders {
		h.underReview = append(h.underReview, o.Late...)
	}
	return s, err
}

func (w *witness) readmodel(ctx context.Context) (store, error) {
	s := store{name: "the read model (PostgreSQL)", sessions: map[string]standing{}, sums: map[sumKey]sum{}, items: map[string]int64{}}
	rows, err := w.stack.Pool.Query(ctx, `SELECT id, status, sequence, snapshot FROM sessions`)
	if err != nil {
		return s, err
	}
	var id string
	var at standing
	var snapshot []byte
	if _, err := pgx.ForEachRow(rows, []any{&id, &at.status, &at.sequence, &snapshot}, func() error {
		_, session, err := sessions.Read(w.Codec, snapshot)
		if err != nil {
			return err
		}
		if session.ID != id || string(session.Status) != at.status || session.Sequence != at.sequence {
			return fmt.Errorf("the row of %s (%s, %d) has a snapshot of %s (%s, %d)", id, at.status, at.sequence, session.ID, session.Status, session.Sequence)
		}
		at.currency, at.amount, at.fee, at.total = session.Currency, session.Amount, 0, 0
		if c := session.Collection; c != nil {
			at.fee, at.total = c.Fee, c.Amount
		}
		s.sessions[id] = at
		for _, i := range session.Items {
			s.items[id] += i.Amount
		}
		add(s.sums, at)
		return nil
	}); err != nil {
		return s, err
	}
	return s, nil
}

// journal reads the view sessions, which reads the journal with FINAL.
func (w *witness) journal(ctx context.Context) (store, error) {
	s := store{name: "the journal (ClickHouse FINAL)", sessions: map[string]standing{}, sums: map[sumKey]sum{}}
	lines, err := w.clickhouse(ctx, `SELECT session_id, status, currency, sequence, amount, fee_amount, total_amount FROM sessions`)
	if err != nil {
		return s, err
	}
	for _, line := range lines {
		n, err := integers(line[3:])
		if err != nil {
			return s, err
		}
		s.sessions[line[0]] = standing{status: line[1], currency: line[2], sequence: n[0], amount: n[1], fee: n[2], total: n[3]}
	}
	lines, err = w.clickhouse(ctx, `SELECT status, currency, count(), sum(amount), sum(fee_amount), sum(total_amount) FROM sessions GROUP BY status, currency`)
	if err != nil {
		return s, err
	}
	for _, line := range lines {
		n, err := integers(line[2:])
		if err != nil {
			return s, err
		}
		s.sums[sumKey{line[0], line[1]}] = sum{n[0], n[1], n[2], n[3]}
	}
	return s, nil
}

func integers(texts []string) ([]int64, error) {
	out := make([]int64, len(texts))
	for i, text := range texts {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading ClickHouse's answer: %w", err)
		}
		out[i] = n
	}
	return out, nil
}

// records counts the records of topics that no transaction writes.
func (w *witness) records(ctx context.Context, topics ...string) (int, error) {
	n := 0
	for _, topic := range topics {
		for end, list := range []func(context.Context, ...string) (kadm.ListedOffsets, error){w.Admin.ListStartOffsets, w.Admin.ListEndOffsets} {
			offsets, err := list(ctx, harness.Prefix+topic)
			if err == nil {
				err = offsets.Error()
			}
			if err != nil {
				return 0, fmt.Errorf("counting the records of %s: %w", topic, err)
			}
			offsets.Each(func(o kadm.ListedOffset) { n += (2*end - 1) * int(o.Offset) })
		}
	}
	return n, nil
}
