// Package row has the commands of the rows of Postgres that are signed.
package row
