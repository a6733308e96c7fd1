package measure

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is USER_HZ, which Linux fixes at 100 in /proc.
const ticksPerSecond = 100

// CPU returns the CPU time of a process since it began. It returns false when there is
// no such process, or no /proc.
func CPU(pid int) (time.Duration, bool) {
	fields := stat(fmt.Sprintf("/proc/%d/stat", pid))
	if fields == nil {
		return 0, false
	}
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, false
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, true
}

// Children returns the running processes that a process has started.
func Children(parent int) (out []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, file := range files {
		fields := stat(file)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && fields != nil && string(fields[1]) == strconv.Itoa(parent) {
			out = append(out, pid)
		}
	}
	return out
}

// stat returns the fields of a /proc/PID/stat after the name, from the state on; nil when
// the process has ended. The name is in parentheses and may hold blanks.
func stat(file string) [][]byte {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return nil
	}
	return fields
}

// PeakMB returns the largest resident memory that a process has had so far, in MB.
func PeakMB(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kb, err := strconv.Atoi(fields[1])
			if err != nil {
				return 0, fmt.Errorf("reading the memory of a process: %w", err)
			}
			return kb / 1024, nil
		}
	}
	return 0, fmt.Errorf("process %d has no VmHWM", pid)
}
