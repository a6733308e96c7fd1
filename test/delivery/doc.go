// Package delivery runs the scenarios of dev/bench/delivery in small size: the program
// delivers webhooks to endpoints that are fast, faulty, down or many, parts of it are
// killed, and nothing may be lost, wrongly signed, or doubled without cause. `make
// bench/delivery` runs the same scenarios in full size and judges latencies too.
package delivery
