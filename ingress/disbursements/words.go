package disbursements

import (
	"quittance/money"
	"quittance/money/language"
)

// words are the texts of the pages in one language. A field's comment says what the verbs of package fmt in its text stand
// for.
type words struct {
	Title, ListText, Filter, Show, Next, First, None, NoneSo              string
	Mode, Live, Test, Status, AnyStatus, Holding, HeldOrNot, OnlyHeld     string
	Opened, Ref, Date, Count, Sum, Largest, Held, Colon, Unknown, Service string
	Revision                                                              string // number
	RevisionLabel, Maker, Waiver, SealedAt, ApproveUntil, PayUntil        string
	Digest, ID, WhatIsSigned, NotSigned, Accounts, Account, Totals        string
	BatchTitle                                                            string // batch_ref, revision
	Reason, ReasonHint, NoReason, HeldBy, Since                           string
	Level                                                                 string // number, given, needed, role
	Missing                                                               string // number
	StandsFor                                                             string // person
	HasApproved                                                           string // time
	HasNot, CountsElsewhere, Name, State                                  string
	Timeline, When, What, By, Place                                       string
	LinesChanged                                                          string // number
	Lines, Number, LineRef, Payee, Amount, LineCase, NotOpened, NoLines   string
	LinesNotSeen, NextLines, FirstLines                                   string
	Corrects                                                              string // line_ref
	Differs                                                               string // list
	DiffersShort, NoAnswer                                                string
	RefusedBy                                                             string // code
	LiftWaits                                                             string // time
	LiftSecond                                                            string // person, time
	OfERP, ERPIsAsked, ReleaseOfERP, DoneReleaseOfERP                     string // of a batch whose lines are an ERP's
	WaitsForERP                                                           string // time

	Certificate, Advice, NotApproved, NotPaid, NoPayee string
	NoPaper                                            string // list

	LineTitle                                                     string // number, batch_ref
	WhatWasApproved, WhatBecame, PayeeAccount, Purpose            string
	CorrectsLabel, CorrectedBy, Attempt, PayoutRef, SentAt        string
	RequestedAt, EnquiredAt, EndedAt, DoubtLabel                  string
	OperatorCode, OperatorRef, Evidence, EvidenceHint, NoEvidence string
	SettleWaits                                                   string // time, reference
	SettleSecond                                                  string // person, time, reference
	WaitsForYou, YouSigned                                        string
	CasesOf                                                       string // number
	OnlyCases, AllLines, NoCases                                  string
	Reported                                                      string // amount
	// Statements say what a statement said, by the word.
	Statements                   map[string]string
	AccountPaused, AccountClosed string // account, the operator's code, time
	ClosedAccount                string // account

	PeopleTitle, PeopleIntro, Roster, RosterEmpty, Roles, NoRoles, Delegation, Passkeys, InForce string
	Revoked, CountsFrom                                                                          string // time
	StandsUntil                                                                                  string // person, time
	KeysCount                                                                                    string // counted, all
	PolicyNow, NoPolicy                                                                          string
	PolicyNext                                                                                   string // time
	Currency, Version, NoLimit, NoBound, LineFrom, DayLimit, ApproveWithin, PayWithin, NameCheck string
	UpTo                                                                                         string // amount
	Tier, TierUpTo, TierLevels                                                                   string // number
	Hours, Days                                                                                  string // number
	Release, CurrencyHint, UpToHint, LevelsHint, LineFromHint, DayLimitHint, ApproveHint         string
	PayHint, NameCheckHint, ReleaseHint                                                          string
	ProposedBy                                                                                   string // person, time
	AnotherSigns, ConfirmSend, ProposeSend, Drop, NewPasskeys, Fingerprint                       string
	NotAble, NotAbleFirst, PeopleText, FirstText, NobodyElse, PolicyText                         string
	RolesHint, OwnRoles, SecondPerson, Person, PersonHint, For, ForHint, ForNobody               string
	Until, UntilHint, PersonFault, RolesFault, DelegationFault                                   string
	ProposePeople, ProposePolicy, RevokeTitle, RevokeText, RevokeSend                            string

	// Sign are what a passkey signs about a batch, by verdict; Acts what the session sends.
	Sign, Acts map[string]actWords
	// Statuses are those of batches, LineStatuses those of lines, Steps the events, Done what the person has just done.
	Statuses, LineStatuses, Steps, Done map[string]string
	// FirstKinds are what waits for a second signature, by kind.
	FirstKinds map[string]string
	// Cases are by kind of a line's case, Reasons by reason of our own of a refusal.
	Cases, Reasons map[string]string
	// Differences are by what differs, Proposals by kind, NameChecks and Releases those of a policy.
	Differences, Proposals, NameChecks, Releases map[string]string
	// Refusals are by code of the processor, Mends by field of a policy or of people.
	Refusals, Mends map[string]string
}

// actWords are those of a form.
type actWords struct{ Title, Text, Send string }

var texts = language.Table[*words]{money.French: &french, money.English: &english}

var french = words{ //nolint:gosec // texts, no credential
	Title:    "Lots de paiements",
	ListText: "Les lots que votre administration fait approuver et payer.",
	Filter:   "Filtrer", Show: "Afficher", Next: "Lots plus anciens", First: "Retour au début",
	None:   "Votre administration n’a encore aucun lot dans ce mode. Un lot apparaît ici dès que la personne qui le prépare importe ses lignes\u00a0; il attend ensuite les approbations.",
	NoneSo: "Aucun lot ne remplit ces conditions. Retirez une condition, ou vérifiez le mode.",
	Mode:   "Mode", Live: "Réel", Test: "Test", Status: "État", AnyStatus: "Tous les états", Holding: "Suspension", HeldOrNot: "Suspendus ou non", OnlyHeld: "Suspendus seulement",
	Opened: "Ouvert le", Ref: "Référence", Date: "Date de paiement", Count: "Lignes", Sum: "Montant total", Largest: "Ligne la plus élevée", Held: "Suspendu", Colon: "\u00a0: ", Unknown: "personne inconnue", Service: "le service",
	Revision: "révision %d", RevisionLabel: "Révision", Maker: "Préparé par", Waiver: "Noms non vérifiés, motif", SealedAt: "Scellé le", ApproveUntil: "À approuver avant le", PayUntil: "Dernier jour de paiement",
	Digest: "Empreinte", ID: "Identifiant", WhatIsSigned: "Ce qui est approuvé", NotSigned: "Ce que personne ne signe", Accounts: "Comptes de paiement", Account: "Compte", Totals: "Lignes par état",
	BatchTitle: "Lot %s, révision %d",
	Reason:     "Motif", ReasonHint: "De 1 à 140 caractères. Le motif reste dans l’historique du lot.", NoReason: "Indiquez le motif, en 140 caractères au plus.", HeldBy: "Suspendu par", Since: "Depuis le",
	Level: "Niveau %d\u00a0: %d approbation sur %d, rôle %s", Missing: "il en manque %d", StandsFor: "à la place de %s", HasApproved: "A approuvé le %s",
	HasNot: "N’a pas approuvé", CountsElsewhere: "Compte déjà par une autre approbation", Name: "Nom", State: "État",
	Timeline: "Historique", When: "Date", What: "Événement", By: "Par", Place: "Enregistrement", LinesChanged: "%s ligne(s).",
	OfERP: "Les lignes de ce lot viennent de l’ERP de votre administration.", ERPIsAsked: "Il sera interrogé de nouveau à la mise en paiement\u00a0: s’il n’a plus les mêmes lignes, le lot est suspendu.",
	ReleaseOfERP:     "L’ERP est interrogé d’abord. S’il a les mêmes lignes, leur paiement commence tout de suite\u00a0; sinon, le lot est suspendu.",
	DoneReleaseOfERP: "Votre signature est enregistrée. Le paiement commence quand l’ERP aura répondu qu’il a les mêmes lignes.",
	WaitsForERP:      "La mise en paiement attend la réponse de l’ERP de votre administration, interrogé le %s. Tant qu’il ne répond pas, il est interrogé de nouveau, et rien n’est payé.",
	Lines:            "Lignes", Number: "N°", LineRef: "Référence de la ligne", Payee: "Bénéficiaire", Amount: "Montant", LineCase: "Cas ouvert", NotOpened: "Contenu illisible ou effacé", NoLines: "Ce lot n’a pas encore de ligne.",
	LinesNotSeen: "Vos rôles ne donnent pas accès aux lignes des lots. Les personnes qui préparent et qui approuvent les voient.", NextLines: "Lignes suivantes", FirstLines: "Premières lignes",
	Corrects:     "Corrige %s.",
	Differs:      "Personne ne peut signer ce lot ici\u00a0: ce que la page affiche n’est pas ce qui a été scellé (%s). Suspendez le lot et prévenez l’exploitation.",
	DiffersShort: "Rien n’est signé\u00a0: les lignes du lot ne sont pas celles qui ont été scellées. Rechargez la page, suspendez le lot et prévenez l’exploitation.",
	NoAnswer:     "Le service n’a pas répondu à temps\u00a0: on ne sait pas si la demande a été prise en compte. Rechargez la page dans une minute\u00a0; si rien n’a changé, recommencez. Rien n’est fait deux fois.",
	RefusedBy:    "La demande est refusée (%s). Rechargez la page, puis prévenez l’exploitation si le refus se répète.",
	LiftWaits:    "Vous avez signé la reprise le %s. Elle attend la signature d’une autre personne de la liste.",
	LiftSecond:   "%s a signé la reprise le %s. Avec votre signature, le lot reprend.",

	Certificate: "Certificat d’approbation (PDF)", Advice: "Avis de versement (PDF)",
	NotApproved: "Il n’y a pas de certificat : ce lot n’est pas approuvé par toutes les personnes demandées, ou il a pris fin sans rien payer.",
	NotPaid:     "Il n’y a pas d’avis : cette ligne n’est pas payée, ou l’opérateur se contredit à son sujet.",
	NoPayee:     "Il n’y a pas d’avis : le contenu de cette ligne est effacé ou illisible.",
	NoPaper:     "Aucun document n’est établi : ce qui est enregistré ici n’est pas ce qui a été approuvé (%s). Suspendez le lot et prévenez l’exploitation.",

	LineTitle: "Ligne %d du lot %s", WhatWasApproved: "Ce qui a été approuvé", WhatBecame: "Ce que la ligne est devenue", PayeeAccount: "Compte ou numéro", Purpose: "Objet",
	CorrectsLabel: "Paie à la place de", CorrectedBy: "Payée par", Attempt: "Tentatives", PayoutRef: "Référence chez l’opérateur et sur le relevé", SentAt: "Envoyée le", RequestedAt: "Envoyée de nouveau le",
	EnquiredAt: "Opérateur interrogé le", EndedAt: "Décidée le", DoubtLabel: "Tentative contestée", OperatorCode: "Motif du refus", OperatorRef: "Numéro de l’opérateur",
	Evidence: "Preuve", EvidenceHint: "Ce qui prouve votre décision, en 140 caractères sans accent, comme «\u00a0releve MTN du 2 decembre, ligne 14\u00a0».", NoEvidence: "Preuve\u00a0: nommez ce qui prouve la décision, en 1 à 140 caractères sans accent.",
	SettleWaits:  "Vous avez signé cette décision le %s, d’après\u00a0: %s. Elle attend la signature d’une autre personne de la liste.",
	SettleSecond: "%s a signé cette décision le %s, d’après\u00a0: %s. Avec votre signature elle s’applique.",
	OnlyCases:    "Lignes qui demandent une décision", AllLines: "Toutes les lignes", NoCases: "Aucune ligne ne demande de décision.", WaitsForYou: "Lots de paiements\u00a0: à décider par vous", YouSigned: "Lots de paiements\u00a0: vos signatures en attente d’une seconde", CasesOf: "Lignes à décider\u00a0: %d", Reported: "Montant indiqué\u00a0: %s.",
	Statements: map[string]string{
		"paid": "Un relevé montre le versement.", "returned": "Un relevé montre le retour.", "no_debit": "Les relevés ne montrent pas le versement.",
		"no_proof": "Le relevé qui prouvait le refus a été retiré.", "no_return": "Le relevé qui montrait le retour a été retiré.",
	},

	PeopleTitle: "Signataires et règles", PeopleIntro: "Les personnes qui signent pour les lots de votre administration, et les règles d’approbation. Deux personnes signent chaque changement\u00a0; il s’applique 24 heures après.",
	Roster: "Signataires", RosterEmpty: "Aucun signataire n’est inscrit. Les deux premiers s’inscrivent ensemble\u00a0: l’un propose, l’autre voit la proposition et signe.", Roles: "Rôles", NoRoles: "aucun rôle", Delegation: "Délégation", Passkeys: "Clés d’accès", InForce: "En vigueur",
	Revoked: "Retiré le %s", CountsFrom: "Compte à partir du %s", StandsUntil: "à la place de %s jusqu’au %s", KeysCount: "%d en vigueur sur %d",
	PolicyNow: "Règles en vigueur", NoPolicy: "Aucune règle n’est en vigueur dans ce mode\u00a0: aucun lot ne peut être ouvert. Proposez des règles ci-dessous, quand deux signataires sont en vigueur.", PolicyNext: "Règles à partir du %s",
	Currency: "Devise", Version: "Version", NoLimit: "aucun", NoBound: "Sans limite", LineFrom: "Ligne qui demande le palier suivant, à partir de", DayLimit: "Plafond par jour", ApproveWithin: "Délai d’approbation", PayWithin: "Délai de paiement", NameCheck: "Vérification des noms",
	UpTo: "Jusqu’à %s", Tier: "Palier %d", TierUpTo: "Palier %d\u00a0: montant maximal", TierLevels: "Palier %d\u00a0: niveaux", Hours: "%d heures", Days: "%d jours après la date",
	Release: "Mise en paiement", CurrencyHint: "Code de trois lettres, comme XAF.", UpToHint: "Total du lot et de ce que votre administration a scellé le même jour. Laissez vide pour le dernier palier sans limite.",
	LevelsHint:   "Dans l’ordre, chaque niveau avec un rôle et un nombre de personnes\u00a0: «\u00a0chef 1, directeur 2\u00a0».",
	LineFromHint: "Un lot dont une ligne atteint ce montant demande le palier suivant. Laissez vide pour aucun.", DayLimitHint: "Le plus que votre administration scelle en un jour. Laissez vide pour aucun plafond.", ApproveHint: "En heures, de 1 à 720.",
	PayHint: "En jours après la date de paiement, de 0 à 60.", NameCheckHint: "Avant de sceller, les noms sont comparés à ceux de l’opérateur.", ReleaseHint: "Ce qui fait partir le paiement d’un lot approuvé.",
	ProposedBy: "%s a proposé et signé ce changement le %s. Il s’applique 24 heures après une seconde signature.", AnotherSigns: "Une autre personne doit signer.", ConfirmSend: "Signer ce changement", ProposeSend: "Proposer et signer", Drop: "Abandonner la proposition", NewPasskeys: "Clés d’accès ajoutées", Fingerprint: "Début de l’empreinte de la clé",
	NotAble:      "Seules les personnes inscrites comme signataires proposent des changements ici.",
	NotAbleFirst: "Pour inscrire les deux premiers signataires, il faut un matricule et deux clés d’accès valables depuis au moins 24 heures. La personne qui gère les comptes donne le matricule.",
	PeopleText:   "Inscrire une personne, ou changer ses rôles et sa délégation. Les clés d’accès de la personne qui signent déjà des décisions sont ajoutées. Les anciens rôles ne comptent plus dès la seconde signature\u00a0; les nouveaux comptent 24 heures après.",
	FirstText:    "Les deux premiers signataires sont vous et une autre personne. Elle voit cette proposition ici et la signe. Leurs clés comptent 24 heures après.",
	NobodyElse:   "Personne d’autre de votre administration n’a un matricule et deux clés d’accès valables depuis 24 heures.",
	PolicyText:   "Les règles de ce mode, en entier. Les lots déjà scellés et pas encore mis en paiement sont suspendus à leur mise en paiement, car leurs règles ont changé.",
	RolesHint:    "En minuscules sans accent, séparés par des virgules, comme «\u00a0chef, directeur\u00a0». Les règles nomment ces rôles. Laissez vide pour n’en donner aucun.", OwnRoles: "Vos rôles", SecondPerson: "Autre personne", Person: "Personne", PersonHint: "Elle a un matricule et deux clés d’accès valables depuis 24 heures.",
	For: "Délégation", ForHint: "La personne pour qui celle-ci approuve.", ForNobody: "Aucune", Until: "Fin de la délégation", UntilHint: "Date comme 2026-12-31\u00a0; seulement avec une délégation.",
	PersonFault: "Personne\u00a0: choisissez une personne de votre administration qui a un matricule et deux clés d’accès valables depuis 24 heures.",
	RolesFault:  "Rôles\u00a0: écrivez-les en minuscules sans accent ni espace, séparés par des virgules.", DelegationFault: "Délégation\u00a0: choisissez une autre personne inscrite, et une date de fin à venir comme 2026-12-31.",
	ProposePeople: "Proposer un changement de signataires", ProposePolicy: "Proposer des règles", RevokeTitle: "Retirer un signataire", RevokeText: "Le retrait est immédiat et définitif. Les lots que cette personne peut approuver, ou qu’elle a préparés, sont suspendus.", RevokeSend: "Retirer",

	Sign: map[string]actWords{
		"approve":        {"Approuver", "Votre clé d’accès signe l’empreinte affichée plus haut\u00a0: le lot avec toutes ses lignes. La page vient de les relire et de les additionner.", "Approuver avec une clé d’accès"},
		"reject":         {"Rejeter", "Le lot prend fin sans aucun paiement. Pour payer, il est préparé de nouveau.", "Rejeter avec une clé d’accès"},
		"release":        {"Mettre en paiement", "Le paiement des lignes commence tout de suite.", "Mettre en paiement avec une clé d’accès"},
		"settle_paid":    {"Le bénéficiaire a reçu l’argent", "La ligne est payée et ne le sera pas de nouveau. Deux personnes de la liste des signataires signent\u00a0; votre signature attendra la seconde pendant sept jours.", "Signer «\u00a0payée\u00a0» avec une clé d’accès"},
		"settle_refused": {"Aucun argent n’est parti", "Aucune tentative ne peut plus payer cette ligne\u00a0: une personne peut alors la faire payer de nouveau. Si l’opérateur paie malgré tout, le bénéficiaire reçoit deux fois. Deux personnes signent\u00a0; votre signature attendra la seconde pendant sept jours.", "Signer «\u00a0non payée\u00a0» avec une clé d’accès"},
		"resume":         {"Lever la suspension", "Deux personnes de la liste des signataires signent la reprise. Votre signature attendra la seconde pendant sept jours.", "Signer la reprise avec une clé d’accès"},
	},
	AccountPaused: "Le compte %s ne paie plus\u00a0: l’opérateur indique que la provision manque, ou refuse tout (code %s, depuis le %s). Une ligne est présentée toutes les 15 minutes.",
	AccountClosed: "Le compte %s est fermé\u00a0: l’opérateur refuse ses paramètres, par exemple un code PIN erroné ou des clés révoquées (code %s, depuis le %s). Aucune ligne n’est présentée tant qu’une personne ne le demande pas.",
	ClosedAccount: "Compte fermé\u00a0: %s",
	Acts: map[string]actWords{
		"try":    {"Essayer de nouveau le compte %s", "La prochaine ligne est présentée à l’opérateur. Faites d’abord rétablir le compte\u00a0: les opérateurs bloquent un compte après quelques codes PIN erronés.", "Essayer de nouveau"},
		"hold":   {"Suspendre", "Plus aucune ligne n’est envoyée jusqu’à ce que deux personnes lèvent la suspension. Les lignes déjà envoyées peuvent encore être payées.", "Suspendre"},
		"recall": {"Rappeler le lot", "Le lot prend fin sans aucun paiement. Vous pouvez l’importer de nouveau, corrigé.", "Rappeler"},
		"stop":   {"Arrêter pour de bon", "Les lignes qui ne sont pas encore envoyées sont annulées. Celles qui sont envoyées suivent leur cours.", "Arrêter"},

		"retry":       {"Payer de nouveau", "Il est établi qu’aucun argent n’est parti. Une nouvelle tentative, au même bénéficiaire et du même montant, est envoyée dès que le lot et son compte paient.", "Payer de nouveau"},
		"cancel":      {"Annuler la ligne", "La ligne n’est plus payée. Pour payer ce bénéficiaire, une ligne d’un autre lot corrige celle-ci.", "Annuler"},
		"acknowledge": {"Noter le cas", "Le cas est vu et n’apparaît plus parmi ceux qui demandent une décision. Il ne change rien à l’argent.", "Noter"},
	},
	FirstKinds: map[string]string{"resume": "Lever la suspension", "people": "Changement de signataires", "policy": "Règles", "settle": "Décision sur une ligne"},
	Cases: map[string]string{
		"payout_conflict":   "L’opérateur ou un relevé contredit ce qui était connu de cette ligne. Rien n’en est envoyé tant que deux personnes n’ont pas décidé, d’après une preuve\u00a0: un relevé, une lettre de l’opérateur, une confirmation du bénéficiaire.",
		"payout_undecided":  "Depuis 24 heures, l’opérateur ne dit pas si cette ligne est payée. Le service continue de l’interroger\u00a0; sa réponse met fin au cas. Sinon deux personnes décident, d’après une preuve.",
		"payout_unproven":   "L’opérateur a refusé cette ligne, mais son refus ne prouve pas qu’aucun argent n’est parti. Elle n’est pas payée de nouveau avant que deux personnes n’en décident, d’après une preuve.",
		"payout_changed":    "Le contenu de cette ligne n’est pas celui qui a été approuvé, ou son compte de paiement a été remplacé. La dernière demande n’a pas été envoyée, et le lot est suspendu. Si la ligne est encore «\u00a0envoyée\u00a0», une demande plus ancienne peut l’avoir payée. Cherchez-en la raison, puis notez le cas.",
		"payout_unopenable": "Le contenu de cette ligne est effacé ou illisible. Rien n’en a été envoyé\u00a0: elle est annulée. Notez le cas.",
		"payout_return":     "Une partie de l’argent de cette ligne est revenue. La ligne reste payée. Notez le cas quand vos comptes en tiennent compte.",
	},
	Reasons: map[string]string{"tried_often": "De nombreuses tentatives n’ont fait partir aucun argent, faute de fonds ou de réponse. Une personne décide si la ligne est payée de nouveau."},
	Statuses: map[string]string{
		"draft": "Brouillon", "sealed": "Scellé, attend les approbations", "approved": "Approuvé", "releasing": "En paiement", "done": "Terminé", "discarded": "Abandonné", "rejected": "Rejeté", "recalled": "Rappelé", "expired": "Expiré",
	},
	LineStatuses: map[string]string{"ready": "À payer", "sent": "Envoyée", "paid": "Payée", "refused": "Refusée", "cancelled": "Annulée", "returned": "Retournée"},
	Steps: map[string]string{
		"batch.opened": "Lot ouvert", "batch.sealed": "Lot scellé", "batch.approval": "Approbation", "batch.approved": "Lot approuvé", "batch.rejected": "Lot rejeté", "batch.recalled": "Lot rappelé",
		"batch.expired": "Lot expiré", "batch.discarded": "Lot abandonné", "batch.erp_asked": "Question à l’ERP", "batch.released": "Mise en paiement", "batch.held": "Suspension", "batch.resumed": "Suspension levée",
		"batch.stopped": "Lot arrêté", "batch.overdue": "Dernier jour de paiement passé", "batch.done": "Lot terminé", "lines.added": "Lignes ajoutées", "lines.sent": "Lignes envoyées", "lines.resent": "Lignes renvoyées, même tentative",
		"lines.enquired": "Lignes demandées à l’opérateur", "lines.cancelled": "Lignes annulées", "line.paid": "Ligne payée", "line.refused": "Ligne refusée", "line.unsent": "Ligne de nouveau à payer", "line.returned": "Ligne retournée",
		"line.partly_returned": "Retour d’une partie", "line.retried": "Nouvel essai", "line.proven": "Refus prouvé", "line.unproven": "Refus à prouver de nouveau", "line.return_withdrawn": "Retour annulé", "line.corrected": "Ligne corrigée", "line.settled": "Ligne décidée par deux personnes", "case.opened": "Cas ouvert", "case.acknowledged": "Cas noté",
		"account.paused": "Compte en pause", "account.open": "Le compte paie de nouveau", "account.reopened": "Le compte est essayé de nouveau",
	},
	Done: map[string]string{
		"import": "Le fichier est importé. Relisez le brouillon, puis scellez-le ou abandonnez-le.", "seal": "Le lot est scellé. Il attend les approbations.", "discard": "Le brouillon est abandonné.",
		"approve": "Votre approbation est enregistrée.", "reject": "Le lot est rejeté.", "release": "Le lot est mis en paiement.", "resume": "La suspension est levée.", "resume_first": "Votre signature est enregistrée. Une autre personne doit signer.",
		"try": "Le compte sera essayé avec la prochaine ligne.", "hold": "Le lot est suspendu.", "recall": "Le lot est rappelé.", "stop": "Le lot est arrêté.", "proposed": "Votre proposition est signée. Une autre personne doit la signer.", "changed": "Le changement est enregistré. Il s’applique dans 24 heures.", "dropped": "La proposition est abandonnée.", "settle_first": "Votre signature est enregistrée. Une autre personne doit signer.", "settle": "La décision est appliquée.", "retry": "La ligne est de nouveau à payer. Elle est envoyée dès que le lot et son compte paient.", "cancel": "La ligne est annulée.", "acknowledge": "Le cas est noté.", "revoked": "Le signataire est retiré.",
	},
	Differences: map[string]string{"digest": "l’empreinte", "root": "le contenu des lignes", "count": "le nombre de lignes", "sum": "les montants", "lines": "une ligne illisible", "approvals": "les approbations", "status": "l’état d’une ligne ou du lot"},
	Proposals:   map[string]string{"people": "Changement de signataires proposé", "policy": "Règles proposées"},
	NameChecks:  map[string]string{"off": "aucune", "new": "nouveaux bénéficiaires", "all": "tous les bénéficiaires"},
	Releases:    map[string]string{"manual": "par une personne, avec sa clé d’accès", "on_date": "à la date de paiement"},
	Refusals: map[string]string{
		"account.not_found": "Compte\u00a0: le lot ne l’a pas. Rechargez la page.", "account.not_closed": "Compte\u00a0: il n’est pas fermé, ses lignes sont présentées d’elles-mêmes.",
		"disbursement.malformed": "Motif\u00a0: indiquez un motif.", "batch.not_found": "Lot\u00a0: il n’existe pas dans votre administration et ce mode.",
		"batch.status": "Lot\u00a0: son état ne permet plus cette opération. Rechargez la page.", "batch.held": "Lot\u00a0: il est suspendu. La page en donne le motif\u00a0; deux personnes lèvent la suspension.",
		"batch.not_held": "Lot\u00a0: il n’est pas suspendu.", "registry.stale": "Configuration\u00a0: ce serveur n’a pas encore la dernière. Recommencez dans une minute.",
		"approval.level": "Niveau\u00a0: un autre niveau attend une approbation. Rechargez la page.", "approval.not_listed": "Personne\u00a0: seules les personnes inscrites quand le lot a été scellé signent.",
		"approval.maker": "Personne\u00a0: la personne qui a préparé le lot ne l’approuve pas et ne le met pas en paiement. Une autre doit signer.", "approval.twice": "Personne\u00a0: vous avez déjà approuvé ce lot, ou une autre personne l’a fait à votre place. Une autre doit signer.",
		"approval.not_in_force batch": "Lot\u00a0: la règle, ou une personne qui l’a approuvé, n’est plus en vigueur, ou son dernier jour de paiement est passé. Payez ce bénéficiaire par une ligne qui la corrige.",
		"approval.not_in_force":       "Personne\u00a0: il faut une personne en vigueur, avec une clé d’accès inscrite depuis 24 heures et avant le scellement du lot. Une autre doit signer.", "approval.not_signed": "Signature\u00a0: elle n’est pas celle de ce lot ou de ce changement. Rechargez la page et signez de nouveau.",
		"approval.needs_two": "Personne\u00a0: deux personnes différentes signent, avec deux clés différentes.", "batch.not_maker": "Personne\u00a0: seule la personne qui a préparé le lot le rappelle. Les autres le rejettent.",
		"batch.empty": "Lot\u00a0: il n’a pas de ligne. Abandonnez le brouillon et importez de nouveau.", "batch.other_content": "Lot\u00a0: ses lignes ne sont pas celles que la page a comptées. Abandonnez le brouillon et importez de nouveau.",
		"policy.missing": "Règles\u00a0: aucune n’est en vigueur dans ce mode. Deux signataires en proposent sur la page «\u00a0Signataires et règles\u00a0».", "batch.currency": "Devise\u00a0: ce n’est plus celle des règles. Abandonnez le brouillon.",
		"batch.names": "Noms\u00a0: les règles demandent de les vérifier. Écrivez pourquoi ils ne le sont pas.", "batch.date": "Date de paiement\u00a0: le dernier jour de paiement est passé. Abandonnez le brouillon et importez avec une autre date.",
		"policy.day_limit": "Montant\u00a0: le plafond du jour serait dépassé. Scellez un autre jour.", "policy.above_tiers": "Montant\u00a0: aucun palier des règles ne va si haut. Deux signataires en proposent un.",
		"policy.too_few": "Signataires\u00a0: trop peu de personnes en vigueur ont les rôles que les règles demandent. Inscrivez-en d’autres\u00a0; elles comptent 24 heures après.",
		"policy.fault":   "Règles", "roster.fault": "Signataires", "roster.not_found": "Personne\u00a0: choisissez une personne inscrite.",
		"roster.key_taken": "Clé d’accès\u00a0: elle est déjà celle d’une autre personne. Inscrivez-en une autre.", "roster.number_taken": "Matricule\u00a0: une autre personne en vigueur l’a déjà. Vérifiez le matricule.",
		"line.not_found": "Ligne\u00a0: ce lot ne l’a pas.", "line.status": "Ligne\u00a0: son état ne permet plus cette opération. Rechargez la page.", "line.unproven": "Ligne\u00a0: le refus n’est pas prouvé. Deux personnes décident d’abord.",
		"line.contested": "Ligne\u00a0: l’opérateur se contredit. Deux personnes décident d’abord.", "line.corrected": "Ligne\u00a0: une autre ligne la paie à sa place.", "line.no_case": "Ligne\u00a0: aucun cas n’attend cette décision. Rechargez la page.",
		"line.attempts": "Ligne\u00a0: elle a déjà été payée de nouveau deux fois. Payez ce bénéficiaire par une ligne qui la corrige.", "batch.over": "Lot\u00a0: il est arrêté, ou son dernier jour de paiement est passé. Payez ce bénéficiaire par une ligne qui corrige celle-ci.",
		"line.underway":  "Ligne\u00a0: une demande de paiement est en cours. Décidez quand l’opérateur y a répondu, ou dix minutes après son envoi.",
		"case.reference": "Preuve\u00a0: nommez ce qui prouve la décision, en 1 à 140 caractères sans accent.", "batch.ref_live": "Lot\u00a0: une révision plus récente est en cours. Attendez sa fin.", "batch.too_many_live": "Lot\u00a0: votre administration a trop de lots en cours. Terminez-en un.",
	},
	Mends: map[string]string{
		"currency": "Devise\u00a0: donnez un code comme XAF.", "tiers": "Paliers\u00a0: donnez de 1 à 10 paliers.", "up_to": "Montant maximal\u00a0: les montants croissent d’un palier au suivant, et seul le dernier peut être vide.",
		"levels": "Niveaux\u00a0: donnez de 1 à 5 niveaux, chacun avec un rôle en minuscules et de 1 à 5 personnes, comme «\u00a0chef 1, directeur 2\u00a0».", "line_from": "Ligne qui demande le palier suivant\u00a0: donnez un montant, ou laissez vide.",
		"day_limit": "Plafond par jour\u00a0: donnez un montant, ou laissez vide.", "approve_within": "Délai d’approbation\u00a0: donnez de 1 à 720 heures.", "pay_within_days": "Délai de paiement\u00a0: donnez de 0 à 60 jours.",
		"name_check": "Vérification des noms\u00a0: choisissez une valeur.", "release": "Mise en paiement\u00a0: choisissez une valeur.", "watchers": "Personnes prévenues\u00a0: au plus 20.",
		"people": "inscrivez de 1 à 20 personnes, les deux premières ensemble\u00a0; au plus 200 en vigueur.", "id": "donnez un matricule en caractères simples\u00a0; une personne retirée le reste, elle s’inscrit avec un nouveau compte.",
		"roles": "au plus 10 rôles et 10 clés d’accès par personne.", "for": "une personne ne se remplace pas elle-même.", "person": "il doit rester deux personnes avec une clé d’accès. Inscrivez-en une autre d’abord, et suspendez les lots en attendant.",
	},
}

var english = words{
	Title:    "Payment batches",
	ListText: "The batches that your administration has approved and paid.",
	Filter:   "Filter", Show: "Show", Next: "Older batches", First: "Back to the start",
	None:   "Your administration has no batch in this mode yet. A batch appears here as soon as the person who prepares it imports its lines; then it waits for approvals.",
	NoneSo: "No batch meets these conditions. Remove a condition, or check the mode.",
	Mode:   "Mode", Live: "Live", Test: "Test", Status: "Status", AnyStatus: "Any status", Holding: "Hold", HeldOrNot: "Held or not", OnlyHeld: "Held only",
	Opened: "Opened", Ref: "Reference", Date: "Payment date", Count: "Lines", Sum: "Total", Largest: "Largest line", Held: "Held", Colon: ": ", Unknown: "unknown person", Service: "the service",
	Revision: "revision %d", RevisionLabel: "Revision", Maker: "Prepared by", Waiver: "Names not checked because", SealedAt: "Sealed", ApproveUntil: "To be approved before", PayUntil: "Last day of payment",
	Digest: "Digest", ID: "Id", WhatIsSigned: "What is approved", NotSigned: "What nobody signs", Accounts: "Payout accounts", Account: "Account", Totals: "Lines by status",
	BatchTitle: "Batch %s, revision %d",
	Reason:     "Reason", ReasonHint: "1 to 140 characters. The reason stays in the history of the batch.", NoReason: "Give the reason, in at most 140 characters.", HeldBy: "Held by", Since: "Since",
	Level: "Level %d: %d of %d approvals, role %s", Missing: "%d missing", StandsFor: "in place of %s", HasApproved: "Approved %s",
	HasNot: "Has not approved", CountsElsewhere: "Counts already by another approval", Name: "Name", State: "State",
	Timeline: "History", When: "Time", What: "Event", By: "By", Place: "Record", LinesChanged: "%s line(s).",
	OfERP: "The lines of this batch come from your administration's ERP.", ERPIsAsked: "It is asked again at the release: if it has other lines then, the batch is held.",
	ReleaseOfERP:     "The ERP is asked first. If it has the same lines, their payment begins at once; otherwise the batch is held.",
	DoneReleaseOfERP: "Your signature is recorded. The payment begins when the ERP has answered that it has the same lines.",
	WaitsForERP:      "The release waits for the answer of your administration's ERP, asked on %s. While it does not answer it is asked again, and nothing is paid.",
	Lines:            "Lines", Number: "No.", LineRef: "Line reference", Payee: "Payee", Amount: "Amount", LineCase: "Open case", NotOpened: "Content unreadable or erased", NoLines: "This batch has no line yet.",
	LinesNotSeen: "Your roles do not show lines of batches. People who prepare and who approve see them.", NextLines: "Next lines", FirstLines: "First lines",
	Corrects:     "Corrects %s.",
	Differs:      "Nobody can sign this batch here: what the page shows is not what was sealed (%s). Hold the batch and tell the operators of the service.",
	DiffersShort: "Nothing is signed: the lines of the batch are not those that were sealed. Load the page again, hold the batch and tell the operators of the service.",
	NoAnswer:     "The service did not answer in time: it is not known whether the request was carried out. Load the page again in a minute; if nothing has changed, try again. Nothing is done twice.",
	RefusedBy:    "The request is refused (%s). Load the page again, and tell the operators of the service if it is refused again.",
	LiftWaits:    "You signed the end of the hold on %s. It waits for the signature of another person of the list.",
	LiftSecond:   "%s signed the end of the hold on %s. With your signature the batch goes on.",

	Certificate: "Approval certificate (PDF)", Advice: "Payment advice (PDF)",
	NotApproved: "There is no certificate: this batch is not approved by all people who have to, or it ended without paying anything.",
	NotPaid:     "There is no advice: this line is not paid, or the operator contradicts itself about it.",
	NoPayee:     "There is no advice: the content of this line is erased or unreadable.",
	NoPaper:     "No paper is made: what is recorded here is not what was approved (%s). Hold the batch and tell whoever runs the service.",

	LineTitle: "Line %d of batch %s", WhatWasApproved: "What was approved", WhatBecame: "What became of the line", PayeeAccount: "Account or number", Purpose: "Purpose",
	CorrectsLabel: "Pays in place of", CorrectedBy: "Paid by", Attempt: "Attempts", PayoutRef: "Reference at the operator and on the statement", SentAt: "Sent", RequestedAt: "Sent again",
	EnquiredAt: "Operator asked", EndedAt: "Decided", DoubtLabel: "Contested attempt", OperatorCode: "Reason of the refusal", OperatorRef: "Number of the operator",
	Evidence: "Evidence", EvidenceHint: "What proves your decision, in 140 characters without accents, such as \"MTN statement of 2 December, line 14\".", NoEvidence: "Evidence: name what proves the decision, in 1 to 140 characters without accents.",
	SettleWaits:  "You signed this decision on %s, by this evidence: %s. It waits for the signature of another person of the list.",
	SettleSecond: "%s signed this decision on %s, by this evidence: %s. With your signature it applies.",
	OnlyCases:    "Lines that need a decision", AllLines: "All lines", NoCases: "No line needs a decision.", WaitsForYou: "Payment batches: for you to decide", YouSigned: "Payment batches: your signatures that wait for a second one", CasesOf: "Lines to be decided: %d", Reported: "Amount told: %s.",
	Statements: map[string]string{
		"paid": "A statement has the payment.", "returned": "A statement has the return.", "no_debit": "The statements do not have the payment.",
		"no_proof": "The statement that had proven the refusal was withdrawn.", "no_return": "The statement that had the return was withdrawn.",
	},

	PeopleTitle: "Signatories and policy", PeopleIntro: "The people who sign for batches of your administration, and the policy of approval. Two people sign each change; it applies 24 hours later.",
	Roster: "Signatories", RosterEmpty: "Nobody is enrolled. The first two enrol together: one proposes, the other sees the proposal and signs.", Roles: "Roles", NoRoles: "no role", Delegation: "Delegation", Passkeys: "Passkeys", InForce: "In force",
	Revoked: "Revoked %s", CountsFrom: "Counts from %s", StandsUntil: "in place of %s until %s", KeysCount: "%d in force of %d",
	PolicyNow: "Policy in force", NoPolicy: "No policy is in force in this mode: no batch can be opened. Propose one below once two signatories are in force.", PolicyNext: "Policy from %s",
	Currency: "Currency", Version: "Version", NoLimit: "none", NoBound: "No bound", LineFrom: "Line that needs the next tier, from", DayLimit: "Limit of a day", ApproveWithin: "Time to approve", PayWithin: "Time to pay", NameCheck: "Check of names",
	UpTo: "Up to %s", Tier: "Tier %d", TierUpTo: "Tier %d: highest amount", TierLevels: "Tier %d: levels", Hours: "%d hours", Days: "%d days after the date",
	Release: "Release", CurrencyHint: "Code of three letters, such as XAF.", UpToHint: "Total of the batch and of what your administration sealed on the same day. Leave it empty for a last tier without a bound.",
	LevelsHint:   "In sequence, each level with a role and a number of people: \"chief 1, director 2\".",
	LineFromHint: "A batch with a line of this amount needs the next tier. Leave it empty for none.", DayLimitHint: "The most that your administration seals in a day. Leave it empty for no limit.", ApproveHint: "In hours, 1 to 720.",
	PayHint: "In days after the payment date, 0 to 60.", NameCheckHint: "Before sealing, names are compared with those of the operator.", ReleaseHint: "What begins the payment of an approved batch.",
	ProposedBy: "%s proposed and signed this change on %s. It applies 24 hours after a second signature.", AnotherSigns: "Another person must sign.", ConfirmSend: "Sign this change", ProposeSend: "Propose and sign", Drop: "Drop the proposal", NewPasskeys: "Passkeys added", Fingerprint: "Beginning of the key's fingerprint",
	NotAble:      "Only people who are enrolled as signatories propose changes here.",
	NotAbleFirst: "To enrol the first two signatories you need a staff number and two passkeys that have approved for at least 24 hours. Whoever manages the accounts gives the number.",
	PeopleText:   "Enrol a person, or change the person's roles and delegation. The person's passkeys that sign decisions already are added. Former roles end with the second signature; new ones count 24 hours later.",
	FirstText:    "The first two signatories are you and another person, who sees this proposal here and signs it. Their passkeys count 24 hours later.",
	NobodyElse:   "Nobody else of your administration has a staff number and two passkeys that have approved for 24 hours.",
	PolicyText:   "The whole policy of this mode. Batches that are sealed and not released yet are held at their release, because their policy has changed.",
	RolesHint:    "In small letters without accents, separated by commas, such as \"chief, director\". The policy names these roles. Leave it empty for none.", OwnRoles: "Your roles", SecondPerson: "Other person", Person: "Person", PersonHint: "With a staff number and two passkeys that have approved for 24 hours.",
	For: "Delegation", ForHint: "The person for whom this one approves.", ForNobody: "None", Until: "End of the delegation", UntilHint: "A date such as 2026-12-31; only with a delegation.",
	PersonFault: "Person: choose a person of your administration with a staff number and two passkeys that have approved for 24 hours.",
	RolesFault:  "Roles: write them in small letters without accents or spaces, separated by commas.", DelegationFault: "Delegation: choose another enrolled person, and an end to come such as 2026-12-31.",
	ProposePeople: "Propose a change of signatories", ProposePolicy: "Propose a policy", RevokeTitle: "Revoke a signatory", RevokeText: "This works at once and for ever. Batches that the person may approve, or has prepared, are held.", RevokeSend: "Revoke",

	Sign: map[string]actWords{
		"approve":        {"Approve", "Your passkey signs the digest above: the batch with all its lines. The page has just read and added them up again.", "Approve with a passkey"},
		"reject":         {"Reject", "The batch ends and pays nothing. To be paid it is prepared again.", "Reject with a passkey"},
		"release":        {"Release", "The payment of the lines begins at once.", "Release with a passkey"},
		"settle_paid":    {"The payee has the money", "The line is paid and is not paid again. Two people of the list of signatories sign; your signature will wait for the second one for seven days.", "Sign \"paid\" with a passkey"},
		"settle_refused": {"No money has moved", "No attempt can pay this line any more: a person may then have it paid again. If the operator pays after all, the payee gets the money twice. Two people sign; your signature will wait for the second one for seven days.", "Sign \"not paid\" with a passkey"},
		"resume":         {"Lift the hold", "Two people of the list of signatories sign. Your signature will wait for the second one for seven days.", "Sign the end of the hold with a passkey"},
	},
	AccountPaused: "The account %s pays nothing: the operator says that funds are missing, or refuses everything (code %s, since %s). One line is tried every 15 minutes.",
	AccountClosed: "The account %s is closed: the operator refuses its settings, such as a wrong PIN or revoked keys (code %s, since %s). No line is tried until a person asks for it.",
	ClosedAccount: "Closed account: %s",
	Acts: map[string]actWords{
		"try":    {"Try the account %s again", "The next line is sent to the operator. Have the account mended first: operators lock an account after a few wrong PINs.", "Try again"},
		"hold":   {"Hold", "No further line is sent until two people lift the hold. Lines that are sent already may still be paid.", "Hold"},
		"recall": {"Recall the batch", "The batch ends and pays nothing. You can import it again, corrected.", "Recall"},
		"stop":   {"Stop for good", "Lines that are not sent yet are cancelled. Those that are sent take their course.", "Stop"},

		"retry":       {"Pay again", "It is established that no money has moved. A new attempt, to the same payee and of the same amount, is sent as soon as the batch and its account pay.", "Pay again"},
		"cancel":      {"Cancel the line", "The line is not paid any more. To pay this payee, a line of another batch corrects this one.", "Cancel"},
		"acknowledge": {"Note the case", "The case is seen, and is no longer among those that need a decision. It changes nothing about the money.", "Note"},
	},
	FirstKinds: map[string]string{"resume": "Lift the hold", "people": "Change of signatories", "policy": "Policy", "settle": "Decision about a line"},
	Cases: map[string]string{
		"payout_conflict":   "The operator or a statement contradicts what was known of this line. Nothing of it is sent until two people have decided, by evidence: a statement, a letter of the operator, a confirmation of the payee.",
		"payout_undecided":  "For 24 hours the operator has not said whether this line is paid. The service goes on asking; its answer ends the case. Otherwise two people decide, by evidence.",
		"payout_unproven":   "The operator refused this line, but its refusal does not prove that no money has moved. The line is not paid again until two people decide so, by evidence.",
		"payout_changed":    "The content of this line is not the one that was approved, or its payout account was replaced. The last request was not sent, and the batch is held. If the line is still \"sent\", an earlier request may have paid it. Find out why, then note the case.",
		"payout_unopenable": "The content of this line is erased or unreadable. Nothing of it was sent: it is cancelled. Note the case.",
		"payout_return":     "A part of the money of this line came back. The line stays paid. Note the case when your accounts have it.",
	},
	Reasons: map[string]string{"tried_often": "Many attempts moved no money, for want of funds or of an answer. A person decides whether the line is paid again."},
	Statuses: map[string]string{
		"draft": "Draft", "sealed": "Sealed, waits for approvals", "approved": "Approved", "releasing": "Paying", "done": "Done", "discarded": "Discarded", "rejected": "Rejected", "recalled": "Recalled", "expired": "Expired",
	},
	LineStatuses: map[string]string{"ready": "To be paid", "sent": "Sent", "paid": "Paid", "refused": "Refused", "cancelled": "Cancelled", "returned": "Returned"},
	Steps: map[string]string{
		"batch.opened": "Batch opened", "batch.sealed": "Batch sealed", "batch.approval": "Approval", "batch.approved": "Batch approved", "batch.rejected": "Batch rejected", "batch.recalled": "Batch recalled",
		"batch.expired": "Batch expired", "batch.discarded": "Batch discarded", "batch.erp_asked": "Question to the ERP", "batch.released": "Released", "batch.held": "Held", "batch.resumed": "Hold lifted",
		"batch.stopped": "Batch stopped", "batch.overdue": "Last day of payment over", "batch.done": "Batch done", "lines.added": "Lines added", "lines.sent": "Lines sent", "lines.resent": "Lines sent again, same attempt",
		"lines.enquired": "Operator asked about lines", "lines.cancelled": "Lines cancelled", "line.paid": "Line paid", "line.refused": "Line refused", "line.unsent": "Line to be paid again", "line.returned": "Line returned",
		"line.partly_returned": "A part returned", "line.retried": "New try", "line.proven": "Refusal proven", "line.unproven": "Refusal to be proven again", "line.return_withdrawn": "Return taken back", "line.corrected": "Line corrected", "line.settled": "Line decided by two people", "case.opened": "Case opened", "case.acknowledged": "Case noted",
		"account.paused": "Account paused", "account.open": "The account pays again", "account.reopened": "The account is tried again",
	},
	Done: map[string]string{
		"import": "The file is imported. Look at the draft, then seal or discard it.", "seal": "The batch is sealed. It waits for approvals.", "discard": "The draft is discarded.",
		"approve": "Your approval is recorded.", "reject": "The batch is rejected.", "release": "The batch is released.", "resume": "The hold is lifted.", "resume_first": "Your signature is recorded. Another person must sign.",
		"try": "The account is tried with the next line.", "hold": "The batch is held.", "recall": "The batch is recalled.", "stop": "The batch is stopped.", "proposed": "Your proposal is signed. Another person must sign it.", "changed": "The change is recorded. It applies in 24 hours.", "dropped": "The proposal is dropped.", "settle_first": "Your signature is recorded. Another person must sign.", "settle": "The decision applies.", "retry": "The line is to be paid again. It is sent as soon as the batch and its account pay.", "cancel": "The line is cancelled.", "acknowledge": "The case is noted.", "revoked": "The signatory is revoked.",
	},
	Differences: map[string]string{"digest": "the digest", "root": "the content of the lines", "count": "the number of lines", "sum": "the amounts", "lines": "an unreadable line", "approvals": "the approvals", "status": "the status of a line or of the batch"},
	Proposals:   map[string]string{"people": "Proposed change of signatories", "policy": "Proposed policy"},
	NameChecks:  map[string]string{"off": "none", "new": "new payees", "all": "all payees"},
	Releases:    map[string]string{"manual": "by a person, with a passkey", "on_date": "on the payment date"},
	Refusals: map[string]string{
		"account.not_found": "Account: the batch has none such. Load the page again.", "account.not_closed": "Account: it is not closed, and tries its lines by itself.",
		"disbursement.malformed": "Reason: give a reason.", "batch.not_found": "Batch: your administration has none such in this mode.",
		"batch.status": "Batch: its status does not allow this any more. Load the page again.", "batch.held": "Batch: it is held. The page has the reason; two people lift the hold.",
		"batch.not_held": "Batch: it is not held.", "registry.stale": "Configuration: this server lacks the newest. Try again in a minute.",
		"approval.level": "Level: another level waits for an approval. Load the page again.", "approval.not_listed": "Person: only people who were listed when the batch was sealed sign.",
		"approval.maker": "Person: who prepared the batch neither approves nor releases it. Another person must sign.", "approval.twice": "Person: you have approved this batch, or another person has in your place. Another person must sign.",
		"approval.not_in_force batch": "Batch: the policy, or a person who approved it, is not in force any more, or its last day of payment is over. Pay this payee by a line that corrects it.",
		"approval.not_in_force":       "Person: a person in force must sign, with a passkey enrolled for 24 hours and before the batch was sealed. Another person must sign.", "approval.not_signed": "Signature: it is not of this batch or this change. Load the page again and sign again.",
		"approval.needs_two": "Person: two different people sign, with two different passkeys.", "batch.not_maker": "Person: only who prepared the batch recalls it. Others reject it.",
		"batch.empty": "Batch: it has no lines. Discard the draft and import again.", "batch.other_content": "Batch: its lines are not those that the page counted. Discard the draft and import again.",
		"policy.missing": "Policy: none is in force in this mode. Two signatories propose one on the page \"Signatories and policy\".", "batch.currency": "Currency: it is not that of the policy any more. Discard the draft.",
		"batch.names": "Names: the policy asks for a check. Write why they are not checked.", "batch.date": "Payment date: the last day of payment is over. Discard the draft and import with another date.",
		"policy.day_limit": "Amount: the limit of the day would be exceeded. Seal it on another day.", "policy.above_tiers": "Amount: no tier of the policy reaches so far. Two signatories propose one.",
		"policy.too_few": "Signatories: too few people in force have the roles that the policy asks for. Enrol others; they count 24 hours later.",
		"policy.fault":   "Policy", "roster.fault": "Signatories", "roster.not_found": "Person: choose an enrolled person.",
		"roster.key_taken": "Passkey: it is another person's already. Enrol another one.", "roster.number_taken": "Staff number: another person in force has it. Check the number.",
		"line.not_found": "Line: this batch has none such.", "line.status": "Line: its status does not allow this any more. Load the page again.", "line.unproven": "Line: the refusal is not proven. Two people decide first.",
		"line.contested": "Line: the operator contradicts itself. Two people decide first.", "line.corrected": "Line: another line pays in its place.", "line.no_case": "Line: no case waits for this decision. Load the page again.",
		"line.attempts": "Line: it was paid again twice already. Pay this payee by a line that corrects it.", "batch.over": "Batch: it is stopped, or its last day of payment is over. Pay this payee by a line that corrects this one.",
		"line.underway":  "Line: a request to pay is under way. Decide when the operator has answered it, or ten minutes after it was sent.",
		"case.reference": "Evidence: name what proves the decision, in 1 to 140 characters without accents.", "batch.ref_live": "Batch: a newer revision is live. Wait for its end.", "batch.too_many_live": "Batch: your administration has too many live batches. Finish one.",
	},
	Mends: map[string]string{
		"currency": "Currency: give a code such as XAF.", "tiers": "Tiers: give 1 to 10 tiers.", "up_to": "Highest amount: amounts grow from tier to tier, and only the last may be empty.",
		"levels": "Levels: give 1 to 5 levels, each with a role in small letters and 1 to 5 people, such as \"chief 1, director 2\".", "line_from": "Line that needs the next tier: give an amount, or leave it empty.",
		"day_limit": "Limit of a day: give an amount, or leave it empty.", "approve_within": "Time to approve: give 1 to 720 hours.", "pay_within_days": "Time to pay: give 0 to 60 days.",
		"name_check": "Check of names: choose a value.", "release": "Release: choose a value.", "watchers": "People who are told: at most 20.",
		"people": "enrol 1 to 20 people, the first two together; at most 200 in force.", "id": "give a staff number in plain characters; a revoked person stays so and enrols with a new account.",
		"roles": "at most 10 roles and 10 passkeys a person.", "for": "a person does not stand for the same person.", "person": "two people with a passkey must stay. Enrol another one first, and hold the batches until then.",
	},
}
