// Package roles wires the service. It has one table of roles (Table), a file for each role
// and for each HTTP surface, and the settings that roles read from flags and the environment.
//
// Options are what a program allows its roles. Production allows none of them.
package roles
