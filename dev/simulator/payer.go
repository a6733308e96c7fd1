package simulator

import (
	"slices"
	"time"
)

// cause is the reason of a refusal. Each operator has a table of its own words for the
// causes.
type cause string

const (
	causeRejected          cause = "rejected"
	causeInsufficientFunds cause = "insufficient_funds"
	causeLimitReached      cause = "limit_reached"
	causeUnknownPayer      cause = "unknown_payer"
	causeWrongPIN          cause = "wrong_pin"
)

// script is the behaviour of a payer. The zero value waits for
// /control and calls back once.
type script struct {
	decides   bool          // if false, only /control decides
	after     time.Duration // by the simulators' clock, from acceptance or from the choice on the operator's page
	refusal   cause         // empty for an approval
	ambiguous bool          // the answer is ambiguous until the decision
	failFirst bool          // the first request of an id gets a 500 and is not registered
	callbacks int           // number of callbacks
	wavers    time.Duration // after a refusal the payer approves all the same; zero: no
}

// magicNumber defines what a payer does whose phone or card number ends in these digits.
type magicNumber struct {
	digits string
	does   script
	// after returns the time until the decision; nil decides at once.
	after func(Config) time.Duration
	// phone describes it in GET /; empty if only cards have the number.
	phone string
	// card describes it on the acquirer's page, in French and in English; empty if cards do
	// not have the number.
	card [2]string
}

var magicNumbers = []magicNumber{
	{
		digits: "01", does: script{decides: true, callbacks: 1},
		phone: "approves at once",
		card:  [2]string{"accepté tout de suite", "approved at once"},
	},
	{
		digits: "02", does: script{decides: true, callbacks: 1},
		after: func(c Config) time.Duration { return c.ApprovalDelay },
		phone: "approves after 5 s",
		card:  [2]string{"accepté après 5 s", "approved after 5 s"},
	},
	{
		digits: "03", does: script{},
		phone: "never answers",
		card:  [2]string{"sans réponse, jusqu’à expiration", "no answer until it expires"},
	},
	{
		digits: "04", does: script{decides: true, refusal: causeRejected, callbacks: 1},
		phone: "rejects",
		card:  [2]string{"refusé", "declined"},
	},
	{
		digits: "05", does: script{decides: true, refusal: causeInsufficientFunds, callbacks: 1},
		phone: "has too little money",
		card:  [2]string{"refusé : provision insuffisante", "declined: insufficient funds"},
	},
	{
		digits: "06", does: script{decides: true, refusal: causeLimitReached, callbacks: 1},
		phone: "has reached a limit",
		card:  [2]string{"refusé : plafond atteint", "declined: limit reached"},
	},
	{
		digits: "07", does: script{decides: true, refusal: causeUnknownPayer, callbacks: 1},
		phone: "is not known",
		card:  [2]string{"refusé : carte inconnue", "declined: unknown card"},
	},
	{
		digits: "08", does: script{decides: true},
		phone: "approves; the callback is lost",
		card:  [2]string{"accepté, notification perdue", "approved, report lost"},
	},
	{
		digits: "09", does: script{decides: true, callbacks: 2},
		phone: "approves; the callback comes twice",
		card:  [2]string{"accepté, notification envoyée deux fois", "approved, report sent twice"},
	},
	{
		digits: "10", does: script{decides: true, callbacks: 1},
		after: func(c Config) time.Duration { return c.ApprovalWindow + c.LateDelay },
		phone: "approves after the approval window has ended",
		card:  [2]string{"accepté après la fin du délai", "approved after the time is over"},
	},
	{
		digits: "11", does: script{decides: true, failFirst: true, callbacks: 1},
		phone: "the first request gets a 500 and is not taken, then approves",
	},
	{
		digits: "12", does: script{decides: true, ambiguous: true, callbacks: 1},
		after: func(c Config) time.Duration { return c.AmbiguousDelay },
		phone: "neither yes nor no for a while, then approves",
		card:  [2]string{"en traitement un moment, puis accepté", "being processed for a while, then approved"},
	},
	{
		digits: "13", does: script{decides: true, refusal: causeWrongPIN, callbacks: 1},
		phone: "mistypes the PIN (here: a rejection)",
		card:  [2]string{"échec de l’authentification", "authentication failed"},
	},
	{
		digits: "14", // see cardScript
		card:   [2]string{"abandonné", "abandoned"},
	},
}

// findMagic finds the magic number of a phone or a card; false for any other. prefix
// holds all but the last two digits of an operator's magic numbers.
func findMagic(number, prefix string) (magicNumber, bool) {
	i := slices.IndexFunc(magicNumbers, func(m magicNumber) bool { return m.phone != "" && number == prefix+m.digits })
	if i < 0 {
		return magicNumber{}, false
	}
	return magicNumbers[i], true
}

// magicScript returns what the payer of a magic number does, see findMagic. The payer
// of any other number waits for /control.
func (s *Simulator) magicScript(number, prefix string) script {
	m, known := findMagic(number, prefix)
	if !known {
		return script{callbacks: 1}
	}
	if m.after != nil {
		m.does.after = m.after(s.cfg)
	}
	return m.does
}
