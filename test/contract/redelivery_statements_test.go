package contract_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"quittance/test/harness"
)

// toldEvent is an item of the list of a session's events.
type toldEvent struct {
	EventID    string `json:"event_id"`
	Event      string `json:"event"`
	CreatedAt  string `json:"created_at"`
	Deliveries []struct {
		Endpoint   string
		URL        string
		State      string
		Attempts   int
		LastStatus *int    `json:"last_status"`
		NextAt     *string `json:"next_at"`
	}
}

// events asks for the events of a session.
func (c *contract) events(t *testing.T, key string, id any) harness.Answer {
	t.Helper()
	a := c.Call(t, http.MethodGet, c.Sessions(fmt.Sprintf("/%s/events", id)), "", "Authorization", "Bearer "+key)
	c.holds(t, a, http.StatusOK, "SessionEvents")
	return a
}

// told waits until a session has the deliveries whose states are given, in the order of the list.
func (c *contract) told(t *testing.T, key string, id any, states ...string) (e toldEvent) {
	t.Helper()
	harness.Eventually(t, "the deliveries are "+fmt.Sprint(states), func() error {
		a := c.events(t, key, id)
		var got struct{ Items []toldEvent }
		if a.Into(t, &got); a.Status != http.StatusOK || len(got.Items) != 1 {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		e = got.Items[0]
		found := []string{}
		for _, d := range e.Deliveries {
			found = append(found, d.State)
		}
		if fmt.Sprint(found) != fmt.Sprint(states) {
			return fmt.Errorf("%s", a.Body)
		}
		return nil
	})
	return e
}

func (c *contract) redeliver(t *testing.T, key string, id any, event string) harness.Answer {
	t.Helper()
	a := c.Call(t, http.MethodPost, c.Sessions(fmt.Sprintf("/%s/events/%s/redeliver", id, event)), "", "Authorization", "Bearer "+key)
	c.holds(t, a, http.StatusAccepted, "SessionEvent")
	return a
}

// arrivals are the bodies of an event in an inbox.
func (c *contract) arrivals(t *testing.T, inbox, event string) (bodies []string) {
	t.Helper()
	var all []harness.Message
	c.Call(t, http.MethodGet, c.URL(harness.AtSimulators, "/inbox/"+inbox), "").Into(t, &all)
	for _, m := range all {
		if m.Headers["webhook-id"] == event {
			bodies = append(bodies, m.Body)
		}
	}
	return bodies
}

// redeliveryStatements are of our decisions, not of the contract. The last one moves the clock by a
// month.
var redeliveryStatements = []statement{
	{secRedelivery, "GET …/events: the events of the session with their deliveries to the caller's own endpoints", func(t *testing.T, c *contract) {
		s := c.created(t, portalKey, c.with(`"tenant_id":"`+taxAgency+`"`))
		var open struct{ Items []toldEvent }
		c.events(t, taxKey, s["id"]).Into(t, &open)
		equal(t, "events of an open session", len(open.Items), 0)
		c.settle(t, portalKey, s, "06 600 00 01", "completed")
		_, w := c.webhook(t, "tax", s["id"], "checkout.completed")
		own, portal := c.told(t, taxKey, s["id"], "delivered", "delivered"), c.told(t, portalKey, s["id"], "delivered")
		equal(t, "event", []any{own.EventID, own.Event, own.CreatedAt}, []any{w["event_id"], "checkout.completed", w["created_at"]})
		equal(t, "the platform's", []any{portal.EventID, portal.Deliveries[0].Attempts, portal.Deliveries[0].LastStatus, portal.Deliveries[0].NextAt}, []any{own.EventID, 1, 200, nil})
		matches(t, "url", portal.Deliveries[0].URL, "/inbox/portal$")
		for _, d := range own.Deliveries {
			matches(t, "url", d.URL, "/inbox/tax")
			matches(t, "endpoint", d.Endpoint, uuidPattern)
		}
		refused(t, c.events(t, customsKey, s["id"]), 404, "checkout.session_not_found")
		refused(t, c.events(t, taxLiveKey, s["id"]), 404, "checkout.session_not_found")
	}},
	{secRedelivery, "POST …/redeliver: 202, the same event_id and bytes to the caller's own endpoints only; 404, 409", func(t *testing.T, c *contract) {
		s := c.created(t, portalKey, c.with(`"tenant_id":"`+taxAgency+`","metadata":{"case":"é"}`))
		c.settle(t, portalKey, s, "06 600 00 01", "completed")
		e := c.told(t, taxKey, s["id"], "delivered", "delivered")
		c.told(t, portalKey, s["id"], "delivered")
		equal(t, "status", c.redeliver(t, taxKey, s["id"], e.EventID).Status, 202)
		c.told(t, taxKey, s["id"], "delivered", "delivered", "delivered", "delivered")
		got := c.arrivals(t, "tax", e.EventID)
		equal(t, "bodies", []any{len(got), got[0] == got[1], len(c.arrivals(t, "tax-completed", e.EventID)), len(c.arrivals(t, "portal", e.EventID))}, []any{2, true, 2, 1})
		refused(t, c.redeliver(t, customsKey, s["id"], e.EventID), 404, "checkout.session_not_found")
		refused(t, c.redeliver(t, taxKey, s["id"], "evt_unknown"), 404, "checkout.event_not_found")
		foreign := c.created(t, customsKey, c.with(""))
		c.cancel(t, customsKey, foreign["id"], "")
		refused(t, c.redeliver(t, customsKey, foreign["id"], c.told(t, customsKey, foreign["id"]).EventID), 409, "checkout.no_endpoint")
		// The platform made no such session.
		s = c.created(t, taxKey, c.with(""))
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		refused(t, c.redeliver(t, portalKey, s["id"], c.told(t, portalKey, s["id"]).EventID), 409, "checkout.no_endpoint")
	}},
	{secRedelivery, "a delivery that fails says when it is due, and a redelivery makes it at once", func(t *testing.T, c *contract) {
		c.Control(t, "inbox/tax", `{"status": 500}`)
		s := c.created(t, taxKey, c.with(""))
		c.cancel(t, taxKey, s["id"], "")
		e := c.told(t, taxKey, s["id"], "waiting")
		equal(t, "last_status", e.Deliveries[0].LastStatus, 500)
		matches(t, "next_at", *e.Deliveries[0].NextAt, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
		c.Control(t, "inbox/tax", `{"status": 200}`)
		equal(t, "status", c.redeliver(t, taxKey, s["id"], e.EventID).Status, 202)
		if attempts := c.told(t, taxKey, s["id"], "delivered").Deliveries[0].Attempts; attempts < 2 {
			t.Errorf("%d attempts", attempts)
		}
	}},
	{secRedelivery, "10 a minute for each application and mode (429 generic.rate_limited)", func(t *testing.T, c *contract) {
		s := c.created(t, portalKey, c.with(`"tenant_id":"`+taxAgency+`"`))
		c.settle(t, portalKey, s, "06 600 00 01", "completed")
		e := c.told(t, portalKey, s["id"], "delivered")
		for time.Now().Second() > 40 {
			time.Sleep(200 * time.Millisecond)
		}
		counts := map[int]int{}
		var last harness.Answer
		for range 12 {
			last = c.redeliver(t, portalKey, s["id"], e.EventID)
			counts[last.Status]++
		}
		equal(t, "answers", counts, map[int]int{202: 10, 429: 2})
		refused(t, last, 429, "generic.rate_limited")
		equal(t, "RateLimit-Policy", last.Header.Get("RateLimit-Policy"), `"redeliveries";q=10;w=60`)
		equal(t, "another quota", c.redeliver(t, taxKey, s["id"], e.EventID).Status, 202)
	}},
	{secList, "completed_from and completed_to: completed sessions by the time of completion, inclusive and exclusive", func(t *testing.T, c *contract) {
		customer := c.order()
		paid := c.created(t, taxKey, c.with(`"customer_id":"`+customer+`"`))
		c.created(t, taxKey, c.with(`"customer_id":"`+customer+`"`))
		c.settle(t, taxKey, paid, "06 600 00 01", "completed")
		var read map[string]any
		c.get(t, taxKey, "/"+paid["id"].(string)).Into(t, &read)
		at, err := time.Parse(time.RFC3339, read["completed_at"].(string))
		if err != nil {
			t.Fatal(err)
		}
		count := func(from, to time.Time) int {
			ids, _ := c.list(t, taxKey, "?customer_id="+customer+"&completed_from="+from.UTC().Format(time.RFC3339)+"&completed_to="+to.Format("2006-01-02t15:04:05z"))
			return len(ids)
		}
		equal(t, "counts", []int{count(at, at.Add(time.Second)), count(at.Add(-time.Hour), at), count(at.Add(time.Second), at.Add(time.Hour))}, []int{1, 0, 0})
		for _, query := range []string{"?completed_from=2026-11-21", "?completed_from=2026-11-21T00:00:00+01:00", "?completed_to=hier"} {
			equal(t, query, refused(t, c.get(t, taxKey, query), 400, "generic.invalid_query")[0].Rule, "format")
		}
	}},
	{secRedelivery, "410 checkout.event_erased: 30 days after the end of the session; the list still has the event", func(t *testing.T, c *contract) {
		s := c.created(t, customsKey, c.with(`"metadata":{"case":"4"}`))
		c.cancel(t, customsKey, s["id"], "")
		e := c.told(t, customsKey, s["id"])
		c.Advance(t, 31*24*time.Hour)
		harness.Eventually(t, "the session is archived", func() error {
			a := c.redeliver(t, customsKey, s["id"], e.EventID)
			if a.Status != http.StatusGone || !bytes.Contains(a.Body, []byte("checkout.event_erased")) {
				return fmt.Errorf("%d %s", a.Status, a.Body)
			}
			return nil
		})
		equal(t, "event", c.told(t, customsKey, s["id"]).EventID, e.EventID)
	}},
}
