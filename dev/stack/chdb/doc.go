// Package chdb runs the real ClickHouse engine on a developer's machine and in
// tests, without a ClickHouse server: it loads libchdb, the engine as a shared
// library, in a child process that answers ClickHouse's HTTP protocol. Client
// code (clickhouse-go with Protocol HTTP, curl) is the same as for a server.
//
//	server, err := chdb.Start(ctx, chdb.Config{Dir: dir, Addr: "127.0.0.1:8085", Log: log})
//	conn, err := clickhouse.Open(ctx, "http://"+server.Addr()+"/default")
//
// # Importing this package has an effect
//
// The child is the same executable, started with an environment variable. An init function
// of this package finds the variable and runs the child, which never reaches main. So the
// bridge works from quittance-dev and from every test binary, without a hook to call and
// without a second program. The engine needs a process of its own, because libchdb is native
// code that replaces signal handlers and can crash.
//
// # What it answers
//
// GET /ping and GET / answer "Ok.". A query comes as the parameter query, as the
// body of a POST, or split over both, as in ClickHouse. Understood parameters:
// database, default_format, client_protocol_version, query_id, param_NAME
// (values of {NAME:Type} placeholders), and every other parameter as a setting
// of that query. The headers X-ClickHouse-Database and X-ClickHouse-Format work
// too. A GET may only read. Without a format the answer is TabSeparated. Errors
// have ClickHouse's status, text and X-ClickHouse-Exception-Code.
//
// Not offered, and refused with NOT_IMPLEMENTED: sessions (session_id),
// ClickHouse's own block compression (compress, decompress), external tables,
// statements separated by semicolons. Request bodies may be gzip.
//
// There are no users and passwords; Config.Users can restrict what queries see. It listens on loopback, at the configured address, and
// refuses requests of web pages.
//
// DESIGN.md describes the internals.
package chdb
