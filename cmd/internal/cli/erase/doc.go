// Package erase has the command that erases personal data.
package erase
