// Package pulse tells how the loops of a process do: whether they have what they need to begin, and
// whether they turn. The monitor travels in the context of the parts that have loops.
package pulse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Monitor knows the loops of a process. The zero value knows none. Safe for concurrent use.
type Monitor struct {
	mu    sync.Mutex
	loops map[*Loop]bool
}

// Loop is a loop of a part. The methods of a nil Loop do nothing. Safe for concurrent use.
type Loop struct {
	monitor *Monitor
	name    string

	mu     sync.Mutex
	turned time.Time
	lacks  string
}

type key struct{}

// In returns a context in which loops are known to the monitor.
func (m *Monitor) In(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, m) }

// Begin adds a loop to the monitor of the context; nil without one. lacks says what the loop does not
// have yet; empty when it can work at once. Call End when the loop ends.
func Begin(ctx context.Context, name, lacks string) *Loop {
	m, ok := ctx.Value(key{}).(*Monitor)
	if !ok {
		return nil
	}
	l := &Loop{monitor: m, name: name, lacks: lacks}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.loops == nil {
		m.loops = map[*Loop]bool{}
	}
	m.loops[l] = true
	return l
}

// Turn notes that the loop has turned. A wait for a server turns, too: call Turn at each try. A loop that
// never turns is never stuck.
func (l *Loop) Turn() {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.turned = time.Now()
	}
}

// Ready notes that the loop has what it needs.
func (l *Loop) Ready() {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lacks = ""
	}
}

// End removes the loop.
func (l *Loop) End() {
	if l != nil {
		l.monitor.mu.Lock()
		defer l.monitor.mu.Unlock()
		delete(l.monitor.loops, l)
	}
}

// Stuck returns an error that names the loops that have not turned within a time, or nil.
func (m *Monitor) Stuck(within time.Duration) error {
	return m.each(func(l *Loop) error {
		if since := time.Since(l.turned); !l.turned.IsZero() && since > within {
			return fmt.Errorf("%s: it has not turned for %v", l.name, since.Round(time.Second))
		}
		return nil
	})
}

// Unready returns an error that names the loops that lack something, and what, or nil.
func (m *Monitor) Unready() error {
	return m.each(func(l *Loop) error {
		if l.lacks != "" {
			return fmt.Errorf("%s: %s", l.name, l.lacks)
		}
		return nil
	})
}

func (m *Monitor) each(fault func(*Loop) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for l := range m.loops {
		l.mu.Lock()
		if err := fault(l); err != nil {
			errs = append(errs, err)
		}
		l.mu.Unlock()
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}
