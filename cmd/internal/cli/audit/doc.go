// Package audit has the command `audit`: who did what.
package audit
