package servers

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// inMemory is a file system in memory that most Linux machines have.
const inMemory = "/dev/shm"

// leastMemory is how much of the memory must be free before data goes there: the data of a
// whole run is a tenth of that.
const leastMemory = 8 << 30

// dataFolder returns the folder in which servers and tests make the folders of their data,
// or "" for the folder of temporary files. Tests create and delete databases and topics all
// the time, each of them hundreds of files. ext4 searches long for inodes after deletions,
// and most of PostgreSQL's time would go there.
func dataFolder() string {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(inMemory, &fs); err != nil {
		return ""
	}
	const (
		tmpfs  = 0x01021994
		noexec = 0x0008 // PostgreSQL may run from a copy beside its data
	)
	if fs.Type != tmpfs || fs.Flags&noexec != 0 || fs.Bavail*uint64(fs.Bsize) < leastMemory || availableMemory() < leastMemory { //nolint:gosec,unconvert // the type of Bsize depends on the machine
		return ""
	}
	return inMemory
}

// availableMemory returns the bytes of memory that programs can still use.
func availableMemory() int64 {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(info), "MemAvailable:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}
