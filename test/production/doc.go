// Package production runs the production program, quittance, on real servers. Every role
// gets ready, sessions can be created, and no developer's option can be switched on.
package production
