//go:build !linux

package postgres

import "time"

// acknowledgedWithin does nothing: only Linux has the option, and only there the service runs in production.
func acknowledgedWithin(uintptr, time.Duration) error { return nil }
