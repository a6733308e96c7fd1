// Package delivery measures the delivery of webhooks: to endpoints that are fast, that
// hang, fail or are down, and to very many, and while processes are killed and servers
// are away. It counts what is lost or doubled.
//
// An Arena runs the sinks webhook and schedule as processes of the program, on a broker
// and a Postgres of its own. The load and all receivers run in this process. The load
// replaces the processors: it writes notifications in transactions, at times that are
// fixed beforehand (an open loop). Latency counts from that time to the first request
// that an endpoint accepts.
//
// The same scenarios run in two sizes: Full measures for minutes and holds the result
// against limits, Small takes seconds and holds the counts only.
package delivery
