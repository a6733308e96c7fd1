package oversight

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/ingress/staff"
	"quittance/internal/cases"
	"quittance/internal/deliveries"
	"quittance/internal/digests"
	"quittance/internal/disbursements"
	"quittance/internal/notify"
	"quittance/internal/registry"
)

// Health is what the page of health reads. All fields are required. It calls nobody outside: each part is what the service has recorded.
type Health struct {
	Operators  *digests.Store
	Batches    *disbursements.Store
	Deliveries *deliveries.Store
	// Directory reads the destinations of deliveries.
	Directory func(ctx context.Context) (registry.Directory, error)
	Messages  *notify.Reports
	Cases     *cases.Store
	// Lag is how far consumer groups are behind, and Models how far read models are. An error says that Kafka does not answer; it
	// takes some seconds at most.
	Lag    func(ctx context.Context) ([]Lag, error)
	Models func(ctx context.Context) []Model
	// RegistryAge is the time since Postgres last confirmed the configuration that this process has.
	RegistryAge func() time.Duration
	// Stuck names the loops of this process that do not turn; nil for none.
	Stuck func() error
}

// whole reports whether all fields are set.
func (h Health) whole() bool {
	return h.Operators != nil && h.Batches != nil && h.Deliveries != nil && h.Directory != nil && h.Messages != nil && h.Cases != nil && h.Lag != nil && h.Models != nil && h.RegistryAge != nil && h.Stuck != nil
}

// Lag is the number of committed records of a topic that a consumer group has not processed. The mark that ends a transaction counts.
type Lag struct {
	Group, Topic string
	Records      int64
	// Never says that the group has never read.
	Never bool
}

// Model is a read model of the records of a topic. The fields that are not known are false.
type Model struct {
	Name, Topic string
	// Position is the sum over partitions of the offset below which the model has all records.
	Position      int64
	PositionKnown bool
	// Behind is the number of records in the topic beyond the position; marks of transactions count.
	Behind      int64
	BehindKnown bool
}

// section is a part of the page.
type section struct {
	ID, Title, Note string
	Grid            staff.Grid
	Empty           string // what stands in place of a grid without rows
	Missing         string // why nothing is known
	Command, Also   string
}

// healthView is the page of health.
type healthView struct {
	view
	Sections []section
}

const (
	// messagesSince is how far back the page counts messages.
	messagesSince = time.Hour
	// registryStale is the age from which the configuration is not that of Postgres for sure.
	registryStale = time.Minute
)

// health is GET /ops/health. It says times and not ages, so that an answer differs from the one before only if a value does.
func (v *visit) health() {
	w := v.w.Health
	out := &healthView{view: v.page(w.Title, opsRoot+"health")}
	out.Command, out.Tagged = "quittance doctor", true
	for _, read := range []func() (section, error){v.operators, v.accounts, v.erps, v.backlog, v.messages, v.lag, v.models, v.poison} {
		s, err := read()
		if err != nil {
			v.LogFailure("reading "+s.ID, err)
			s.Missing = w.NotKnown
		}
		s.Grid.Caption = s.Title
		out.Sections = append(out.Sections, s)
	}
	out.Sections = append(out.Sections, v.process())
	v.Write(http.StatusOK, "health", out)
}

func (v *visit) mode(live bool) string {
	if live {
		return v.w.Health.Live
	}
	return v.w.Health.Test
}

// operators says which operators answer.
func (v *visit) operators() (section, error) {
	w := v.w.Health
	s := section{ID: "operators", Title: w.Operators, Note: w.OperatorsNote, Empty: w.NoOperators, Command: "quittance doctor collect", Also: "quittance doctor disburse"}
	list, err := v.o.cfg.Health.Operators.Operators(v.Context())
	if err != nil {
		return s, err
	}
	s.Grid.Heads = []string{w.Operator, w.Mode, w.Money, w.State, w.LastAnswer, w.SilentSince, w.Agencies}
	for _, o := range list {
		state := w.Answers
		switch {
		case o.Away(v.Now):
			state = w.Away
		case !o.FailingSince.IsZero():
			state = w.Silent
		}
		money := w.Collections
		if o.Payouts {
			money = w.Payouts
		}
		var agencies []string
		for _, id := range o.AgencyIDs {
			agencies = append(agencies, v.agency(id))
		}
		slices.Sort(agencies)
		s.Grid.Rows = append(s.Grid.Rows, []staff.Cell{{Text: o.Operator}, {Text: v.mode(o.Live)}, {Text: money}, {Text: state}, {Text: v.At(o.AnsweredAt)}, {Text: v.At(o.FailingSince)}, {Text: dash(strings.Join(agencies, ", "))}})
	}
	return s, nil
}

// accounts says which payout accounts are paused or closed.
func (v *visit) accounts() (section, error) {
	w := v.w.Health
	s := section{ID: "accounts", Title: w.Accounts, Empty: w.NoAccounts, Command: "quittance batches try-account BATCH --account CODE"}
	list, err := v.o.cfg.Health.Batches.PausedAccounts(v.Context(), disbursements.Scope{})
	if err != nil {
		return s, err
	}
	s.Grid.Heads = []string{w.Account, w.Agency, w.Mode, w.State, w.Since}
	for _, a := range list {
		state := w.Paused
		if a.Closed {
			state = w.Closed
		}
		s.Grid.Rows = append(s.Grid.Rows, []staff.Cell{{Text: a.Code, Class: "code"}, {Text: v.agency(a.TenantID)}, {Text: v.mode(a.Live)}, {Text: state, More: a.Reason}, {Text: v.At(a.Since)}})
	}
	return s, nil
}

// erps says which ERPs take confirmations, and how many are owed.
func (v *visit) erps() (section, error) {
	w, h := v.w.Health, v.o.cfg.Health
	s := section{ID: "erps", Title: w.ERPs, Empty: w.NoERPs, Command: "quittance doctor erp"}
	owed, oldest, err := h.Deliveries.CountOutstanding(v.Context())
	if err != nil {
		return s, err
	}
	s.Note = w.NothingOwed
	if owed > 0 {
		s.Note = fmt.Sprintf(w.Owed, owed, v.At(oldest))
	}
	dir, err := h.Directory(v.Context())
	if err != nil {
		return s, err
	}
	list, err := h.Deliveries.Statuses(v.Context())
	if err != nil {
		return s, err
	}
	status := map[string]deliveries.DestinationStatus{}
	for _, d := range list {
		status[string(d.Kind)+" "+d.DestinationID] = d
	}
	s.Grid.Heads = []string{w.ERP, w.Agency, w.State, w.Waiting, w.Oldest}
	kinds := h.Deliveries.Kinds()
	for _, e := range kinds.Entries(dir) {
		if of, err := kinds.Of(e.Kind); err != nil || !of.Confirms || !e.RemovedAt.IsZero() {
			continue
		}
		d := status[string(e.Kind)+" "+e.ID]
		agencyID, _, _ := strings.Cut(e.ID, "/") // and the mode
		s.Grid.Rows = append(s.Grid.Rows, []staff.Cell{
			{Text: e.Name, URL: v.URL(opsRoot + "endpoints/" + string(e.Kind) + "/" + url.PathEscape(e.ID))},
			{Text: v.agency(agencyID)},
			{Text: v.destination(d)},
			{Text: strconv.FormatInt(d.Waiting+d.Queued+d.NeedsOperator, 10), Class: staff.ClassSum},
			{Text: v.At(d.Oldest)},
		})
	}
	return s, nil
}

// destination says whether a destination takes what is sent to it.
func (v *visit) destination(d deliveries.DestinationStatus) string {
	w := v.w.Health
	switch {
	case !d.SuspendedAt.IsZero():
		return fmt.Sprintf(w.Suspended, v.At(d.SuspendedAt))
	case !d.RefusedSince.IsZero():
		return fmt.Sprintf(w.Refusing, v.At(d.RefusedSince))
	case !d.FailingSince.IsZero():
		return fmt.Sprintf(w.Failing, v.At(d.FailingSince))
	}
	return w.Well
}

// backlog says how many deliveries of each kind are not delivered.
func (v *visit) backlog() (section, error) {
	w := v.w.Health
	s := section{ID: "backlog", Title: w.Backlog, Empty: w.NoBacklog, Command: "quittance endpoints list"}
	list, err := v.o.cfg.Health.Deliveries.Backlog(v.Context())
	if err != nil {
		return s, err
	}
	slices.SortFunc(list, func(a, b deliveries.Backlog) int {
		return strings.Compare(fmt.Sprint(a.Kind, a.State, a.Suspended), fmt.Sprint(b.Kind, b.State, b.Suspended))
	})
	s.Grid.Heads = []string{w.Kind, w.State, w.Count, w.Oldest}
	for _, b := range list {
		state := staff.Cell{Text: said(w.DeliveryStates, b.State)}
		if b.Suspended {
			state.More = w.ToSuspended
		}
		s.Grid.Rows = append(s.Grid.Rows, []staff.Cell{{Text: said(w.DeliveryKinds, string(b.Kind))}, state, {Text: strconv.FormatInt(b.Count, 10), Class: staff.ClassSum}, {Text: v.At(b.Oldest.UTC())}})
	}
	return s, nil
}

// messages says what providers of messages did.
func (v *visit) messages() (section, error) {
	w := v.w.Health
	s := section{ID: "messages", Title: w.Messages, Note: w.MessagesNote, Empty: w.NoMessages, Command: "quittance doctor notify"}
	list, err := v.o.cfg.Health.Messages.Providers(v.Context(), v.Now.Add(-messagesSince))
	if err != nil {
		return s, err
	}
	s.Grid.Heads = []string{w.Provider, w.Given, w.Accepted, w.Delivered, w.Undelivered, w.LastAccepted}
	for _, p := range list {
		count := func(n int64) staff.Cell {
			return staff.Cell{Text: strconv.FormatInt(n, 10), Class: staff.ClassSum}
		}
		s.Grid.Rows = append(s.Grid.Rows, []staff.Cell{{Text: p.Provider}, count(p.Given), count(p.Accepted), count(p.Delivered), count(p.Undelivered), {Text: v.At(p.LastAccepted)}})
	}
	return s, nil
}

// lag says how far consumer groups are behind.
func (v *visit) lag() (section, error) {
	w := v.w.Health
	s := section{ID: "lag", Title: w.Lag, Note: w.LagNote, Empty: w.NoLag, Command: "quittance doctor"}
	list, err := v.o.cfg.Health.Lag(v.Context())
	if err != nil {
		return s, err
	}
	s.Grid.Heads = []string{w.Group, w.Topic, w.Records}
	for _, l := range list {
		records := strconv.FormatInt(l.Records, 10)
		if l.Never {
			records = w.NeverRead
		}
		s.Grid.Rows = append(s.Grid.Rows, []staff.Cell{{Text: l.Group, Class: "code"}, {Text: l.Topic, Class: "code"}, {Text: records, Class: staff.ClassSum}})
	}
	return s, nil
}

// models says how far read models are behind.
func (v *visit) models() (section, error) {
	w := v.w.Health
	s := section{ID: "models", Title: w.Models, Empty: w.NoModels, Command: "quittance readmodel verify"}
	s.Grid.Heads = []string{w.Model, w.Topic, w.Position, w.Behind}
	for _, m := range v.o.cfg.Health.Models(v.Context()) {
		number := func(known bool, n int64) staff.Cell {
			if !known {
				return staff.Cell{Text: w.Unknown}
			}
			return staff.Cell{Text: strconv.FormatInt(n, 10), Class: staff.ClassSum}
		}
		s.Grid.Rows = append(s.Grid.Rows, []staff.Cell{{Text: said(w.ModelNames, m.Name)}, {Text: dash(m.Topic), Class: "code"}, number(m.PositionKnown, m.Position), number(m.BehindKnown, m.Behind)})
	}
	return s, nil
}

// poison says how many records wait in poison topics.
func (v *visit) poison() (section, error) {
	w := v.w.Health
	s := section{ID: "poison", Title: w.Poison, Empty: w.NoPoison, Command: "quittance cases list --kind poison --state open"}
	list, err := v.o.cfg.Health.Cases.CountOpen(v.Context())
	if err != nil {
		return s, err
	}
	s.Grid.Heads = []string{w.Records, w.Oldest}
	for _, c := range list {
		if c.Kind == cases.KindPoison {
			s.Grid.Rows = append(s.Grid.Rows, []staff.Cell{{Text: strconv.FormatInt(c.N, 10), URL: v.URL(opsRoot+"cases", "kind", string(cases.KindPoison), "state", string(cases.StateOpen))}, {Text: v.At(c.Oldest.UTC())}})
		}
	}
	return s, nil
}

// process says how this process does.
func (v *visit) process() section {
	w, h := v.w.Health, v.o.cfg.Health
	s := section{ID: "process", Title: w.Process}
	s.Grid = staff.Grid{Caption: w.Process, Heads: []string{w.Part, w.State}}
	current := w.Current
	if age := h.RegistryAge(); age > registryStale {
		current = fmt.Sprintf(w.Stale, v.At(v.Now.Add(-age).Truncate(time.Minute)))
	}
	loops := w.Turning
	if err := h.Stuck(); err != nil {
		v.LogFailure("reading the loops of this process", err)
		loops = w.StuckLoops
	}
	s.Grid.Rows = [][]staff.Cell{{{Text: w.Registry}, {Text: current}}, {{Text: w.Loops}, {Text: loops}}}
	return s
}

// dash returns a text, or a dash for none.
func dash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
