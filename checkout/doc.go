// Package checkout is the domain of Quittance: the lifecycle of checkout
// sessions, decided without I/O, clock or randomness.
//
//	Create
//	  │
//	  ▼           Outcome approved
//	open ───────────────────────────────► completed
//	  │  ├─ Outcome refused, window ends ─► failed
//	  │  ├─ Cancel ───────────────────────► cancelled
//	  │  └─ lifetime ends ────────────────► expired
//	  └─ Collect (at most one collection a session)
//
// Decide reads what is known (View) and one Command. It returns Events, effects
// (collection requests, notifications), the entries that change, and the answer.
// Events are snapshots: the stored session is always the session in its last event. The
// command has all times, ids and configuration, so that deciding it twice gives the same
// decision.
//
// A terminal status never changes. Money that arrives afterwards is a late payment: an
// event, never a transition. Only a definite refusal or the end of the approval window
// fails a session. The service asks about an undecided collection until the operator
// gives a final answer.
//
// References are to the integration contract ("contract") and to the page that
// decides what it leaves open ("docs/design/decisions.md §").
package checkout
