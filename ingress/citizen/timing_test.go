package citizen_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"quittance/ingress/citizen"
	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/money"
)

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// permutation returns the difference of the medians of two samples, and how often a random
// assignment of the same durations to the two has at least that difference.
func permutation(a, b []time.Duration) (difference time.Duration, p float64) {
	const rounds = 2000
	difference = (median(a) - median(b)).Abs()
	all := slices.Concat(a, b)
	r := rand.New(rand.NewPCG(1, 2)) // the same permutations in each run
	as := 0
	for range rounds {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if (median(all[:len(a)]) - median(all[len(a):])).Abs() >= difference {
			as++
		}
	}
	return difference, float64(as+1) / (rounds + 1)
}

// indistinguishable fails if the two samples of measure differ by more than chance and by more than a
// network hides, and differ again in two other samples. One comparison alone would find a difference in
// one of a thousand runs in which there is none. It prints what it found.
func indistinguishable(t *testing.T, what string, measure func(*testing.T) (a, b []time.Duration)) {
	t.Helper()
	const alpha = 0.001
	apart := func(a, b []time.Duration) (difference time.Duration, p float64, apart bool) {
		difference, p = permutation(a, b)
		return difference, p, p < alpha && difference > max(300*time.Microsecond, median(b)/10)
	}
	compare := func() (a, b []time.Duration, found bool) {
		a, b = measure(t)
		difference, p, found := apart(a, b)
		t.Logf("%s: medians %v and %v of %d each, difference %v, p = %.4f (permutation test, 2000 rounds)", what, median(a), median(b), len(a), difference, p)
		return a, b, found
	}
	a, b, found := compare()
	// The test is able to find a difference, where a busy machine lets it: twice the time of the same calls, and a millisecond.
	able := func(a []time.Duration) bool {
		slow := make([]time.Duration, len(a))
		for i := range slow {
			slow[i] = 2*a[i] + time.Millisecond
		}
		_, _, found := apart(slow, a)
		return found
	}
	for again := 0; !able(a) || !able(b); again++ {
		if again == 2 {
			t.Fatalf("%s: samples of twice the time are not found slower, three times", what)
		}
		a, b, found = compare()
	}
	if found {
		_, _, found = compare()
	}
	if found {
		t.Errorf("%s: the answer times tell which is which", what)
	}
}

// account makes an account without HTTP, and returns its session.
func (w *world) account(a contact.Address) secret.Text {
	w.t.Helper()
	browser := secret.NewText("browser of the test")
	code, v, err := w.accounts.Begin(w.t.Context(), citizens.Request{Address: a, Browser: browser, Client: "made " + a.Key()})
	if err != nil || v != citizens.Sent {
		w.t.Fatal(v, err)
	}
	session, _, err := w.accounts.Enter(w.t.Context(), a, browser, code.Reveal(), money.French)
	if err != nil {
		w.t.Fatal(err)
	}
	return session
}

func mailbox(t *testing.T, n int) contact.Address {
	t.Helper()
	a, err := contact.ParseEmail(fmt.Sprintf("usager%d@example.org", n))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The answer time of a sign-in does not tell whether an address has an account.
func TestTimeOfKnownAndUnknownAddresses(t *testing.T) {
	t.Parallel()
	indistinguishable(t, "sign-in of known and unknown addresses", timesOfAddresses)
}

func timesOfAddresses(t *testing.T) (known, unknown []time.Duration) {
	w := serve(t)
	const each = 150
	for n := range each {
		w.account(mailbox(t, n))
	}
	w.wait(9 * 24 * time.Hour) // what the limits count is over
	if err := citizens.Sweep(t.Context(), w.pool, w.Now()); err != nil {
		t.Fatal(err)
	}
	b := w.browse()
	times := [2][]time.Duration{} // known, unknown
	for i, n := range rand.Perm(2*each + 20) {
		b.client = fmt.Sprintf("%d.%d.0.1", 20+n/250, n%250)
		if i%90 == 89 {
			w.wait(61 * time.Minute) // the share of a domain is that of an hour
		}
		begun := time.Now()
		b.want(b.call(http.MethodPost, "/sign-in", object{"email": fmt.Sprintf("usager%d@example.org", n)}), http.StatusAccepted, "")
		took := time.Since(begun)
		if i >= 20 { // the first ones open connections
			which := min(n/each, 1)
			times[which] = append(times[which], took)
		}
	}
	most := min(len(times[0]), len(times[1]))
	return times[0][:most], times[1][:most]
}

// The answer time of a wrong link code does not tell whether a reference exists.
func TestTimeOfKnownAndUnknownReferences(t *testing.T) {
	t.Parallel()
	indistinguishable(t, "wrong link codes of known and unknown references", timesOfReferences)
}

func timesOfReferences(t *testing.T) (known, unknown []time.Duration) {
	w := serve(t)
	const accounts, linked = 60, 20
	sessions := make([]secret.Text, accounts)
	for n := range sessions {
		sessions[n] = w.account(mailbox(t, n))
	}
	for n := range linked { // renewed, and linked
		subject := citizens.Subject{AgencyID: agency, Ref: fmt.Sprint("TP-1001-", n)}
		if _, err := w.accounts.Renew(t.Context(), operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}, subject); err != nil {
			t.Fatal(err)
		}
		b := w.browse()
		b.cookies[session] = sessions[n].Reveal()
		b.link(agency, subject.Ref)
	}
	times := [2][]time.Duration{}
	for i := range 4 * accounts {
		b := w.browse()
		b.cookies[session] = sessions[i/4].Reveal()
		which := (i + i/4) % 2
		ref := []string{fmt.Sprint("TP-1001-", i%linked), fmt.Sprint("TP-1001-0", i)}[which]
		begun := time.Now()
		b.want(b.call(http.MethodPost, "/links", object{"tenant_id": agency, "subject_ref": ref, "link_code": "0000000000"}), http.StatusUnprocessableEntity, citizen.CodeLinkRefused)
		times[which] = append(times[which], time.Since(begun))
	}
	return times[0], times[1]
}
