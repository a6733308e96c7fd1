package document

import (
	"quittance/money"
	"quittance/money/language"
)

type receiptWords struct {
	Title, Paid, Reversed, ReversedOn, ReversedEnd, Test, TestNote, Recording, Duplicate string
	Payer, Service, Label, Order, Subject, Part, PartText                                string
	Due, Fee, Total, InWords                                                             string
	PaidAt, Channel, Operator, Counter, Clerk, PaymentRef, NoticeRef                     string
	Accountant, CheckTitle, Check, Transaction, File                                     string
}

var receiptTexts = language.Table[receiptWords]{
	money.French: {
		Title: "Reçu de paiement", Paid: "PAYÉ", Reversed: "ANNULÉE", ReversedOn: "Opération annulée le", ReversedEnd: "\u00a0: la somme a été restituée. Ce reçu ne vaut plus preuve de paiement.",
		Test: "TEST", TestNote: "Reçu de TEST, sans valeur\u00a0: aucune somme n’a été payée.",
		Recording: "Enregistrement en cours\u00a0: le paiement est reçu, l’administration ne l’a pas encore enregistré.",
		Duplicate: "Duplicata\u00a0: les coordonnées du payeur ont été effacées.",
		Payer:     "Payeur", Service: "Service", Label: "Objet", Order: "Numéro de dossier", Subject: "Redevable", Part: "Paiement partiel", PartText: "une partie de la somme restait due après ce paiement",
		Due: "Montant réglé (hors frais)", Fee: "Frais de service", Total: "Total payé", InWords: "En lettres\u00a0:",
		PaidAt: "Payé le", Channel: "Moyen de paiement", Operator: "Référence de l’opérateur", Counter: "Guichet", Clerk: "Agent", PaymentRef: "Référence de paiement", NoticeRef: "Référence de l’avis",
		Accountant: "Comptable", CheckTitle: "Vérifier ce reçu", Check: "Scannez ce code avec un téléphone. La page doit s’ouvrir sous l’adresse", Transaction: "Transaction", File: "recu",
	},
	money.English: {
		Title: "Payment receipt", Paid: "PAID", Reversed: "CANCELLED", ReversedOn: "Payment cancelled on", ReversedEnd: ": the money was given back. This receipt no longer proves a payment.",
		Test: "TEST", TestNote: "TEST receipt, without value: no money was paid.",
		Recording: "Being recorded: the payment is received, the agency has not recorded it yet.",
		Duplicate: "Duplicate: the payer’s contact data was erased.",
		Payer:     "Payer", Service: "Service", Label: "For", Order: "Case number", Subject: "Owed by", Part: "Partial payment", PartText: "a part stayed owed after this payment",
		Due: "Amount paid", Fee: "Service fee", Total: "Total paid", InWords: "In words:",
		PaidAt: "Paid on", Channel: "Paid by", Operator: "Operator’s reference", Counter: "Counter", Clerk: "Clerk", PaymentRef: "Payment reference", NoticeRef: "Notice reference",
		Accountant: "Accountant", CheckTitle: "Check this receipt", Check: "Scan this code with a phone. The page must open at the address", Transaction: "Transaction", File: "receipt",
	},
}

type noticeWords struct {
	Title, TestNote, Agency, NoticeRef, Issued, Valid, Taxpayer, Order string
	Total, PaymentRef, QR, Way, Fee, ToPay                             string
	NoReceipt, OtherNumber, UpToDate, StubText, Cut, File              string
	How                                                                map[Means]string
	Labels                                                             Labels
}

var noticeTexts = language.Table[noticeWords]{
	money.French: {
		Title: "Avis de paiement", TestNote: "Avis de TEST, sans valeur\u00a0: ne payez rien.",
		Agency: "Administration", NoticeRef: "Référence de l’avis", Issued: "Établi le", Valid: "Valable jusqu’au", Taxpayer: "Redevable", Order: "Numéro de dossier",
		Total: "Total à payer, hors frais", PaymentRef: "Référence de paiement", QR: "Pour payer par téléphone, scannez ce code ou ouvrez", Way: "Moyen de paiement", Fee: "Frais", ToPay: "Total à payer",
		NoReceipt: "Ceci n’est pas un reçu.", OtherNumber: "Ne payez à aucun autre numéro.", UpToDate: "Le montant à jour s’affiche au paiement.",
		StubText: "Partie à remettre au guichet", Cut: "À découper", File: "avis",
		How: map[Means]string{
			MeansMobileMoney: "Scannez le code, saisissez votre numéro, puis confirmez avec votre code secret sur votre téléphone.",
			MeansCard:        "Scannez le code, puis saisissez votre carte sur la page sécurisée de la banque.",
			MeansSwitch:      "Scannez le code, saisissez le numéro de votre compte ou portefeuille, puis acceptez la demande auprès de votre établissement.",
			MeansCash:        "Présentez cet avis à un guichet de l’administration. L’agent vous remettra un reçu.",
			MeansTransfer: "Demandez à votre banque un virement du total exact. Titulaire du compte\u00a0: %s. Banque\u00a0: %s. Compte\u00a0: %s. Motif\u00a0: %s. " +
				"Un virement prend un à trois jours ouvrés. Le paiement est effectué lorsque la banque a enregistré le virement, avant la fin de validité de l’avis. " +
				"Si le montant est différent ou si la référence manque, le virement ne paie pas cet avis\u00a0: l’administration doit d’abord rechercher à quoi il correspond.",
		},
		Labels: Labels{Original: "Montant initial", Added: "De plus que le montant initial (pénalités, intérêts)", Outstanding: "Reste dû", Minimum: "Minimum", DueOn: "Échéance", ToPay: "À payer", Lines: "Sommes dues", How: "Comment payer"},
	},
	money.English: {
		Title: "Payment notice", TestNote: "TEST notice, without value: pay nothing.",
		Agency: "Agency", NoticeRef: "Notice reference", Issued: "Issued on", Valid: "Valid until", Taxpayer: "Owed by", Order: "Case number",
		Total: "Total to pay, without fees", PaymentRef: "Payment reference", QR: "To pay by phone, scan this code or open", Way: "Way to pay", Fee: "Fee", ToPay: "Total to pay",
		NoReceipt: "This is not a receipt.", OtherNumber: "Do not pay to any other number.", UpToDate: "The amount of the day is shown when you pay.",
		StubText: "Part for the counter", Cut: "Cut here", File: "notice",
		How: map[Means]string{
			MeansMobileMoney: "Scan the code, enter your number, then confirm with your secret code on your phone.",
			MeansCard:        "Scan the code, then enter your card on the bank’s secure page.",
			MeansSwitch:      "Scan the code, enter the number of your account or wallet, then accept the request at your institution.",
			MeansCash:        "Show this notice at a counter of the agency. The clerk gives you a receipt.",
			MeansTransfer: "Ask your bank for a transfer of the exact total. Account holder: %s. Bank: %s. Account: %s. Remittance text: %s. " +
				"A transfer takes one to three working days. The payment is made when the bank has booked it, before the notice ends. " +
				"With another amount or without the reference the transfer does not pay this notice: the agency must find out first what it is for.",
		},
		Labels: Labels{Original: "Original amount", Added: "More than the original amount (penalties, interest)", Outstanding: "Still owed", Minimum: "Minimum", DueOn: "Due on", ToPay: "To pay", Lines: "Amounts owed", How: "How to pay"},
	},
}
