// Package production runs the production program, quittance, on real servers: every
// role gets ready, payments can be created, and nothing of a developer's options can
// be switched on.
package production
