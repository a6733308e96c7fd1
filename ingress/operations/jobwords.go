package operations

// deliveriesWords are those of the list of deliveries.
type deliveriesWords struct {
	Title, To, Endpoint, EndpointHint, DayHint, AnyKind, AnyState, None, NoneSo string
	AgainTitle, AgainText, Again                                                string
}

// jobsWords are those of jobs.
type jobsWords struct {
	Title                                                              string
	One                                                                string // kind
	MadeAt, What, Maker, Total, Done, Refused, State, None, Agency     string
	StateOf, AnyOpen, Since, Until, EndsAt, Of                         string
	StartedAt, Decider, DecidedAt, StoppedBy, FinishedAt, Over, Why    string
	Ended                                                              string // done, refused
	Rows, Row, Delivery, Reason, More, Actions                         string
	Start                                                              string // number
	StartText, Propose, ProposeText, Approve, ApproveText, Stop        string
	Discard, Count                                                     string
	CountHint                                                          string // number
	Again                                                              string // number
	RecoverTitle, RecoverText, Recover, RecoverSince, RecoverSinceHint string
	Kinds, States, DoneTexts                                           map[string]string
	Reasons                                                            map[string]string // by code, of persons who may not any more; other codes have general words
}

var frenchDeliveries = deliveriesWords{
	Title: "Envois", To: "Destination", Endpoint: "Destination", EndpointHint: "Identifiant de la destination, ou un ERP, par exemple impots/live.",
	DayHint: "Jour de l’événement, à Brazzaville.", AnyKind: "Toutes les natures", AnyState: "Tous les états",
	None:   "Aucun envoi des 60 derniers jours. Un envoi s’affiche après sa première tentative.",
	NoneSo: "Aucun envoi ne remplit ces conditions. Retirez une condition.", AgainTitle: "Envoyer de nouveau",
	AgainText: "Prépare une tâche avec tous les envois qui remplissent ces conditions et ne sont pas acceptés. Leur nombre s’affiche avant le départ.",
	Again:     "Préparer l’envoi de tout ce qui correspond",
}

var englishDeliveries = deliveriesWords{
	Title: "Deliveries", To: "Endpoint", Endpoint: "Endpoint", EndpointHint: "The id of the endpoint, or an ERP, such as impots/live.",
	DayHint: "Day of the event, in Brazzaville.", AnyKind: "All kinds", AnyState: "All states",
	None:   "No deliveries of the last 60 days. A delivery appears after its first attempt.",
	NoneSo: "No delivery meets these conditions. Remove a condition.", AgainTitle: "Send again",
	AgainText: "Prepares a job of all deliveries that meet these conditions and are not accepted. Their number is shown before it starts.",
	Again:     "Prepare to send all that match",
}

var frenchJobs = jobsWords{
	Title: "Tâches", One: "Tâche\u00a0: %s", MadeAt: "Préparée le", What: "Objet", Maker: "Demandée par", Total: "Envois", Done: "Faits", Refused: "Refusés", State: "État",
	None:   "Aucune tâche. Une tâche se prépare sur la page des envois, et s’affiche ici pendant 60 jours.",
	Agency: "Administration", StateOf: "État des envois", AnyOpen: "Tous ceux qui ne sont pas acceptés", Since: "Événements depuis", Until: "Événements avant", EndsAt: "Liste arrêtée le",
	Of: "Reste de la tâche", StartedAt: "Lancée le", Decider: "Approuvée par", DecidedAt: "Approuvée le", StoppedBy: "Arrêtée par", FinishedAt: "Terminée le", Over: "Caduque",
	Why: "Le service a arrêté la tâche", Ended: "Terminée\u00a0: %d faits, %d refusés", Rows: "Envois refusés", Row: "N°", Delivery: "Envoi", Reason: "Motif", More: "Suite des refus", Actions: "Actions",
	Start: "Lancer (envois\u00a0: %d)", StartText: "Chaque envoi part une fois, dans l’ordre des événements. La tâche s’arrête si vous perdez le droit d’envoyer.",
	Propose: "Demander avec une clé d’accès", ProposeText: "Plus de 1\u00a0000 envois\u00a0: votre clé d’accès signe la liste, et un responsable de l’exploitation l’approuve dans les 24 heures.",
	Approve: "Approuver avec une clé d’accès", ApproveText: "Votre clé d’accès signe les conditions et la liste des envois. La tâche commence aussitôt.",
	Stop: "Arrêter", Discard: "Abandonner", Count: "Nombre d’envois", CountHint: "Pour confirmer, saisissez %d.", Again: "Préparer l’envoi de ce qui reste (%d)",
	RecoverTitle: "Reprendre depuis un jour", RecoverText: "Prépare une tâche avec tout ce que la destination n’a pas accepté depuis ce jour.", Recover: "Préparer la reprise",
	RecoverSince: "Premier jour", RecoverSinceHint: "Jour de l’événement, à Brazzaville.",
	Kinds:  map[string]string{"deliveries.retry": "Envoyer de nouveau"},
	States: map[string]string{"prepared": "Préparée", "proposed": "En attente d’une autre personne", "running": "En cours", "done": "Terminée", "stopped": "Arrêtée", "refused": "Refusée"},
	Reasons: map[string]string{
		"staff.not_permitted": "La personne qui l’a demandée, ou celle qui l’a approuvée, n’a plus le rôle nécessaire.", "staff.suspended": "Le compte de la personne qui l’a demandée est suspendu.",
		"staff.revoked": "Le compte de la personne qui l’a demandée est fermé.", "staff.waits": "La personne qui l’a demandée ne peut pas encore agir.",
	},
	DoneTexts: map[string]string{
		"started": "La tâche est lancée. Elle continue sans cette page.", "stopped": "La tâche est arrêtée. Les envois déjà faits le restent.",
		"proposed": "La demande est enregistrée. Un responsable de l’exploitation décide.", "approved": "La tâche est approuvée et commence.",
		"same": "Une tâche de mêmes conditions est déjà en cours ou en attente\u00a0: c’est celle-ci.",
	},
}

var englishJobs = jobsWords{
	Title: "Jobs", One: "Job: %s", MadeAt: "Prepared on", What: "What", Maker: "Asked for by", Total: "Deliveries", Done: "Done", Refused: "Refused", State: "State",
	None:   "No jobs. A job is prepared on the page of deliveries, and is shown here for 60 days.",
	Agency: "Agency", StateOf: "State of the deliveries", AnyOpen: "All that are not accepted", Since: "Events since", Until: "Events before", EndsAt: "List ended on",
	Of: "What is left of", StartedAt: "Started on", Decider: "Approved by", DecidedAt: "Approved on", StoppedBy: "Stopped by", FinishedAt: "Ended on", Over: "Lapsed",
	Why: "The service has stopped the job", Ended: "Ended: %d done, %d refused", Rows: "Refused deliveries", Row: "No.", Delivery: "Delivery", Reason: "Reason", More: "Further refusals", Actions: "Actions",
	Start: "Start (deliveries: %d)", StartText: "Each delivery is sent once, in the order of the events. The job stops if you may not send any more.",
	Propose: "Ask with a passkey", ProposeText: "More than 1,000 deliveries: your passkey signs the list, and a lead of operations approves it within 24 hours.",
	Approve: "Approve with a passkey", ApproveText: "Your passkey signs the conditions and the list of deliveries. The job starts at once.",
	Stop: "Stop", Discard: "Discard", Count: "Number of deliveries", CountHint: "To confirm, type %d.", Again: "Prepare to send what is left (%d)",
	RecoverTitle: "Recover since a day", RecoverText: "Prepares a job of all that the endpoint has not accepted since this day.", Recover: "Prepare the recovery",
	RecoverSince: "First day", RecoverSinceHint: "Day of the event, in Brazzaville.",
	Kinds:  map[string]string{"deliveries.retry": "Send again"},
	States: map[string]string{"prepared": "Prepared", "proposed": "Waits for another person", "running": "Running", "done": "Ended", "stopped": "Stopped", "refused": "Refused"},
	Reasons: map[string]string{
		"staff.not_permitted": "The person who has asked for it, or approved it, does not have the role any more.", "staff.suspended": "The account of the person who has asked for it is suspended.",
		"staff.revoked": "The account of the person who has asked for it is closed.", "staff.waits": "The person who has asked for it may not act yet.",
	},
	DoneTexts: map[string]string{
		"started": "The job is started. It goes on without this page.", "stopped": "The job is stopped. What was sent stays sent.",
		"proposed": "The request is saved. A lead of operations decides.", "approved": "The job is approved and starts.",
		"same": "A job of the same conditions is running or waits already: this one.",
	},
}
