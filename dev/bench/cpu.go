package bench

import (
	"time"

	"quittance/dev/bench/measure"
)

// Process is a process whose CPU time the report shows.
type Process struct {
	Name string
	PID  int
}

// usage is the CPU time of each process during one measurement.
type usage []time.Duration

// watch measures the processes from now until its result is called.
func watch(processes []Process) func() usage {
	before := make(usage, len(processes))
	for i, p := range processes {
		before[i], _ = measure.CPU(p.PID)
	}
	return func() usage {
		used := make(usage, len(processes))
		for i, p := range processes {
			if now, ok := measure.CPU(p.PID); ok {
				used[i] = now - before[i]
			}
		}
		return used
	}
}
