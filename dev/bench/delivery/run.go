package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"quittance/dev/bench/installation"
)

// Limits of the full size. They hold for the median of the runs: one stall of the
// machine for a fifth of a second spoils one run.
const (
	singleLimit    = 1500 // deliveries a second to one endpoint, at least, with a p99 of singleP99Limit at most
	singleP99Limit = 120 * time.Millisecond
	fanoutLimit    = 2000            // deliveries a second, at least
	pauseLimit     = 3 * time.Second // from a SIGKILL of the worker to the next delivery, at most
	healthyLimit   = 2.0             // p99 of healthy endpoints beside faulty ones, as a multiple of p99 without them, at most
)

// Scenario is one way to load and to disturb an installation.
type Scenario struct {
	Name  string
	Short string // what it does
	// Disturbs says that it stops parts of the installation, so that no other scenario
	// can run at the same time.
	Disturbs bool
	// OwnBroker says that it needs a broker that the benchmark has started.
	OwnBroker bool

	groups []group
	run    func(t *trial, ctx context.Context) error
}

// Scenarios are all scenarios. Those that disturb come last.
var Scenarios = []Scenario{
	{Name: "ill", Short: "endpoints hang, drip, fail and reset beside healthy ones", groups: illGroups, run: (*trial).ill},
	{Name: "crowd", Short: "10,000 endpoints, of which 500 refuse connections for an hour of the service's clock", run: (*trial).crowd},
	{Name: "single", Short: "the highest rate to one endpoint", groups: singleGroups, run: (*trial).single},
	{Name: "fanout", Short: "800 events to 20 endpoints at once", groups: fanoutGroups, run: (*trial).fanout},
	{Name: "killed", Short: "SIGKILL of the worker ten times", Disturbs: true, groups: faultGroups, run: (*trial).killed},
	{Name: "rebalance", Short: "a second worker joins and leaves three times", Disturbs: true, groups: faultGroups, run: (*trial).rebalance},
	{Name: "postgres", Short: "Postgres is away for a minute", Disturbs: true, groups: faultGroups, run: (*trial).postgres},
	{Name: "broker", Short: "the broker is restarted", Disturbs: true, OwnBroker: true, groups: faultGroups, run: (*trial).broker},
}

// Names are the names of all scenarios.
func Names() []string {
	out := make([]string, len(Scenarios))
	for i, s := range Scenarios {
		out[i] = s.Name
	}
	return out
}

// Parse reads the names of scenarios, separated by commas. It returns an error when one is
// unknown.
func Parse(text string) ([]string, error) {
	names := strings.Split(text, ",")
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("no scenario is called %q; there are %s", name, strings.Join(Names(), ", "))
		}
	}
	return names, nil
}

// Help lists the scenarios and what they do, one a line.
func Help() string {
	var b strings.Builder
	for _, s := range Scenarios {
		fmt.Fprintf(&b, "\n%-9s  %s", s.Name, s.Short)
	}
	return b.String()
}

// Config of a measurement in full size. Log is required.
type Config struct {
	// Broker is host:port of a running Kafka. When it is empty, each scenario starts one.
	Broker string
	// Scenarios are the names of those that run, see Parse. All when empty.
	Scenarios []string
	// Runs of each scenario, at least 1.
	Runs int
	// Log receives progress.
	Log *slog.Logger
}

// Run runs scenarios one after the other, each in an installation of its own, and writes
// the report to out. It returns an error when a delivery is lost, doubled without cause
// or wrongly signed, or when a limit is missed. When it cannot go on, it writes what it
// has measured so far.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	if cfg.Runs < 1 {
		return errors.New("the number of runs must be 1 or more")
	}
	r := NewReport(Full, cfg.Runs, func(line string) { cfg.Log.Info("measured", slog.String("result", line)) })
	var faults []string
	for _, s := range cfg.chosen() {
		if s.OwnBroker && cfg.Broker != "" {
			r.line("%s: left out, it restarts the broker, and this one is not the benchmark's own", s.Name)
			continue
		}
		cfg.Log.Info("next scenario", slog.String("scenario", s.Name), slog.String("what", s.Short))
		found, err := cfg.scenario(ctx, r, s)
		faults = append(faults, found...)
		if err != nil {
			_, _ = io.WriteString(out, r.String())
			return fmt.Errorf("scenario %s: %w", s.Name, err)
		}
	}
	if _, err := fmt.Fprintf(out, "%s%s\n", r, r.figuresLine()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d faults:\n%s", len(faults), strings.Join(faults, "\n"))
	}
	return nil
}

// chosen returns the scenarios of the configuration in the order of Scenarios.
func (c Config) chosen() []Scenario {
	if len(c.Scenarios) == 0 {
		return Scenarios
	}
	return slices.DeleteFunc(slices.Clone(Scenarios), func(s Scenario) bool { return !slices.Contains(c.Scenarios, s.Name) })
}

// scenario does all runs of a scenario.
func (c Config) scenario(ctx context.Context, r *Report, s Scenario) (faults []string, err error) {
	a, err := Open(ctx, installation.Config{Broker: c.Broker, Log: c.Log}, Full, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close(ctx)) }()
	for run := range r.runs {
		before := loadAverage()
		found, err := r.Try(ctx, s, a, run+1)
		faults = append(faults, found...)
		if err != nil {
			return faults, err
		}
		r.line("%s run=%d: load average %s before, %s after", s.Name, run+1, before, loadAverage())
	}
	return faults, nil
}

// loadAverage returns the load average of the machine over the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	average, _, _ := strings.Cut(string(text), " ")
	return average
}
