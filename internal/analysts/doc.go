// Package analysts makes users of ClickHouse for the analysts of agencies. An analyst reads
// the rows of one agency only.
//
// # How rows are hidden
//
// Each table in Tables has a permissive row policy for everybody, PolicyOfAll, whose filter
// is 1, and for each analyst a restrictive one whose filter is the id of the agency:
//
//	CREATE ROW POLICY quittance_all ON journal USING 1 AS PERMISSIVE TO ALL
//	CREATE ROW POLICY analyst_jeanne ON journal USING tenant_id = '…' AS RESTRICTIVE TO jeanne
//
// ClickHouse shows a row that some permissive policy of the user and each restrictive policy
// of the user allow. So the users of the service and of the administrator see all rows,
// whatever they are called and whenever they are made, and a further permissive policy of an
// administrator does not widen what an analyst sees. Without PolicyOfAll the first policy of
// an analyst could hide all rows from users that no policy names (it depends on the server's
// setting users_without_row_policies_can_read_rows), so it is created before anything else,
// and anew by each operation.
//
// Views read with the rights of the user (SQL SECURITY INVOKER), so the policies of the
// tables hold for them.
//
// # What fails
//
// The operations are several statements. The right to read is the last, after the policies
// were read back from the server. An analyst whose making was interrupted reads nothing. The
// policies exist before the user, so List shows such an analyst and Revoke removes it.
//
// A table that is not in Tables cannot be read by an analyst. TestTablesOfAnalysts in package
// reconciliation compares Tables and Views with the migrated database.
//
// ClickHouse holds the analysts; Postgres holds the audit table only. The password is not
// stored: ClickHouse gets its salted hash.
package analysts
