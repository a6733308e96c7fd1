// Package audit has the command `audit`: who did what, and whether the record of it was edited.
package audit
