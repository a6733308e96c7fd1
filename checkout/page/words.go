package page

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"quittance/money"
	"quittance/money/language"
)

// words are all texts of the page in one language. A field's comment says what the
// verbs of package fmt in its text stand for.
type words struct {
	Code     string // of the language itself
	Other    string // name of the other language, in that language
	OtherTag string

	Skip       string
	TestBanner string
	TestMark   string
	Footer     string

	Due, Fee, Total                  string
	Payee, Service, Subject          string
	SubjectEnds                      string // last characters
	Number, Offer, Date              string
	PaymentRef, NoticeRef            string
	OperatorRef                      string
	ErrorTitle, ErrorPrefix, Payment string
	Colon                            string // between a name and what it names
	OfferFee                         string // formatted amount
	OfferFree                        string
	FeesLater                        string
	ReturnTo                         string
	FailAgain                        string
	Cancel, Back, Sending            string
	WhatNext                         string
	ContactPhone, ContactEmail       string
	ContactHours                     string
	CancelTitle, CancelText          string
	CancelCash                       string // payment reference
	CancelYes, CancelNo              string

	ChooseTitle, ChooseNone, ChooseNoneText string
	PhoneTitle, PhoneLabel                  string
	PhoneHint                               string // phone number
	PhoneOperator, PhoneContinue            string
	ReviewTitle, ReviewText                 string
	ReviewPay                               string // formatted total
	ReviewNumber, ReviewOffer               string
	ReviewCard, ReviewLost                  string
	CashTitle, CashText, CashReference      string
	CashAmount                              string
	CashUntil                               string // date and time
	CashPage, CashPrint, CashCancel         string
	CashOnline, CashNotice                  string
	CashWhich, CashWhere, CashWhen          string
	TransferTitle, TransferText             string
	TransferTotal, TransferReference        string
	TransferHolder, TransferBank            string
	TransferNumber                          string
	TransferCopy, TransferCopied            string
	TransferWhen, TransferOther             string
	TransferUntil                           string // date and time
	TransferOnce, TransferPage              string
	TransferCancel                          string
	WaitTitle                               string
	WaitCardTitle, WaitCardGo, WaitCardSoon string
	WaitCardText, WaitCardBack              string
	WaitCardReturned, WaitCardBackTo        string
	WaitCashTitle, WaitCashText             string
	WaitSent                                string // masked number
	WaitSentPlain, WaitPIN, WaitPage        string
	WaitClock                               string // minutes
	WaitClockOne, WaitLeft                  string
	WaitUntil                               string // time of day
	WaitLost                                string
	WaitNoPrompt                            string
	WaitUSSD                                string // USSD code
	WaitMenu, WaitNoSecond, WaitCheck       string
	DoneTitle, DoneText, DonePrint          string
	DoneReceipt                             string
	DoneEmbed                               string
	SendTitle, SendLabel, SendHint          string
	SendButton                              string
	SendPayer                               string // masked number
	FailTitle, FailNothing                  string
	FailAgainFrame                          string
	FailAgainPlain                          string
	NotDebited                              string
	FailKeep                                string // payment reference
	PayAgain                                string
	ExpiredTitle, ExpiredText               string
	CancelledTitle, CancelledText           string
	CancelledDues, DuesAgain                string
	UndecidedTitle, UndecidedText           string
	UndecidedWait                           string
	UndecidedCheck                          string
	UndecidedUntil                          string // date and time
	LateTitle, LateText                     string
	ReversedTitle, ReversedText             string
	MismatchTitle, MismatchText             string
	MismatchTransfer                        string
	SettledTitle, NotAgain                  string
	KeepRef, KeepRefs                       string
	RefTitle, RefText, RefLabel             string
	RefHint                                 string // payment reference
	RefContinue, RefOther                   string
	BusyTitle, BusyText, BusyYours          string
	PaidTitle, PaidText, PaidReceipt        string
	HeldTitle, HeldText                     string
	ClosedTitle, ClosedText, ClosedDebited  string
	UnknownTitle, UnknownText               string
	DownTitle, DownText, DownAgain          string
	ReloadTitle, ReloadText                 string
	Close, OpenReceipt, NewWindow, Frame    string

	Offers map[string]string // by offer_id
	Kinds  map[Kind]string
	Sent   map[Way]string
	// WaitStatuses says what the page waits for, WaitOvers that the time for it is over,
	// Undecided what the citizen must not do while the result is unknown.
	WaitStatuses, WaitOvers, Undecided map[Kind]string
	Errors                             map[ErrorCode]string
	Failures                           map[string]string // by failure code
}

// No-break spaces before the French double punctuation are escaped, because they are
// invisible.
var french = words{
	Code: "fr", Other: "English", OtherTag: "en",

	Skip:       "Aller au contenu",
	TestBanner: "Mode test\u00a0: aucune somme n’est débitée.",
	TestMark:   "TEST",
	Footer:     "Quittance transmet votre paiement à l’administration et ne garde jamais les fonds.",

	Due: "Montant dû", Fee: "Frais de service", Total: "Total",
	Payee: "Bénéficiaire", Service: "Service", Subject: "Objet",
	SubjectEnds: "Redevable dont le numéro se termine par %s",
	Number:      "Numéro", Offer: "Moyen de paiement", Date: "Date",
	PaymentRef: "Référence de paiement", NoticeRef: "Numéro d’avis", OperatorRef: "Référence de l’opérateur",
	Colon:      "\u00a0: ",
	ErrorTitle: "Vérifiez les points suivants", ErrorPrefix: "Erreur\u00a0: ", Payment: "Paiement",
	OfferFee:  "Frais\u00a0: %s",
	OfferFree: "Sans frais",
	FeesLater: "Les frais éventuels seront indiqués avant la confirmation.",
	ReturnTo:  "Retourner sur le site de l’administration",
	FailAgain: "Recommencer sur le site de l’administration",
	Cancel:    "Annuler le paiement", Back: "Retour", Sending: "Envoi en cours…",
	WhatNext: "Que faire maintenant\u202f?", ContactPhone: "Téléphone\u00a0:", ContactEmail: "Courriel\u00a0:", ContactHours: "Horaires\u00a0:",
	CancelTitle: "Annuler ce paiement\u202f?",
	CancelText:  "Cette demande de paiement sera close et ne pourra plus servir à payer. Pour payer ensuite, une nouvelle demande sera nécessaire.",
	CancelCash:  "La référence %s ne sera plus acceptée au guichet, même imprimée.",
	CancelYes:   "Oui, annuler le paiement", CancelNo: "Non, continuer le paiement",

	ChooseTitle: "Comment voulez-vous payer\u202f?",
	ChooseNone:  "Paiement impossible pour le moment", ChooseNoneText: "Aucun moyen de paiement n’est configuré pour ce service. Adressez-vous à l’administration qui vous a transmis ce lien.",
	PhoneTitle: "Votre numéro mobile money", PhoneLabel: "Numéro de téléphone",
	PhoneHint:     "Par exemple %s. Le compte mobile money de ce numéro sera débité.",
	PhoneOperator: "Opérateur", PhoneContinue: "Continuer",
	ReviewTitle: "Vérifiez avant de payer", ReviewText: "Après confirmation, votre opérateur vous demandera votre code secret sur votre téléphone.",
	ReviewPay: "Payer %s", ReviewNumber: "Changer le numéro", ReviewOffer: "Changer le moyen de paiement",
	ReviewCard: "Après confirmation, le paiement se poursuit sur la page sécurisée de la banque. Seule la banque vous demandera votre numéro de carte.",
	ReviewLost: "La connexion est interrompue\u00a0: votre confirmation est peut-être arrivée. Appuyez de nouveau sur «\u00a0Payer\u00a0»\u00a0: vous ne paierez pas deux fois.",
	CashTitle:  "Payez au guichet", CashText: "Présentez cette référence à un guichet de l’administration et payez en espèces.",
	CashReference: "Référence à donner", CashAmount: "À payer au guichet",
	CashUntil: "Valable jusqu’au %s.", CashPage: "Le résultat s’affichera sur cette page dès l’encaissement.", CashPrint: "Imprimer", CashOnline: "Payer en ligne", CashNotice: "Avis de paiement à imprimer",
	CashWhich: "Guichet", CashWhere: "Adresse", CashWhen: "Horaires",
	CashCancel:    "Si vous annulez, cette référence ne sera plus acceptée au guichet, même imprimée.",
	TransferTitle: "Payez par virement bancaire", TransferText: "Demandez à votre banque un virement sur le compte de l’administration, avec ce montant et ce motif.",
	TransferTotal: "Montant exact à virer", TransferReference: "Motif du virement",
	TransferHolder: "Titulaire du compte", TransferBank: "Banque", TransferNumber: "Numéro de compte",
	TransferCopy: "Copier la référence", TransferCopied: "Référence copiée",
	TransferWhen:   "Un virement prend un à trois jours ouvrés. Le paiement est effectué lorsque la banque a enregistré le virement.",
	TransferUntil:  "La banque doit l’avoir enregistré avant le %s.",
	TransferOther:  "Si le montant est différent ou si la référence manque, le virement ne paie pas cette demande\u00a0: l’administration doit d’abord rechercher à quoi il correspond.",
	TransferOnce:   "Si vous avez fait le virement, ne payez pas une seconde fois par un autre moyen.",
	TransferPage:   "Le résultat s’affichera sur cette page. Vous pouvez la fermer et y revenir.",
	TransferCancel: "Si vous avez déjà fait un virement, n’annulez pas\u00a0: le virement ne paierait plus cette demande.",
	WaitTitle:      "Confirmez sur votre téléphone",
	WaitCardTitle:  "Payez sur la page de la banque", WaitCardGo: "Continuer sur la page de la banque",
	WaitCardSoon: "La page de la banque est en préparation. Si elle n’apparaît pas, appuyez sur «\u00a0Vérifier\u00a0».",
	WaitCardText: "Après le paiement, la banque vous ramène sur cette page.", WaitCardBack: "Une fois le paiement terminé sur la page de la banque, le résultat s’affiche ici.",
	WaitCardReturned: "Nous attendons la réponse de la banque\u00a0: le résultat s’affiche sur cette page.", WaitCardBackTo: "Vous n’avez pas terminé\u202f? Revenir à la page de la banque",
	WaitCashTitle: "Le guichet traite votre paiement", WaitCashText: "Un agent procède à l’encaissement. Remettez-lui la somme et attendez le reçu.",
	WaitSent:      "Votre opérateur envoie une demande au %s.",
	WaitSentPlain: "Votre opérateur envoie une demande sur votre téléphone.",
	WaitPIN:       "Sur votre téléphone, entrez votre code secret mobile money.",
	WaitPage:      "Revenez ici\u00a0: le résultat s’affiche sur cette page.",
	WaitClock:     "Il vous reste environ %d minutes", WaitClockOne: "Il vous reste moins d’une minute", WaitLeft: "Temps restant\u00a0:",
	WaitUntil:    "jusqu’à %s, heure de Brazzaville",
	WaitLost:     "Connexion interrompue. Nouvelle tentative en cours\u00a0; vous pouvez aussi appuyer sur «\u00a0Vérifier\u00a0».",
	WaitNoPrompt: "Aucun message sur votre téléphone\u202f?",
	WaitUSSD:     "Composez %s puis choisissez l’approbation des paiements en attente.",
	WaitMenu:     "Ouvrez le menu mobile money de votre opérateur et cherchez les paiements en attente.",
	WaitNoSecond: "Ne payez pas une deuxième fois.", WaitCheck: "Vérifier",
	DoneTitle: "Paiement réussi", DoneText: "Votre paiement a été reçu. Gardez-en le reçu.", DonePrint: "Imprimer cette page", DoneReceipt: "Reçu à imprimer ou à télécharger",
	DoneEmbed: "Votre paiement a été reçu. Ouvrez le reçu pour le conserver ou l’imprimer.",
	SendTitle: "Recevoir le reçu par SMS ou par courriel", SendPayer: "L’envoyer par SMS au %s", SendLabel: "Numéro de téléphone ou adresse de courriel",
	SendHint: "Elle sert seulement à envoyer le reçu de ce paiement.", SendButton: "Envoyer le reçu",
	Sent: map[Way]string{
		WaySMS:   "Le reçu part par SMS. S’il n’arrive pas dans quelques minutes, ouvrez-le sur cette page.",
		WayEmail: "Le reçu part par courriel. S’il n’arrive pas dans quelques minutes, cherchez-le dans vos courriers indésirables, ou ouvrez-le sur cette page.",
	},
	FailTitle: "Le paiement n’a pas abouti", FailNothing: "Cette demande de paiement est close.",
	FailAgainFrame: "Pour payer, revenez sur la page du service qui affiche ce cadre.",
	FailAgainPlain: "Pour payer, demandez un nouveau lien de paiement à l’administration et indiquez-lui la référence de paiement.",
	NotDebited:     "Aucune somme n’a été débitée.",
	PayAgain:       "Aucune somme n’a été débitée. Vous pouvez payer de nouveau.",
	FailKeep:       "Si votre compte a tout de même été débité, ne payez pas une deuxième fois\u00a0: conservez la référence %s et adressez-vous à l’administration.",
	ExpiredTitle:   "Cette demande de paiement a expiré", ExpiredText: "Le délai de paiement est dépassé.",
	CancelledTitle: "Paiement annulé", CancelledText: "Cette demande de paiement a été annulée. Elle ne peut plus servir à payer.",
	CancelledDues:  "L’administration a changé une somme que vous alliez payer, ou ne la demande plus. Consultez vos sommes dues, puis faites un nouveau paiement.",
	DuesAgain:      "Voir mes sommes dues",
	UndecidedTitle: "Ne payez pas encore", UndecidedText: "Cette demande de paiement est terminée, mais nous ne savons pas encore si la somme a été débitée.",
	UndecidedWait:  "Ne payez pas de nouveau avant de connaître le résultat.",
	UndecidedCheck: "L’administration cherche le résultat avec l’opérateur. Adressez-vous à elle avec la référence de paiement.",
	UndecidedUntil: "La réponse de l’opérateur peut prendre du temps\u00a0: vérifiez plus tard sur cette page. Si le résultat n’est pas connu le %s, l’administration en sera informée\u00a0: adressez-vous alors à elle avec la référence de paiement.",
	ReversedTitle:  "Paiement restitué", ReversedText: "La somme de ce paiement vous a été restituée. Ce paiement n’est plus pris en compte\u00a0: si la somme reste due, adressez-vous à l’administration pour la payer.",
	LateTitle: "Paiement reçu hors délai", LateText: "Votre paiement a été reçu après la clôture de cette demande de paiement. L’administration en est informée.",
	MismatchTitle: "Paiement à vérifier", MismatchText: "L’opérateur a signalé un paiement qui ne correspond pas à cette demande. L’administration l’examine.",
	MismatchTransfer: "La banque a enregistré un virement qui ne correspond pas à cette demande. L’administration l’examine.",
	SettledTitle:     "Ne payez pas de nouveau", NotAgain: "Ne payez pas de nouveau.",
	KeepRef:  "Conservez la référence de paiement\u00a0: l’administration peut vous la demander.",
	KeepRefs: "Conservez les deux références\u00a0: l’administration peut vous les demander.",
	RefTitle: "Payer avec une référence", RefText: "La référence de paiement figure sur votre avis, ou l’administration vous l’a communiquée.",
	RefLabel: "Référence de paiement", RefHint: "16 chiffres, par exemple %s.", RefContinue: "Continuer", RefOther: "Payer une autre référence",
	BusyTitle: "Un paiement est en cours", BusyText: "Quelqu’un est en train de payer cette référence. Ne la payez pas une deuxième fois.",
	BusyYours: "Si c’est vous, terminez le paiement dans le navigateur où vous l’avez commencé. Sinon, attendez le résultat\u00a0: il s’affichera sur cette page.",
	PaidTitle: "Cette référence est payée", PaidText: "Le paiement a été reçu. Ne payez pas de nouveau.",
	PaidReceipt: "Le reçu s’affiche pendant 24 heures dans le navigateur qui a payé. Si vous avez payé et que vous n’avez pas le reçu, adressez-vous à l’administration avec la référence.",
	HeldTitle:   "Ne payez pas cette référence", HeldText: "Un paiement de cette référence est en cours de vérification. Ne payez pas de nouveau\u00a0: adressez-vous à l’administration avec la référence.",
	ClosedTitle: "Cette référence ne peut plus servir", ClosedText: "Elle est close. Pour payer, demandez une nouvelle référence à l’administration.",
	ClosedDebited: "Si vous avez essayé de payer cette référence et que votre compte a été débité, ne payez pas de nouveau\u00a0: adressez-vous à l’administration avec la référence.",
	UnknownTitle:  "Page introuvable", UnknownText: "Cette adresse ne correspond à aucun paiement. Vérifiez le lien que vous avez reçu.",
	DownTitle: "Service momentanément indisponible", DownText: "Le service ne peut pas répondre pour le moment. Si vous venez de confirmer un paiement, ne le refaites pas\u00a0: réessayez d’abord dans quelques instants pour en connaître l’état.", DownAgain: "Réessayer",
	ReloadTitle: "Chargement du paiement…", ReloadText: "Si rien ne s’affiche, rechargez la page de paiement.",
	Close: "Fermer", OpenReceipt: "Ouvrir le reçu", NewWindow: "nouvelle fenêtre", Frame: "Paiement par Quittance",

	Offers: map[string]string{
		"momo": "MTN Mobile Money", "momo_b": "Airtel Money", "card": "Carte bancaire", "cash_agency": "Espèces au guichet", "bank_transfer": "Virement bancaire", "switch": "Autre compte ou portefeuille",
	},
	Kinds: map[Kind]string{
		KindMobileMoney: "Avec votre téléphone",
		KindCard:        "Sur la page sécurisée de la banque",
		KindCash:        "À un guichet, avec une référence",
		KindTransfer:    "Depuis votre banque, en un à trois jours ouvrés",
	},
	WaitStatuses: map[Kind]string{
		KindMobileMoney: "En attente de votre confirmation…",
		KindCard:        "En attente de la réponse de la banque…",
		KindCash:        "En attente de l’encaissement…",
	},
	WaitOvers: map[Kind]string{
		KindMobileMoney: "Le délai est écoulé. Nous attendons la réponse de l’opérateur.",
		KindCard:        "Le délai est écoulé. Nous attendons la réponse de la banque.",
		KindCash:        "Le délai du guichet est écoulé. Demandez à l’agent de rechercher à nouveau votre référence.",
	},
	Undecided: map[Kind]string{
		KindMobileMoney: "Une demande est peut-être encore sur votre téléphone\u00a0: ne l’approuvez pas.",
		KindCard:        "La page de la banque est peut-être encore ouverte\u00a0: n’y payez pas.",
		KindCash:        "Un guichet avait commencé l’encaissement\u00a0: si vous avez remis la somme, conservez le reçu.",
	},
	Errors: map[ErrorCode]string{
		ErrorPhoneMissing:     "Entrez votre numéro de téléphone.",
		ErrorPhoneInvalid:     "Ce numéro n’est pas valide. Entrez un numéro du Congo, par exemple +242\u00a006\u00a0612\u00a034\u00a056.",
		ErrorOperatorMismatch: "Ce numéro n’appartient pas à cet opérateur. Corrigez le numéro ou changez le moyen de paiement.",
		ErrorOperatorOther:    "Ce numéro appartient à %s. Vous avez choisi %s. Corrigez le numéro, ou appuyez sur «\u00a0Continuer\u00a0» pour payer avec ce numéro.",
		ErrorOfferMissing:     "Choisissez un moyen de paiement.",
		ErrorOfferUnavailable: "Ce moyen de paiement n’est pas disponible. Choisissez-en un autre.",
		ErrorTryAgain:         "Votre demande n’a pas pu être traitée. Réessayez dans quelques instants.",
		ErrorFormStale:        "Cette page n’était plus à jour. Vérifiez les informations et confirmez à nouveau.",
		ErrorPreviousUndecided: "Nous vérifions encore auprès de l’opérateur si un paiement précédent pour cette demande a abouti. " +
			"Si une demande est encore sur votre téléphone, ne l’approuvez pas. Aucune somme n’a été débitée par cette nouvelle confirmation. Réessayez dans une minute.",
		ErrorDuesUnknown: "Le système de l’administration ne répond pas\u00a0: nous ne pouvons pas vérifier que vous devez toujours cette somme. Aucune somme n’a été débitée par cette nouvelle confirmation. Réessayez dans quelques minutes.",
		ErrorDueInPayment: "Une autre demande paie ce que vous devez ici, ou l’a déjà payé. Aucune somme n’a été débitée par cette nouvelle confirmation. " +
			"Ne payez pas deux fois\u00a0: attendez la fin de l’autre paiement, ou adressez-vous à l’administration.",
		ErrorRefused:           "Votre paiement n’a pas abouti. %s %s",
		ErrorReferencePaused:   "Trop de paiements par cette référence ont été refusés. Aucune somme n’a été débitée par cette nouvelle confirmation. Réessayez dans %d\u00a0min, ou payez à un guichet.",
		ErrorPromptOpen:        "Une demande de paiement est déjà ouverte sur ce téléphone. Acceptez-la ou refusez-la sur le téléphone, puis confirmez de nouveau. Aucune somme n’a été débitée par cette nouvelle confirmation.",
		ErrorPromptsLimited:    "Trop de demandes de paiement ont été envoyées à ce numéro. Aucune somme n’a été débitée par cette nouvelle confirmation. Réessayez dans %s, ou choisissez un autre moyen de paiement.",
		ErrorNetworkLimited:    "Trop de demandes de paiement viennent de votre connexion. Aucune somme n’a été débitée par cette nouvelle confirmation. Réessayez dans %s, ou passez par une autre connexion.",
		ErrorReferenceMissing:  "Entrez la référence de paiement.",
		ErrorReferenceMistyped: "Cette référence n’est pas correcte\u00a0: un chiffre manque, est en trop ou n’est pas le bon. Comparez-la avec votre avis.",
		ErrorReferenceUnknown:  "Aucun paiement en ligne n’a cette référence. Comparez-la avec votre avis\u00a0; si elle est la même, adressez-vous à l’administration.",
		ErrorTooManyLookups:    "Trop de références sont demandées en ce moment. Celle-ci n’a pas été cherchée. Réessayez dans une minute.",
		ErrorAddressInvalid:    "Entrez un numéro de mobile du Congo, par exemple 06\u00a0612\u00a034\u00a056, ou une adresse de courriel. Avec un numéro étranger, utilisez une adresse de courriel.",
		ErrorReceiptsLimited:   "Trop de reçus ont été demandés. Ouvrez le reçu sur cette page, ou réessayez demain.",
		ErrorOrderPaid:         "Un paiement pour cette demande a déjà été reçu. Adressez-vous à l’administration avec la référence de paiement.",
	},
	Failures: map[string]string{
		"collect.rejected":             "Vous avez refusé le paiement sur votre téléphone, ou votre opérateur l’a refusé.",
		"collect.approval_timeout":     "Le paiement n’a pas été confirmé à temps sur votre téléphone.",
		"collect.insufficient_funds":   "Le solde de votre compte mobile money ne suffit pas.",
		"collect.payer_limit_reached":  "Votre compte mobile money a atteint sa limite. Réessayez plus tard ou avec un autre compte.",
		"collect.payer_not_found":      "Ce numéro n’a pas de compte mobile money actif chez cet opérateur.",
		"collect.wrong_pin":            "Code secret incorrect.",
		"collect.amount_invalid":       "L’opérateur n’accepte pas ce montant.",
		"collect.payee_unavailable":    "Le compte de l’administration ne peut pas recevoir ce paiement pour le moment.",
		"collect.operator_unavailable": "Le service de l’opérateur ne répond pas pour le moment. Réessayez plus tard.",
		"collect.operator_error":       "L’opérateur n’a pas pu traiter le paiement. Réessayez plus tard.",
		"card.declined":                "La banque a refusé la carte.",
		"card.authentication_failed":   "La banque n’a pas pu vérifier votre identité.",
		"card.abandoned":               "Le paiement par carte a été abandonné avant la fin.",
	},
}

var english = words{
	Code: "en", Other: "Français", OtherTag: "fr",

	Skip:       "Skip to content",
	TestBanner: "Test mode: no money is taken.",
	TestMark:   "TEST",
	Footer:     "Quittance passes your payment on to the public agency and never holds the money.",

	Due: "Amount due", Fee: "Service fee", Total: "Total",
	Payee: "Payee", Service: "Service", Subject: "For",
	SubjectEnds: "Taxpayer number ending in %s",
	Number:      "Number", Offer: "Means of payment", Date: "Date",
	PaymentRef: "Payment reference", NoticeRef: "Notice number", OperatorRef: "Operator’s reference",
	Colon:      ": ",
	ErrorTitle: "Please check the following", ErrorPrefix: "Error: ", Payment: "Payment",
	OfferFee:  "Fee: %s",
	OfferFree: "No fee",
	FeesLater: "Any fee is shown to you before you confirm.",
	ReturnTo:  "Return to the agency’s site",
	FailAgain: "Start again on the agency’s site",
	Cancel:    "Cancel the payment", Back: "Back", Sending: "Sending…",
	WhatNext: "What to do now", ContactPhone: "Phone:", ContactEmail: "Email:", ContactHours: "Hours:",
	CancelTitle: "Cancel this payment?",
	CancelText:  "This payment request will be closed, and you can no longer pay with it. To pay after that, you need a new request.",
	CancelCash:  "The counters will no longer accept the reference %s, even on paper.",
	CancelYes:   "Yes, cancel the payment", CancelNo: "No, go on with the payment",

	ChooseTitle: "How do you want to pay?",
	ChooseNone:  "Payment is not possible at the moment", ChooseNoneText: "No means of payment is configured for this service. Please ask the agency that sent you here.",
	PhoneTitle: "Your mobile money number", PhoneLabel: "Phone number",
	PhoneHint:     "For example %s. The mobile money account of this number will be charged.",
	PhoneOperator: "Operator", PhoneContinue: "Continue",
	ReviewTitle: "Check before you pay", ReviewText: "After you confirm, your operator will ask for your PIN on your phone.",
	ReviewPay: "Pay %s", ReviewNumber: "Change the number", ReviewOffer: "Change the means of payment",
	ReviewCard: "After you confirm, you go on to the bank’s secure page. Only the bank asks for your card number.",
	ReviewLost: "The connection is lost: your confirmation may have arrived. Press “Pay” again: you will not pay twice.",
	CashTitle:  "Pay at a counter", CashText: "Show this reference at one of the agency’s counters and pay in cash.",
	CashReference: "Reference to give", CashAmount: "To pay at the counter",
	CashUntil: "Valid until %s.", CashPage: "This page will show the result as soon as the counter has taken the cash.", CashPrint: "Print", CashOnline: "Pay online", CashNotice: "Payment notice to print",
	CashWhich: "Counter", CashWhere: "Address", CashWhen: "Opening hours",
	CashCancel:    "If you cancel, the counters will no longer accept this reference, even on paper.",
	TransferTitle: "Pay by bank transfer", TransferText: "Ask your bank for a transfer to the agency’s account, with this amount and this remittance text.",
	TransferTotal: "Exact amount to transfer", TransferReference: "Remittance text",
	TransferHolder: "Account holder", TransferBank: "Bank", TransferNumber: "Account number",
	TransferCopy: "Copy the reference", TransferCopied: "Reference copied",
	TransferWhen:   "A transfer takes one to three working days. The payment is made when the bank has booked it.",
	TransferUntil:  "The bank must have booked it before %s.",
	TransferOther:  "With another amount or without the reference the transfer does not pay this request: the agency must find out first what it is for.",
	TransferOnce:   "If you have made the transfer, do not pay a second time by other means.",
	TransferPage:   "This page will show the result. You can close it and come back.",
	TransferCancel: "If you have already made a transfer, do not cancel: it would no longer pay this request.",
	WaitTitle:      "Confirm on your phone",
	WaitCardTitle:  "Pay on the bank’s page", WaitCardGo: "Go on to the bank’s page",
	WaitCardSoon: "We are preparing the bank’s page. If it does not appear, press “Check”.",
	WaitCardText: "The bank brings you back here after the payment.", WaitCardBack: "Finished on the bank’s page? The result appears here.",
	WaitCardReturned: "We are waiting for the bank’s answer: the result appears here.", WaitCardBackTo: "Not finished? Go back to the bank’s page",
	WaitCashTitle: "The counter is handling your payment", WaitCashText: "A clerk is taking the cash. Hand it over and wait for the receipt.",
	WaitSent:      "Your operator is sending a request to %s.",
	WaitSentPlain: "Your operator is sending a request to your phone.",
	WaitPIN:       "On your phone, enter your mobile money PIN.",
	WaitPage:      "Come back here: this page shows the result.",
	WaitClock:     "You have about %d minutes left", WaitClockOne: "You have less than a minute left", WaitLeft: "Time left:",
	WaitUntil:    "until %s, Brazzaville time",
	WaitLost:     "Connection lost. We are trying again; you can also press “Check”.",
	WaitNoPrompt: "No message on your phone?",
	WaitUSSD:     "Dial %s and choose to approve pending payments.",
	WaitMenu:     "Open your operator’s mobile money menu and look for pending payments.",
	WaitNoSecond: "Do not pay a second time.", WaitCheck: "Check",
	DoneTitle: "Payment successful", DoneText: "Your payment was received. Keep its receipt.", DonePrint: "Print this page", DoneReceipt: "Receipt to print or download",
	DoneEmbed: "Your payment was received. Open the receipt to keep or print it.",
	SendTitle: "Get the receipt by text message or e-mail", SendPayer: "Send it by text message to %s", SendLabel: "Phone number or e-mail address",
	SendHint: "It is used to send the receipt of this payment only.", SendButton: "Send the receipt",
	Sent: map[Way]string{
		WaySMS:   "The receipt is on its way by text message. If it does not arrive within a few minutes, open it on this page.",
		WayEmail: "The receipt is on its way by e-mail. If it does not arrive within a few minutes, look in your spam folder, or open it on this page.",
	},
	FailTitle: "The payment did not go through", FailNothing: "This payment request is closed.",
	FailAgainFrame: "To pay, go back to the page of the service around this frame.",
	FailAgainPlain: "To pay, ask the agency for a new payment link and give the payment reference.",
	NotDebited:     "No money was taken.",
	PayAgain:       "No money was taken. You can pay again.",
	FailKeep:       "If your account was charged all the same, do not pay a second time: keep the reference %s and ask the agency.",
	ExpiredTitle:   "This payment request has expired", ExpiredText: "The time to pay is over.",
	CancelledTitle: "Payment cancelled", CancelledText: "This payment request was cancelled. Nothing more can be done with it.",
	CancelledDues:  "The agency has changed an amount that you were about to pay, or no longer asks for it. Look at your dues, then make a new payment.",
	DuesAgain:      "See my dues",
	UndecidedTitle: "Do not pay yet", UndecidedText: "This payment request has ended, but we do not know yet whether money was taken.",
	UndecidedWait:  "Do not pay again before the result is known.",
	UndecidedCheck: "The agency is finding out the result with the operator. Ask the agency, with the payment reference.",
	UndecidedUntil: "The operator may take time to answer: check this page later. If the result is not known by %s, the agency will be told: ask the agency then, with the payment reference.",
	ReversedTitle:  "Payment given back", ReversedText: "The money of this payment was given back to you. This payment no longer counts: if you still owe the amount, ask the agency how to pay it.",
	LateTitle: "Payment received after the time limit", LateText: "Your payment arrived after this payment request had ended. The agency has been told.",
	MismatchTitle: "Payment to be checked", MismatchText: "The operator reported a payment that does not match this request. The agency is looking at it.",
	MismatchTransfer: "The bank has booked a transfer that does not match this request. The agency is looking at it.",
	SettledTitle:     "Do not pay again", NotAgain: "Do not pay again.",
	KeepRef:  "Keep the payment reference: the agency may ask you for it.",
	KeepRefs: "Keep both references: the agency may ask you for them.",
	RefTitle: "Pay with a reference", RefText: "The payment reference is on your notice, or the agency told it to you.",
	RefLabel: "Payment reference", RefHint: "16 digits, for example %s.", RefContinue: "Continue", RefOther: "Pay another reference",
	BusyTitle: "A payment is under way", BusyText: "Somebody is paying this reference now. Do not pay it a second time.",
	BusyYours: "If it is you, finish the payment in the browser where you began it. Otherwise wait for the result: this page will show it.",
	PaidTitle: "This reference is paid", PaidText: "The payment was received. Do not pay again.",
	PaidReceipt: "The browser that paid shows the receipt for 24 hours. If you paid and do not have the receipt, ask the agency for it, with the reference.",
	HeldTitle:   "Do not pay this reference", HeldText: "A payment of this reference is being checked. Do not pay again: ask the agency, with the reference.",
	ClosedTitle: "This reference can no longer be used", ClosedText: "It is closed. To pay, ask the agency for a new reference.",
	ClosedDebited: "If you tried to pay this reference and your account was debited, do not pay again: ask the agency, with the reference.",
	UnknownTitle:  "Page not found", UnknownText: "No payment belongs to this address. Check the link that you were given.",
	DownTitle: "Service unavailable for a moment", DownText: "We cannot answer right now. If you have just confirmed a payment, do not make it again: try again in a moment to see where it stands.", DownAgain: "Try again",
	ReloadTitle: "Loading the payment…", ReloadText: "If nothing appears, load the payment page again.",
	Close: "Close", OpenReceipt: "Open the receipt", NewWindow: "new window", Frame: "Payment by Quittance",

	Offers: map[string]string{
		"momo": "MTN Mobile Money", "momo_b": "Airtel Money", "card": "Bank card", "cash_agency": "Cash at a counter", "bank_transfer": "Bank transfer", "switch": "Another account or wallet",
	},
	Kinds: map[Kind]string{
		KindMobileMoney: "With your phone",
		KindCard:        "On the bank’s secure page",
		KindCash:        "At a counter, with a reference",
		KindTransfer:    "From your bank, in one to three working days",
	},
	WaitStatuses: map[Kind]string{
		KindMobileMoney: "Waiting for your confirmation…",
		KindCard:        "Waiting for the bank’s answer…",
		KindCash:        "Waiting for the cash…",
	},
	WaitOvers: map[Kind]string{
		KindMobileMoney: "Time is up. We are waiting for the operator’s answer.",
		KindCard:        "Time is up. We are waiting for the bank’s answer.",
		KindCash:        "The counter’s time is up. Ask the clerk to look your reference up again.",
	},
	Undecided: map[Kind]string{
		KindMobileMoney: "A request may still be on your phone: do not approve it.",
		KindCard:        "The bank’s page may still be open: do not pay there.",
		KindCash:        "A counter had begun to take the cash: if you handed over money, keep the receipt.",
	},
	Errors: map[ErrorCode]string{
		ErrorPhoneMissing:     "Enter your phone number.",
		ErrorPhoneInvalid:     "This number is not valid. Enter a number of the Congo, for example +242\u00a006\u00a0612\u00a034\u00a056.",
		ErrorOperatorMismatch: "This number does not belong to this operator. Correct the number or change the means of payment.",
		ErrorOperatorOther:    "This number belongs to %s. You chose %s. Correct the number, or press “Continue” to pay with this number.",
		ErrorOfferMissing:     "Choose a means of payment.",
		ErrorOfferUnavailable: "This means of payment is not available. Choose another.",
		ErrorTryAgain:         "Your request could not be handled. Try again in a moment.",
		ErrorFormStale:        "This page was out of date. Check the details and confirm again.",
		ErrorPreviousUndecided: "We are still checking with the operator whether an earlier payment for this request went through. " +
			"If a request is still on your phone, do not approve it. No money was taken by this new confirmation. Try again in a minute.",
		ErrorDuesUnknown: "The agency’s system does not answer, so we cannot check that you still owe this amount. No money was taken by this new confirmation. Try again in a few minutes.",
		ErrorDueInPayment: "Another request is paying what you owe here, or has paid it. No money was taken by this new confirmation. " +
			"Do not pay twice: wait for the end of the other payment, or ask the agency.",
		ErrorRefused:           "Your payment did not go through. %s %s",
		ErrorReferencePaused:   "Too many payments by this reference were refused. No money was taken by this new confirmation. Try again in %d min, or pay at a counter.",
		ErrorPromptOpen:        "This phone has an open payment request already. Accept or refuse it on the phone, then confirm again. No money was taken by this new confirmation.",
		ErrorPromptsLimited:    "Too many payment requests were sent to this number. No money was taken by this new confirmation. Try again in %s, or choose another means of payment.",
		ErrorNetworkLimited:    "Too many payment requests come from your connection. No money was taken by this new confirmation. Try again in %s, or use another connection.",
		ErrorReferenceMissing:  "Enter the payment reference.",
		ErrorReferenceMistyped: "This reference is not correct: a digit is missing, is too many or is wrong. Compare it with your notice.",
		ErrorReferenceUnknown:  "No online payment has this reference. Compare it with your notice; if it is the same, ask the agency.",
		ErrorTooManyLookups:    "Too many references are being asked for. This one was not looked up. Try again in a minute.",
		ErrorAddressInvalid:    "Enter a mobile number of Congo, for example 06\u00a0612\u00a034\u00a056, or an e-mail address. With a number of another country, use an e-mail address.",
		ErrorReceiptsLimited:   "Too many receipts were asked for. Open the receipt on this page, or try again tomorrow.",
		ErrorOrderPaid:         "A payment for this request has already been received. Ask the agency, with the payment reference.",
	},
	Failures: map[string]string{
		"collect.rejected":             "You refused the payment on your phone, or your operator refused it.",
		"collect.approval_timeout":     "The payment was not confirmed on your phone in time.",
		"collect.insufficient_funds":   "There is not enough money in your mobile money account.",
		"collect.payer_limit_reached":  "Your mobile money account has reached its limit. Try later or with another account.",
		"collect.payer_not_found":      "This number has no active mobile money account with this operator.",
		"collect.wrong_pin":            "The PIN is not correct.",
		"collect.amount_invalid":       "The operator does not accept this amount.",
		"collect.payee_unavailable":    "The agency’s account cannot receive this payment at the moment.",
		"collect.operator_unavailable": "The operator’s service is not answering at the moment. Try again later.",
		"collect.operator_error":       "The operator could not handle the payment. Try again later.",
		"card.declined":                "The bank declined the card.",
		"card.authentication_failed":   "The bank could not verify your identity.",
		"card.abandoned":               "The card payment was abandoned before its end.",
	},
}

var texts = language.Table[*words]{money.French: &french, money.English: &english}

// failure returns the text of a failure code. A code that this table does not have is
// shown as an operator's error.
func (w *words) failure(code string) string {
	return cmp.Or(w.Failures[code], w.Failures["collect.operator_error"])
}

// Definite reports whether the failure code is that of a refusal after which nothing was
// debited. After any other, an unknown one too, the page says what to do if the account was
// debited.
func Definite(code string) bool { return definite[code] }

var definite = map[string]bool{
	"collect.rejected": true, "collect.insufficient_funds": true, "collect.payer_limit_reached": true,
	"collect.payer_not_found": true, "collect.wrong_pin": true, "collect.amount_invalid": true,
	"collect.payee_unavailable": true, "card.declined": true, "card.authentication_failed": true, "card.abandoned": true,
}

// bySwitch are the words of the offer switch that differ: the payer's account may be at any institution, and a request is
// accepted in its application.
type bySwitch struct {
	phoneTitle, phoneOperator, phoneHint, waitSent, waitSentPlain, waitAccept, waitMenu, funds, limit, unknown string
}

var switchTexts = language.Table[bySwitch]{
	money.French: {
		phoneTitle: "Votre numéro", phoneOperator: "Moyen de paiement", phoneHint: "Par exemple %s. Le compte ou portefeuille lié à ce numéro sera débité.",
		waitSent: "Une demande de paiement est envoyée au %s.", waitSentPlain: "Une demande de paiement est envoyée sur votre téléphone.",
		waitAccept: "Acceptez-la sur votre téléphone, comme votre établissement vous le demande.", waitMenu: "Ouvrez l’application de votre établissement et cherchez les demandes de paiement.",
		funds: "Le solde de votre compte ne suffit pas.", limit: "Votre compte a atteint sa limite. Réessayez plus tard ou avec un autre compte.",
		unknown: "Aucun compte ou portefeuille n’est lié à ce numéro.",
	},
	money.English: {
		phoneTitle: "Your number", phoneOperator: "Means of payment", phoneHint: "For example %s. The account or wallet of this number will be charged.",
		waitSent: "A request to pay is sent to %s.", waitSentPlain: "A request to pay is sent to your phone.",
		waitAccept: "Accept it on your phone, as your institution asks you to.", waitMenu: "Open the application of your institution and look for requests to pay.",
		funds: "There is not enough money in your account.", limit: "Your account has reached its limit. Try later or with another account.",
		unknown: "No account or wallet belongs to this number.",
	},
}

// switchOffer is the id of the offer over the regional switch.
const switchOffer = "switch"

// of returns the words of pages about an offer.
func (w *words) of(offer string) *words {
	if offer != switchOffer {
		return w
	}
	own, s := *w, switchTexts.In(money.Language(w.Code))
	own.PhoneTitle, own.PhoneOperator, own.PhoneHint, own.WaitSent, own.WaitSentPlain, own.WaitPIN, own.WaitMenu = s.phoneTitle, s.phoneOperator, s.phoneHint, s.waitSent, s.waitSentPlain, s.waitAccept, s.waitMenu
	own.Failures = maps.Clone(w.Failures)
	own.Failures["collect.insufficient_funds"], own.Failures["collect.payer_limit_reached"], own.Failures["collect.payer_not_found"] = s.funds, s.limit, s.unknown
	return &own
}

// OfferName returns the name of an offer, such as "MTN Mobile Money"; empty for an unknown
// one.
func OfferName(lang money.Language, offer string) string { return texts.In(lang).Offers[offer] }

// Negotiate returns the language of a page: the language asked for by name, as in
// ?lang=en, if it is one of the two; else English, if the Accept-Language header
// prefers it to French; else French.
func Negotiate(asked, acceptLanguage string) money.Language {
	for _, lang := range money.Languages {
		if asked == string(lang) {
			return lang
		}
	}
	best, bestWeight := money.French, 0.0
	for part := range strings.SplitSeq(acceptLanguage, ",") {
		tag, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		weight := 1.0
		if q, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			if _, err := fmt.Sscanf(q, "%g", &weight); err != nil {
				continue
			}
		}
		for _, lang := range money.Languages {
			if primary == string(lang) && weight > bestWeight {
				best, bestWeight = lang, weight
			}
		}
	}
	return best
}

// GroupPhone formats a number of the Republic of the Congo, written in any way, for
// reading: +242 06 600 00 02, with no-break spaces. It returns any other text as it is.
func GroupPhone(phone string) string {
	n, ok := national(phone)
	if !ok {
		return phone
	}
	return countryCode + n[:2] + nbsp + n[2:5] + nbsp + n[5:7] + nbsp + n[7:]
}

// MaskPhone hides the middle of a phone number: "06 600 00 01" becomes
// "+242 06 ••• •• 01". A number that is not of the Republic of the Congo is hidden
// completely.
func MaskPhone(phone string) string {
	n, ok := national(phone)
	if !ok {
		return "•••"
	}
	return countryCode + n[:2] + nbsp + "•••" + nbsp + "••" + nbsp + n[7:]
}

const (
	nbsp        = "\u00a0"
	countryCode = "+242" + nbsp
)

// national returns the nine digits of a number of the Republic of the Congo.
func national(phone string) (string, bool) {
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, phone)
	const length = 9
	if len(digits) > length {
		digits = strings.TrimPrefix(strings.TrimPrefix(digits, "00"), "242")
	}
	return digits, len(digits) == length
}

// masked returns a number that is masked already, in any style, as it is, and masks any
// other.
func masked(payer string) string {
	if payer == "" || strings.ContainsAny(payer, "•*") {
		return payer
	}
	return MaskPhone(payer)
}
