package verify

import (
	"strconv"
	"strings"
	"time"

	"quittance/internal/batchseal"
	"quittance/internal/receipts"
	"quittance/money"
	"quittance/money/language"
)

// words are the texts of the page. A sentence has {day} and {clock} for its time.
type words struct {
	Title, Site, Label, Hint, Check, Address, Missing string
	OrderLabel, OrderHint                             string
	Verdicts, More                                    map[receipts.Verdict]string
	// Served says that the service checked the signature because the browser cannot. Unable is
	// the result of such a browser without network.
	Served, Unable string
	// TestReversed is the sentence of VerdictTest for a payment that was reversed.
	TestReversed string
	// NoList replaces the brackets of a sentence without a time.
	NoList  string
	Labels  map[string]string // by the name of the claim
	Partial string
	// Orders are what the row of the dossier number says, by orderResult. Unproven is the row of the
	// payer, whom no token names.
	Orders   map[orderResult]string
	Unproven string
	// Papers are the texts of certificates and advices of batches.
	Papers paperWords
	// Channels by their names in tokens.
	Channels map[string]string
	Limited  string
}

var texts = language.Table[*words]{
	money.French: {
		Title: "Vérifier un reçu", Site: "Vérification des reçus",
		Label: "Code du reçu", Hint: "Scannez le code du reçu avec un téléphone, ou collez ici l’adresse que le code contient.", Check: "Vérifier",
		Address: "N’utilisez que cette page. Son adresse est", Missing: "Collez l’adresse que le code du reçu contient.",
		OrderLabel: "Numéro de dossier du papier (facultatif)", OrderHint: "Le code permet de contrôler ce numéro, sans le contenir.",
		Verdicts: map[receipts.Verdict]string{
			receipts.VerdictAuthentic:   "Authentique, vérifiée en ligne à {clock} le {day}",
			receipts.VerdictUnconfirmed: "Signature valable\u00a0; annulation non vérifiée (liste du {day} à {clock})",
			receipts.VerdictReversed:    "Paiement annulé le {day} à {clock}",
			receipts.VerdictTest:        "Reçu de TEST, sans valeur",
			receipts.VerdictDiffers:     "Ce reçu ne correspond pas au paiement enregistré",
			receipts.VerdictUnknownKey:  "Clé inconnue hors ligne\u00a0: connectez-vous",
			receipts.VerdictNone:        "Ce n’est pas un reçu de ce service",
		},
		More: map[receipts.Verdict]string{
			receipts.VerdictAuthentic:   "Comparez ces indications avec le papier.",
			receipts.VerdictUnconfirmed: "Comparez ces indications avec le papier. Connectez-vous pour savoir si le paiement a été annulé depuis.",
			receipts.VerdictReversed:    "La somme a été restituée. Ce reçu ne prouve plus un paiement.",
			receipts.VerdictTest:        "Aucune somme n’a été payée.",
			receipts.VerdictDiffers:     "Le montant, les frais, la devise ou une référence ne sont pas ceux du paiement. N’acceptez pas ce reçu et prévenez l’administration.",
			receipts.VerdictUnknownKey:  "Seul le service peut vérifier ce reçu.",
			receipts.VerdictNone:        "Le code est abîmé, ou le papier est faux.",
		},
		Served:       "Ce navigateur ne peut pas contrôler la signature\u00a0: le service l’a contrôlée.",
		Unable:       "Vérification impossible hors ligne avec ce navigateur\u00a0: connectez-vous",
		TestReversed: "Reçu de TEST, sans valeur\u00a0; paiement annulé le {day} à {clock}",
		NoList:       "(aucune liste)",
		Labels:       map[string]string{"a": "Montant réglé (hors frais)", "f": "Frais de service", "total": "Total payé", "o": "Numéro de dossier", "payer": "Payeur", "s": "Service", "t": "Administration", "pd": "Payé le", "ch": "Moyen de paiement", "pr": "Référence de paiement", "n": "Référence de l’avis", "sr": "Redevable", "pt": "Paiement partiel"},
		Partial:      "une partie restait due",
		Orders: map[orderResult]string{
			orderMatches: "conforme au code", orderDiffers: "le numéro saisi n’est pas celui de ce reçu",
			orderUntyped: "non contrôlé\u00a0: saisissez le numéro du papier ci-dessous", orderUnproven: "non prouvé par le code",
		},
		Unproven: "non prouvé par le code",
		Channels: map[string]string{
			"MOBILE_MONEY": "Mobile money", "CARD": "Carte", "CASH": "Espèces au guichet", "BANK_TRANSFER": "Virement bancaire", "SWITCH": "Commutateur régional",
		},
		Papers:  frenchPapers,
		Limited: "Trop de vérifications. Réessayez dans un instant.",
	},
	money.English: {
		Title: "Check a receipt", Site: "Checking of receipts",
		Label: "Code of the receipt", Hint: "Scan the receipt’s code with a phone, or paste the address that the code holds.", Check: "Check",
		Address: "Use no other page. Its address is", Missing: "Paste the address that the receipt’s code holds.",
		OrderLabel: "Case number on the paper (optional)", OrderHint: "The code can check this number and does not contain it.",
		Verdicts: map[receipts.Verdict]string{
			receipts.VerdictAuthentic:   "Authentic, checked online at {clock} on {day}",
			receipts.VerdictUnconfirmed: "Valid signature; cancellation not checked (list of {day}, {clock})",
			receipts.VerdictReversed:    "Payment cancelled on {day} at {clock}",
			receipts.VerdictTest:        "TEST receipt, without value",
			receipts.VerdictDiffers:     "This receipt does not agree with the recorded payment",
			receipts.VerdictUnknownKey:  "Key unknown offline: connect to the network",
			receipts.VerdictNone:        "This is not a receipt of this service",
		},
		More: map[receipts.Verdict]string{
			receipts.VerdictAuthentic:   "Compare these details with the paper.",
			receipts.VerdictUnconfirmed: "Compare these details with the paper. Connect to the network to know whether the payment was cancelled since.",
			receipts.VerdictReversed:    "The money was given back. This receipt no longer proves a payment.",
			receipts.VerdictTest:        "No money was paid.",
			receipts.VerdictDiffers:     "The amount, the fee, the currency or a reference is not that of the payment. Do not accept this receipt, and tell the agency.",
			receipts.VerdictUnknownKey:  "Only the service can check this receipt.",
			receipts.VerdictNone:        "The code is damaged, or the paper is false.",
		},
		TestReversed: "TEST receipt, without value; payment cancelled on {day} at {clock}",
		Served:       "This browser cannot check the signature: the service checked it.",
		Unable:       "This browser cannot check receipts offline: connect to the network",
		NoList:       "(no list)",
		Labels:       map[string]string{"a": "Amount paid", "f": "Service fee", "total": "Total paid", "o": "Case number", "payer": "Payer", "s": "Service", "t": "Agency", "pd": "Paid on", "ch": "Paid by", "pr": "Payment reference", "n": "Notice reference", "sr": "Owed by", "pt": "Partial payment"},
		Partial:      "a part stayed owed",
		Orders: map[orderResult]string{
			orderMatches: "agrees with the code", orderDiffers: "the number typed is not that of this receipt",
			orderUntyped: "not checked: type the number of the paper below", orderUnproven: "not proven by the code",
		},
		Unproven: "not proven by the code",
		Channels: map[string]string{
			"MOBILE_MONEY": "Mobile money", "CARD": "Card", "CASH": "Cash at a counter", "BANK_TRANSFER": "Bank transfer", "SWITCH": "Regional switch",
		},
		Papers:  englishPapers,
		Limited: "Too many checks. Try again in a moment.",
	},
}

// Sentence returns what somebody who checks a receipt is told.
func Sentence(lang money.Language, r receipts.Result) string {
	w := texts.In(lang)
	text := w.Verdicts[r.Verdict]
	if r.Verdict == receipts.VerdictTest && !r.At.IsZero() {
		text = w.TestReversed
	}
	if r.At.IsZero() {
		if at := strings.IndexByte(text, '('); at >= 0 {
			text = text[:at] + w.NoList
		}
		return text
	}
	return strings.NewReplacer("{day}", language.Day(lang, r.At), "{clock}", language.Clock(r.At)).Replace(text)
}

// orderResult is what the code of a receipt says of the dossier number on its paper.
type orderResult string

const (
	orderMatches  orderResult = "matches"
	orderDiffers  orderResult = "differs"
	orderUntyped  orderResult = "untyped"  // the code can check it, and nobody typed it
	orderUnproven orderResult = "unproven" // the code cannot check it
)

// orderOf compares the dossier number that somebody typed with the claims.
func orderOf(c receipts.Claims, typed string) orderResult {
	typed = strings.TrimSpace(typed)
	switch {
	case c.Order == "":
		return orderUnproven
	case typed == "":
		return orderUntyped
	case receipts.OrderHash(c.ID, typed) == c.Order:
		return orderMatches
	}
	return orderDiffers
}

// row is a claim as the page shows it. Whole values never break over two lines.
type row struct {
	Claim, Label, Value string
	Whole               bool
}

// rows returns the claims of a result, in the order of the page, and what the claims do not say.
// Without claims the values are empty. agency is the full name; typed is the dossier number.
func (w *words) rows(lang money.Language, c receipts.Claims, agency, typed string) []row {
	return append(w.receiptRows(lang, c, agency, typed), w.Papers.rows(lang, batchseal.Claims{}, "")...)
}

// receiptRows are the rows of a receipt. Those of a paper of a batch follow them on the page.
func (w *words) receiptRows(lang money.Language, c receipts.Claims, agency, typed string) []row {
	var amount, fee, total, paid, subject, partial, order, payer string
	if c.ID != "" {
		format := func(amount int64) string {
			if currency, ok := money.Lookup(c.Currency); ok {
				return currency.Format(lang, amount)
			}
			return strconv.FormatInt(amount, 10) + " " + c.Currency
		}
		amount = format(c.Amount)
		if c.Version > 1 {
			fee, total = format(c.Fee), format(c.Amount+c.Fee)
		}
		order, payer = w.Orders[orderOf(c, typed)], w.Unproven
		paid = language.Day(lang, time.Unix(c.PaidAt, 0)) + ", " + language.Clock(time.Unix(c.PaidAt, 0))
	}
	if c.Subject != "" {
		subject = "…" + c.Subject
	}
	if c.Partial != 0 {
		partial = w.Partial
	}
	channel, ok := w.Channels[c.Channel]
	if !ok {
		channel = c.Channel
	}
	out := []row{
		{Claim: "a", Value: amount, Whole: true},
		{Claim: "f", Value: fee, Whole: true},
		{Claim: "total", Value: total, Whole: true},
		{Claim: "t", Value: agency},
		{Claim: "s", Value: c.Service},
		{Claim: "pd", Value: paid},
		{Claim: "ch", Value: channel},
		{Claim: "pr", Value: language.GroupReference(c.PaymentRef), Whole: true},
		{Claim: "n", Value: c.NoticeRef, Whole: true},
		{Claim: "sr", Value: subject},
		{Claim: "pt", Value: partial},
		{Claim: "o", Value: order},
		{Claim: "payer", Value: payer},
	}
	for i := range out {
		out[i].Label = w.Labels[out[i].Claim]
	}
	return out
}
