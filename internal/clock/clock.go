// Package clock tells the service's time.
package clock

import "time"

// Now is the machine's time in UTC, without a monotonic reading.
func Now() time.Time { return time.Now().Round(0).UTC() }
