package docs

// words is a text in both languages.
type words struct{ English, French string }

// testNumber says what the simulators do with a test number. A channel without a text
// has no such number. A test holds the numbers against those of the simulators.
type testNumber struct {
	Digits       string // the last two
	Mobile, Card words
}

// testNumbers are the test numbers of developer mode.
var testNumbers = []testNumber{
	{"01", words{"approved at once", "approuvé aussitôt"}, words{"approved at once", "accepté tout de suite"}},
	{"02", words{"approved after 5 s", "approuvé après 5 s"}, words{"approved after 5 s", "accepté après 5 s"}},
	{"03", words{"never answers: the approval times out", "jamais de réponse : le délai d’approbation expire"}, words{"no answer until it expires", "sans réponse, jusqu’à expiration"}},
	{"04", words{"rejected by the payer", "refusé par le payeur"}, words{"declined", "refusé"}},
	{"05", words{"insufficient funds", "solde insuffisant"}, words{"declined: insufficient funds", "refusé : provision insuffisante"}},
	{"06", words{"payer limit reached", "plafond du payeur atteint"}, words{"declined: limit reached", "refusé : plafond atteint"}},
	{"07", words{"unknown payer", "payeur inconnu"}, words{"declined: unknown card", "refusé : carte inconnue"}},
	{"08", words{"approved, callback lost (polling finds it)", "approuvé, notification perdue (le service la retrouve)"}, words{"approved, report lost", "accepté, notification perdue"}},
	{"09", words{"approved, callback sent twice", "approuvé, notification envoyée deux fois"}, words{"approved, report sent twice", "accepté, notification envoyée deux fois"}},
	{"10", words{"approved after the window: a late payment", "approuvé après le délai : un paiement reçu hors délai"}, words{"approved after the time is over", "accepté après la fin du délai"}},
	{"11", words{"the operator answers 500 to the request, then works", "l’opérateur répond 500 à la demande, puis fonctionne"}, words{}},
	{"12", words{"ambiguous for a while, then approved", "état ambigu un moment, puis approuvé"}, words{"being processed for a while, then approved", "en traitement un moment, puis accepté"}},
	{"13", words{"wrong PIN (A has no such reason: a rejection)", "code secret incorrect (A n’a pas ce motif : un refus)"}, words{"authentication failed", "échec de l’authentification"}},
	{"14", words{}, words{"abandoned", "abandonné"}},
}
