// Package stack starts and stops the parts that Quittance needs on a
// developer's machine and in tests: a Kafka broker (in-process, or Apache Kafka
// on a JVM), PostgreSQL and a schema registry. The ClickHouse engine has a
// package of its own, stack/chdb, and so have the simulators of the outside
// world, dev/simulator.
//
// Every part has the same shape: StartPart(ctx, PartConfig) returns once the
// part answers real requests, Addr says where, Stop(ctx) ends it and frees its
// port. The context of StartPart bounds the start alone: a part lives until
// Stop. Parts that are processes of their own die with the process that
// started them, however that one ends.
//
// Nothing here downloads anything, except FetchPostgres, which is what
// `make deps` runs. A part that is missing is an error that says how to get it.
//
// All parts listen on the loopback interface only and none of them is meant
// for production: see `deploy/` for that.
package stack
