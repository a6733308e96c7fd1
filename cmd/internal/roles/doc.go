// Package role puts the parts together: it reads the configuration, one
// subcommand a role, and runs what the role is made of. It is the only package
// that knows all others, and it decides nothing.
//
//	up         everything in one process, developer mode
//	ingress    the HTTP edge
//	processor  the session processor
//	sink NAME  collect, webhook, erp, schedule, readmodel, journal
//	migrate, seed, doctor, simulate, bench
package roles
