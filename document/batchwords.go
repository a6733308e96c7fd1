package document

import (
	"quittance/money"
	"quittance/money/language"
)

type certificateWords struct {
	Title, InWords, Test, TestNote, File, Batch                              string
	HeldNote                                                                 string // time
	WhatIsApproved, BatchRef, Revision, Mode, Live, TestMode, Date, PayUntil string
	Count, Largest, Maker, SealedAt, Accounts, Total, OneLine                string
	Lines                                                                    string // number
	Level                                                                    string // number, role, needed
	ApprovedBy, For, At, Passkey                                             string
	Release, ReleasedBy, NotReleased, ByDate                                 string
	StateAt                                                                  string // time
	State, Held                                                              string
	States, LineStates                                                       map[State]string
	Proof, Digest, Root, Policy, ID, CheckTitle, Check                       string
}

var certificateTexts = language.Table[*certificateWords]{
	money.French: { //nolint:gosec // texts, no credential
		Title: "Certificat d’approbation d’un lot de paiements", InWords: "En lettres\u00a0:", Test: "TEST", TestNote: "Certificat de TEST, sans valeur\u00a0: ce lot ne paie personne.", File: "certificat", Batch: "Lot",
		HeldNote:       "Ce lot est suspendu depuis le %s\u00a0: rien n’en est envoyé tant que deux personnes n’ont pas levé la suspension.",
		WhatIsApproved: "Ce qui est approuvé", BatchRef: "Référence du lot", Revision: "Révision", Mode: "Mode", Live: "Réel", TestMode: "Test", Date: "Date de paiement", PayUntil: "Dernier jour de paiement",
		Count: "Nombre de lignes", Largest: "Ligne la plus élevée", Maker: "Préparé par", SealedAt: "Scellé le", Accounts: "Comptes de paiement", Total: "Total", OneLine: "1 ligne", Lines: "%d lignes",
		Level: "Niveau %d\u00a0: rôle %s, approbations demandées\u00a0: %d", ApprovedBy: "Approuvé par", For: "À la place de", At: "Le", Passkey: "Clé d’accès",
		Release: "Mise en paiement", ReleasedBy: "Mis en paiement par", NotReleased: "ce lot n’est pas encore mis en paiement", ByDate: "à la date de paiement, selon les règles de l’administration",
		StateAt: "État au %s", State: "État du lot", Held: ", suspendu",
		States: map[State]string{StateApproved: "Approuvé", StateReleasing: "En paiement", StateDone: "Terminé"},
		LineStates: map[State]string{
			StateReady: "À payer", StateSent: "Envoyées", StatePaid: "Payées", StateRefused: "Refusées", StateCancelled: "Annulées", StateReturned: "Retournées",
		},
		Proof: "Ce que les clés d’accès ont signé", Digest: "Empreinte du lot", Root: "Racine des lignes", Policy: "Version des règles", ID: "Identifiant du lot",
		CheckTitle: "Vérifier ce certificat", Check: "Scannez ce code avec un téléphone. La page doit s’ouvrir sous l’adresse",
	},
	money.English: {
		Title: "Approval certificate of a payment batch", InWords: "In words:", Test: "TEST", TestNote: "TEST certificate, without value: this batch pays nobody.", File: "certificate", Batch: "Batch",
		HeldNote:       "This batch has been held since %s: nothing of it is sent until two people have lifted the hold.",
		WhatIsApproved: "What is approved", BatchRef: "Batch reference", Revision: "Revision", Mode: "Mode", Live: "Live", TestMode: "Test", Date: "Payment date", PayUntil: "Last day of payment",
		Count: "Number of lines", Largest: "Largest line", Maker: "Prepared by", SealedAt: "Sealed on", Accounts: "Payout accounts", Total: "Total", OneLine: "1 line", Lines: "%d lines",
		Level: "Level %d: role %s, approvals needed: %d", ApprovedBy: "Approved by", For: "In the place of", At: "On", Passkey: "Passkey",
		Release: "Release", ReleasedBy: "Released by", NotReleased: "this batch is not released yet", ByDate: "on the payment date, as the agency’s policy says",
		StateAt: "State on %s", State: "State of the batch", Held: ", held",
		States: map[State]string{StateApproved: "Approved", StateReleasing: "Paying", StateDone: "Done"},
		LineStates: map[State]string{
			StateReady: "To be paid", StateSent: "Sent", StatePaid: "Paid", StateRefused: "Refused", StateCancelled: "Cancelled", StateReturned: "Returned",
		},
		Proof: "What the passkeys signed", Digest: "Digest of the batch", Root: "Root of the lines", Policy: "Version of the policy", ID: "Id of the batch",
		CheckTitle: "Check this certificate", Check: "Scan this code with a phone. The page must open at the address",
	},
}

type adviceWords struct {
	Title, InWords, Test, TestNote, File, Paid, Returned                 string
	ReturnedNote                                                         string // time
	PartNote                                                             string // amount, time
	Payer, Payee, Account, Purpose, Means, PaidAt, DecidedAt, ReturnedAt string
	PayoutRef, OperatorRef, LineRef, BatchRef, CheckTitle, Check         string
	Footer                                                               string // time, number, batch_ref, revision
}

var adviceTexts = language.Table[*adviceWords]{
	money.French: {
		Title: "Avis de versement", InWords: "En lettres\u00a0:", Test: "TEST", TestNote: "Avis de TEST, sans valeur\u00a0: aucune somme n’a été versée.", File: "avis-de-versement", Paid: "PAYÉ", Returned: "RETOURNÉ",
		ReturnedNote: "La somme est revenue à l’administration le %s. Cet avis ne vaut plus preuve de versement.",
		PartNote:     "Une partie de la somme, %s, est revenue à l’administration le %s.",
		Payer:        "Versé par", Payee: "Bénéficiaire", Account: "Compte ou numéro", Purpose: "Objet", Means: "Mode de paiement", PaidAt: "Payé le", DecidedAt: "Paiement constaté le", ReturnedAt: "Retourné le",
		PayoutRef: "Référence du versement", OperatorRef: "Référence de l’opérateur", LineRef: "Référence de la ligne", BatchRef: "Référence du lot",
		CheckTitle: "Vérifier cet avis", Check: "Scannez ce code avec un téléphone. La page doit s’ouvrir sous l’adresse",
		Footer: "État au %s. Ligne %d du lot %s, révision %d",
	},
	money.English: {
		Title: "Payment advice", InWords: "In words:", Test: "TEST", TestNote: "TEST advice, without value: no money was paid.", File: "payment-advice", Paid: "PAID", Returned: "RETURNED",
		ReturnedNote: "The money came back to the agency on %s. This advice no longer proves a payment.",
		PartNote:     "A part of the money, %s, came back to the agency on %s.",
		Payer:        "Paid by", Payee: "Payee", Account: "Account or number", Purpose: "For", Means: "Payment mode", PaidAt: "Paid on", DecidedAt: "Payment established on", ReturnedAt: "Returned on",
		PayoutRef: "Payment reference", OperatorRef: "Operator’s reference", LineRef: "Line reference", BatchRef: "Batch reference",
		CheckTitle: "Check this advice", Check: "Scan this code with a phone. The page must open at the address",
		Footer: "State on %s. Line %d of the batch %s, revision %d",
	},
}
