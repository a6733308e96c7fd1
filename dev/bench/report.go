package bench

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// results of all rounds.
type results struct {
	cfg  Config
	size int // average size of a command in bytes

	service, echo  map[int][]sample // by number of clients
	used, echoUsed map[int][]usage
	batch          map[int][]float64 // records per transaction
	echoBatch      map[int][]float64
	open           [][]sample // by share
	offered        []float64  // arrivals per second: the shares of the first round, then of the next
}

// check returns an error when too many calls of a closed loop failed. Failures of the
// open loop under overload are a result, which the report shows.
func (r results) check() error {
	look := func(what string, samples []sample) error {
		m := median(samples)
		if m.calls == 0 || float64(m.failed) > tolerateLost*float64(m.calls) {
			return fmt.Errorf("%s: %d of %d calls failed, the first with: %w", what, m.failed, m.calls, m.firstError)
		}
		return nil
	}
	for _, n := range Clients {
		if err := look(fmt.Sprintf("echo, %d clients", n), r.echo[n]); err != nil {
			return err
		}
		if err := look(fmt.Sprintf("create, %d clients", n), r.service[n]); err != nil {
			return err
		}
	}
	return nil
}

// Limits of the two ratios.
const (
	barRatio = 0.2
	barTimes = 3.0
)

// write prints the tables. Its last line has the numbers to compare from run to run.
func (r results) write(out io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Create → 201, beside the raw echo of the same broker (%s).", strings.Join(r.cfg.Kafka.Brokers, ","))
	line("One ingress and one processor, each a process of its own; no sinks, since no 201 waits for them. %d CPUs,", runtime.NumCPU())
	line("shared with the broker and the clients. %d applications. A command, and a record of the echo, has %d bytes.", len(r.cfg.Keys), r.size)
	line("Medians of %d rounds of %s, echo and service in turns.", r.cfg.Rounds, r.cfg.Length)
	line("")

	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "closed loop\tcreate/s\tp50 ms\tp99 ms\tper txn\techo/s\tp50 ms\tp99 ms\tper txn\tratio\tfailed\t")
	for _, n := range Clients {
		s, e := median(r.service[n]), median(r.echo[n])
		_, _ = fmt.Fprintf(w, "%d clients\t%.0f\t%s\t%s\t%.1f\t%.0f\t%s\t%s\t%.1f\t%.2f\t%d\t\n",
			n, s.rate, ms(s.p50), ms(s.p99), middle(r.batch[n]), e.rate, ms(e.p50), ms(e.p99), middle(r.echoBatch[n]), s.rate/e.rate, s.failed+e.failed)
	}
	_, _ = fmt.Fprintln(w, "\t\t\t\t\t\t\t\t\t\t\t")
	_, _ = fmt.Fprintln(w, "open loop\tanswered/s\tp50 ms\tp99 ms\tarrivals/s\t\t\t\t\t\tfailed\t")
	for i, share := range Shares {
		s, offered := median(r.open[i]), 0.0
		for k := i; k < len(r.offered); k += len(Shares) {
			offered += r.offered[k] / float64(len(r.open[i]))
		}
		_, _ = fmt.Fprintf(w, "%.0f %%\t%.0f\t%s\t%s\t%.0f\t\t\t\t\t\t%d\t\n", share*100, s.rate, ms(s.p50), ms(s.p99), offered, s.failed)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	line("(per txn: records of a transaction, on average; open loop: a share of the highest closed-loop rate, latency from the scheduled arrival)")
	line("")

	most := Clients[len(Clients)-1]
	line("CPUs in use at %d clients, and µs of CPU for each answer:", most)
	line("  create  %s", r.usage(r.service[most], r.used[most]))
	line("  echo    %s (its processor is in clients)", r.usage(r.echo[most], r.echoUsed[most]))
	line("")
	s, e, s1, e1 := median(r.service[most]), median(r.echo[most]), median(r.service[1]), median(r.echo[1])
	ratio, times := s.rate/e.rate, float64(s1.p50)/float64(e1.p50)
	line("ratio at %d clients %.2f (bar: at least %.1f, %s); p50 of one client %.1f times the echo's (bar: at most %.0f, %s)",
		most, ratio, barRatio, met(ratio >= barRatio), times, barTimes, met(times <= barTimes))
	line("create_per_s=%.0f echo_per_s=%.0f ratio=%.2f p50_1_ms=%s echo_p50_1_ms=%s", s.rate, e.rate, ratio, ms(s1.p50), ms(e1.p50))
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// usage shows the CPUs that each process used, and its CPU time per answer.
func (r results) usage(samples []sample, used []usage) string {
	answers := 0.0
	for _, s := range samples {
		answers += s.rate * (r.cfg.Length + warmup).Seconds() // the warm-up is in the usage too
	}
	wall := time.Duration(len(used)) * (r.cfg.Length + warmup)
	var parts []string
	for i, p := range r.cfg.Processes {
		var sum time.Duration
		for _, u := range used {
			sum += u[i]
		}
		parts = append(parts, fmt.Sprintf("%s %.2f, %.0f µs", p.Name, float64(sum)/float64(wall), float64(sum.Microseconds())/max(answers, 1)))
	}
	return strings.Join(parts, "; ")
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "missed"
}
