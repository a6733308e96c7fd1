// Package servers gives tests their servers: a real Kafka, a real PostgreSQL, the real
// ClickHouse engine and a schema registry.
//
// It also gives them what else takes long to make: the two programs, and the `quittance-dev
// up` that suites share.
//
// All of it starts when a test first asks for it. `make test` runs testservers
// (test/servers/testservers), whose address is in QUITTANCE_TEST_SERVERS; the test binaries of
// the run share what it starts. Without that variable a test binary starts what it needs for
// itself, and shares it among its tests. Everything ends with the process that started it, and
// its folder is removed. A variable replaces one of them:
//
//	QUITTANCE_TEST_KAFKA            host:port
//	QUITTANCE_TEST_POSTGRES         URL of any database, with a user who may create databases
//	QUITTANCE_TEST_CLICKHOUSE       host:port of the HTTP interface
//	QUITTANCE_TEST_SCHEMA_REGISTRY  URL
//	QUITTANCE_TEST_QUITTANCE        path of the program; QUITTANCE_TEST_QUITTANCE_DEV: of the other
//	QUITTANCE_TEST_INSTALLATION     port and folder of a `quittance-dev up` (test/harness)
//
// Servers are shared, so each test has a database of its own (Postgres, ClickHouse)
// and takes Prefix for the names of topics, groups, transactional ids and subjects.
// The package is for tests only.
package servers
