// Package flood measures the quota of creations. Some applications send ten times as many
// creations as their quota, to several instances of ingress; others stay below theirs.
// The package counts what each application got in each UTC minute, and measures what the
// flood costs the applications that stay below.
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

// Instances is the number of ingresses that get the flood.
const Instances = 4

// The flood, in creations a minute and application.
const (
	granted  = 30  // default quota of the contract
	flooding = 10  // number of applications that flood
	offered  = 300 // by each of them
	numQuiet = 8   // number of applications that stay below their quota, one on each partition
	below    = 20  // by each of them
)

// journeyPatience is how long a client repeats a request. requestPatience is how long
// each request waits for its answer.
const (
	journeyPatience = 2 * time.Minute
	requestPatience = 8 * time.Second
)

// Registry returns a registry file of the applications, with the default quota, and their
// keys. Each application has an agency of its own, and the agencies are spread over the
// partitions. The flooding applications come first.
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

// agencyOn returns a new agency id whose commands go to the partition.
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
	// Quiet is the number of whole minutes before the flood. Flooded is the number of
	// whole minutes of the flood, at least 1.
	Quiet, Flooded int
	// Say receives progress and figures; nil discards them.
	Say func(format string, args ...any)
}

// Result of a flood.
type Result struct {
	// Faults are wrong counts and wrong answers. A flood that was too small to show
	// anything is a fault too. There are none when the quota holds.
	Faults []string
	// Line has the figures in one line, for programs.
	Line string
}

// Run waits for the next whole minute, makes the load and judges the answers. It takes
// the minutes of the configuration and up to one more.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if len(cfg.Ingress) != Instances || len(cfg.Keys) != flooding+numQuiet || cfg.Flooded < 1 || cfg.Quiet < 0 {
		return Result{}, fmt.Errorf("a flood needs %d ingresses, %d keys and a minute at least", Instances, flooding+numQuiet)
	}
	say := cfg.Say
	if say == nil {
		say = func(string, ...any) {}
	}
	// The flood begins before its first minute and ends after its last, so that it is at
	// its full rate during all of them.
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
	// A smaller load than planned would prove nothing.
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

// below returns the sorted latencies of the creations that quiet applications sent in
// [from, to).
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

// percentile returns a percentile of sorted durations in milliseconds, or 0 for none.
func percentile(sorted []time.Duration, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]) / float64(time.Millisecond)
}
