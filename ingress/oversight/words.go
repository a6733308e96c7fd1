package oversight

import (
	"quittance/money"
	"quittance/money/language"
)

// words are the texts of the pages in one language. A field's comment says what the verbs of package fmt in its text stand for.
type words struct {
	Agency, AllAgencies, Filter, Show, Next, First string
	Audit                                          auditWords
	Health                                         healthWords
	Reports                                        reportWords
	// Actions are those of the audit table.
	Actions map[string]string
}

// auditWords are those of the audit table.
type auditWords struct {
	Title, At, Who, Action, Subject, SubjectDetail, Detail, Proof, Day string
	WhoHint, ActionHint, SubjectHint, DayHint, DayMalformed            string
	NobodySo, Contact, SessionInCommand, None, NoneSo                  string
	NotRecorded, AndSigned, AndUnsigned                                string
	Recorded                                                           string // number
	Pressed                                                            string // verdict, subject
	Verify, VerifyText, Trail                                          string
	NotKnown                                                           string            // action
	Kinds                                                              map[string]string // of actors
}

// healthWords are those of the page of health.
type healthWords struct {
	Title, Intro, NotKnown, Unknown, Live, Test, Mode, State, Agency, Agencies, Oldest, Records, Since  string
	Money, Collections, Payouts                                                                         string
	Operators, OperatorsNote, NoOperators, Operator, LastAnswer, SilentSince, Answers, Silent, Away     string
	Accounts, NoAccounts, Account, Paused, Closed                                                       string
	ERPs, NoERPs, ERP, Waiting, NothingOwed, Well                                                       string
	Owed                                                                                                string // number, date and time
	Suspended, Refusing, Failing                                                                        string // date and time
	Backlog, NoBacklog, Kind, Count, ToSuspended                                                        string
	Messages, MessagesNote, NoMessages, Provider, Given, Accepted, Delivered, Undelivered, LastAccepted string
	Lag, LagNote, NoLag, Group, Topic, NeverRead                                                        string
	Models, NoModels, Model, Position, Behind                                                           string
	Poison, NoPoison, Process, Part, Registry, Current, Loops, Turning, StuckLoops                      string
	Stale                                                                                               string // date and time
	DeliveryKinds, DeliveryStates, ModelNames                                                           map[string]string
}

var texts = language.Table[*words]{money.French: &french, money.English: &english}

var french = words{
	Agency: "Administration", AllAgencies: "Toutes les administrations", Filter: "Filtrer", Show: "Afficher", Next: "Page suivante", First: "Première page",
	Audit: auditWords{
		NotKnown: "%s\u00a0: demandé, résultat pas connu", Title: "Journal des opérations", At: "Date", Who: "Auteur", Action: "Opération", Subject: "Objet", SubjectDetail: "Objet et détail", Detail: "Détail", Proof: "Preuve", Day: "Jour",
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
	Health: healthWords{
		Title: "Santé du service", Intro: "Cette page montre ce que le service a enregistré. Elle n’appelle ni opérateur, ni ERP, ni fournisseur : la commande sous chaque tableau le fait.",
		NotKnown: "Non connu : la source ne répond pas. La page la lit de nouveau toute seule.", Unknown: "non connu", Live: "Réel", Test: "Test", Mode: "Mode", State: "État", Agency: "Administration", Agencies: "Administrations touchées", Oldest: "Le plus ancien", Records: "Enregistrements", Since: "Depuis",
		Money: "Appels", Collections: "Encaissements", Payouts: "Versements",
		Operators: "Opérateurs", OperatorsNote: "Un opérateur est absent quand ses appels restent sans réponse pendant cinq minutes.", NoOperators: "Aucun opérateur n’a encore été appelé.", Operator: "Opérateur", LastAnswer: "Dernière réponse", SilentSince: "Sans réponse depuis", Answers: "Répond", Silent: "Un appel est resté sans réponse", Away: "Absent",
		Accounts: "Comptes de versement en pause", NoAccounts: "Aucun compte de versement n’est en pause.", Account: "Compte", Paused: "En pause", Closed: "Fermé jusqu’à un essai",
		ERPs: "ERP", NoERPs: "Aucune administration n’a d’ERP.", ERP: "ERP", Waiting: "En attente", NothingOwed: "Tous les paiements sont confirmés aux ERP.", Owed: "Paiements encaissés qu’un ERP n’a pas encore acceptés : %d, le plus ancien du %s.", Well: "Accepte les confirmations",
		Suspended: "Suspendu depuis le %s", Refusing: "Refuse nos identifiants depuis le %s", Failing: "Échoue depuis le %s",
		Backlog: "Envois en attente", NoBacklog: "Aucun envoi n’est en attente.", Kind: "Type", Count: "Nombre", ToSuspended: "vers des destinations suspendues",
		Messages: "Fournisseurs de messages", MessagesNote: "Messages de la dernière heure, pour les fournisseurs qui en rendent compte.", NoMessages: "Aucun message dans la dernière heure.", Provider: "Fournisseur", Given: "Remis", Accepted: "Acceptés", Delivered: "Reçus", Undelivered: "Non distribués", LastAccepted: "Dernier accepté",
		Lag: "Retard des groupes de lecture", LagNote: "La métrique quittance_consumer_lag_records a les mêmes noms. La marque qui termine une transaction compte : un groupe au repos garde jusqu’à un enregistrement par partition.", NoLag: "Aucun groupe n’est en retard.", Group: "Groupe", Topic: "Sujet Kafka", NeverRead: "n’a jamais lu",
		Models: "Modèles de lecture", NoModels: "Aucun modèle de lecture.", Model: "Modèle", Position: "Position", Behind: "En retard de",
		Poison: "Enregistrements mis de côté", NoPoison: "Aucun enregistrement n’est mis de côté.", Process: "Ce processus", Part: "Partie", Registry: "Configuration", Current: "Conforme à Postgres", Stale: "Non confirmée par Postgres depuis le %s", Loops: "Boucles", Turning: "Elles tournent", StuckLoops: "Au moins une boucle est bloquée : le journal du processus la nomme",
		DeliveryKinds:  map[string]string{"webhook": "Webhook", "cashin": "Webhook cash-in", "erp": "Confirmation", "notify": "Message"},
		DeliveryStates: map[string]string{"waiting": "En attente", "queued": "En cours d’envoi", "needs_operator": "À reprendre"},
		ModelNames:     map[string]string{"readmodel": "Paiements", "cases": "Cas", "deliveries": "Envois", "batches": "Lots de versements", "journal": "Journal (ClickHouse)"},
	},
	Reports: frenchReports, Actions: frenchActions,
}

var english = words{
	Agency: "Agency", AllAgencies: "All agencies", Filter: "Filter", Show: "Show", Next: "Next page", First: "First page",
	Audit: auditWords{
		NotKnown: "%s: asked for, outcome not known", Title: "Audit", At: "Date", Who: "Who", Action: "Action", Subject: "Subject", SubjectDetail: "Subject and detail", Detail: "Detail", Proof: "Proof", Day: "Day",
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
	Health: healthWords{
		Title: "Health", Intro: "This page shows what the service has recorded. It calls no operator, ERP or provider: the command below each table does.",
		NotKnown: "Not known: the source does not answer. The page reads it again by itself.", Unknown: "not known", Live: "Live", Test: "Test", Mode: "Mode", State: "State", Agency: "Agency", Agencies: "Agencies concerned", Oldest: "Oldest", Records: "Records", Since: "Since",
		Money: "Calls", Collections: "Collections", Payouts: "Payouts",
		Operators: "Operators", OperatorsNote: "An operator is away when its calls have had no answer for five minutes.", NoOperators: "No operator has been called yet.", Operator: "Operator", LastAnswer: "Last answer", SilentSince: "No answer since", Answers: "Answers", Silent: "A call had no answer", Away: "Away",
		Accounts: "Paused payout accounts", NoAccounts: "No payout account is paused.", Account: "Account", Paused: "Paused", Closed: "Closed until it is tried",
		ERPs: "ERPs", NoERPs: "No agency has an ERP.", ERP: "ERP", Waiting: "Waiting", NothingOwed: "All payments are confirmed to ERPs.", Owed: "Payments that an ERP has not accepted yet: %d, the oldest of %s.", Well: "Takes confirmations",
		Suspended: "Suspended since %s", Refusing: "Refuses our credentials since %s", Failing: "Fails since %s",
		Backlog: "Deliveries waiting", NoBacklog: "No delivery waits.", Kind: "Kind", Count: "Number", ToSuspended: "to suspended destinations",
		Messages: "Providers of messages", MessagesNote: "Messages of the last hour, of providers that report.", NoMessages: "No message in the last hour.", Provider: "Provider", Given: "Given", Accepted: "Accepted", Delivered: "Delivered", Undelivered: "Undelivered", LastAccepted: "Last accepted",
		Lag: "Lag of consumer groups", LagNote: "The metric quittance_consumer_lag_records has the same names. The mark that ends a transaction counts: a group at rest keeps up to one record a partition.", NoLag: "No group is behind.", Group: "Group", Topic: "Topic", NeverRead: "has never read",
		Models: "Read models", NoModels: "No read model.", Model: "Model", Position: "Position", Behind: "Behind by",
		Poison: "Records set aside", NoPoison: "No record is set aside.", Process: "This process", Part: "Part", Registry: "Configuration", Current: "As in Postgres", Stale: "Not confirmed by Postgres since %s", Loops: "Loops", Turning: "They turn", StuckLoops: "At least one loop is stuck: the log of the process names it",
		DeliveryKinds:  map[string]string{"webhook": "Webhook", "cashin": "Cash-in webhook", "erp": "Confirmation", "notify": "Message"},
		DeliveryStates: map[string]string{"waiting": "Waiting", "queued": "Being sent", "needs_operator": "Needs a person"},
		ModelNames:     map[string]string{"readmodel": "Payments", "cases": "Cases", "deliveries": "Deliveries", "batches": "Disbursement batches", "journal": "Journal (ClickHouse)"},
	},
	Reports: englishReports, Actions: englishActions,
}
