package citizen

import (
	"fmt"
	"strings"

	"quittance/internal/form"
	"quittance/money"
	"quittance/money/language"
)

// words are all texts of the portal's pages in one language. A field's comment says what the
// verbs of package fmt in its text stand for.
type words struct {
	Site                          string
	Dues, References, Payments    string // the navigation
	Security                      string
	Menu                          string
	DownTitle, Down, TooMany      string
	ForeignTitle, Foreign, Back   string
	Done                          map[string]string // by queryDone
	SignInTitle, SignInText       string
	AddressLabel, AddressHint     string
	AddressFault, SendCode        string
	MailLimited                   string
	UnprovenText                  string // masked address
	ProveLink, ProveTitle         string
	ProveText                     string
	ByReference, SignedOut, Kept  string
	CodeTitle, CodeLabel          string
	CodeText, CodeTextPhone       string // address
	CodeHint, CodeMissing         string
	CodeFault, Enter, SendAgain   string
	OtherAddress, RefsTitle       string
	NoRefs, Since                 string // date
	Others, OthersUnknown, Renew  string
	RenewHint, Remove, LinkTitle  string
	LinkText, AgencyLabel         string
	AgencyMissing, SubjectLabel   string
	SubjectHint, SubjectMissing   string
	LinkLabel, LinkHint           string
	LinkMissing, LinkRefused      string
	LinkLimited, Link, NoAgencies string
	DuesTitle, NothingOwed        string
	NothingKnown                  string
	Owed, OriginalAmount          string // before an amount
	StillStated                   string // before an amount
	Original, Added, DueOn        string // amount; amount; date
	Overdue, Reference            string // date; reference
	Parts                         string // smallest amount
	InPayment, Recording, Paid    string
	Recorded, Continue, Notice    string
	RefusedTitle, RefusedText     string
	RefusedWhy                    string            // reasons
	RefusedFor                    map[string]string // by the field at fault; "" for another one
	Unnamed                       string
	SourceAway                    string // reference, time of the last answer
	SourceNever                   string // reference
	SourceText, Choose            string
	Select                        string
	CartTitle, CartText           string
	AmountLabel, ChooseAgain      string
	CartRefused                   string
	AmountHint, AmountFault       string // smallest and largest amount
	Was                           string // amount
	Changed, AllGone, SomeGone    string
	NothingChosen, Replace        string
	CartInPayment, CartSource     string
	CartStale, NoChannel          string
	Untaken                       string // currency
	DuesTotal, CartTotal, CartSum string
	TooManyDues                   string // number
	OneCurrency, OneAgency        string
	Pay, BackToDues               string
	PaymentsTitle, NoPayments     string
	Receipt, Payment, Reversed    string
	Fee                           string
	Earlier, Later, PaymentNumber string
	SignInAgain, UsePasskey       string
	NotNow, OfferTitle, OfferText string
	PasskeysTitle, PasskeysText   string
	NoPasskeys, AddPasskey        string
	PasskeyAdded, PasskeyLastUsed string // date
	PasskeySynced, NeedsScript    string
	NoPasskeysHere, RemoveText    string
	EverywhereTitle               string
	EverywhereText, Everywhere    string
	PasskeyUnused, PasskeyUnknown string // faults of the script
	PasskeyNotAdded, PasskeyKnown string
	PasskeysFull                  string
	Reminders, RemindersTitle     string
	RemindersText, RemindersShown string
	RemindersLabel, NoReminders   string
	BySMS, ByEmail                string // address
	SaveReminders, RemindersEnd   string
	RemindersMissing              string
	RemindersNoRefs               string
}

// Say puts texts into one of the words.
func (w *words) Say(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// refusedWhy says what is wrong with a line of an agency's list.
func (w *words) refusedWhy(f form.Fault) string {
	if reason, ok := w.RefusedFor[f.Field[strings.LastIndex(f.Field, ".")+1:]]; ok {
		return reason
	}
	return w.RefusedFor[""]
}

// No-break spaces before the French double punctuation are escaped, because they are
// invisible.
var french = words{ //nolint:gosec // texts about passkeys, no credentials
	Site: "Mes paiements publics", Menu: "Rubriques",
	Dues: "À payer", References: "Références", Payments: "Paiements", Security: "Sécurité",
	DownTitle: "Service momentanément indisponible", Down: "Le service ne répond pas. Rien n’a été modifié\u00a0: réessayez dans quelques instants.",
	TooMany:      "Trop de demandes viennent de votre connexion. Réessayez dans quelques minutes.",
	ForeignTitle: "Demande refusée", Foreign: "Cette demande ne vient pas d’une page de ce site. Revenez à la page d’accueil et recommencez.", Back: "Page d’accueil",
	Done: map[string]string{ //nolint:gosec // texts about passkeys, no credentials
		doneSignedOut: "Vous êtes déconnecté.",
		doneLinked:    "La référence est ajoutée.",
		doneRemoved:   "La référence est retirée. Pour la revoir, il faudra de nouveau son code.",
		doneRenewal:   "L’administration est informée. Si elle accepte, toutes les personnes rattachées à cette référence devront entrer un nouveau code.",

		donePasskeyAdded:   "La clé d’accès est ajoutée. Un message vous le confirme.",
		donePasskeyRemoved: "La clé d’accès est retirée, et vos sessions sur d’autres appareils sont terminées. Un message vous le confirme.",
		doneEverywhere:     "Vous êtes déconnecté partout.",
		doneReminders:      "Votre choix est enregistré. Vous recevrez des rappels.",
		doneRemindersEnded: "Votre choix est enregistré. Vous ne recevrez plus de rappels.",
	},
	SignInTitle: "Voir et payer ce que vous devez", SignInText: "Entrez votre numéro ou votre adresse\u00a0: vous recevrez un code. Il n’y a pas de mot de passe.",
	AddressLabel: "Numéro de téléphone ou adresse de courriel", AddressHint: "Un mobile du Congo, par exemple 06\u00a0612\u00a034\u00a056, ou une adresse de courriel.",
	MailLimited:  "Trop de codes sont demandés par courriel en ce moment\u00a0: celui-ci n’a pas été envoyé. Entrez votre numéro de mobile, ou réessayez dans une heure.",
	UnprovenText: "Aucun message n’est plus envoyé à %s\u00a0: cette adresse n’a pas été confirmée depuis 90 jours.",
	ProveLink:    "Confirmer une adresse", ProveTitle: "Confirmer une adresse",
	ProveText:    "Entrez le numéro ou l’adresse de courriel de votre compte. Un code lui est envoyé. Quand vous l’aurez saisi, vos reçus et vos messages y seront envoyés de nouveau.",
	AddressFault: "Entrez un numéro de mobile du Congo, par exemple 06\u00a0612\u00a034\u00a056, ou une adresse de courriel. Avec un numéro étranger, utilisez une adresse de courriel.",
	SendCode:     "Recevoir un code", ByReference: "Payer avec une référence, sans compte",
	SignedOut: "Votre session est terminée et rien n’a été fait. Connectez-vous de nouveau.", Kept: "Ce que vous avez saisi est conservé.",
	CodeTitle: "Entrez le code", CodeTextPhone: "Si ce numéro peut recevoir un code, il est envoyé au %s. Il est valable dix minutes, dans ce navigateur seulement.",
	CodeText:  "Si cette adresse peut recevoir un code, il est envoyé à %s. Il est valable dix minutes, dans ce navigateur seulement.",
	CodeLabel: "Code reçu", CodeHint: "6 chiffres. Ne le donnez à personne.", CodeMissing: "Entrez le code que vous avez reçu.",
	CodeFault: "Ce code n’est pas valable\u00a0: il est faux, déjà utilisé, remplacé par un autre ou trop ancien. Vérifiez-le, ou demandez un autre code.",
	Enter:     "Se connecter", SendAgain: "Envoyer un autre code", OtherAddress: "Changer de numéro ou d’adresse",
	RefsTitle: "Mes références", NoRefs: "Aucune référence n’est encore rattachée à votre compte.", Since: "Rattachée depuis le %s",
	Others: "Autres personnes rattachées\u00a0:", OthersUnknown: "Vous êtes la seule personne rattachée à cette référence.",
	Renew: "Demander un nouveau code", RenewHint: "Si vous ne connaissez pas l’une de ces personnes, demandez un nouveau code à l’administration.", Remove: "Retirer",
	LinkTitle: "Ajouter une référence", LinkText: "Le code de rattachement est imprimé sur votre avis, ou l’administration vous le remettra.",
	AgencyLabel: "Administration", AgencyMissing: "Choisissez une administration.",
	SubjectLabel: "Votre référence à l’administration", SubjectHint: "Par exemple votre numéro d’identification, comme elle figure sur l’avis, y compris les majuscules.", SubjectMissing: "Entrez votre référence comme l’administration l’écrit.",
	LinkLabel: "Code de rattachement", LinkHint: "Dix lettres et chiffres. Les espaces et les tirets sont permis.", LinkMissing: "Entrez le code de rattachement.",
	LinkRefused: "Ce code n’appartient pas à cette référence. Comparez la référence, y compris les majuscules, et le code avec votre avis, ou adressez-vous à l’administration pour obtenir un code.",
	LinkLimited: "Trop de codes faux ont été entrés. Réessayez demain, ou adressez-vous à l’administration.",
	Link:        "Ajouter", NoAgencies: "Aucune administration n’offre encore ce service.",
	DuesTitle: "Ce que vous devez", NothingOwed: "Vous ne devez rien à cette administration.",
	NothingKnown: "Sans référence, ce site ne sait pas ce que vous devez\u00a0: cela ne veut pas dire que vous ne devez rien.",
	Owed:         "Reste à payer\u00a0:", OriginalAmount: "Montant initial\u00a0:", StillStated: "L’administration indique encore\u00a0:", Original: "sur %s", Added: "soit %s de plus que le montant initial (pénalités, intérêts)", DueOn: "À payer au plus tard le %s", Overdue: "En retard\u00a0: à payer au plus tard le %s", Reference: "Référence %s",
	Parts: "Payable en plusieurs fois, à partir de %s", InPayment: "Paiement en cours", Recording: "Payé, en cours d’enregistrement", Paid: "Payé", Recorded: "Enregistré par l’administration",
	Continue: "Continuer le paiement", Notice: "Avis de paiement à imprimer", RefusedTitle: "Lignes incorrectes",
	RefusedText: "L’administration a envoyé des lignes incorrectes. Elles ne peuvent pas être payées ici\u00a0: signalez-lui ce qui est indiqué.", RefusedWhy: "À corriger par l’administration\u00a0: %s.",
	RefusedFor: map[string]string{
		"erp_due_ref": "le numéro de la ligne manque ou est en double", "label": "le libellé manque", "currency": "la monnaie est inconnue",
		"amount_minor": "le montant est faux", "outstanding_minor": "le reste à payer est faux", "original_minor": "le montant initial est faux",
		"allow_partial": "le paiement en plusieurs fois n’est pas précisé", "minimum_amount_minor": "le plus petit montant à payer est faux",
		"": "une information manque ou est fausse",
	},
	Unnamed:    "Sans libellé",
	SourceAway: "L’administration ne répond pas pour la référence %s. Sa dernière réponse date du %s.", SourceNever: "L’administration ne répond pas pour la référence %s.",
	SourceText: "Cela ne veut pas dire que vous ne devez rien. Réessayez dans quelques minutes.", Choose: "Payer les éléments choisis", Select: "Choisir",
	CartTitle: "Vérifiez votre choix", CartText: "Vous choisirez ensuite le moyen de paiement. Les frais éventuels seront indiqués avant la confirmation.",
	AmountLabel: "Montant à payer", ChooseAgain: "Choisir pour un autre paiement", CartRefused: "Ce choix ne peut pas être payé", AmountHint: "De %s à %s.", AmountFault: "Entrez un montant de %s à %s.",
	Was: "Montant affiché avant\u00a0: %s", Changed: "Un montant a changé depuis l’affichage. Vérifiez les nouveaux montants.",
	AllGone:       "Ce que vous avez choisi ne peut plus être payé\u00a0: c’est payé, en cours de paiement, ou l’administration ne le demande plus.",
	SomeGone:      "Une partie de votre choix ne peut plus être payée\u00a0: c’est payé, en cours de paiement, ou l’administration ne le demande plus. Elle a été retirée de votre choix.",
	NothingChosen: "Vous n’avez rien choisi. Revenez à la liste et choisissez ce que vous voulez payer.",
	Replace:       "Vous avez déjà commencé à payer l’un de ces éléments. Continuez ce paiement, ou payez avec ce nouveau choix\u00a0: l’autre paiement sera annulé.",
	CartInPayment: "L’un de ces éléments est en cours de paiement ailleurs, ou vient d’être payé. Aucune somme n’a été débitée pour ce nouveau choix. Attendez le résultat avant de payer.",
	CartSource:    "L’administration ne répond pas pour le moment. Aucune somme n’a été débitée pour ce choix. Réessayez dans quelques minutes.",
	CartStale:     "Cette page n’était plus à jour. Vérifiez votre choix et recommencez.",
	NoChannel:     "Aucun moyen de paiement n’accepte ce choix en ce moment. Adressez-vous à l’administration.",
	Untaken:       "Ne peut pas être payé ici\u00a0: aucun moyen de paiement n’accepte cette monnaie (%s). Adressez-vous à l’administration.",
	DuesTotal:     "Total à payer", CartTotal: "Total de votre choix", CartSum: "Recalculer le total",
	TooManyDues: "Un paiement a au plus %s éléments. Payez les autres ensuite.", OneCurrency: "Les éléments d’un paiement doivent être dans la même monnaie. Payez les autres ensuite.",
	OneAgency: "Les éléments d’un paiement doivent être dus à la même administration.",
	Pay:       "Continuer vers le paiement", BackToDues: "Retour à la liste",
	PaymentsTitle: "Mes paiements", NoPayments: "Vous n’avez encore rien payé ici.", Receipt: "Reçu", Payment: "Voir le paiement", Reversed: "Restitué", Fee: "Frais",
	Earlier: "Paiements plus anciens", Later: "Paiements plus récents", PaymentNumber: "Référence de paiement",
	SignInAgain: "Par sécurité, connectez-vous à nouveau pour changer vos clés d’accès.", UsePasskey: "Se connecter avec une clé d’accès",
	NotNow: "Plus tard", OfferTitle: "Se connecter sans code la prochaine fois",
	OfferText:     "Avec une clé d’accès, l’empreinte, le visage ou le code de déverrouillage de votre appareil remplace le code reçu par message.",
	PasskeysTitle: "Clés d’accès", PasskeysText: "Une clé d’accès remplace le code reçu par message\u00a0: vous vous connectez avec l’empreinte, le visage ou le code de déverrouillage de votre appareil.",
	NoPasskeys: "Vous n’avez pas de clé d’accès.", AddPasskey: "Ajouter une clé d’accès", PasskeyAdded: "Ajoutée le %s", PasskeyLastUsed: "Dernière utilisation le %s",
	PasskeySynced: "Vos autres appareils peuvent l’avoir aussi.", NeedsScript: "Pour ajouter une clé d’accès ou se connecter avec elle, il faut JavaScript et un navigateur récent. Tout le reste fonctionne sans.",
	NoPasskeysHere: "Ce service n’a pas de clés d’accès à cette adresse.", RemoveText: "Retirer une clé d’accès met aussi fin à vos sessions sur d’autres appareils.",
	EverywhereTitle: "Sessions", EverywhereText: "Si vous avez perdu un appareil, ou si vous avez oublié de vous déconnecter, mettez fin à toutes vos sessions, y compris celle-ci. Retirez aussi la clé d’accès de l’appareil perdu.", Everywhere: "Se déconnecter partout",
	PasskeyUnused: "La clé d’accès n’a pas été utilisée. Réessayez, ou demandez un code.", PasskeyUnknown: "Cette clé d’accès n’ouvre aucun compte\u00a0: elle a peut-être été retirée. Demandez un code.",
	PasskeyNotAdded: "La clé d’accès n’a pas été ajoutée. Vous pouvez réessayer.", PasskeyKnown: "Cet appareil a déjà une clé d’accès de votre compte.",
	PasskeysFull: "Un compte a au plus dix clés d’accès, et dix ajouts par jour. Retirez-en une, ou réessayez demain.",
	Reminders:    "Rappels", RemindersTitle: "Rappels avant la date limite",
	RemindersText:  "Vous pouvez recevoir un message sept jours avant la date limite d’un paiement, puis la veille, entre 8\u00a0heures et 20\u00a0heures. Avant chaque message, le montant est demandé à l’administration. Vous ne recevez pas de rappel pour ce qui est payé ou en cours de paiement.",
	RemindersShown: "Le message indique la date limite et le montant, ou le nombre de paiements. Il ne contient ni votre nom ni votre référence complète. Un rappel est une aide\u00a0: sans message, la date limite reste la même.",
	RemindersLabel: "Recevoir des rappels", NoReminders: "Aucun rappel", BySMS: "Par SMS au %s", ByEmail: "Par courriel à %s",
	SaveReminders: "Enregistrer", RemindersMissing: "Choisissez l’une des réponses proposées.",
	RemindersEnd:    "Vous pouvez changer d’avis à tout moment sur cette page. Les rappels prennent fin aussi lorsque vous retirez vos références, lorsque votre compte est effacé, et lorsque vous n’avez pas utilisé votre compte, ou plus entré de code reçu à cette adresse, depuis 90 jours. Les messages vont au numéro ou à l’adresse de courriel avec lesquels vous vous êtes connecté.",
	RemindersNoRefs: "Vous recevrez des rappels lorsque vous aurez ajouté une référence.",
}

var english = words{ //nolint:gosec // texts about passkeys, no credentials
	Site: "My public payments", Menu: "Sections",
	Dues: "To pay", References: "References", Payments: "Payments", Security: "Security",
	DownTitle: "Service unavailable for a moment", Down: "The service does not answer. Nothing was changed: try again in a moment.",
	TooMany:      "Too many requests come from your connection. Try again in a few minutes.",
	ForeignTitle: "Request refused", Foreign: "This request does not come from a page of this site. Go back to the first page and begin again.", Back: "First page",
	Done: map[string]string{
		doneSignedOut: "You are signed out.",
		doneLinked:    "The reference is added.",
		doneRemoved:   "The reference is removed. To see it again, you will need its code again.",
		doneRenewal:   "The agency has been told. If it agrees, everybody who is linked to this reference must enter a new code.",

		donePasskeyAdded:   "The passkey is added. A message confirms it.",
		donePasskeyRemoved: "The passkey is removed, and your sessions on other devices have ended. A message confirms it.",
		doneEverywhere:     "You are signed out everywhere.",
		doneReminders:      "Your choice is saved. You will get reminders.",
		doneRemindersEnded: "Your choice is saved. You will get no more reminders.",
	},
	SignInTitle: "See and pay what you owe", SignInText: "Enter your number or address: you will get a code. There is no password.",
	AddressLabel: "Phone number or e-mail address", AddressHint: "A mobile number of Congo, for example 06\u00a0612\u00a034\u00a056, or an e-mail address.",
	MailLimited:  "Too many codes are being asked for by e-mail: this one was not sent. Enter your mobile number, or try again in an hour.",
	UnprovenText: "No message is sent to %s any more: this address was not confirmed for 90 days.",
	ProveLink:    "Confirm an address", ProveTitle: "Confirm an address",
	ProveText:    "Enter the number or the e-mail address of your account. A code is sent to it. When you have entered the code, your receipts and messages are sent there again.",
	AddressFault: "Enter a mobile number of Congo, for example 06\u00a0612\u00a034\u00a056, or an e-mail address. With a number of another country, use an e-mail address.",
	SendCode:     "Get a code", ByReference: "Pay with a reference, without an account",
	SignedOut: "Your session has ended and nothing was done. Sign in again.", Kept: "What you typed is kept.",
	CodeTitle: "Enter the code", CodeTextPhone: "If this number can get a code, it is sent to %s. It is valid for ten minutes, in this browser only.",
	CodeText:  "If this address can get a code, it is sent to %s. It is valid for ten minutes, in this browser only.",
	CodeLabel: "Code", CodeHint: "6 digits. Don’t share it.", CodeMissing: "Enter the code that you got.",
	CodeFault: "This code is not valid: it is wrong, used, replaced by another or too old. Check it, or ask for another code.",
	Enter:     "Sign in", SendAgain: "Send another code", OtherAddress: "Change the number or address",
	RefsTitle: "My references", NoRefs: "No reference is linked to your account yet.", Since: "Linked since %s",
	Others: "Other people who are linked:", OthersUnknown: "Nobody else is linked to this reference.",
	Renew: "Ask for a new code", RenewHint: "If you do not know one of these people, ask the agency for a new code.", Remove: "Remove",
	LinkTitle: "Add a reference", LinkText: "The link code is printed on your notice, or the agency will give it to you.",
	AgencyLabel: "Agency", AgencyMissing: "Choose an agency.",
	SubjectLabel: "Your reference at the agency", SubjectHint: "For example your taxpayer number, as the notice writes it, with its capital letters.", SubjectMissing: "Enter your reference as the agency writes it.",
	LinkLabel: "Link code", LinkHint: "Ten letters and digits. Spaces and dashes are allowed.", LinkMissing: "Enter the link code.",
	LinkRefused: "This code does not belong to this reference. Compare the reference, also its capital letters, and the code with your notice, or ask the agency for a code.",
	LinkLimited: "Too many wrong codes were entered. Try again tomorrow, or ask the agency.",
	Link:        "Add", NoAgencies: "No agency offers this service yet.",
	DuesTitle: "What you owe", NothingOwed: "You owe this agency nothing.",
	NothingKnown: "Without a reference this site does not know what you owe: this does not mean that you owe nothing.",
	Owed:         "Left to pay:", OriginalAmount: "Original amount:", StillStated: "The agency still shows:", Original: "of %s", Added: "%s more than the original amount (penalties, interest)", DueOn: "To be paid by %s", Overdue: "Overdue: to be paid by %s", Reference: "Reference %s",
	Parts: "Can be paid in parts, from %s", InPayment: "Payment under way", Recording: "Paid, being recorded", Paid: "Paid", Recorded: "Recorded by the agency",
	Continue: "Continue the payment", Notice: "Payment notice to print", RefusedTitle: "Lines with errors",
	RefusedText: "The agency sent lines with errors. They cannot be paid here: tell the agency what is written below.", RefusedWhy: "To be corrected by the agency: %s.",
	RefusedFor: map[string]string{
		"erp_due_ref": "the number of the line is missing or used twice", "label": "the label is missing", "currency": "the currency is not known",
		"amount_minor": "the amount is wrong", "outstanding_minor": "the amount left to pay is wrong", "original_minor": "the original amount is wrong",
		"allow_partial": "it is not said whether parts can be paid", "minimum_amount_minor": "the smallest amount to pay is wrong",
		"": "something is missing or wrong",
	},
	Unnamed:    "Without a label",
	SourceAway: "The agency is not answering for the reference %s. It last answered on %s.", SourceNever: "The agency is not answering for the reference %s.",
	SourceText: "This does not mean that you owe nothing. Try again in a few minutes.", Choose: "Pay selected", Select: "Choose",
	CartTitle: "Check your choice", CartText: "Next you choose how to pay. Any fee is shown before you confirm.",
	AmountLabel: "Amount to pay", ChooseAgain: "Choose for another payment", CartRefused: "This choice cannot be paid", AmountHint: "From %s to %s.", AmountFault: "Enter an amount from %s to %s.",
	Was: "Amount shown before: %s", Changed: "An amount has changed since it was shown. Check the new amounts.",
	AllGone:       "What you chose can no longer be paid: it is paid, being paid, or the agency does not ask for it any more.",
	SomeGone:      "Some of your choice can no longer be paid: it is paid, being paid, or the agency does not ask for it any more. It was taken out of your choice.",
	NothingChosen: "You have chosen nothing. Go back to the list and choose what you want to pay.",
	Replace:       "You have already begun to pay one of these. Continue that payment, or pay with this new choice: the other payment will be cancelled.",
	CartInPayment: "One of these is being paid elsewhere, or was just paid. No money was taken for this new choice. Wait for the result before you pay.",
	CartSource:    "The agency does not answer at the moment. No money was taken for this choice. Try again in a few minutes.",
	CartStale:     "This page was out of date. Check your choice and try again.",
	NoChannel:     "No means of payment takes this choice now. Ask the agency.",
	Untaken:       "Cannot be paid here: no means of payment takes this currency (%s). Ask the agency.",
	DuesTotal:     "Total to pay", CartTotal: "Total of your choice", CartSum: "Recalculate the total",
	TooManyDues: "A payment has at most %s dues. Pay the others next.", OneCurrency: "The dues of a payment must be in the same currency. Pay the others next.",
	OneAgency: "The dues of a payment must be owed to the same agency.",
	Pay:       "Continue to the payment", BackToDues: "Back to the list",
	PaymentsTitle: "My payments", NoPayments: "You have not paid anything here yet.", Receipt: "Receipt", Payment: "See the payment", Reversed: "Given back", Fee: "Fee",
	Earlier: "Earlier payments", Later: "Later payments", PaymentNumber: "Payment reference",
	SignInAgain: "For your security, sign in again to change your passkeys.", UsePasskey: "Sign in with a passkey",
	NotNow: "Not now", OfferTitle: "Sign in without a code next time",
	OfferText:     "With a passkey, the fingerprint, face or screen lock of your device replaces the code that you get by message.",
	PasskeysTitle: "Passkeys", PasskeysText: "A passkey replaces the code that you get by message: you sign in with the fingerprint, face or screen lock of your device.",
	NoPasskeys: "You have no passkey.", AddPasskey: "Add a passkey", PasskeyAdded: "Added on %s", PasskeyLastUsed: "Last used on %s",
	PasskeySynced: "Your other devices may have it too.", NeedsScript: "To add a passkey or sign in with it you need JavaScript and a recent browser. Everything else works without.",
	NoPasskeysHere: "This service has no passkeys at this address.", RemoveText: "Removing a passkey also ends your sessions on other devices.",
	EverywhereTitle: "Sessions", EverywhereText: "If you have lost a device, or forgot to sign out, end all your sessions, this one too. Also remove the passkey of the lost device.", Everywhere: "Sign out everywhere",
	PasskeyUnused: "The passkey was not used. Try again, or ask for a code.", PasskeyUnknown: "This passkey opens no account: it may have been removed. Ask for a code.",
	PasskeyNotAdded: "The passkey was not added. You can try again.", PasskeyKnown: "This device already has a passkey of your account.",
	PasskeysFull: "An account has at most ten passkeys, and adds at most ten a day. Remove one, or try again tomorrow.",
	Reminders:    "Reminders", RemindersTitle: "Reminders before the due date",
	RemindersText:  "You can get a message seven days before the due date of a payment, and again the day before, between 8 a.m. and 8 p.m. The agency is asked before each message: you are not reminded of what is paid or being paid.",
	RemindersShown: "The message has the due date and the amount, or the number of payments. It has neither your name nor your whole reference. A reminder is a help: without a message the due date stays the same.",
	RemindersLabel: "Get reminders", NoReminders: "No reminders", BySMS: "By SMS to %s", ByEmail: "By e-mail to %s",
	SaveReminders: "Save", RemindersMissing: "Choose one of the answers.",
	RemindersEnd:    "You can change your choice on this page at any time. Reminders also end when you remove your references, when your account is erased, and when you have not used your account, or not entered a code that was sent to this address, for 90 days. Messages go to the number or e-mail address that you signed in with.",
	RemindersNoRefs: "You will get reminders once you have added a reference.",
}

var texts = language.Table[*words]{money.French: &french, money.English: &english}
