package registry

import (
	"fmt"
	"strings"
)

// Fault is one thing that is wrong with a registry file. Message never holds a
// secret of the file.
type Fault struct {
	// Path of the field, such as
	// agencies[0].applications[1].webhook_endpoints[0].url; empty for the file.
	Path    string
	Message string
}

// Faults are everything that is wrong with a registry file, in its order. As an
// error it says that nothing was changed.
type Faults []Fault //nolint:errname // what a file has, reported as one error

// Error lists the faults, one a line.
func (f Faults) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "registry file refused, nothing changed; faults: %d", len(f))
	for _, fault := range f {
		b.WriteString("\n  ")
		if fault.Path != "" {
			b.WriteString(fault.Path)
			b.WriteString(": ")
		}
		b.WriteString(fault.Message)
	}
	return b.String()
}

func (f *Faults) add(path, format string, args ...any) {
	*f = append(*f, Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}
