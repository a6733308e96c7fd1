package operations

import (
	"quittance/money"
	"quittance/money/language"
)

// words are the texts of the pages in one language. A field's comment says what the verbs of package fmt in its text
// stand for.
type words struct {
	Live, Test, BothModes, Open, AllAgencies string
	ClosedAs                                 string // resolution
	Filter, Show, Next, First, AllOfTrail    string
	Found                                    string // number
	ManyFound                                string // number
	TooManyForFile                           string // number
	Work                                     workWords
	Search                                   searchWords
	Payments                                 paymentsWords
	Payment                                  paymentWords
	Missing                                  missingWords
	Cases                                    casesWords
	Case                                     caseWords
	Imports                                  importWords
	Endpoints                                endpointsWords
	Deliveries                               deliveriesWords
	Jobs                                     jobsWords
	Stuck                                    stuckWords

	Statuses, Verdicts, Offers, Kinds, Resolutions, CaseStates, ProposalStates map[string]string
	DeliveryStates, DeliveryKinds, Confirmations, Steps, Parts, Evidence       map[string]string
	Deferrals                                                                  map[string]string // by deliveries.Reasons
	Refusals                                                                   map[string]string // by cases.Refusals
}

// workWords are those of /work.
type workWords struct {
	Title, Decide, NothingToDecide, Proposed, NothingProposed, Since, What, Agency, Mode string
}

// searchWords are those of the search.
type searchWords struct {
	Title, How, None, Mistyped, Contact string
}

// paymentsWords are those of the list of payments.
type paymentsWords struct {
	Title, Made, Order, Agency, Amount, Status, Reference, None, NoneSo string
	AnyStatus, AnyOffer, Day, Offer, Service, From, To, Text, Mode      string
	DayHint, AmountHint, TextHint                                       string
	DayMalformed, AmountMalformed, StatusUnknown                        string
	Looked                                                              string // date and time
	Continue                                                            string
}

// paymentWords are those of the record of a payment.
type paymentWords struct {
	Title                                                                                 string // order
	PaidAt, ReturnedAt, UndecidedSince                                                    string // date and time
	Order, Agency, Application, Mode, Amount, Status, Service, Subject, Reference         string
	Notice, Transaction, Made, Expires, Ended, Failure, Offer, Payer, Clerk, Total        string
	WithFee                                                                               string // total, fee
	Collection, OperatorRef, Asked, Dues, DueRef, ERP                                     string
	Deliveries, NoDeliveries, NoCases                                                     string
	DeliveryTo                                                                            string // kind, destination
	Event, Occurred, Calls, LastAnswer, LastCall, NextCall, ID, Retry, Retried            string
	Timeline, NoTimeline, At, Step, Outcome, Source, Commands, CommandsHint, MissingTitle string
}

// missingWords are those of what a page lacks.
type missingWords struct {
	Unread  string // part
	Later   string // part, date and time
	Beyond  string // part, number
	Behind  string // part, number, number
	Expired string // part, days
}

// casesWords are those of the list of cases.
type casesWords struct {
	Title, Opened, Kind, Agency, Amount, State, Reference, AnyKind, AnyState, None, NoneSo string
}

// caseWords are those of the record of a case.
type caseWords struct {
	Title                                                                                                                                           string // kind
	Difference, NotCarriedOut                                                                                                                       string
	Findings                                                                                                                                        map[string]string // kinds of breaks, and rules of the matcher
	State, Amount, Owed, Agency, Mode, Payment, Collection, OperatorRef, OpenedBecause                                                              string
	OpenedBy, Clerks, Opened, Closed, ClosedBy, ApprovedBy, Evidence, Refusal, ID                                                                   string
	ERPWaits, Record, EvidenceTitle, RowsText, Proposals, NoProposals                                                                               string
	Proposal                                                                                                                                        string // number, resolution
	Proposer, ProposedAt, Reason, Decider, DecidedAt, Decision                                                                                      string
	WaitsFor, WaitsForCarrier                                                                                                                       string
	Propose, ProposeText, ProposeNoScript, Choose, ResolutionHint, ReferenceHint, ReasonHint, Send                                                  string
	Reject, RejectHint, RejectSend, Proposed, Rejected, Approve, ApproveText, ApproveNoScript, ApproveSend, ApproveFailed, ApproveWithout, Approved string
	Reasons                                                                                                                                         map[string]string // why cases were opened
}

// endpointsWords are those of destinations.
type endpointsWords struct {
	Title, Name, Owner, Address, State, Waiting, Oldest, Kind, Events, Modes, HoldUntil, ID, None string
	One                                                                                           string // name
	Well                                                                                          string
	Removed, Refusing, Failing, HeldText                                                          string // date and time
	Suspended                                                                                     string // date and time, reason
	AndNeeds                                                                                      string // number
	RetryAll                                                                                      string // number, state
	Resume, Suspend, Newest, NoDeliveries, Occurred, Event, Calls, LastAnswer, Actions            string
	Reasons, Done                                                                                 map[string]string
}

// stuckWords are those of what nobody gets on with.
type stuckWords struct {
	Title, Intro, Undecided, NothingUndecided, Parked, NothingParked, ApprovedTitle, NothingApproved string
	Approved                                                                                         string // number, date and time
}

var texts = language.Table[*words]{money.French: &french, money.English: &english}

var french = words{
	Imports: frenchImports, Deliveries: frenchDeliveries, Jobs: frenchJobs,
	Live: "Réel", Test: "Test", BothModes: "Réel et test", Open: "Ouvert", ClosedAs: "Clos\u00a0: %s", AllAgencies: "Toutes les administrations", Filter: "Filtrer",
	Show: "Afficher", AllOfTrail: "Toutes les opérations", Next: "Page suivante", First: "Première page", Found: "Résultats\u00a0: %d.", ManyFound: "Plus de %d résultats.",
	TooManyForFile: "La liste a plus de %d lignes, ou sa lecture dure trop longtemps\u00a0: il n’y a pas de fichier. Ajoutez une condition, par exemple un jour.",
	Work: workWords{
		Title: "À traiter", Decide: "En attente de votre décision",
		NothingToDecide: "Rien n’attend votre décision. Les propositions de vos collègues que vous pouvez approuver s’affichent ici.",
		Proposed:        "Vos propositions en attente",
		NothingProposed: "Vous n’avez aucune proposition en attente. Une proposition s’affiche ici jusqu’à ce qu’une autre personne décide.",
		Since:           "Depuis", What: "Objet", Agency: "Administration", Mode: "Mode",
	},
	Search: searchWords{
		Title:    "Recherche",
		How:      "Saisissez dans le champ de recherche un numéro de dossier, une référence de paiement (16 chiffres), une référence d’opérateur, ou l’identifiant d’un cas ou d’un envoi.",
		None:     "Rien ne correspond. Les numéros de dossier sont comparés tels quels, y compris les majuscules. Un paiement tout récent apparaît après quelques secondes.",
		Mistyped: "Rien ne correspond. Ces 16 chiffres ne forment pas une référence de paiement\u00a0: un chiffre est sans doute mal saisi.",
		Contact:  "Un numéro de téléphone ou un courriel ne se recherche pas ici. Utilisez le numéro de dossier ou la référence de paiement.",
	},
	Payments: paymentsWords{
		Title: "Paiements", Made: "Créé le", Order: "Dossier", Agency: "Administration", Amount: "Montant", Status: "État",
		Reference: "Référence de paiement", None: "Aucun paiement. Le premier s’affiche dès qu’une administration en crée un.",
		NoneSo: "Aucun paiement ne remplit ces conditions. Retirez une condition, ou vérifiez le mode.", AnyStatus: "Tous les états",
		AnyOffer: "Tous les moyens", Day: "Jour", Offer: "Moyen de paiement", Service: "Code du service", From: "Montant minimal", To: "Montant maximal",
		Text: "Texte", Mode: "Mode", DayHint: "Jour de création, à Brazzaville.", AmountHint: "En francs CFA, sans les frais.",
		TextHint: "Une partie du dossier, de l’objet ou de la référence d’opérateur.", DayMalformed: "Le jour s’écrit AAAA-MM-JJ, par exemple 2026-11-29.",
		AmountMalformed: "Le montant s’écrit en chiffres, par exemple 5 000.", StatusUnknown: "Choisissez un état de la liste.",
		Looked: "Examiné jusqu’au %s.", Continue: "Continuer la recherche",
	},
	Payment: paymentWords{
		Title: "Dossier %s", PaidAt: "Payé le %s", ReturnedAt: "Restitué le %s", UndecidedSince: "Sans réponse définitive de l’opérateur depuis le %s",
		Order: "Dossier", Agency: "Administration", Application: "Application", Mode: "Mode", Amount: "Montant dû", Status: "État", Service: "Service",
		Subject: "Objet", Reference: "Référence de paiement", Notice: "Avis", Transaction: "Transaction", Made: "Créé le", Expires: "Expire le",
		Ended: "Terminé le", Failure: "Motif de l’échec", Offer: "Moyen de paiement", Payer: "Payeur", Clerk: "Guichet", Total: "Total",
		WithFee: "%s, dont %s de frais", Collection: "Encaissement", OperatorRef: "Référence d’opérateur", Asked: "Opérateur interrogé le",
		Dues: "Créances réglées", DueRef: "Référence de la créance", ERP: "ERP", Deliveries: "Envois",
		NoDeliveries: "Aucun envoi des 60 derniers jours. Un envoi s’affiche après sa première tentative.",
		NoCases:      "Aucun cas. Un cas s’ouvre quand une somme ne correspond à aucun paiement ouvert.", DeliveryTo: "%s vers %s", Event: "Événement",
		Occurred: "Date de l’événement", Calls: "Appels", LastAnswer: "Dernière réponse", LastCall: "Dernier appel", NextCall: "Prochain appel",
		ID: "Identifiant", Retry: "Envoyer de nouveau", Retried: "L’envoi part de nouveau dans un instant.", Timeline: "Déroulement",
		NoTimeline: "Aucune étape n’est lisible.", At: "Date", Step: "Étape", Outcome: "Résultat", Source: "Topic · partition · offset",
		Commands: "Lire aussi les commandes", CommandsHint: "La lecture dans Kafka prend jusqu’à 5 secondes.", MissingTitle: "Ce qui manque",
	},
	Missing: missingWords{
		Unread: "Non lu\u00a0: %s. La source ne répond pas\u00a0; rechargez la page dans un instant.", Later: "%s\u00a0: lu jusqu’au %s seulement.",
		Beyond: "%s\u00a0: seuls les %d premiers éléments sont lus.", Behind: "%s\u00a0: %d événements sur %d. Les autres arrivent en quelques secondes.",
		Expired: "%s\u00a0: conservées %d jours, et le paiement est plus ancien.",
	},
	Cases: casesWords{
		Title: "Cas", Opened: "Ouvert le", Kind: "Nature", Agency: "Administration", Amount: "Montant", State: "État", Reference: "Référence",
		AnyKind: "Toutes les natures", AnyState: "Ouverts et clos",
		None:   "Aucun cas. Un cas s’ouvre quand une somme, une confirmation ou un relevé demande une décision.",
		NoneSo: "Aucun cas ne remplit ces conditions. Retirez une condition.",
	},
	Case: caseWords{
		ERPWaits: "Confirmations en attente chez cet ERP",
		Reasons: map[string]string{ //nolint:gosec // texts, no credential
			"credentials_refused":                        "L’ERP refuse nos identifiants. Toutes ses confirmations attendent, et ce cas se clôt dès qu’il en accepte une. L’administration doit nous transmettre ses nouveaux identifiants.",
			"not accepted in 24 h":                       "L’ERP n’a pas accepté la confirmation en 24 heures.",
			"the bank has reversed the transfer":         "La banque a annulé le virement.",
			"no statement has the transfer any more":     "Le relevé a été retiré et aucun autre ne contient le virement.",
			"not the total to pay":                       "Le virement n’a pas le montant exact à payer.",
			"not the currency of the payment":            "Le virement n’est pas dans la monnaie du paiement.",
			"the payment offers no bank transfer":        "Le paiement ne propose pas le virement bancaire.",
			"another payment has paid, or may still pay": "Un autre paiement a réglé la demande, ou peut encore la régler.",
		},
		Difference: "Écart (trouvé moins attendu)", NotCarriedOut: "Une décision approuvée n’a pas pu être appliquée.",
		Findings: map[string]string{
			"unmatched_line": "Ligne sans somme attendue", "missing_line": "Somme attendue sans ligne", "amount": "Montant différent", "fee": "Frais", "duplicate_line": "Ligne en double", "reversed_line": "Ligne annulée ou reprise",
			"operator_ref": "Référence d’opérateur", "own_ref": "Référence de paiement ou d’avis", "batch": "Virement groupé", "amount_day": "Montant et jour", "cut_off_window": "Période de l’opérateur", "none": "Aucune", "hand": "Rapprochement manuel",
		},
		Title: "Cas\u00a0: %s", State: "État", Amount: "Montant", Owed: "Montant dû", Agency: "Administration", Mode: "Mode", Payment: "Paiement",
		Collection: "Encaissement", OperatorRef: "Référence d’opérateur", OpenedBecause: "Motif d’ouverture", OpenedBy: "Ouvert par", Clerks: "Guichets",
		Opened: "Ouvert le", Closed: "Clos le", ClosedBy: "Proposé par", ApprovedBy: "Approuvé par", Evidence: "Pièce", Refusal: "Motif du refus",
		ID: "Identifiant", Record: "Enregistrement Kafka", EvidenceTitle: "Éléments connus", RowsText: "Le montant de chacune de ces lignes et sa place dans son fichier\u00a0:", Proposals: "Propositions",
		NoProposals: "Aucune proposition. Une personne propose une issue, une autre l’approuve.", Proposal: "Proposition %d\u00a0: %s",
		Proposer: "Proposée par", ProposedAt: "Proposée le", Reason: "Motif", Decider: "Décidée par", DecidedAt: "Décidée le",
		Decision: "Motif de la décision", WaitsFor: "La proposition attend la décision d’une autre personne.",
		WaitsForCarrier: "La proposition est approuvée. Le service l’exécute ou la refuse\u00a0; le résultat s’affiche ici.", Propose: "Proposer une issue",
		ProposeText:     "Votre clé d’accès signe le cas, ses éléments et ce que vous proposez.",
		ProposeNoScript: "Proposer demande une clé d’accès, que seul JavaScript peut lire. Autorisez JavaScript pour ce site, puis rechargez la page.",
		Choose:          "Choisissez", ResolutionHint: "Ce que devient la somme, ou ce qui est fait.",
		ReferenceHint: "Référence et date de la restitution, lettre de l’opérateur, ou référence de l’ERP. Facultative pour certaines issues.",
		ReasonHint:    "Sans nom ni numéro de téléphone. Le motif est conservé.", Send: "Proposer avec une clé d’accès", Reject: "Rejeter ou retirer la proposition",
		RejectHint: "Le motif est conservé. La personne qui a proposé retire ainsi sa proposition.", RejectSend: "Rejeter",
		Proposed: "La proposition est enregistrée. Une autre personne décide.", Rejected: "La proposition est rejetée.", Approve: "Approuver la proposition",
		ApproveText: "Votre clé d’accès signe ce que cette page affiche\u00a0: le cas, ses éléments et la proposition.", ApproveSend: "Approuver avec une clé d’accès",
		ApproveNoScript: "Approuver demande une clé d’accès, que seul JavaScript peut lire.", ApproveFailed: "L’approbation n’a pas abouti, et rien n’a été enregistré. Recommencez, et choisissez votre clé d’accès.",
		ApproveWithout: "Ce navigateur ne sait pas utiliser les clés d’accès, ou cette page n’est pas ouverte à l’adresse du service.", Approved: "La proposition est approuvée. Le service l’exécute ou la refuse dans un instant.",
	},
	Endpoints: endpointsWords{
		Title: "Destinations", Name: "Nom", Owner: "Propriétaire", Address: "Adresse", State: "État", Waiting: "En attente", Oldest: "Le plus ancien",
		Kind: "Nature", Events: "Événements", Modes: "Modes", HoldUntil: "Envois retenus jusqu’au",
		HeldText: "%s. Aucun appel n’a lieu avant. Ensuite, un seul envoi est tenté\u00a0; dès qu’il est accepté, les envois retenus suivent.", ID: "Identifiant",
		None: "Aucune destination. Une destination apparaît quand une administration enregistre une adresse d’envoi ou un ERP.", One: "Destination %s",
		Well: "Répond", Removed: "Supprimée le %s", Refusing: "Refuse nos identifiants depuis le %s", Failing: "En échec depuis le %s",
		Suspended: "Suspendue depuis le %s (%s)", AndNeeds: ", et %d à reprendre", RetryAll: "Envoyer de nouveau (%d, %s)", Resume: "Rétablir",
		Suspend: "Suspendre", Newest: "Derniers envois", NoDeliveries: "Aucun envoi des 60 derniers jours.", Occurred: "Date de l’événement",
		Event: "Événement", Calls: "Appels", LastAnswer: "Dernière réponse", Actions: "Actions",
		Reasons: map[string]string{"gone": "elle a répondu 410", "failing": "sans succès depuis cinq jours", "operator": "par un agent", "removed": "retirée du registre"},
		Done:    map[string]string{"suspended": "La destination est suspendue.", "resumed": "La destination est rétablie\u00a0: ce qui attend part dans un instant."},
	},
	Stuck: stuckWords{
		Title: "En souffrance", Intro: "Ce qui n’avance plus sans une personne.", Undecided: "Paiements sans réponse définitive de l’opérateur depuis plus de 24 heures",
		NothingUndecided: "Aucun paiement n’est sans réponse définitive depuis plus de 24 heures.", Parked: "Envois à reprendre",
		NothingParked: "Aucun envoi n’attend une personne.", ApprovedTitle: "Décisions approuvées et non exécutées",
		NothingApproved: "Toutes les décisions approuvées sont exécutées.", Approved: "%d en attente, la plus ancienne depuis le %s.",
	},
	Statuses: map[string]string{
		"open": "Ouvert", "completed": "Payé", "expired": "Expiré", "cancelled": "Annulé", "failed": "Échoué",
	},
	Verdicts: map[string]string{
		"paid": "Payé", "returned": "Restitué", "under_review": "Une somme reçue attend une décision", "undecided": "Sans réponse définitive de l’opérateur",
		"in_progress": "Paiement en cours", "open": "Pas encore de tentative de paiement", "not_paid": "Non payé",
	},
	Offers: map[string]string{
		"momo": "Mobile money (1)", "momo_b": "Mobile money (2)", "card": "Carte bancaire", "cash_agency": "Espèces au guichet", "bank_transfer": "Virement bancaire", "switch": "Commutateur régional",
	},
	Kinds: map[string]string{
		"late_payment": "Paiement tardif", "mismatch": "Montant différent", "orphan": "Somme sans paiement", "undecided": "Opérateur sans réponse",
		"refund_request": "Demande de restitution", "reversal": "Restitution signalée", "confirmation": "Confirmation de l’ERP",
		"poison": "Enregistrement illisible", "break": "Écart de rapprochement", "match_proposal": "Rapprochement proposé", "close": "Arrêté de compte",
	},
	Resolutions: map[string]string{
		"honour": "Valider le paiement", "refund": "Restituer", "approved": "Payé chez l’opérateur", "refused": "Refusé chez l’opérateur",
		"ask_again": "Interroger de nouveau", "retry": "Envoyer de nouveau", "recorded_by_hand": "Enregistré à la main", "cash_returned": "Espèces rendues",
		"superseded": "Remplacé", "accepted": "Accepté", "write_off": "Passer en perte", "acknowledge": "Prendre acte", "explain": "Expliquer",
		"match": "Rapprocher", "match_by_hand": "Rapprocher à la main", "close": "Arrêter le compte",
		"cleared": "Réglé par un rapprochement ultérieur",
	},
	CaseStates: map[string]string{
		"open": "Ouverts", "closed": "Clos",
	},
	ProposalStates: map[string]string{
		"open": "En attente", "approved": "Approuvée, résultat pas encore connu", "carried_out": "Exécutée", "refused": "Refusée à l’exécution", "rejected": "Rejetée",
		"lapsed": "Caduque", "void": "Sans objet",
	},
	DeliveryStates: map[string]string{
		"waiting": "En attente", "queued": "En cours d’envoi", "delivered": "Accepté", "needs_operator": "À reprendre", "exhausted": "Abandonné",
		"superseded": "Remplacé",
	},
	DeliveryKinds: map[string]string{
		"webhook": "Webhook", "cashin": "Webhook cash-in", "erp": "Confirmation", "notify": "Message",
	},
	Confirmations: map[string]string{
		"awaited": "Attendue", "accepted": "Acceptée", "refused": "Refusée",
	},
	Steps: map[string]string{
		"command": "Commande", "event": "Événement", "call": "Appel", "delivery": "Envoi",
	},
	Parts: map[string]string{
		"operators' references": "Références d’opérateurs", "journal": "Journal", "commands": "Commandes",
	},
	Evidence: map[string]string{
		"poison_topic": "Topic de mise à l’écart", "poison_offset": "Offset de mise à l’écart", "error": "Erreur", "key": "Clé",
		"transaction_id": "Transaction", "erp_due_ref": "Référence de la créance", "contradicted": "Contredit par l’opérateur",
		"amount_unknown": "Montant illisible", "event_id": "Événement", "source": "Source", "account": "Compte marchand", "approved_at": "Approuvé par l’opérateur le",
		"finding_id": "Identifiant du constat", "finding_kind": "Nature de l’écart", "stage": "Règle du rapprochement", "statement_account": "Compte", "day": "Jour",
		"expected": "Lignes attendues", "lines": "Lignes trouvées", "not_taken": "Lignes de même référence, non candidates", "period_from": "Premier jour",
		"period_to": "Dernier jour", "close_digest": "Empreinte de ce qui est approuvé", "sums": "Sommes",
	},
	Deferrals: map[string]string{
		"mailbox_full": "Aucun appel\u00a0: trop d’envois attendent cette destination", "rate_limited": "Aucun appel\u00a0: limite d’appels par seconde",
		"breaker_open": "Aucun appel\u00a0: envois retenus", "suspended": "Aucun appel\u00a0: destination suspendue",
		"destination_unknown": "Aucun appel\u00a0: destination inconnue", "destination_locked": "Aucun appel\u00a0: le secret de la destination ne s’ouvre pas",
		"order_unknown": "Aucun appel\u00a0: on ignore si un événement postérieur a été accepté",
	},
	Refusals: map[string]string{
		"checkout.session_not_found":    "Le service ne connaît pas ce paiement.",
		"case.not_found":                "Le service ne connaît pas ce cas.",
		"case.closed":                   "Le cas était déjà clos\u00a0: une somme n’a qu’une issue.",
		"case.resolution_not_allowed":   "Le cas ne permet plus cette issue. Relisez-le, puis proposez-en une autre.",
		"checkout.collection_in_flight": "Un autre paiement du même dossier est en cours. Proposez de nouveau quand il sera terminé.",
		"checkout.due_in_payment":       "Un autre paiement retient une créance de celui-ci. Proposez de nouveau quand il sera terminé.",
		"case.due_unknown":              "Le paiement ne comporte pas la créance dont il s’agit.",
		"case.due_returned":             "Le montant de l’une de ces créances a déjà été restitué.",
		"checkout.order_paid":           "Un autre paiement a réglé le dossier. La somme est à restituer.",
		"finding.changed":               "Les lignes ont changé depuis la proposition. Un nouveau cas pose de nouveau la question.",
		"finding.ended":                 "Un rapprochement avait déjà réglé ces lignes.",
		"period.changed":                "Ce qui avait été approuvé a changé. Proposez de nouveau l’arrêté du compte.",
		"period.closed":                 "Le compte était déjà arrêté jusqu’à un jour ultérieur.",
		"period.day_malformed":          "Le dernier jour de la période n’est pas une date.",
		"period.not_over":               "La période n’est pas terminée.",
		"period.not_matched":            "Aucun rapprochement n’a eu lieu depuis la fin de la période. Proposez de nouveau l’arrêté du compte.",
		"period.quarantined":            "Un relevé de la période est en attente de vérification. Il faut l’accepter ou l’écarter d’abord.",
		"period.import_pending":         "L’importation d’un relevé est en cours ou a été interrompue. Importez de nouveau son fichier, puis proposez de nouveau l’arrêté du compte.",
		"period.statement_missing":      "Aucun relevé ne couvre un jour de la période. Importez-le, puis proposez de nouveau l’arrêté du compte.",
		"period.statement_unproved":     "L’enregistrement d’une importation ne correspond à aucun relevé reçu. L’exploitation doit l’examiner.",
		"period.rebuild_needed":         "Une version précédente a enregistré des lignes de la période sans leurs créances. L’exploitation doit reconstituer le journal.",
		"approval.unsigned":             "Une étape n’est pas valablement signée. Proposez de nouveau, et prévenez l’exploitation si personne n’en connaît la raison.",
		"approval.other_content":        "Le cas ou la proposition n’est plus celui que les deux personnes ont vu. Relisez le cas, puis proposez de nouveau.",
		"approval.other_group":          "L’une des personnes n’agit pas pour cette administration.",
		"approval.same_person":          "La même personne a fait les deux étapes.",
		"approval.not_in_force":         "L’une des personnes n’était pas habilitée à ce moment.",
		"approval.lapsed":               "L’approbation ou son exécution a plus de 7 jours de retard, ou l’approbation est datée du futur. Proposez de nouveau.",
		"approval.not_proven":           "Aucune clé d’accès de la personne qui a approuvé n’a signé l’approbation. Proposez de nouveau, et prévenez l’exploitation si personne n’en connaît la raison.",
	},
}

var english = words{
	Imports: englishImports, Deliveries: englishDeliveries, Jobs: englishJobs,
	Live: "Live", Test: "Test", BothModes: "Live and test", Open: "Open", ClosedAs: "Closed: %s", AllAgencies: "All agencies", Filter: "Filter", Show: "Show", AllOfTrail: "All actions", Next: "Next page",
	First: "First page", Found: "Results: %d.", ManyFound: "More than %d results.",
	TooManyForFile: "The list has more than %d rows, or takes too long to read: there is no file. Add a condition, such as a day.",
	Work: workWords{
		Title: "To do", Decide: "Waiting for your decision",
		NothingToDecide: "Nothing waits for your decision. Proposals of your colleagues that you may approve are shown here.",
		Proposed:        "Your proposals that wait", NothingProposed: "You have no proposal that waits. A proposal is shown here until another person decides.",
		Since: "Since", What: "About", Agency: "Agency", Mode: "Mode",
	},
	Search: searchWords{
		Title:    "Search",
		How:      "Type an order, a payment reference (16 digits), a reference of an operator, or the id of a case or a delivery into the search box.",
		None:     "Nothing fits. Orders are compared exactly, with capital and small letters. A payment that was made just now appears after some seconds.",
		Mistyped: "Nothing fits. These 16 digits are no payment reference: a digit is probably mistyped.",
		Contact:  "A phone number or an e-mail address is not searched here. Use the order or the payment reference.",
	},
	Payments: paymentsWords{
		Title: "Payments", Made: "Created", Order: "Order", Agency: "Agency", Amount: "Amount", Status: "Status", Reference: "Payment reference",
		None:   "No payments. The first one is shown as soon as an agency creates it.",
		NoneSo: "No payment meets these conditions. Remove a condition, or check the mode.", AnyStatus: "All statuses", AnyOffer: "All offers", Day: "Day",
		Offer: "Offer", Service: "Service code", From: "Amount, from", To: "Amount, to", Text: "Text", Mode: "Mode",
		DayHint: "Day of creation in Brazzaville.", AmountHint: "In CFA francs, without fees.",
		TextHint: "A part of the order, the subject or the operator's reference.", DayMalformed: "A day is written YYYY-MM-DD, such as 2026-11-29.",
		AmountMalformed: "An amount is written in digits, such as 5 000.", StatusUnknown: "Choose a status of the list.", Looked: "Examined until %s.",
		Continue: "Continue the search",
	},
	Payment: paymentWords{
		Title: "Order %s", PaidAt: "Paid on %s", ReturnedAt: "Given back on %s", UndecidedSince: "Not decided by the operator since %s", Order: "Order",
		Agency: "Agency", Application: "Application", Mode: "Mode", Amount: "Amount due", Status: "Status", Service: "Service", Subject: "Subject",
		Reference: "Payment reference", Notice: "Notice", Transaction: "Transaction", Made: "Created", Expires: "Expires", Ended: "Ended",
		Failure: "Cause of the failure", Offer: "Offer", Payer: "Payer", Clerk: "Clerk", Total: "Total", WithFee: "%s, of it %s fees",
		Collection: "Collection", OperatorRef: "Operator's reference", Asked: "Operator asked at", Dues: "Dues", DueRef: "Reference of the due", ERP: "ERP",
		Deliveries: "Deliveries", NoDeliveries: "No deliveries of the last 60 days. A delivery is shown after its first attempt.",
		NoCases: "No cases. A case opens when money fits no open payment.", DeliveryTo: "%s to %s", Event: "Event", Occurred: "Time of the event",
		Calls: "Calls", LastAnswer: "Last answer", LastCall: "Last call", NextCall: "Next call", ID: "Id", Retry: "Send again",
		Retried: "The delivery is sent again in a moment.", Timeline: "What happened", NoTimeline: "No step can be read.", At: "Time", Step: "Step",
		Outcome: "Outcome", Source: "Topic · partition · offset", Commands: "Read the commands, too",
		CommandsHint: "Reading them in Kafka takes up to 5 seconds.", MissingTitle: "What is missing",
	},
	Missing: missingWords{
		Unread: "Not read: %s. The source does not answer; load the page again in a moment.", Later: "%s: read until %s only.",
		Beyond: "%s: only the first %d entries are read.", Behind: "%s: %d events of %d. The others arrive within seconds.",
		Expired: "%s: kept for %d days, and the payment is older.",
	},
	Cases: casesWords{
		Title: "Cases", Opened: "Opened", Kind: "Kind", Agency: "Agency", Amount: "Amount", State: "State", Reference: "Reference", AnyKind: "All kinds",
		AnyState: "Open and closed", None: "No cases. A case opens when money, a confirmation or a statement needs a decision.",
		NoneSo: "No case meets these conditions. Remove a condition.",
	},
	Case: caseWords{
		ERPWaits: "Confirmations that wait for this ERP",
		Reasons: map[string]string{ //nolint:gosec // texts, no credential
			"credentials_refused":                        "The ERP refuses our credentials. All its confirmations wait, and this case ends as soon as it accepts one. The agency must give us its new credentials.",
			"not accepted in 24 h":                       "The ERP has not accepted the confirmation within 24 hours.",
			"the bank has reversed the transfer":         "The bank has reversed the transfer.",
			"no statement has the transfer any more":     "The statement was withdrawn, and no other one has the transfer.",
			"not the total to pay":                       "The transfer does not have the exact total to pay.",
			"not the currency of the payment":            "The transfer is not in the currency of the payment.",
			"the payment offers no bank transfer":        "The payment offers no bank transfer.",
			"another payment has paid, or may still pay": "Another payment has paid, or may still pay.",
		},
		Difference: "Difference (found less expected)", NotCarriedOut: "An approved decision could not be carried out.",
		Findings: map[string]string{
			"unmatched_line": "Line without expected money", "missing_line": "Expected money without a line", "amount": "Different amount", "fee": "Fee", "duplicate_line": "Line twice", "reversed_line": "Line reversed or taken back",
			"operator_ref": "Operator's reference", "own_ref": "Payment or notice reference", "batch": "Payout of a batch", "amount_day": "Amount and day", "cut_off_window": "Operator's window", "none": "None", "hand": "Matched by hand",
		},
		Title: "Case: %s", State: "State", Amount: "Amount", Owed: "Owed", Agency: "Agency", Mode: "Mode", Payment: "Payment", Collection: "Collection",
		OperatorRef: "Operator's reference", OpenedBecause: "Opened because", OpenedBy: "Opened by", Clerks: "Clerks", Opened: "Opened", Closed: "Closed",
		ClosedBy: "Proposed by", ApprovedBy: "Approved by", Evidence: "Evidence", Refusal: "Refused because", ID: "Id", Record: "Kafka record",
		EvidenceTitle: "What else is known", RowsText: "The amount of each of these rows, and its place in its file:", Proposals: "Proposals",
		NoProposals: "No proposals. One person proposes a resolution, another one approves it.", Proposal: "Proposal %d: %s", Proposer: "Proposed by",
		ProposedAt: "Proposed at", Reason: "Reason", Decider: "Decided by", DecidedAt: "Decided at", Decision: "Reason of the decision",
		WaitsFor:        "The proposal waits for the decision of another person.",
		WaitsForCarrier: "The proposal is approved. The service carries it out or refuses it; the outcome is shown here.", Propose: "Propose a resolution",
		ProposeText:     "Your passkey signs the case, what is known of it, and what you propose.",
		ProposeNoScript: "Proposing needs a passkey, which only JavaScript can read. Allow JavaScript for this site and load the page again.",
		Choose:          "Choose", ResolutionHint: "What becomes of the money, or what is done.",
		ReferenceHint: "Reference and date of the refund, the operator's letter, or the ERP's reference. Optional for some resolutions.",
		ReasonHint:    "Without names and phone numbers. The reason is kept.", Send: "Propose with a passkey", Reject: "Reject or withdraw the proposal",
		RejectHint: "The reason is kept. Whoever proposed withdraws the proposal so.", RejectSend: "Reject",
		Proposed: "The proposal is stored. Another person decides.", Rejected: "The proposal is rejected.", Approve: "Approve the proposal",
		ApproveText: "Your passkey signs what this page shows: the case, what is known of it, and the proposal.", ApproveSend: "Approve with a passkey",
		ApproveNoScript: "Approving needs a passkey, which only JavaScript can read.", ApproveFailed: "The approval did not succeed, and nothing was saved. Try again, and choose your passkey.",
		ApproveWithout: "This browser cannot use passkeys, or this page is not open at the address of the service.", Approved: "The proposal is approved. The service carries it out or refuses it in a moment.",
	},
	Endpoints: endpointsWords{
		Title: "Endpoints", Name: "Name", Owner: "Owner", Address: "Address", State: "State", Waiting: "Waiting", Oldest: "Oldest", Kind: "Kind",
		Events: "Events", Modes: "Modes", HoldUntil: "Held until",
		HeldText: "%s. No call is made before. Then one delivery is tried; once it is accepted, those that are held follow.", ID: "Id",
		None: "No endpoints. One appears when an agency registers an address for webhooks, or an ERP.", One: "Endpoint %s", Well: "Answers",
		Removed: "Removed on %s", Refusing: "Refuses our credentials since %s", Failing: "Fails since %s", Suspended: "Suspended since %s (%s)",
		AndNeeds: ", and %d need a person", RetryAll: "Send again (%d, %s)", Resume: "Resume", Suspend: "Suspend", Newest: "Newest deliveries",
		NoDeliveries: "No deliveries of the last 60 days.", Occurred: "Time of the event", Event: "Event", Calls: "Calls", LastAnswer: "Last answer",
		Actions: "Actions", Reasons: map[string]string{"gone": "it answered 410", "failing": "no success in five days", "operator": "by a person", "removed": "removed from the registry"},
		Done: map[string]string{"suspended": "The endpoint is suspended.", "resumed": "The endpoint is resumed: what waits is sent in a moment."},
	},
	Stuck: stuckWords{
		Title: "Stuck", Intro: "What does not go on without a person.", Undecided: "Payments that are undecided for more than 24 hours",
		NothingUndecided: "No payment is undecided for more than 24 hours.", Parked: "Deliveries that need a person",
		NothingParked: "No delivery waits for a person.", ApprovedTitle: "Decisions that are approved and not carried out",
		NothingApproved: "All approved decisions are carried out.", Approved: "%d wait, the oldest since %s.",
	},
	Statuses: map[string]string{
		"open": "Open", "completed": "Paid", "expired": "Expired", "cancelled": "Cancelled", "failed": "Failed",
	},
	Verdicts: map[string]string{
		"paid": "Paid", "returned": "Given back", "under_review": "Money that came waits for a decision", "undecided": "Not decided by the operator",
		"in_progress": "A payment is in progress", "open": "Nobody has tried to pay yet", "not_paid": "Not paid",
	},
	Offers: map[string]string{
		"momo": "Mobile money (1)", "momo_b": "Mobile money (2)", "card": "Bank card", "cash_agency": "Cash at a counter", "bank_transfer": "Bank transfer", "switch": "Regional switch",
	},
	Kinds: map[string]string{
		"late_payment": "Late payment", "mismatch": "Other amount", "orphan": "Money without a payment", "undecided": "Operator without an answer",
		"refund_request": "Refund request", "reversal": "Reported reversal", "confirmation": "Confirmation of the ERP", "poison": "Unreadable record",
		"break": "Break of reconciliation", "match_proposal": "Proposed match", "close": "Close of an account",
	},
	Resolutions: map[string]string{
		"honour": "Complete the payment", "refund": "Refund", "approved": "Paid at the operator", "refused": "Refused at the operator",
		"ask_again": "Ask again", "retry": "Send again", "recorded_by_hand": "Recorded by hand", "cash_returned": "Cash given back",
		"superseded": "Superseded", "accepted": "Accepted", "write_off": "Write off", "acknowledge": "Acknowledge", "explain": "Explain", "match": "Match",
		"match_by_hand": "Match by hand", "close": "Close the account", "cleared": "Settled by a later run of the matcher",
	},
	CaseStates: map[string]string{
		"open": "Open", "closed": "Closed",
	},
	ProposalStates: map[string]string{
		"open": "Waits", "approved": "Approved, outcome not known yet", "carried_out": "Carried out", "refused": "Refused when carried out", "rejected": "Rejected",
		"lapsed": "Lapsed", "void": "Void",
	},
	DeliveryStates: map[string]string{
		"waiting": "Waiting", "queued": "Being sent", "delivered": "Accepted", "needs_operator": "Needs a person", "exhausted": "Given up",
		"superseded": "Superseded",
	},
	DeliveryKinds: map[string]string{
		"webhook": "Webhook", "cashin": "Cash-in webhook", "erp": "Confirmation", "notify": "Message",
	},
	Confirmations: map[string]string{
		"awaited": "Awaited", "accepted": "Accepted", "refused": "Refused",
	},
	Steps: map[string]string{
		"command": "Command", "event": "Event", "call": "Call", "delivery": "Delivery",
	},
	Parts: map[string]string{
		"operators' references": "Operators' references", "journal": "Journal", "commands": "Commands",
	},
	Evidence: map[string]string{
		"poison_topic": "Poison topic", "poison_offset": "Poison offset", "error": "Error", "key": "Key", "transaction_id": "Transaction",
		"erp_due_ref": "Reference of the due", "contradicted": "Contradicted by the operator", "amount_unknown": "Amount unreadable",
		"event_id": "Event", "source": "Source", "account": "Merchant account", "approved_at": "Approved by the operator on",
		"finding_id": "Id of the finding", "finding_kind": "Kind of break", "stage": "Rule of the matcher", "statement_account": "Account", "day": "Day",
		"expected": "Rows expected", "lines": "Lines found", "not_taken": "Rows with the same reference that were no candidates", "period_from": "First day",
		"period_to": "Last day", "close_digest": "Digest of what is approved", "sums": "Sums",
	},
	Deferrals: map[string]string{
		"mailbox_full": "No call: too many deliveries wait for this endpoint", "rate_limited": "No call: the endpoint's limit a second",
		"breaker_open": "No call: deliveries are held", "suspended": "No call: the endpoint is suspended",
		"destination_unknown": "No call: the endpoint is unknown", "destination_locked": "No call: the endpoint's secret does not open",
		"order_unknown": "No call: it is not known whether a later event was accepted",
	},
	Refusals: map[string]string{
		"checkout.session_not_found":    "The service does not know this payment.",
		"case.not_found":                "The service does not know this case.",
		"case.closed":                   "The case was closed before: a sum has one exit only.",
		"case.resolution_not_allowed":   "The case does not allow this any more. Read it again and propose something else.",
		"checkout.collection_in_flight": "Another payment of the order is under way. Propose again when it has ended.",
		"checkout.due_in_payment":       "Another payment holds a due of this one. Propose again when it has ended.",
		"case.due_unknown":              "The payment has no due that the case is about.",
		"case.due_returned":             "The money of one of these dues was given back before.",
		"checkout.order_paid":           "Another payment has paid the order. The money is to be refunded.",
		"finding.changed":               "The rows have changed since the proposal. A new case asks again.",
		"finding.ended":                 "The matcher had settled these rows before.",
		"period.changed":                "What was approved has changed. Propose to close the account again.",
		"period.closed":                 "The account was closed until a later day before.",
		"period.day_malformed":          "The last day of the period is no date.",
		"period.not_over":               "The period is not over.",
		"period.not_matched":            "The matcher has not run since the end of the period. Propose to close the account again.",
		"period.quarantined":            "A statement of the period is in quarantine. Release or dismiss it first.",
		"period.import_pending":         "An import of a statement is under way or was interrupted. Import its file again, then propose to close the account again.",
		"period.statement_missing":      "No statement covers a day of the period. Import it, then propose to close the account again.",
		"period.statement_unproved":     "The record of an import fits no statement that was received. Operations must look at it.",
		"period.rebuild_needed":         "An earlier release has written rows of the period without their dues. Operations must rebuild the journal.",
		"approval.unsigned":             "A step has no valid signature. Propose again, and tell operations if nobody knows why.",
		"approval.other_content":        "The case or the proposal is not the one that both people saw. Read the case, then propose again.",
		"approval.other_group":          "One of the people does not act for this agency.",
		"approval.same_person":          "One person took both steps.",
		"approval.not_in_force":         "One of the people could not act at that time.",
		"approval.lapsed":               "The approval, or its effect, came more than 7 days late, or the approval is dated in the future. Propose again.",
		"approval.not_proven":           "No passkey of the person who approved has signed the approval. Propose again, and tell operations if nobody knows why.",
	},
}
