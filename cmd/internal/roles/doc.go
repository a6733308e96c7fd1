// Package roles is the wiring of the service: one table of roles (Table), how each
// of them is put together (a file a role), and the settings that they read from
// flags and the environment. It decides nothing else.
//
// Options are what a program allows its roles. Production allows none of them.
package roles
