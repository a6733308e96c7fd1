package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
	"quittance/test/harness"
)

// chaos kills processes and the broker while the load runs.
type chaos struct {
	stack  *harness.Stack
	seed   uint64
	every  time.Duration
	health []string // health addresses of the processors of the storm

	backupAt     time.Duration // from the start to the backup of PostgreSQL, which the storm's end restores
	brokerAt     time.Duration // from the start to the kill of the broker
	stormFor     time.Duration // length of the storm, which follows the broker's restart
	untilAtLeast time.Duration // from the start to the earliest end

	processes atomic.Int64 // SIGKILLs of processes
	tellers   atomic.Int64 // of them, of sinks that tell partners
	stopped   atomic.Int64 // ingresses that ended by SIGTERM
	slowest   atomic.Int64 // duration of the slowest of those ends
	brokers   atomic.Int64 // SIGKILLs of the broker
	storms    atomic.Int64 // processors that joined and left
	restores  atomic.Int64 // of PostgreSQL
	// killed and back are when the broker ended and when it was ready again.
	killed, back time.Time
	took         time.Duration // duration of run
}

func (c *chaos) kills() int { return int(c.processes.Load() + c.brokers.Load()) }

// phases says how long the creations took that began before the broker was killed, while it
// was away, and afterwards.
func (c *chaos) phases(all []latency) string {
	var out []string
	for _, p := range []struct {
		name        string
		from, until time.Time
	}{
		{"before the broker's end", time.Time{}, c.killed}, {"while it was away", c.killed, c.back}, {"afterwards", c.back, time.Now()},
	} {
		some := during(all, p.from, p.until)
		out = append(out, fmt.Sprintf("%s p50 %v, p99 %v (%d)", p.name, measure.Rounded(measure.Percentile(some, 0.5)), measure.Rounded(measure.Percentile(some, 0.99)), len(some)))
	}
	return strings.Join(out, "; ")
}

// run kills processes until untilAtLeast and until its programme has ended, which takes
// longer on a slow machine. Then it starts every killed process again.
func (c *chaos) run(ctx context.Context) error {
	begun := time.Now()
	killing, stop := context.WithCancel(ctx)
	defer stop()
	var killer sync.WaitGroup
	killer.Go(func() { c.killer(killing) })
	err := c.programme(ctx)
	if err == nil {
		measure.Pause(ctx, time.Until(begun.Add(c.untilAtLeast)))
	}
	c.took = time.Since(begun)
	stop()
	killer.Wait()
	if err != nil {
		return err
	}
	for _, p := range c.stack.Fleet {
		if err := p.Start(); err != nil {
			return err
		}
	}
	return nil
}

// programme backs PostgreSQL up, kills the broker once, runs the storm once, and replaces
// the data of PostgreSQL by the backup.
func (c *chaos) programme(ctx context.Context) error {
	begun := time.Now()
	if !measure.Pause(ctx, c.backupAt) {
		return nil
	}
	// PostgreSQL is started again even if the load ends meanwhile.
	restart, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*harness.StartWithin)
	defer cancel()
	if err := c.stack.BackUpPostgres(restart); err != nil {
		return err
	}
	if !measure.Pause(ctx, time.Until(begun.Add(c.brokerAt))) {
		return nil
	}
	if err := c.broker(ctx); err != nil {
		return err
	}
	if !measure.Pause(ctx, c.every) {
		return nil
	}
	if err := c.storm(ctx); err != nil {
		return err
	}
	if err := c.stack.RestorePostgres(restart); err != nil {
		return err
	}
	c.restores.Add(1)
	return nil
}

// tellerEvery is the interval, in kills, at which the victim is a sink that tells partners.
// Chance alone would spare these sinks in a short run.
const tellerEvery = 4

// stopEvery is the interval, in kills, at which an ingress gets SIGTERM instead, as in a
// deployment: partners' programs and others wait for answers meanwhile.
const stopEvery = 5

// killer kills a random process at each interval and starts it again within a second.
func (c *chaos) killer(ctx context.Context) {
	random := rand.New(rand.NewPCG(c.seed, 0))
	var restarts sync.WaitGroup
	defer restarts.Wait()
	only := func(kind func(*program.Process) bool) []*program.Process {
		return slices.DeleteFunc(slices.Clone(c.stack.Fleet), func(p *program.Process) bool { return !kind(p) })
	}
	tellers, ingresses := only(isTeller), only(isIngress)
	for n := 0; measure.Pause(ctx, c.every); n++ {
		among := c.stack.Fleet
		stop := n%stopEvery == stopEvery/2
		switch {
		case n%tellerEvery == 0:
			among, stop = tellers, false
		case stop:
			among = ingresses
		}
		victim := among[random.IntN(len(among))]
		wait := time.Duration(random.Int64N(int64(time.Second)))
		if stop {
			restarts.Go(func() {
				begun := time.Now()
				if victim.Signal(syscall.SIGTERM) {
					c.stopped.Add(1)
					c.slowest.Store(max(c.slowest.Load(), int64(time.Since(begun))))
					time.Sleep(wait)
					_ = victim.Start()
				}
			})
			continue
		}
		if !victim.Kill() {
			continue // it was not running
		}
		c.processes.Add(1)
		if isTeller(victim) {
			c.tellers.Add(1)
		}
		restarts.Go(func() {
			time.Sleep(wait)
			_ = victim.Start() // after an error run starts it at the end
		})
	}
}

// isIngress reports whether a process is an ingress.
func isIngress(p *program.Process) bool { return strings.HasPrefix(p.Name, "ingress-") }

// isTeller reports whether a process is a sink that tells partners.
func isTeller(p *program.Process) bool { return strings.HasPrefix(p.Name, "cashin-") }

// broker kills the broker and starts it again after half a second.
func (c *chaos) broker(ctx context.Context) error {
	c.killed = time.Now()
	if err := c.stack.Kafka.Kill(); err != nil {
		return err
	}
	c.brokers.Add(1)
	time.Sleep(500 * time.Millisecond)
	// The broker is started again even if the load ends meanwhile.
	restart, cancel := context.WithTimeout(context.WithoutCancel(ctx), harness.StartWithin)
	defer cancel()
	if err := c.stack.Kafka.Restart(restart); err != nil {
		return err
	}
	c.back = time.Now()
	return nil
}

// storm starts and stops further processors, by SIGTERM and SIGKILL in turn, so that
// partitions move all the time.
func (c *chaos) storm(ctx context.Context) error {
	until, cancel := context.WithTimeout(ctx, c.stormFor)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(c.health))
	for i, health := range c.health {
		n := strconv.Itoa(len(c.stack.Ingress) + i)
		p := c.stack.Program.Process("processor-"+n, health, "processor", "--instance", n, "--store", filepath.Join(c.stack.Dir, "store-"+n))
		random := rand.New(rand.NewPCG(c.seed, uint64(1+i)))
		all.Go(func() {
			defer p.Quit()
			for round := i; until.Err() == nil; round++ {
				if err := p.Start(); err != nil {
					errs[i] = fmt.Errorf("rebalance storm: %w", err)
					return
				}
				c.storms.Add(1)
				measure.Pause(until, 700*time.Millisecond+time.Duration(random.Int64N(int64(time.Second))))
				signal := syscall.SIGTERM
				if round%2 == 1 {
					signal = syscall.SIGKILL
				}
				if p.Signal(signal) && signal == syscall.SIGKILL {
					c.processes.Add(1)
				}
				measure.Pause(until, time.Duration(random.Int64N(int64(500*time.Millisecond))))
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
