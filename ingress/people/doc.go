// Package people has the pages on which people of a group decide about its people: invite, confirm, give roles, suspend, lift,
// revoke (docs/design/staff.md):
//
//	GET  /people                              the people of a group; ?agency= chooses one, for the service's people
//	GET  /people/invite                       a new person
//	GET  /people/{person}                     one person: roles, passkeys, what waits, history
//	GET  /people/{person}/{act}               roles, revoke, suspend, lift, invite
//	GET  /people/invitations/{invitation}     one invitation, with the digits to type
//	GET  /people/changes/{change}             one proposal
//	POST /people/ask/begin, /people/ask       what a passkey signs, and what it has signed
//	POST /people/end                          withdraw an invitation, reject a proposal
//	GET  /requests/{request}                  what became of a press
//	GET  /passkeys                            the own passkeys; POST /passkeys/begin, /passkeys/remove
//
// The pages change nobody. They store what a person asks for (identity.Book), which the sink cases carries out with the proof
// of the person's passkey. A form has an id, so that sending it twice asks once.
//
//	people.go   configuration and routes
//	list.go     /people and what waits
//	record.go   one person, and what one may do
//	press.go    invitations, proposals, forms that a passkey signs, and what becomes of them
//	words.go    the texts
package people
