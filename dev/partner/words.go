package partner

// words are the texts of the pages by language. A status and a fault are words, too.
var words = map[string]map[string]string{
	"fr": {
		"site": "Vente de timbres", "demo": "Démonstration : aucun argent ne circule. Ce site utilise l’ancienne API (cash-in).",
		"title": "Acheter un timbre", "language": "English", "stamp": "Timbre", "how": "Comment payer",
		"online": "Sur la page de paiement", "mobile_money_a": "Par téléphone, mobile money A", "mobile_money_b": "Par téléphone, mobile money B",
		"number": "Numéro de téléphone, pour un paiement par téléphone", "example": "Numéros d’essai : 06 600 00 01 (A), 05 500 00 01 (B)", "buy": "Acheter",
		"order": "Commande", "status": "État", "reference": "Numéro du paiement", "webhooks": "Appels reçus", "asked": "Réponses de check-status",
		"again": "Vérifier l’état", "back": "Acheter un autre timbre", "unknown": "Cette commande n’existe pas.",
		created: "en attente de paiement", pending: "paiement en cours : approuvez-le sur votre téléphone", completed: "payée : voici votre timbre", failed: "paiement échoué", cancelled: "paiement annulé",
		"choose": "Choisissez un timbre.", "phone": "Ce numéro n’est pas un numéro de cet opérateur.", "busy": "Trop de demandes : réessayez dans une minute.",
		"operator": "L’opérateur ne répond pas. Rien n’a été débité.", "later": "Le service de paiement ne répond pas. Réessayez plus tard.",
	},
	"en": {
		"site": "Stamp sales", "demo": "Demonstration: no money moves. This site uses the deprecated API (cash-in).",
		"title": "Buy a stamp", "language": "Français", "stamp": "Stamp", "how": "How to pay",
		"online": "On the checkout page", "mobile_money_a": "By telephone, mobile money A", "mobile_money_b": "By telephone, mobile money B",
		"number": "Telephone number, to pay by telephone", "example": "Test numbers: 06 600 00 01 (A), 05 500 00 01 (B)", "buy": "Buy",
		"order": "Order", "status": "Status", "reference": "Payment number", "webhooks": "Calls received", "asked": "Answers of check-status",
		"again": "Check the status", "back": "Buy another stamp", "unknown": "There is no such order.",
		created: "waits for payment", pending: "payment under way: approve it on your phone", completed: "paid: here is your stamp", failed: "payment failed", cancelled: "payment cancelled",
		"choose": "Choose a stamp.", "phone": "This is no number of this operator.", "busy": "Too many requests: try again in a minute.",
		"operator": "The operator does not answer. Nothing was debited.", "later": "The payment service does not answer. Try again later.",
	},
}
