// Package office measures the pages of staff beside payments: how long lists, records, searches and the questions of a page's
// script take while many people look at them, with many sessions in Postgres, and what integrators notice of it.
package office
