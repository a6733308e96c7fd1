package counter

import (
	"quittance/checkout"
	"quittance/money"
	"quittance/money/language"
)

// words are all texts of the page in one language. A field's comment says what the
// verbs of package fmt in its text stand for.
type words struct {
	Title, TestMark string
	SignedInAs      string // clerk, counter

	SignInTitle, SignInText, KeyLabel, SignIn string
	KeyRefused, SignedOut, SignedOutCash      string
	TooMany, TooManyWrong                     string
	NothingDone, StillSignedIn, BackToDesk    string

	DeskTitle, RefLabel, RefHint, LookUp, Released string

	ReviewTitle, Agency, Service, Subject, Reference, Due, Fee, Total, ToReceive string
	HeldUntil                                                                    string // time of day
	ReceiptLabel, ReceiptHint                                                    string
	Received                                                                     string // formatted total
	GiveUp                                                                       string
	CancelledMeanwhile                                                           string

	ReceiptTitle, Already, LateTitle, LateText, ReversedTitle, PaidAt, Clerk, DeskReceipt, Print, Paper, NoPaper, Next string
	ReversedText                                                                                                       string // clerk, date
	ReverseTitle, ReverseOwn, ReverseText, ReasonLabel, ReasonHint, Reverse                                            string

	CaseTitle, CaseText            string
	StandsTitle                    string
	Free, Reserved                 string
	HeldBy                         string // clerk, time of day
	InFlight, Elsewhere            string
	UnsureTitle, UnsureText, Again string
	ReasonRequired, ReceiptTooLong string

	Ended    map[checkout.Status]string
	Refusals map[string]string // by code

	Day  dayWords
	PIN  pinWords
	Till tillWords
}

var french = words{
	Day: frenchDay, PIN: frenchPIN, Till: frenchTill,
	Title: "Guichet", TestMark: "TEST", SignedInAs: "%s – %s",
	SignInTitle: "Ouvrir le guichet", SignInText: "Entrez la clé de votre guichet. Elle commence par ck_.", KeyLabel: "Clé du guichet", SignIn: "Ouvrir",
	KeyRefused:    "Clé inconnue ou révoquée\u00a0: vérifiez-la, ou demandez-en une autre à votre administration.",
	SignedOut:     "Vous avez été déconnecté. Connectez-vous de nouveau.",
	TooMany:       "Trop de demandes viennent de votre connexion. Réessayez dans un instant.",
	TooManyWrong:  "Trop de clés refusées viennent de votre connexion. Vérifiez la clé et réessayez dans une minute\u00a0; une clé valable est acceptée.",
	SignedOutCash: "Vous avez été déconnecté, et rien n’a été enregistré. Connectez-vous, recherchez de nouveau la référence, puis confirmez.",
	NothingDone:   "Le service ne répond pas. Rien n’a été enregistré\u00a0: recommencez.",
	StillSignedIn: "Le service ne répond pas\u00a0: vous êtes encore connecté. Retournez au guichet et déconnectez-vous de nouveau avant de quitter ce poste.",
	BackToDesk:    "Retour au guichet",
	DeskTitle:     "Rechercher un paiement", RefLabel: "Référence de paiement", RefHint: "16 chiffres, sur la page du citoyen. Les espaces sont permis.",
	LookUp: "Rechercher", Released: "La réservation est abandonnée. Le citoyen peut payer autrement.",
	ReviewTitle: "Recevoir les espèces", Agency: "Administration", Service: "Service", Subject: "Objet", Reference: "Référence de paiement",
	Due: "Montant dû", Fee: "Frais de service", Total: "Total", ToReceive: "Total à recevoir", HeldUntil: "Réservé pour vous jusqu’à %s.",
	ReceiptLabel: "Numéro de votre reçu (facultatif)", ReceiptHint: "Celui du carnet ou de votre logiciel.",
	Received: "Espèces reçues\u00a0: %s", GiveUp: "Abandonner",
	CancelledMeanwhile: "Ce paiement vient d’être annulé\u00a0: rendez les espèces et abandonnez. Si vous ne pouvez pas les rendre, confirmez\u00a0: l’administration décidera.",
	ReceiptTitle:       "Reçu de paiement en espèces", LateTitle: "Espèces enregistrées après la fin du paiement",
	Already:       "Ces espèces ont déjà été reçues\u00a0: n’en acceptez pas d’autres.",
	LateText:      "Le paiement avait pris fin entre-temps. Les espèces sont enregistrées et l’administration en est informée\u00a0: elle décidera. Remettez ce reçu au citoyen.",
	ReversedTitle: "Paiement restitué", PaidAt: "Reçu le", Clerk: "Guichet", DeskReceipt: "Numéro du reçu", Print: "Pour imprimer ce reçu, utilisez l’impression du navigateur.",
	Paper: "Imprimer le reçu à remettre au citoyen (PDF)", NoPaper: "Le reçu ne peut pas être établi pour le moment. Le paiement est enregistré\u00a0: réessayez dans un instant.",
	Next:         "Paiement suivant",
	ReversedText: "Les espèces ont été rendues par %s le %s. L’administration en est informée.",
	ReverseTitle: "Restituer les espèces", ReverseOwn: "Une erreur\u202f? Seul un autre agent peut, le jour même, enregistrer la restitution. Les espèces sortent de la caisse de cet agent et y sont comptées.",
	ReverseText: "Les espèces sortent de votre caisse et y sont comptées, et non dans celle de l’agent qui les a encaissées.",
	ReasonLabel: "Motif de la restitution", ReasonHint: "Sans nom ni numéro de téléphone.", Reverse: "Espèces rendues",
	CaseTitle:   "Espèces enregistrées, mais déjà payé autrement",
	CaseText:    "Ce paiement est réglé, ou en cours de règlement, par un autre moyen. Vos espèces sont enregistrées à part\u00a0: gardez-les séparées et prévenez votre responsable. L’administration décidera.",
	StandsTitle: "État du paiement", Free: "Ce paiement n’est pas réglé. Réservez-le avant de recevoir des espèces.", Reserved: "Réserver",
	HeldBy:   "Le guichet %s a réservé ce paiement jusqu’à %s. N’acceptez pas d’espèces.",
	InFlight: "Le citoyen est en train de payer par un autre moyen. N’acceptez pas d’espèces.", Elsewhere: "Ce paiement ne peut pas être réglé en espèces.",
	UnsureTitle: "Pas de réponse", UnsureText: "Les espèces sont peut-être enregistrées. Appuyez de nouveau\u00a0: elles ne sont comptées qu’une fois.", Again: "Réessayer",
	ReasonRequired: "Indiquez le motif, en 200 caractères au plus.", ReceiptTooLong: "Le numéro du reçu a 64 caractères au plus.",
	Ended: map[checkout.Status]string{
		checkout.StatusCompleted: "Ce paiement est déjà réglé par un autre moyen. N’acceptez pas d’espèces.",
		checkout.StatusExpired:   "Ce paiement a expiré. N’acceptez pas d’espèces\u00a0: le citoyen en commence un nouveau.",
		checkout.StatusCancelled: "Ce paiement a été annulé. N’acceptez pas d’espèces\u00a0: le citoyen en commence un nouveau.",
		checkout.StatusFailed:    "Ce paiement a échoué. N’acceptez pas d’espèces\u00a0: le citoyen en commence un nouveau.",
	},
	Refusals: map[string]string{
		codeMistyped:                           "Cette référence n’est pas valide\u00a0: relisez les 16 chiffres.",
		codeAmbiguous:                          "Plusieurs paiements portent cette référence. N’acceptez pas d’espèces\u00a0; le citoyen doit demander une nouvelle référence. Prévenez votre responsable.",
		codeTaken:                              "Ces espèces sont déjà enregistrées\u00a0; seul un autre agent peut les restituer.",
		codeGuessed:                            "Trop de références inconnues\u00a0: ce guichet ne peut plus rechercher avant la prochaine heure. Relisez la référence sur la page du citoyen\u00a0; si elle est juste, elle est celle d’une autre administration.",
		string(checkout.CodePaymentLimit):      "Ce paiement dépasse le montant que votre guichet peut recevoir en une fois. Rien n’a été enregistré\u00a0: n’acceptez pas d’espèces, ou rendez-les. Un autre guichet peut les recevoir, ou l’administration relève votre limite.",
		string(checkout.CodeDayLimit):          "Ce paiement dépasse le montant que votre guichet peut recevoir aujourd’hui. Rien n’a été enregistré\u00a0: n’acceptez pas d’espèces, ou rendez-les. Un autre guichet peut les recevoir, ou l’administration relève votre limite.",
		codeUnavailable:                        "Le service ne répond pas. Recommencez\u00a0: rien n’est compté deux fois.",
		string(checkout.CodeSessionNotFound):   "Votre administration n’a aucun paiement avec cette référence.",
		string(checkout.CodeRateLimited):       "Trop de recherches\u00a0: attendez une minute.",
		string(checkout.CodeSessionEnded):      "Ce paiement a pris fin. N’acceptez pas d’espèces.",
		string(checkout.CodeReserved):          "Un autre guichet a réservé ce paiement. N’acceptez pas d’espèces.",
		string(checkout.CodeInFlight):          "Le citoyen est en train de payer par un autre moyen. N’acceptez pas d’espèces.",
		string(checkout.CodePreviousUndecided): "Un paiement précédent de la même commande peut encore aboutir. N’acceptez pas d’espèces\u00a0; recherchez de nouveau dans une minute.",
		string(checkout.CodeOrderUnderReview):  "L’argent de cette commande est déjà arrivé. N’acceptez pas d’espèces\u00a0; le citoyen s’adresse à l’administration.",
		codeDueChanged:                         "La somme due a changé, ou n’est plus due. Ce paiement est annulé\u00a0: n’acceptez pas d’espèces. Le citoyen en fait un nouveau.",
		codeNoERP:                              "Le système de l’administration ne répond pas\u00a0: il faut vérifier que la somme est toujours due. Rien n’a été enregistré\u00a0: n’acceptez pas d’espèces, et recherchez de nouveau dans une minute.",
		string(checkout.CodeDueInPayment):      "Cette créance est en cours de paiement, ou payée, par une autre demande. N’acceptez pas d’espèces\u00a0; recherchez de nouveau plus tard.",
		string(checkout.CodeOfferUnknown):      "Ce paiement ne peut pas être réglé en espèces.",
		string(checkout.CodeTotalChanged):      "Le total n’est plus le même\u00a0: rien n’a été enregistré. Recherchez de nouveau.",
		string(checkout.CodeNotTaken):          "Aucune réception d’espèces de ce paiement n’est enregistrée.",
		string(checkout.CodeTooMany):           "Trop d’espèces sont déjà enregistrées à part pour cette référence\u00a0: rien de plus ne l’est. Prévenez votre responsable.",
		string(checkout.CodeSecondPerson):      "L’agent qui a reçu les espèces ne peut pas les restituer\u00a0: un autre agent doit le faire.",
		string(checkout.CodeReversalLate):      "Le délai de restitution est dépassé\u00a0: l’administration s’en occupe.",
		string(checkout.CodeTakenElsewhere):    "Ces espèces sont enregistrées pour un autre paiement de la même commande. Rien n’a été enregistré.",
		string(checkout.CodeCaseClosed):        "L’administration a déjà décidé de cette somme\u00a0: ne rendez pas d’espèces.",
	},
}

var english = words{
	Day: englishDay, PIN: englishPIN, Till: englishTill,
	Title: "Counter", TestMark: "TEST", SignedInAs: "%s – %s",
	SignInTitle: "Open the counter", SignInText: "Enter the key of your counter. It begins with ck_.", KeyLabel: "Counter key", SignIn: "Open",
	KeyRefused:    "This key is unknown or revoked: check it, or ask your agency for another.",
	SignedOut:     "You have been signed out. Sign in again.",
	TooMany:       "Too many requests come from your connection. Try again in a moment.",
	TooManyWrong:  "Too many refused keys come from your connection. Check the key, and try again in a minute; a valid key is accepted.",
	SignedOutCash: "You have been signed out, and nothing was put on record. Sign in, look the reference up again, then confirm.",
	NothingDone:   "The service does not answer. Nothing was put on record: try again.",
	StillSignedIn: "The service does not answer: you are still signed in. Go back to the desk and sign out again before you leave it.",
	BackToDesk:    "Back to the desk",
	DeskTitle:     "Look a payment up", RefLabel: "Payment reference", RefHint: "16 digits, on the citizen’s page. Spaces are fine.",
	LookUp: "Look up", Released: "The reservation is given up. The citizen can pay by other means.",
	ReviewTitle: "Take the cash", Agency: "Agency", Service: "Service", Subject: "Subject", Reference: "Payment reference",
	Due: "Amount due", Fee: "Service fee", Total: "Total", ToReceive: "Total to receive", HeldUntil: "Held for you until %s.",
	ReceiptLabel: "Number of your receipt (optional)", ReceiptHint: "That of your book or software.",
	Received: "Cash received: %s", GiveUp: "Give up",
	CancelledMeanwhile: "This payment has just been cancelled: hand the cash back and give up. If you cannot hand it back, confirm: the agency will decide.",
	ReceiptTitle:       "Receipt for cash", LateTitle: "Cash recorded after the payment had ended",
	Already:       "This cash has been taken already: take no more.",
	LateText:      "The payment had ended meanwhile. The cash is on record and the agency has been told: it will decide. Give this receipt to the citizen.",
	ReversedTitle: "Payment reversed", PaidAt: "Received on", Clerk: "Counter", DeskReceipt: "Receipt number", Print: "To print this receipt, use the browser’s print function.",
	Paper: "Print the receipt for the citizen (PDF)", NoPaper: "The receipt cannot be made right now. The payment is on record: try again in a moment.",
	Next:         "Next payment",
	ReversedText: "The cash was given back by %s on %s. The agency has been told.",
	ReverseTitle: "Give the cash back", ReverseOwn: "A mistake? Only another clerk can confirm the reversal, today and at their own counter. The cash comes from that clerk’s till and counts there.",
	ReverseText: "The cash comes from your till and counts there, not in the till of the clerk who took it.",
	ReasonLabel: "Reason for the reversal", ReasonHint: "Without names or phone numbers.", Reverse: "Cash given back",
	CaseTitle:   "Cash recorded, but already paid by other means",
	CaseText:    "This payment is settled, or being settled, by other means. Your cash is on record apart from it: keep it separate and tell your supervisor. The agency will decide.",
	StandsTitle: "Where this payment stands", Free: "This payment is not settled. Reserve it before you take cash.", Reserved: "Reserve",
	HeldBy:   "Counter %s holds this payment until %s. Take no cash.",
	InFlight: "The citizen is paying by other means. Take no cash.", Elsewhere: "This payment cannot be settled in cash.",
	UnsureTitle: "No answer", UnsureText: "The cash may be on record. Press again: it counts once.", Again: "Try again",
	ReasonRequired: "Give the reason, in 200 characters at most.", ReceiptTooLong: "The receipt number has 64 characters at most.",
	Ended: map[checkout.Status]string{
		checkout.StatusCompleted: "This payment is settled by other means already. Take no cash.",
		checkout.StatusExpired:   "This payment has expired. Take no cash: the citizen begins a new one.",
		checkout.StatusCancelled: "This payment was cancelled. Take no cash: the citizen begins a new one.",
		checkout.StatusFailed:    "This payment has failed. Take no cash: the citizen begins a new one.",
	},
	Refusals: map[string]string{
		codeMistyped:                           "These digits are no reference: read all 16 again.",
		codeAmbiguous:                          "More than one payment has this reference. Take no cash; the citizen must ask for a new reference. Tell your supervisor.",
		codeTaken:                              "This cash is on record already; only another person can reverse it.",
		codeGuessed:                            "Too many unknown references: this counter cannot look up any more before the next hour. Read the reference on the citizen’s page again; if it is correct, it belongs to another agency.",
		string(checkout.CodePaymentLimit):      "This payment is above the amount that your counter may take at once. Nothing was put on record: take no cash, or hand it back. Another counter can take it, or the agency raises your limit.",
		string(checkout.CodeDayLimit):          "This payment is above the amount that your counter may take today. Nothing was put on record: take no cash, or hand it back. Another counter can take it, or the agency raises your limit.",
		codeUnavailable:                        "The service does not answer. Try again: nothing counts twice.",
		string(checkout.CodeSessionNotFound):   "Your agency has no payment of this reference.",
		string(checkout.CodeRateLimited):       "Too many look-ups: wait a minute.",
		string(checkout.CodeSessionEnded):      "This payment has ended. Take no cash.",
		string(checkout.CodeReserved):          "Another counter holds this payment. Take no cash.",
		string(checkout.CodeInFlight):          "The citizen is paying by other means. Take no cash.",
		string(checkout.CodePreviousUndecided): "An earlier payment of the same order may still succeed. Take no cash; look it up again in a minute.",
		string(checkout.CodeOrderUnderReview):  "The money of this order has arrived already. Take no cash; the citizen turns to the agency.",
		codeDueChanged:                         "The due has changed, or is no longer owed. This payment is cancelled: take no cash. The citizen makes a new payment.",
		codeNoERP:                              "The agency’s system does not answer, and must say whether the amount is still due. Nothing was put on record: take no cash, and look it up again in a minute.",
		string(checkout.CodeDueInPayment):      "Another request is paying this due, or has paid it. Take no cash; look it up again later.",
		string(checkout.CodeOfferUnknown):      "This payment cannot be settled in cash.",
		string(checkout.CodeTotalChanged):      "The total is another one: nothing was put on record. Look it up again.",
		string(checkout.CodeNotTaken):          "No cash of this payment is on record.",
		string(checkout.CodeTooMany):           "Too much cash is on record apart for this reference already: nothing more is. Tell your supervisor.",
		string(checkout.CodeSecondPerson):      "Whoever took the cash cannot reverse it: another person has to.",
		string(checkout.CodeReversalLate):      "The day on which it was taken is over: the agency sees to it.",
		string(checkout.CodeTakenElsewhere):    "This cash is on record for another payment of the same order. Nothing was put on record.",
		string(checkout.CodeCaseClosed):        "The agency has already settled this money: give no cash back.",
	},
}

var texts = language.Table[*words]{money.French: &french, money.English: &english}
