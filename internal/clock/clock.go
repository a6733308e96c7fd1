// Package clock returns the service's time.
package clock

import "time"

// Now returns the machine's time in UTC without a monotonic reading.
func Now() time.Time { return time.Now().Round(0).UTC() }
