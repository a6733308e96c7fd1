// Package drafts has a processor create the sessions that requests ask for. Every surface
// drafts a session from its request and from the registry; the rest is the same for all:
//
//	Complete ──► ids, numbers and a client_secret; contact data are sealed
//	Create   ──► the processor's answer; contact data of what was not created are erased
//
// If the outcome is unknown, contact data stay, because the processor may still create the
// session.
package drafts
