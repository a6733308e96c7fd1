// Package disbursement is the domain of batches by which an agency pays many people, decided without I/O, clock or
// randomness.
//
//	Open, AddLines
//	  │
//	  ▼    Seal          Approve, by level      Release            no line ready or sent
//	draft ─────► sealed ────────────► approved ───────► releasing ─────────────────────► done
//	  │            │  Reject, Recall,    │                  ▲                              │
//	  │ Discard,   │  end of the time    │                  └───────── Retry ──────────────┘
//	  ▼ 7 days     ▼                     ▼
//	discarded    rejected, recalled, expired
//
//	        tick           the rail says so           Retry
//	ready ───────► sent ─────► paid ─────► returned     │
//	  ▲             │ │                                 │
//	  └─────────────┘ └─────► refused ──────────────────┘► ready
//	  no money moved   an enquiry agrees        Cancel, Stop, pay_until: cancelled
//
// Decide reads what is known (View) and one Command. It returns Events, effects (requests to operators, questions to
// ERPs), the entries that change, and the answer. The command has all times and ids, so that deciding it twice gives the
// same decision.
//
// A line never has two attempts that could both pay: a new attempt needs proof that the last one moved no money. A
// time-out, an unknown answer and "duplicate" are no proof: the operator is asked about the same attempt.
//
// The decisions and their reasons are in docs/design/disbursement.md.
package disbursement
