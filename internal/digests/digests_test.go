package digests_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"quittance/internal/digests"
	"quittance/internal/identity"
	"quittance/test/registries"
)

// world is a database with two members of staff.
type world struct {
	registries.House
	*digests.Store
	t          *testing.T
	jean, anne string
	window     time.Time
	found      map[string][]digests.Item
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{House: registries.SetUp(t), t: t, window: digests.Window(registries.Epoch), found: map[string][]digests.Item{}}
	w.Store = digests.NewStore(w.Pool)
	for name, id := range map[string]*string{"Jean": &w.jean, "Anne": &w.anne} {
		m, err := identity.AddStaff(t.Context(), w.Pool, w.Keys, registries.Actor, "", identity.StaffRequest{Name: name}, registries.Epoch)
		if err != nil {
			t.Fatal(err)
		}
		*id = m.ID
	}
	return w
}

func (w *world) find(context.Context) (map[string][]digests.Item, error) { return w.found, nil }

// next makes the window after a time and returns what was said in it, by member of staff.
func (w *world) next(after time.Duration) map[string][]string {
	w.t.Helper()
	w.window = w.window.Add(after)
	done, err := w.Make(w.t.Context(), w.window, w.find)
	if err != nil || !done.Window {
		w.t.Fatalf("%+v, %v", done, err)
	}
	return w.tell(nil)
}

// tell sends what waits; a non-nil err is the result of each sending.
func (w *world) tell(err error) map[string][]string {
	w.t.Helper()
	said := map[string][]string{}
	_, got := w.Tell(w.t.Context(), func() time.Time { return w.window }, func(_ context.Context, d digests.Digest) error {
		for _, i := range d.Items {
			said[d.StaffID] = append(said[d.StaffID], i.Subject)
		}
		return err
	})
	if !errors.Is(got, err) {
		w.t.Fatal(got)
	}
	return said
}

func item(subject string, since time.Time) digests.Item {
	return digests.Item{Topic: digests.TopicCase, Subject: subject, Detail: "late_payment, impots", Since: since}
}

func (w *world) want(got map[string][]string, jean, anne []string) {
	w.t.Helper()
	if !slices.Equal(got[w.jean], jean) || !slices.Equal(got[w.anne], anne) {
		w.t.Errorf("Jean is told %v, want %v; Anne %v, want %v", got[w.jean], jean, got[w.anne], anne)
	}
}

// Something is said when it is new, and again after 24 hours if it is still there. Each member
// of staff is told separately. Without news there is no digest.
func TestWhatIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := item("a", registries.Epoch), item("b", registries.Epoch)
	w.want(w.next(0), nil, nil)
	w.found[w.jean] = []digests.Item{a}
	w.want(w.next(digests.Every), []string{"a"}, nil)
	w.want(w.next(digests.Every), nil, nil)
	w.found[w.jean], w.found[w.anne] = []digests.Item{a, b}, []digests.Item{a}
	w.want(w.next(digests.Every), []string{"b"}, []string{"a"})
	w.want(w.next(24*time.Hour-3*digests.Every), nil, nil)
	w.want(w.next(digests.Every), []string{"a"}, nil) // 24 hours after it was said to Jean
	w.want(w.next(digests.Every), nil, nil)
	w.want(w.next(digests.Every), []string{"b"}, []string{"a"})
	// What has ended is not said again. What begins again is new.
	w.found[w.jean], w.found[w.anne] = nil, []digests.Item{item("a", registries.Epoch.Add(time.Hour))}
	w.want(w.next(digests.Every), nil, []string{"a"})
	w.want(w.next(48*time.Hour), nil, []string{"a"})
	if err := w.Sweep(t.Context(), w.window.Add(8*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"digests", "digest_items", "digest_windows"} {
		var n int
		if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s has %d rows, %v", table, n, err)
		}
	}
}

// Nobody gets more than ten digests in 24 hours. What is held back is said when the day allows.
func TestDigestsOfADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.window
	for n := range digests.PerDay {
		w.found[w.jean] = []digests.Item{item(string(rune('a'+n)), registries.Epoch)}
		if got := w.next(digests.Every); len(got[w.jean]) != 1 {
			t.Fatalf("digest %d says %v", n, got)
		}
	}
	w.found[w.jean] = []digests.Item{item("x", registries.Epoch)}
	w.window = w.window.Add(digests.Every)
	if done, err := w.Make(t.Context(), w.window, w.find); err != nil || done.Withheld != 1 || done.Digests != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	w.found[w.jean] = append(w.found[w.jean], item("y", registries.Epoch))
	w.want(w.next(first.Add(24*time.Hour+digests.Every).Sub(w.window)), []string{"x", "y"}, nil)
}

// Several instances make a window once, also at the same time, and none makes an older one.
func TestOneInstanceMakesAWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.found[w.jean] = []digests.Item{item("a", registries.Epoch)}
	var group sync.WaitGroup
	results := make([]digests.Made, 8)
	for n := range results {
		group.Go(func() {
			var err error
			if results[n], err = w.Make(t.Context(), w.window, w.find); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	windows, made := 0, 0
	for _, r := range results {
		made += r.Digests
		if r.Window {
			windows++
		}
	}
	if windows != 1 || made != 1 {
		t.Errorf("the window was made %d times, with %d digests", windows, made)
	}
	if done, err := w.Make(t.Context(), w.window.Add(-digests.Every), w.find); err != nil || done.Window {
		t.Errorf("an older window: %+v, %v", done, err)
	}
	// All of them send at the same time.
	var mu sync.Mutex
	sent := 0
	for range 8 {
		group.Go(func() {
			if _, err := w.Tell(t.Context(), func() time.Time { return w.window }, func(context.Context, digests.Digest) error {
				mu.Lock()
				defer mu.Unlock()
				sent++
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if sent != 1 {
		t.Errorf("sent %d times", sent)
	}
}

// A window whose making failed is made by the next one who tries. A digest whose sending failed
// is sent again, with the same items, and does not hold up the others. After a day it is given
// up, because its items are said again by then.
func TestDigestsSurviveFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fault := errors.New("away")
	if _, err := w.Make(t.Context(), w.window, func(context.Context) (map[string][]digests.Item, error) { return nil, fault }); !errors.Is(err, fault) {
		t.Fatal(err)
	}
	w.found[w.jean], w.found[w.anne] = []digests.Item{item("a", registries.Epoch)}, []digests.Item{item("a", registries.Epoch)}
	if done, err := w.Make(t.Context(), w.window, w.find); err != nil || done.Digests != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	w.want(w.tell(fault), []string{"a"}, []string{"a"})
	if at, err := w.OldestUnsent(t.Context(), w.window); err != nil || !at.Equal(w.window) {
		t.Errorf("%v, %v", at, err)
	}
	w.found[w.jean] = append(w.found[w.jean], item("b", registries.Epoch))
	before := w.window
	w.window = w.window.Add(digests.Every)
	if done, err := w.Make(t.Context(), w.window, w.find); err != nil || done.Digests != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	w.want(w.tell(nil), []string{"a", "b"}, []string{"a"}) // two digests
	if at, err := w.OldestUnsent(t.Context(), w.window); err != nil || !at.IsZero() {
		t.Errorf("%v, %v", at, err)
	}
	w.want(w.tell(nil), nil, nil)
	if _, err := w.Pool.Exec(t.Context(), `UPDATE digests SET sent_at = NULL WHERE window_at = $1`, before); err != nil {
		t.Fatal(err)
	}
	w.window = before.Add(digests.Life + time.Second)
	w.want(w.tell(nil), nil, nil)
}

// An operator is away when calls over five minutes had no answer. The order of calls, and calls
// that are read again, change nothing.
func TestOperatorsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := func(minutes int) time.Time { return registries.Epoch.Add(time.Duration(minutes) * time.Minute) }
	call := func(minutes int, answered bool) digests.Call {
		return digests.Call{Operator: "mtn", Live: true, AgencyID: registries.AgencyA, At: at(minutes), Answered: answered}
	}
	note := func(calls ...digests.Call) {
		t.Helper()
		for range 2 {
			if err := w.Note(t.Context(), calls); err != nil {
				t.Fatal(err)
			}
		}
	}
	away := func(minutes int) []digests.Outage {
		t.Helper()
		out, err := w.Outages(t.Context(), at(minutes))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	other := call(3, false)
	other.AgencyID = registries.AgencyB
	sandbox := call(2, true)
	sandbox.Live = false
	note(call(0, true), other, call(4, false), sandbox)
	if got := away(4); len(got) != 0 {
		t.Errorf("after a minute: %+v", got)
	}
	note(call(9, false), call(1, true)) // an answer from before
	got := away(10)
	if len(got) != 1 || got[0].Operator != "mtn" || !got[0].Live || !got[0].Since.Equal(at(3)) {
		t.Fatalf("%+v", got)
	}
	if slices.Sort(got[0].AgencyIDs); !slices.Equal(got[0].AgencyIDs, []string{registries.AgencyA, registries.AgencyB}) {
		t.Errorf("%v", got[0].AgencyIDs)
	}
	if got := away(70); len(got) != 0 {
		t.Errorf("an hour after the last call: %+v", got)
	}
	note(call(10, true))
	if got := away(10); len(got) != 0 {
		t.Errorf("after an answer: %+v", got)
	}
	note(call(9, false)) // read again
	if got := away(10); len(got) != 0 {
		t.Errorf("after an old call: %+v", got)
	}
	// An answer in the middle of calls that were noted before.
	note(call(20, false), call(40, false))
	note(call(30, true))
	if got := away(41); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	note(call(46, false))
	if got := away(47); len(got) != 1 || !got[0].Since.Equal(at(40)) || !slices.Equal(got[0].AgencyIDs, []string{registries.AgencyA}) {
		t.Errorf("%+v", got)
	}
}
