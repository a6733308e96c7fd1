// Package grant has the command that lists the rights in Postgres and ClickHouse.
package grant
