package chdb

import (
	"fmt"
	"syscall"
	"unsafe"
)

// kernelAction is the kernel's struct sigaction, which differs from libc's.
type kernelAction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const numSignals = 64

// actions are the handlers of signals 1 to 64.
type actions [numSignals + 1]kernelAction

// saveActions reads every signal's handler from the kernel. os/signal knows only the
// handlers that Go registered, not those of a library.
func saveActions() (*actions, error) {
	var a actions
	for sig := 1; sig <= numSignals; sig++ {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&a[sig])), unsafe.Sizeof(a[sig].mask), 0, 0)
		if errno != 0 {
			return nil, fmt.Errorf("reading the handler of signal %d: %w", sig, errno)
		}
	}
	return &a, nil
}

// restore restores the saved handlers.
func (a *actions) restore() error {
	for sig := 1; sig <= numSignals; sig++ {
		if sig == int(syscall.SIGKILL) || sig == int(syscall.SIGSTOP) {
			continue // the kernel does not allow changing these
		}
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&a[sig])), 0, unsafe.Sizeof(a[sig].mask), 0, 0)
		if errno != 0 {
			return fmt.Errorf("restoring the handler of signal %d: %w", sig, errno)
		}
	}
	return nil
}
