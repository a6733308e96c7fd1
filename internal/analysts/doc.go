// Package analysts makes users of ClickHouse for the analysts of agencies. An analyst reads
// the rows of one agency only, and no id that opens a citizen's page.
//
// # How rows are hidden
//
// An analyst has no right on a table. It has a database of its own, analyst_jeanne, with a view
// of each table and view, and reads nothing else:
//
//	CREATE VIEW analyst_jeanne.receipts (…) DEFINER = analyst_jeanne SQL SECURITY DEFINER AS SELECT … FROM quittance.receipts
//
// The views read with the rights of the user analyst_jeanne, as which nobody can sign in. That
// user has SELECT on each table and view of the database, and a restrictive row policy on each
// table:
//
//	CREATE ROW POLICY quittance_all ON journal USING 1 AS PERMISSIVE TO ALL
//	CREATE ROW POLICY analyst_jeanne ON journal USING tenant_id = '…' AS RESTRICTIVE TO analyst_jeanne, jeanne
//
// ClickHouse shows a row that some permissive policy of the user and each restrictive policy
// of the user allow. So the users of the service and of the administrator see all rows,
// whatever they are called and whenever they are made, and a further permissive policy of an
// administrator does not widen what an analyst sees. Without PolicyOfAll the first policy of
// an analyst could hide all rows from users that no policy names (it depends on the server's
// setting users_without_row_policies_can_read_rows), so it is created before anything else,
// and anew by each operation.
//
// A right on a table would be a way round: functions such as mergeTreeIndex, and system tables
// such as system.parts, show index values and numbers of rows of all agencies to whoever may
// read the table, without a regard to its policies. TestEscapes has the ways out that are known.
// docs/design/analysts.md has the decisions.
//
// The views of the service itself read with the rights of their reader (SQL SECURITY INVOKER),
// so the policies hold for them too.
//
// # What fails
//
// The operations are several statements. The right to read is the last, after the policies
// were read back from the server. An analyst whose making was interrupted reads nothing. The
// policies exist before the user, so List shows such an analyst and Revoke removes it. Each view
// ends its comment with a fingerprint of its statement, so that List shows views of another
// release.
//
// A table that is not in Tables cannot be read by an analyst. TestTablesOfAnalysts in package
// reconciliation compares Tables and Views with the migrated database.
//
// ClickHouse holds the analysts; Postgres holds the audit table only. The password is not
// stored: ClickHouse gets its salted hash.
package analysts
