// Package stack starts and stops the parts that Quittance needs on a
// developer's machine and in tests: a Kafka broker (in-process, or Apache Kafka
// on a JVM), PostgreSQL and a schema registry. The ClickHouse engine has a
// package of its own, stack/chdb, and so have the simulators of the outside
// world, dev/simulator.
//
// Every part has the same functions: StartPart(ctx, PartConfig) returns when the part
// answers requests, Addr returns its address, and Stop(ctx) ends it and frees its port. The
// context of StartPart bounds only the start; a part runs until Stop. Parts that are
// processes of their own end with the process that started them, also when it is killed.
//
// Only FetchPostgres, which `make deps` runs, downloads anything. The error about a missing
// part names the command that fetches it.
//
// All parts listen on the loopback interface only and none of them is meant
// for production: see `deploy/` for that.
package stack
