// Package account has the commands of accounts and their statements.
package account
