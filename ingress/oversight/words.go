package oversight

import (
	"quittance/money"
	"quittance/money/language"
)

// words are the texts of the pages in one language. A field's comment says what the verbs of package fmt in its text stand for.
type words struct {
	Agency, AllAgencies, Filter, Show, Next, First string
	Audit                                          auditWords
	// Actions are those of the audit table.
	Actions map[string]string
}

// auditWords are those of the audit table.
type auditWords struct {
	Title, At, Who, Action, Subject, Detail, Proof, Day     string
	WhoHint, ActionHint, SubjectHint, DayHint, DayMalformed string
	NobodySo, Contact, SessionInCommand, None, NoneSo       string
	NotRecorded, AndSigned, AndUnsigned                     string
	Recorded                                                string // number
	Pressed                                                 string // verdict, subject
	Verify, VerifyText, Trail                               string
	Kinds                                                   map[string]string // of actors
}

var texts = language.Table[*words]{money.French: &french, money.English: &english}

var french = words{
	Agency: "Administration", AllAgencies: "Toutes les administrations", Filter: "Filtrer", Show: "Afficher", Next: "Page suivante", First: "Première page",
	Audit: auditWords{
		Title: "Journal des opérations", At: "Date", Who: "Auteur", Action: "Opération", Subject: "Objet et détail", Detail: "Détail", Proof: "Preuve", Day: "Jour",
		WhoHint:      "Le nom d’un agent, l’identifiant d’une clé, ou le nom d’un rôle du service.",
		ActionHint:   "Une opération, par exemple case.approve, ou toutes celles d’un objet, par exemple case.",
		SubjectHint:  "L’identifiant d’un cas, d’une importation, d’une clé ou d’une session.",
		DayHint:      "À Brazzaville.",
		DayMalformed: "Le jour s’écrit AAAA-MM-JJ, par exemple 2026-11-29.",
		NobodySo:     "Aucun agent ne porte ce nom. Écrivez le nom en entier, ou l’identifiant de l’auteur.",
		Contact:      "Un numéro de téléphone ou un courriel ne se recherche pas ici\u00a0: le journal n’en contient pas.", SessionInCommand: "SESSION",
		None:        "Aucune opération. La première s’affiche dès que quelqu’un agit.",
		NoneSo:      "Aucune opération ne remplit ces conditions. Les opérations d’avant le 29 novembre 2026 n’ont pas d’administration.",
		NotRecorded: "Pas encore dans Kafka", Recorded: "N° %d", AndSigned: ", signée", AndUnsigned: ", sans signature valable", Pressed: "Clé d’accès\u00a0: %s, %s",
		Verify: "Vérifier", VerifyText: "Le service signe chaque ligne qu’il écrit, et cette page vérifie la signature. Le numéro est celui de la ligne dans Kafka. L’exploitation compare les lignes avec celles de Kafka, et vérifie ce que les clés d’accès ont signé\u00a0:", Trail: "Consultations et opérations",
		Kinds: map[string]string{"person": "agent", "key": "clé d’API", "command_line": "ligne de commande", "service": "service"},
	},
	Actions: frenchActions,
}

var english = words{
	Agency: "Agency", AllAgencies: "All agencies", Filter: "Filter", Show: "Show", Next: "Next page", First: "First page",
	Audit: auditWords{
		Title: "Audit", At: "Date", Who: "Who", Action: "Action", Subject: "Subject and detail", Detail: "Detail", Proof: "Proof", Day: "Day",
		WhoHint:      "The name of a member of staff, the id of a key, or the name of a role of the service.",
		ActionHint:   "An action, such as case.approve, or all of a noun, such as case.",
		SubjectHint:  "The id of a case, an import, a key or a session.",
		DayHint:      "In Brazzaville.",
		DayMalformed: "Write the day as YYYY-MM-DD, such as 2026-11-29.",
		NobodySo:     "No member of staff has this name. Write the whole name, or the id of the actor.",
		Contact:      "A phone number or an e-mail address is not searched here: the audit table has none.", SessionInCommand: "SESSION",
		None:        "No actions. The first one is shown as soon as somebody acts.",
		NoneSo:      "No action meets these conditions. Actions of before 29 November 2026 have no agency.",
		NotRecorded: "Not in Kafka yet", Recorded: "No. %d", AndSigned: ", signed", AndUnsigned: ", no valid signature", Pressed: "Passkey: %s, %s",
		Verify: "Verify", VerifyText: "The service signs each row that it writes, and this page verifies the signature. The number is that of the row in Kafka. Operations compare the rows with those in Kafka, and verify what passkeys have signed:", Trail: "Who has looked and acted",
		Kinds: map[string]string{"person": "staff", "key": "API key", "command_line": "command line", "service": "service"},
	},
	Actions: englishActions,
}
