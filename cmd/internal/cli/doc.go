// Package cli is the framework of the commands of both programs: command lines, help, completion, exit
// codes, and what a command gets while it runs. It knows no noun.
package cli
