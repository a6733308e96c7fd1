// Package cli is what operators type: it makes the commands of a program from the
// table of roles and from its own files, a file a noun.
package cli
