// Package listening has the command `listen` of integrators. It shows the webhooks of a test key's
// application, signed as an endpoint gets them, and forwards them to a server on the same machine.
package listening
