// Package flood measures the quota of creations: integrators of whom some offer ten
// times what they may create, at several instances of ingress, and others that stay
// below. It counts what each was granted in each UTC minute, and shows what the flood
// costs those who stay below.
package flood

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/schemas"
)

// Instances is the number of ingresses that the flood comes to.
const Instances = 4

// The flood, in creations a minute and application.
const (
	granted  = 30 // what the contract grants
	flooding = 10 // applications that offer far more than their quota
	offered  = 300
	numQuiet = 8 // applications that stay below it, one on each partition
	below    = 20
)

// How long a client goes on trying, and how long one of its requests waits for an
// answer.
const (
	journeyPatience = 2 * time.Minute
	requestPatience = 8 * time.Second
)

// Registry is a registry file of the applications, with the default quota, and their
// keys. Each is of an agency of its own, spread over the partitions. The flooding ones
// come first.
func Registry() (file string, keys []string) {
	var b strings.Builder
	b.WriteString("agencies:\n")
	for n := range flooding + numQuiet {
		partition := n
		if n >= flooding {
			partition = n - flooding
		}
		key := fmt.Sprintf("sk_test_QuotaKey%020d", n)
		keys = append(keys, key)
		fmt.Fprintf(&b, "  - {id: %s, slug: agency%d, name: Agency %d, applications: [{id: %s, name: Application %d, offers: [momo], keys: [{secret: %s}]}]}\n",
			agencyOn(int32(partition%schemas.DefaultPartitions)), n, n, uuid.NewString(), n, key)
	}
	return b.String(), keys
}

// agencyOn is a new agency id whose commands go to the partition.
func agencyOn(partition int32) string {
	for {
		if id := uuid.NewString(); schemas.PartitionOf(id, schemas.DefaultPartitions) == partition {
			return id
		}
	}
}

// Config of a flood. Ingress and Keys are required.
type Config struct {
	Ingress []string // base URLs of Instances ingresses
	Keys    []string // of Registry
	// Quiet is how many whole minutes pass before the flood, Flooded how many it lasts,
	// at least one.
	Quiet, Flooded int
	// Say receives progress and figures; nil discards them.
	Say func(format string, args ...any)
}

// Result of a flood.
type Result struct {
	// Faults are what was wrong: with the count, with an answer, or that too little
	// happened to show anything. There are none when the quota holds.
	Faults []string
	// Line is the figures in one line, for machines.
	Line string
}

// Run waits for a whole minute, makes the load, and judges it. It takes the minutes of
// the configuration and up to one more.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if len(cfg.Ingress) != Instances || len(cfg.Keys) != flooding+numQuiet || cfg.Flooded < 1 || cfg.Quiet < 0 {
		return Result{}, fmt.Errorf("a flood needs %d ingresses, %d keys and a minute at least", Instances, flooding+numQuiet)
	}
	say := cfg.Say
	if say == nil {
		say = func(string, ...any) {}
	}
	// The flood begins before its first minute, so that it is met in full flight, and
	// ends after the last: the next one's quota is its own.
	lead, tail := 2400*time.Millisecond, 1600*time.Millisecond
	if cfg.Quiet > 0 {
		lead = 0
	}
	first := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
	if time.Until(first) < lead+time.Second {
		first = first.Add(time.Minute)
	}
	flood := first.Add(time.Duration(cfg.Quiet) * time.Minute)
	end := flood.Add(time.Duration(cfg.Flooded) * time.Minute)
	say("ready; the first whole minute is %s", first.Format(time.TimeOnly))

	l := &load{ingress: cfg.Ingress, keys: cfg.Keys, latest: map[int]answer{}, client: &http.Client{
		Timeout: requestPatience, Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
	}}
	l.run(ctx, flood.Add(-lead), end.Add(tail))
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	verdict := l.judge(flood, end)
	say("%d creations accepted, %d refused; %d replays; %d requests sent again after no answer", len(l.accepted), len(l.refused), l.replays, l.retries)
	r := Result{
		Faults: slices.Concat(l.faults, verdict),
		Line:   fmt.Sprintf("minutes=%d exact=%s", cfg.Flooded, map[bool]string{true: "yes", false: "no"}[len(verdict) == 0]),
	}
	// A run in which little happened would prove little.
	if wanted := cfg.Flooded * flooding * (offered - granted) * 9 / 10; len(l.refused) < wanted {
		r.Faults = append(r.Faults, fmt.Sprintf("%d creations were refused, want %d at least", len(l.refused), wanted))
	}
	if wanted := cfg.Flooded * flooding; l.replays < wanted {
		r.Faults = append(r.Faults, fmt.Sprintf("%d creations were replayed, want %d at least", l.replays, wanted))
	}
	if cfg.Quiet > 0 {
		before, during := l.below(first, flood), l.below(flood, end)
		say("without the flood: %s", distribution(before))
		say("with it: %s", distribution(during))
		r.Line += fmt.Sprintf(" p99_quiet_ms=%.1f p99_flood_ms=%.1f ratio=%.2f",
			percentile(before, 0.99), percentile(during, 0.99), percentile(during, 0.99)/percentile(before, 0.99))
	}
	return r, nil
}

// below is how long the creations took, sorted, that quiet applications sent from one
// time to another.
func (l *load) below(from, to time.Time) (took []time.Duration) {
	for _, a := range l.accepted {
		if a.app >= flooding && !a.sent.Before(from) && a.sent.Before(to) {
			took = append(took, a.answered.Sub(a.sent))
		}
	}
	slices.Sort(took)
	return took
}

func distribution(took []time.Duration) string {
	return fmt.Sprintf("%d creations below the quota, p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, most %.1f ms",
		len(took), percentile(took, 0.5), percentile(took, 0.9), percentile(took, 0.99), percentile(took, 1))
}

// percentile of sorted durations, in milliseconds; 0 of none.
func percentile(sorted []time.Duration, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]) / float64(time.Millisecond)
}

// pause lets d pass and says whether it did before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
