package shop

// words are the texts of the pages by language.
var words = map[string]map[string]string{
	"fr": {
		"site": "Guichet fiscal", "demo": "Démonstration : aucun argent ne circule.",
		"title": "Vos avis d’imposition", "intro": "Choisissez ce que vous voulez payer.",
		"amount": "Montant dû", "case": "Dossier", "choose": "Ouvrir le dossier",
		"locked": "Dossier en attente de paiement", "unlocked": "Dossier débloqué : le paiement est confirmé.",
		"pay": "Paiement", "start": "Payer maintenant", "again": "Recommencer", "back": "Tous les avis", "language": "English",
		"opening": "Ouverture du paiement…", "slow": "La connexion est lente, encore un instant…",
		"pending":  "Paiement par carte en cours dans une autre fenêtre.",
		"checking": "Nous vérifions le paiement…",
		"unproved": "Le paiement n’est pas encore confirmé. Rechargez la page dans un instant.",
		"over":     "Ce paiement a pris fin sans être confirmé. Lisez ce qui suit avant de recommencer.",
		"failed":   "Le paiement ne s’ouvre pas.", "closed": "Vous avez quitté le paiement.",
		"nokey":  "La boutique n’a pas de clé : donnez-lui la clé de test d’une application pour payer ici.",
		"script": "Cette page a besoin de JavaScript.", "unknown": "Ce dossier n’existe pas.",
	},
	"en": {
		"site": "Tax office", "demo": "Demonstration: no money moves.",
		"title": "Your tax notices", "intro": "Choose what you want to pay.",
		"amount": "Amount due", "case": "Case", "choose": "Open the case",
		"locked": "Case waits for payment", "unlocked": "Case unlocked: the payment is confirmed.",
		"pay": "Payment", "start": "Pay now", "again": "Try again", "back": "All notices", "language": "Français",
		"opening": "Opening the payment…", "slow": "The connection is slow, one moment…",
		"pending":  "Card payment under way in another window.",
		"checking": "We are checking the payment…",
		"unproved": "The payment is not confirmed yet. Reload the page in a moment.",
		"over":     "This payment ended unconfirmed. Read what follows before you try again.",
		"failed":   "The payment does not open.", "closed": "You have left the payment.",
		"nokey":  "The shop has no key: give it the test key of an application to pay here.",
		"script": "This page needs JavaScript.", "unknown": "There is no such case.",
	},
}
