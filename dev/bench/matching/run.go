// Package matching measures runs of `sink match`: a day of very many lines, and a day of an
// account with a short and with a long history.
//
// A run is a process of the role, with the broker, Postgres and ClickHouse's engine as in
// production. The rows stand in ClickHouse already, as the sink journal leaves them, also the
// matches of the history, its collections that were undecided, and its explained breaks. The
// benchmark checks how many matches the run has written.
//
// The same rows are also read from ClickHouse and sorted by their references, and the same
// records written to the broker in one transaction and read from it, without anything else. The
// ratio of the run to that shows what the rules and the look-ups cost.
package matching

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/bench/installation"
	"quittance/dev/bench/measure"
	"quittance/dev/bench/topics"
	"quittance/dev/stack/chdb"
	"quittance/dev/stack/program"
	"quittance/internal/clickhouse"
	"quittance/internal/kafka"
	"quittance/reconciliation"
	"quittance/schemas"
	"quittance/schemas/record"
)

// Config of a measurement. Log is required.
type Config struct {
	// Broker is host:port of a running Kafka. When it is empty, Run starts one.
	Broker string
	// Program is the path of quittance-dev. When it is empty, the role runs this program.
	Program string
	// Lines of the large day, and as many payments.
	Lines int
	// Daily lines of the days of the history, and of the day that is matched after them.
	Daily int
	// Days of the long history. The short one has three.
	Days int
	// Reach is how many days back the payments are that lines name a second time.
	Reach int
	// Turns is how often the days after a history are measured, at least once.
	Turns int
	// Log receives progress.
	Log *slog.Logger
}

// The bars, on two cores: the large day has 10^6 lines.
const (
	maxRun     = 60 * time.Second
	maxMB      = 1536
	maxGrowth  = 1.4
	maxDoubled = 1.1
)

// shortDays are the days of the short history: a run reads the last two of them as a whole, because
// a payment may wait for its line that long.
const shortDays = 3

// quietDay is how many lines the days before the large one have: it measures one day.
const quietDay = 1000

// within bounds a run.
const within = 10 * time.Minute

// Metrics of the role: how many runs succeeded, and their time.
const (
	runsMetric    = "quittance_matcher_run_duration_seconds_count"
	secondsMetric = "quittance_matcher_run_duration_seconds_sum"
)

// day is an account whose last day is matched.
type day struct {
	name               string
	days, daily, lines int
}

// result is what a run gave.
type result struct {
	lines, days int
	// first is true for the first run of a process, which reads of the history what later ones have in memory.
	first     bool
	took, raw time.Duration
	// cpu is the CPU time of the role's process and of ClickHouse's during the run.
	cpu time.Duration
	// mb is the greatest memory of the role's process, and engine that of ClickHouse's.
	mb, engine int
}

func (r result) String() string {
	return fmt.Sprintf("match lines=%d history_days=%d first=%t seconds=%.1f cpu_seconds=%.1f peak_mb=%d clickhouse_mb=%d raw_seconds=%.1f ratio=%.1f", r.lines, r.days, r.first, r.took.Seconds(), r.cpu.Seconds(), r.mb, r.engine, r.raw.Seconds(), r.ratio())
}

// ratio is the time of the run divided by that of its rows and records alone.
func (r result) ratio() float64 { return r.took.Seconds() / r.raw.Seconds() }

// check returns an error that names the bars that were missed.
func check(large result, g growths) error {
	var faults []error
	if large.took > maxRun {
		faults = append(faults, fmt.Errorf("%d lines take %v, more than %v", large.lines, large.took.Round(time.Second), maxRun))
	}
	if large.mb > maxMB {
		faults = append(faults, fmt.Errorf("%d lines need %d MB, more than %d", large.lines, large.mb, maxMB))
	}
	if g.grown > maxGrowth {
		faults = append(faults, fmt.Errorf("a long history makes a day cost %.2f times as much as a short one, more than %.1f", g.grown, maxGrowth))
	}
	if g.doubled > maxDoubled {
		faults = append(faults, fmt.Errorf("twice the history makes a day cost %.2f times as much, more than %.1f", g.doubled, maxDoubled))
	}
	return errors.Join(faults...)
}

// Run starts an installation, makes the rows, measures and writes a line for each scenario to
// out. The last line has the growth: the CPU time of a day after a long history divided by that
// after a short one, which other programs on the machine change less than the time, and doubled, the same
// for half of the long history. The days are measured by turns, because the speed of a machine changes;
// their lines are those of the runs with the median CPU time, and the growth is the median of the turns. The
// second run of a process counts: the first one also reads the history into memory. It returns an error when
// a bar is missed.
func Run(ctx context.Context, cfg Config, out io.Writer) (err error) {
	in, err := installation.Open(ctx, installation.Config{Broker: cfg.Broker, Program: cfg.Program, Log: cfg.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	if err := in.Seed(ctx, registryFile); err != nil {
		return err
	}
	large, err := cfg.scenario(ctx, in, day{"large", shortDays, min(cfg.Daily, quietDay), cfg.Lines}, out)
	if err != nil {
		return err
	}
	var days []prepared
	for name, length := range []int{shortDays, cfg.Days / 2, cfg.Days} {
		p, err := cfg.prepare(ctx, in, day{fmt.Sprint("day-", name), length, cfg.Daily, cfg.Daily})
		if err != nil {
			return err
		}
		days = append(days, p)
	}
	g, err := cfg.turns(ctx, in, days, out)
	if err != nil {
		return err
	}
	return check(large, g)
}

// scenario makes the rows of a day, measures one run and writes its line.
func (c Config) scenario(ctx context.Context, in *installation.Installation, s day, out io.Writer) (result, error) {
	p, err := c.prepare(ctx, in, s)
	if err != nil {
		return result{}, err
	}
	r, err := c.measure(ctx, in, p, 1)
	if err != nil {
		return result{}, err
	}
	return r[0], errors.Join(report(out, r[0].String()), os.RemoveAll(p.folder))
}

// turns measures days after histories of growing length by turns, the first and the second run of a process
// each, and writes their lines. It returns the growths of the second run.
func (c Config) turns(ctx context.Context, in *installation.Installation, days []prepared, out io.Writer) (g growths, err error) {
	all := [2][][]result{} // by run, day and turn
	for i := range all {
		all[i] = make([][]result, len(days))
	}
	for range c.Turns {
		for d, p := range days {
			runs, err := c.measure(ctx, in, p, len(all))
			if err != nil {
				return growths{}, err
			}
			for i, r := range runs {
				all[i][d] = append(all[i][d], r)
			}
		}
	}
	for i, results := range all {
		last := results[len(days)-1]
		g = growths{grown: growth(results[0], last), doubled: growth(results[len(days)-2], last)}
		for _, of := range results {
			if err := report(out, median(of).String()); err != nil {
				return growths{}, err
			}
		}
		if err := report(out, fmt.Sprintf("match first=%t growth=%.2f doubled=%.2f history_rows=%d", i == 0, g.grown, g.doubled, 2*c.Days*c.Daily)); err != nil {
			return growths{}, err
		}
	}
	return g, nil
}

// growths are those of the CPU time of a day, from the short history to the long one, and from half of the long
// one to all of it.
type growths struct{ grown, doubled float64 }

// growth is the median of the CPU time of runs divided by that of others in the same turn.
func growth(from, to []result) float64 {
	ratios := make([]float64, len(from))
	for i := range ratios {
		ratios[i] = to[i].cpu.Seconds() / from[i].cpu.Seconds()
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// median returns the run with the median CPU time.
func median(of []result) result {
	sorted := slices.SortedFunc(slices.Values(of), func(a, b result) int { return cmp.Compare(a.cpu, b.cpu) })
	return sorted[len(sorted)/2]
}

// report writes a line.
func report(out io.Writer, line string) error {
	if _, err := fmt.Fprintln(out, line); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// prepared is a day whose rows are in the folder of an engine.
type prepared struct {
	day
	folder string
}

// prepare makes the rows of a day in an engine of its own.
func (c Config) prepare(ctx context.Context, in *installation.Installation, s day) (prepared, error) {
	c.Log.Info("making rows", slog.String("scenario", s.name), slog.Int("days", s.days), slog.Int("daily", s.daily), slog.Int("lines", s.lines))
	p := prepared{s, filepath.Join(in.Dir, "clickhouse-"+s.name)}
	zone := time.FixedZone("Africa/Brazzaville", 3600)
	now := time.Now().In(zone)
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	err := engine(ctx, p.folder, func(ctx context.Context, conn clickhouse.Conn, _ *chdb.Server) error {
		if err := reconciliation.Migrate(ctx, conn); err != nil {
			return err
		}
		d := &data{conn: conn, today: today, reach: c.Reach}
		return d.fill(ctx, in.Topology, s)
	})
	if err != nil {
		return p, fmt.Errorf("making the rows of scenario %s: %w", s.name, err)
	}
	return p, nil
}

// measure runs the role in a new process of the engine, which holds nothing of the inserts, so many times in
// one process of the role. What a run writes stays in Kafka: the next one does the same again.
func (c Config) measure(ctx context.Context, in *installation.Installation, p prepared, runs int) (out []result, err error) {
	err = engine(ctx, p.folder, func(ctx context.Context, conn clickhouse.Conn, server *chdb.Server) error {
		if err := advance(ctx, in, conn); err != nil {
			return err
		}
		role, err := in.Process("match-"+p.name, "sink", "match", "--clickhouse", "http://"+server.Addr()+"/default?read_timeout=5m&max_threads=2")
		if err != nil {
			return err
		}
		defer role.Signal(syscall.SIGKILL) // before it looks again
		for n := range runs {
			r := result{lines: p.lines, days: p.days, first: n == 0}
			values, err := c.run(ctx, in, conn, server, role, p.day, &r)
			if err != nil {
				return err
			}
			if r.engine, err = measure.PeakMB(server.PID()); err != nil {
				return err
			}
			if r.raw, err = raw(ctx, in, conn, values); err != nil {
				return err
			}
			out = append(out, r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("measuring scenario %s: %w", p.name, err)
	}
	return out, nil
}

// engine starts an engine on the folder and calls do.
func engine(ctx context.Context, folder string, do func(context.Context, clickhouse.Conn, *chdb.Server) error) (err error) {
	server, err := chdb.Start(ctx, chdb.Config{Dir: folder, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	conn, err := clickhouse.Open(ctx, "http://"+server.Addr()+"/default?read_timeout=30m&max_threads=2")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return do(ctx, conn, server)
}

// run starts the role, or for a further run makes the topics longer, waits until it has matched the account,
// and returns the values of the records that it has written.
func (c Config) run(ctx context.Context, in *installation.Installation, conn clickhouse.Conn, server *chdb.Server, role *program.Process, s day, r *result) ([][]byte, error) {
	before, err := bounds(ctx, in)
	if err != nil {
		return nil, err
	}
	engineBefore, _ := measure.CPU(server.PID())
	var roleBefore time.Duration
	var runsBefore, secondsBefore float64
	if r.first {
		if err := in.Start(ctx, role); err != nil {
			return nil, err
		}
	} else {
		roleBefore, _ = measure.CPU(role.Pid())
		if runsBefore, err = role.Metric(ctx, runsMetric); err != nil {
			return nil, err
		}
		if secondsBefore, err = role.Metric(ctx, secondsMetric); err != nil {
			return nil, err
		}
		if err := advance(ctx, in, conn); err != nil {
			return nil, err
		}
		if before, err = bounds(ctx, in); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := awaitRun(ctx, role, runsBefore); err != nil {
		return nil, err
	}
	seconds, err := role.Metric(ctx, secondsMetric)
	if err != nil {
		return nil, err
	}
	r.took = time.Duration((seconds - secondsBefore) * float64(time.Second))
	if r.mb, err = measure.PeakMB(role.Pid()); err != nil {
		return nil, err
	}
	roleAfter, _ := measure.CPU(role.Pid())
	engineAfter, _ := measure.CPU(server.PID())
	r.cpu = roleAfter - roleBefore + engineAfter - engineBefore
	// The records of a run become readable together, shortly after its end.
	after := before
	for maps.Equal(after, before) {
		if !measure.Pause(ctx, 20*time.Millisecond) {
			return nil, ctx.Err()
		}
		if after, err = bounds(ctx, in); err != nil {
			return nil, err
		}
	}
	return c.written(ctx, in, before, after, s)
}

// awaitRun waits until the role has finished more runs than before.
func awaitRun(ctx context.Context, role *program.Process, before float64) error {
	for {
		runs, err := role.Metric(ctx, runsMetric)
		if err != nil {
			return err
		}
		if runs > before {
			return nil
		}
		if failing, err := role.Metric(ctx, "quittance_matcher_failing_accounts"); err != nil || failing > 0 {
			return errors.Join(err, fmt.Errorf("the run failed:\n%s", program.Tail(role.LogFile(), 4<<10)))
		}
		if !measure.Pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// bounds returns the ends of the topic of findings.
func bounds(ctx context.Context, in *installation.Installation) (map[int32]kafka.Span, error) {
	cl, err := in.KafkaConfig().Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	return kafka.Bounds(ctx, kadm.NewClient(cl), in.Topology.Name(schemas.TopicReconciliation))
}

// written reads what a run has written, and checks it: every line that names a payment of its day is matched.
func (c Config) written(ctx context.Context, in *installation.Installation, before, after map[int32]kafka.Span, s day) (values [][]byte, err error) {
	t, err := topics.Open(ctx, in.Broker, in.Prefix, in.Schemas())
	if err != nil {
		return nil, err
	}
	defer t.Close()
	for p, span := range after {
		after[p] = kafka.Span{From: before[p].To, To: span.To}
	}
	matches := 0
	err = in.KafkaConfig().Read(ctx, in.Topology.Name(schemas.TopicReconciliation), after, nil, func(rec *kgo.Record) (bool, error) {
		values = append(values, rec.Value)
		name, err := t.Codec.NameOf(rec.Value)
		if err != nil || name != (&record.Finding{}).Name() {
			return true, err
		}
		var f record.Finding
		if err := t.Codec.Decode(rec.Value, &f); err != nil {
			return false, err
		}
		if f.Type == "match" && f.State == "open" {
			matches++
		}
		return true, nil
	})
	if want := s.lines - (s.lines+bare-1)/bare - s.lines/again; err == nil && (matches < want-1 || matches > want) {
		return nil, fmt.Errorf("the run made %d matches, want %d", matches, want)
	}
	return values, err
}
