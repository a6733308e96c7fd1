package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Process is one whose use of the machine is told beside the rates.
type Process struct {
	Name string
	PID  int
}

// ticksPerSecond is USER_HZ, which Linux fixes at 100 in what it shows to processes.
const ticksPerSecond = 100

// cpuTime is how long a process has computed since it began, as /proc says;
// false where there is no such thing.
func cpuTime(pid int) (time.Duration, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name, in parentheses, may hold blanks. utime and stime are the 12th and
	// 13th fields after it.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 13 {
		return 0, false
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, false
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, true
}

// usage is what each process computed during one measurement.
type usage []time.Duration

// watch measures the processes from now until its result is called.
func watch(processes []Process) func() usage {
	before := make(usage, len(processes))
	for i, p := range processes {
		before[i], _ = cpuTime(p.PID)
	}
	return func() usage {
		used := make(usage, len(processes))
		for i, p := range processes {
			if now, ok := cpuTime(p.PID); ok {
				used[i] = now - before[i]
			}
		}
		return used
	}
}
