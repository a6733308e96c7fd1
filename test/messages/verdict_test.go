package messages_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/internal/deliveries"
	"quittance/internal/notify"
	"quittance/internal/provider"
)

// message is a message that was asked for.
type message struct {
	id      string
	kind    notify.Kind
	channel provider.Channel
	to      string    // as its inbox shows it
	at      time.Time // of its cause, by the service's clock
	// may are the reasons for which it may lapse, as beginnings of the reasons of its delivery.
	may []string
	// held says that no worker ran during its life.
	held bool
}

// lapsesOfCodes are the reasons for which a code may lapse while workers are killed and providers
// are away: its ten minutes are over, it may have been sent, or it was refused twice.
var lapsesOfCodes = []string{"expired", "not_sent_again", "unknown:", "busy:", "not_sent:"}

// arrival is a message at a simulated provider.
type arrival struct {
	id, to string
	at     time.Time // by the service's clock
}

// delivery is the row of a message in Postgres.
type delivery struct{ state, reason string }

// findings is everything that the verdict compares. Times are the service's, unless machine
// makes them the machine's.
type findings struct {
	asked    []message
	arrived  []arrival
	rows     map[string]delivery
	accepted map[string]time.Time // the first record of the acceptance, by the machine's clock
	machine  func(at time.Time) (time.Time, error)
}

// slack is the greatest time from the check before a call until the provider has the message, and
// the greatest difference between two processes' readings of the service's clock.
const slack = time.Second

// verdict is what came of all messages.
type verdict struct {
	messages, sent, lost, again, lateCodes int
	faults                                 []string
}

func (v *verdict) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

// judge compares. The error is of findings.machine.
func judge(f findings) (v verdict, err error) {
	v.messages = len(f.asked)
	at := map[string][]arrival{}
	for _, a := range f.arrived {
		at[a.id] = append(at[a.id], a)
	}
	for _, m := range f.asked {
		got := at[m.id]
		delete(at, m.id)
		if len(got) > 0 {
			v.sent++
		}
		if fault := m.lost(f.rows[m.id], len(got)); fault != "" {
			v.lost++
			v.fault("%s: lost: %s", m, fault)
		}
		var times []time.Time
		for _, a := range got {
			if a.to != m.to {
				v.fault("%s: arrived at another address", m)
			}
			t, err := f.machine(a.at)
			if err != nil {
				return v, err
			}
			times = append(times, t)
		}
		slices.SortFunc(times, time.Time.Compare)
		if len(got) > 1 {
			v.again++
			recorded, known := f.accepted[m.id]
			switch last := times[len(times)-1]; {
			case m.kind.Once:
				v.fault("%s: a code arrived %d times", m, len(got))
			case known && last.After(recorded.Add(slack)):
				v.fault("%s: was sent again %v after its acceptance was recorded", m, last.Sub(recorded).Round(time.Millisecond))
			}
		}
		if m.kind.Once && len(times) > 0 {
			end, err := f.machine(m.at.Add(m.kind.Life))
			if err != nil {
				return v, err
			}
			if last := times[len(times)-1]; m.held || last.After(end.Add(slack)) {
				v.lateCodes++
				v.fault("%s: arrived %v after its life", m, last.Sub(end).Round(time.Millisecond))
			}
		}
	}
	for id, got := range at {
		v.fault("%s: arrived %d times, and nobody asked for it", id, len(got))
	}
	return v, nil
}

// lost says why a message is lost; empty if it is not.
func (m message) lost(row delivery, arrived int) string {
	switch {
	case row.state == "":
		return "Postgres does not have it"
	case row.state == deliveries.StateDelivered && arrived == 0:
		return "Postgres says that it is delivered, and it did not arrive"
	case row.state == deliveries.StateDelivered, arrived > 0 && (m.kind.Once || row.state == deliveries.StateExhausted):
		return ""
	case row.state != deliveries.StateExhausted:
		return fmt.Sprintf("it is %s (%s)", row.state, row.reason)
	case slices.ContainsFunc(m.may, func(reason string) bool { return strings.HasPrefix(row.reason, reason) }):
		return ""
	}
	return "it was given up: " + row.reason
}

func (m message) String() string {
	return fmt.Sprintf("%s (%s by %s of %s)", m.id, m.kind.Name, m.channel, m.at.Format(time.TimeOnly))
}

// line is the report of a run.
func (v verdict) line(kills int) string {
	return fmt.Sprintf("messages=%d sent=%d lost=%d again=%d late_codes=%d kills=%d", v.messages, v.sent, v.lost, v.again, v.lateCodes, kills)
}

// Each promise can be broken, and the verdict says so.
func TestVerdict(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	receipt := message{id: "m", kind: notify.Receipt, to: "a", at: begun, may: []string{"reversed"}}
	code := message{id: "m", kind: notify.SignInCode, to: "a", at: begun, may: lapsesOfCodes}
	calm, held := code, code
	calm.may, held.held = nil, true
	delivered := delivery{state: deliveries.StateDelivered}
	ended := func(reason string) delivery { return delivery{deliveries.StateExhausted, reason} }
	after := func(d ...time.Duration) (out []arrival) {
		for _, d := range d {
			out = append(out, arrival{"m", "a", begun.Add(d)})
		}
		return out
	}
	const s = time.Second
	for name, c := range map[string]struct {
		message  message
		arrived  []arrival
		row      delivery
		accepted time.Duration // 0: never recorded
		want     string        // a part of the fault; empty for none
	}{
		"arrives":                         {receipt, after(s), delivered, 2 * s, ""},
		"unrecorded, so again":            {receipt, after(s, 20*s), delivered, 21 * s, ""},
		"lapses for a reason":             {receipt, nil, ended("reversed"), 0, ""},
		"code lapses":                     {code, nil, ended("expired"), 0, ""},
		"code of a dead worker":           {code, after(s), ended("not_sent_again"), 0, ""},
		"unknown to Postgres":             {receipt, after(s), delivery{}, 0, "Postgres does not have it"},
		"dropped":                         {receipt, nil, delivered, 0, "did not arrive"},
		"given up":                        {receipt, nil, ended("busy:x"), 0, "given up: busy:x"},
		"waits for ever":                  {receipt, nil, delivery{deliveries.StateWaiting, "busy"}, 0, "it is waiting"},
		"again after its acceptance":      {receipt, after(s, 20*s), delivered, 2 * s, "sent again 18s after"},
		"code again":                      {code, after(s, 2*s), delivered, 0, "a code arrived 2 times"},
		"late code":                       {code, after(12 * time.Minute), delivered, 0, "2m0s after its life"},
		"code that no worker could send":  {held, after(s), delivered, 2 * s, "after its life"},
		"code that nothing disturbed":     {calm, nil, ended("expired"), 0, "given up: expired"},
		"another message":                 {receipt, append(after(s), arrival{"n", "a", begun}), delivered, s, "nobody asked"},
		"another address":                 {receipt, []arrival{{"m", "b", begun}}, delivered, s, "another address"},
		"limited, and it may not be":      {receipt, nil, ended("limited"), 0, "given up: limited"},
		"a receipt that is past its life": {receipt, nil, ended("expired"), 0, "given up: expired"},
	} {
		f := findings{
			asked: []message{c.message}, arrived: c.arrived, rows: map[string]delivery{}, accepted: map[string]time.Time{},
			machine: func(at time.Time) (time.Time, error) { return at.Add(-2 * time.Minute), nil },
		}
		if c.row.state != "" {
			f.rows["m"] = c.row
		}
		if c.accepted > 0 {
			f.accepted["m"], _ = f.machine(begun.Add(c.accepted))
		}
		v, err := judge(f)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(v.faults, "; ")
		if (c.want == "") != (all == "") || !strings.Contains(all, c.want) {
			t.Errorf("%s: %q, want %q", name, all, c.want)
		}
	}
}
