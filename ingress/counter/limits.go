package counter

import (
	"net/http"
	"strconv"
	"time"

	"quittance/ingress/web"
)

// MaxWrong is how many refused keys and PINs a client may send in a minute before it is asked to wait. Wider
// networks may send multiples (web.Multiples). A valid key is accepted in any number, so that nobody in an
// office, or behind an operator's address, keeps its clerks from signing in.
const MaxWrong = 10

// outcomeLimited is that of calls and keys beyond the limits, in the metric of sign-ins.
const outcomeLimited = "limited"

// admitted counts a call of the page and reports whether it is within its limit. It has answered otherwise. A
// browser that has one of our sealed cookies counts for its session or its device, all others for their
// networks: docs/design/limits.md.
func (v visit) admitted() bool {
	session, _, signedIn := v.c.signIn.Session(v.R)
	device, _, known := v.c.devices.Session(v.R)
	ok := false
	switch {
	case signedIn:
		ok = v.c.calls.AllowAs("session " + session)
	case known:
		ok = v.c.calls.AllowAs("device " + device)
	default:
		ok = v.c.calls.Allow(v.R)
	}
	if !ok {
		v.c.signIns.WithLabelValues(outcomeLimited).Inc()
		v.wait(time.Second)
		out := v.view(v.w.UnsureTitle)
		out.Stands = v.w.TooMany
		v.Write(http.StatusTooManyRequests, "away", out)
	}
	return ok
}

// refuseKey answers a key that is none, or no clerk's any more.
func (v visit) refuseKey(ref string) {
	if v.c.wrong.Allow(v.R) {
		v.c.signIns.WithLabelValues("refused").Inc()
		v.askForKey(http.StatusUnauthorized, ref, v.w.KeyRefused)
		return
	}
	v.c.signIns.WithLabelValues(outcomeLimited).Inc()
	v.wait(time.Minute)
	v.askForKey(http.StatusTooManyRequests, ref, v.w.TooManyWrong)
}

// wait says when the client may come again.
func (v visit) wait(d time.Duration) {
	v.W.Header().Set("Retry-After", strconv.Itoa(int(d.Seconds())))
}

// open runs a handler for anybody, within the limits.
func (c *Counter) open(do func(visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if v := c.visit(w, r); v.admitted() {
			do(v)
		}
	}
}

// limits makes the limits of the page's calls, and those of refused keys.
func (c *Counter) limits() {
	c.calls = web.NewClients(c.cfg.Limits, web.ClientBurst)
	c.wrong = web.NewClients(web.Multiples(MaxWrong/time.Minute.Seconds()), time.Minute)
}
