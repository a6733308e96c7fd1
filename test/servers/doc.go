// Package servers gives tests their servers: a real Kafka, a real PostgreSQL, the real
// ClickHouse engine and a schema registry.
//
// `make test` starts them once for the whole run (test/servers/testservers) and passes
// their addresses in the environment:
//
//	QUITTANCE_TEST_KAFKA            host:port
//	QUITTANCE_TEST_POSTGRES         URL of any database, with a user who may create databases
//	QUITTANCE_TEST_CLICKHOUSE       host:port of the HTTP interface
//	QUITTANCE_TEST_SCHEMA_REGISTRY  URL
//	QUITTANCE_TEST_INSTALLATION     port and folder of the `quittance-dev up` that suites share (test/harness)
//
// A test binary starts a missing server at first use, writes that to the log of the test,
// and shares the server among its tests. The servers end with the test binary, and their
// folder is removed.
//
// Servers are shared, so each test has a database of its own (Postgres, ClickHouse)
// and takes Prefix for the names of topics, groups, transactional ids and subjects.
// The package is for tests only.
package servers
