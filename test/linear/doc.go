// Package linear compares histories of concurrent requests with a sequential model of the
// service. A broken build must fail the comparison.
package linear
