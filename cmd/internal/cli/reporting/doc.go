// Package reporting has the command of reports.
package reporting
