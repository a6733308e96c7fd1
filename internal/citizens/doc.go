// Package citizens holds the accounts of taxpayers who sign in to the portal: their proven
// addresses, their sign-in codes and sessions, and the references of an agency's subjects
// that they are linked to.
//
//	Begin ──► a code for one browser and one address, within the limits
//	Enter ──► the account and a session; an account is made at the first sign-in
//	Session, SignOut, SignOutEverywhere
//	Passkeys                         added to an account, and signed in with instead of a code
//	LinkCode ─► Prove ─► Links       an agency prints a code; its holder proves it
//	Import ─────────┘                an agency has verified a contact; it links at sign-in
//	Renew, Revoke                    an agency ends the code and the links of a subject
//	Holders, CoHolders, AskRenewal   who else is linked; a holder asks for a new code
//	ChooseReminders ─► Remind ─► Write, Wrote, Rest   reminders of dues, made by sinks/notify
//	Tell                             holders are told of a new link, by internal/notify
//
// One way leads in and up: whether an address has an account changes nothing before its code
// is entered. Accounts are many, so they are rows of Postgres that are read one by one, and
// not part of the snapshot of internal/identity.
//
// Whoever knows an address can use up its codes. A browser in which a code was entered before
// has limits of its own (Remember); DESIGN.md says what a stranger can and cannot do.
//
// All limits are exact over all instances: each decision is one transaction that holds the
// locks of what it counts.
//
// A code that a phone or a mailbox receives is a weak factor: numbers are recycled, and
// whoever holds the phone has the code. It opens the account, and nothing else. What an
// account sees needs a link, which needs another proof.
//
// Numbers are recycled: an address that was not proven by a code for 90 days opens a new
// account, which sees neither the links nor the payments of the old one. The old account goes
// on if it has a passkey. An account that has not signed in for 90 days in any way loses its
// links.
package citizens
