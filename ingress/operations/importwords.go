package operations

// importWords are those of imports of statements. The tables of requests have the keys release, restoration, withdrawal,
// reading and dismissal, those of forms also reopen.
type importWords struct {
	Title                                                                          string
	One                                                                            string // account
	ImportedAt, Agency, Account, Days, Lines, Net, State, AnyState, DayHint        string
	None, NoneSo                                                                   string
	Statement, Statements, Others, Opening, Closing                                string
	Why, Actor, Profile, Digest, Size, File, FileKept, FileGone                    string
	Bytes                                                                          string // number
	Unsigned, Lapsed                                                               string
	RequestsTitle, NoRequests, RequestedBy, RequestedAt, DecidedBy, Until, Command string
	Over, Reject, TakeBack, ApproveText, Ask, Dismiss, Reopen, Read, ReadHint      string
	States, Faults, Requests, RequestStates, Acts, ActTexts, Done                  map[string]string
	Means/* what a state of a request brings, by kind and state */ map[string]string
}

var frenchImports = importWords{
	Title: "Relevés", One: "Relevé du compte %s", ImportedAt: "Importé le", Agency: "Administration", Account: "Compte", Days: "Jours", Lines: "Lignes", Net: "Total net",
	State: "État", AnyState: "Tous les états", DayHint: "Jour d’importation, à Brazzaville.",
	None:      "Aucun relevé importé. L’importation d’un fichier se fait par la commande «\u00a0quittance statements import\u00a0».",
	NoneSo:    "Aucun relevé ne remplit ces conditions. Retirez une condition.",
	Statement: "Relevé", Statements: "Contenu du fichier", Others: "Relevés acceptés sous le même identifiant", Opening: "Solde initial", Closing: "Solde final",
	Why: "Motif de l’attente", Actor: "Importé par", Profile: "Format", Digest: "SHA-256 du fichier", Size: "Taille", File: "Fichier", FileKept: "Conservé, chiffré", FileGone: "Supprimé à la fin de sa durée de conservation",
	Bytes:         "%d octets",
	Unsigned:      "L’état enregistré n’est pas signé par les personnes qui doivent le décider. Le fichier reste en attente de vérification\u00a0: décidez de nouveau, et prévenez le responsable de la sécurité.",
	Lapsed:        "Le fichier n’a pas été importé de nouveau dans les 24 heures qui ont suivi la décision de l’accepter\u00a0: cette décision est caduque. Le fichier est de nouveau en attente de vérification.",
	RequestsTitle: "Demandes et décisions", NoRequests: "Aucune demande. Une personne demande, une autre approuve.", RequestedBy: "Demandée par", RequestedAt: "Demandée le", DecidedBy: "Décidée par",
	Until: "Valable jusqu’au", Command: "Commande", Over: "Caduque", Reject: "Rejeter la demande", TakeBack: "Retirer ma demande",
	ApproveText: "Votre clé d’accès signe la demande, son motif et l’empreinte du fichier.", Ask: "Demander avec une clé d’accès", Dismiss: "Écarter avec une clé d’accès", Reopen: "Remettre en attente",
	Read: "Télécharger le fichier", ReadHint: "Il contient des noms et des numéros de payeurs. Chaque téléchargement est consigné avec le motif de la demande. Supprimez le fichier après lecture.",
	States: map[string]string{
		"accepted": "Accepté", "quarantined": "En attente de vérification", "released": "À importer de nouveau", "dismissed": "Écarté", "withdrawn": "Retiré",
	},
	Faults: map[string]string{
		"changed":   "Un relevé de même identifiant a été accepté avec un autre contenu.",
		"days":      "Les jours sont éloignés de ceux du dernier relevé du compte.",
		"withdrawn": "Deux personnes ont retiré ce même relevé auparavant.",
		"overlap":   "Un relevé accepté couvre déjà ces jours.",
		"sequence":  "Le relevé ne fait pas suite au dernier du compte.",
		"balance":   "Le solde initial n’est pas le dernier solde final du compte.",
	},
	Requests: map[string]string{
		"release": "Acceptation du fichier", "restoration": "Retour à une version antérieure", "withdrawal": "Retrait du relevé", "reading": "Lecture du fichier", "dismissal": "Mise à l’écart",
	},
	RequestStates: map[string]string{
		"requested": "En attente d’une autre personne", "agreed": "Approuvée, à exécuter", "approved": "Approuvée", "done": "Exécutée", "rejected": "Rejetée ou retirée",
	},
	Means: map[string]string{
		"release requested":     "Une autre personne approuve dans les 24 heures.",
		"restoration requested": "Une autre personne approuve dans les 24 heures.",
		"withdrawal requested":  "Une autre personne approuve dans les 24 heures.",
		"reading requested":     "Une autre personne approuve dans les 24 heures.",
		"release approved":      "Le fichier est accepté s’il est importé de nouveau avant ce délai.",
		"restoration agreed":    "La commande «\u00a0quittance statements carry-out\u00a0» l’exécute avant ce délai.",
		"withdrawal agreed":     "La commande «\u00a0quittance statements carry-out\u00a0» l’exécute avant ce délai. D’ici là, les lignes comptent.",
		"reading approved":      "La personne qui a demandé peut télécharger le fichier avant ce délai. Le téléchargement s’ouvre dans les secondes qui suivent l’approbation.",
		"withdrawal done":       "Les lignes du relevé ne comptent plus.",
		"dismissal approved":    "Rien du fichier ne compte.",
		"dismissal rejected":    "Le fichier a été remis en attente de vérification.",
	},
	Acts: map[string]string{
		"release": "Accepter le fichier", "restoration": "Revenir à cette version", "withdrawal": "Retirer le relevé", "reading": "Lire le fichier", "dismissal": "Écarter le fichier", "reopen": "Reprendre la vérification",
	},
	ActTexts: map[string]string{
		"release":     "Le fichier est juste. Après l’approbation d’une autre personne, il est accepté s’il est importé de nouveau dans les 24 heures. Ses lignes comptent alors à côté de celles du relevé accepté.",
		"restoration": "Ce relevé est une version antérieure du dernier relevé du compte. Après l’approbation d’une autre personne, il redevient le dernier.",
		"withdrawal":  "Le relevé a été accepté par erreur. Après l’approbation d’une autre personne, ses lignes ne comptent plus, sauf celles qu’un autre relevé contient. C’est possible tant que ses jours ne sont pas arrêtés.",
		"reading":     "Le fichier contient des noms et des numéros de payeurs. Après l’approbation d’une autre personne, vous pouvez le télécharger pendant 24 heures.",
		"dismissal":   "Le relevé accepté est juste. Rien de ce fichier ne compte\u00a0; il est conservé, et vous pouvez reprendre la vérification. Une seule personne décide.",
		"reopen":      "Le fichier revient en attente de vérification, où rien ne compte.",
	},
	Done: map[string]string{
		"asked": "La demande est enregistrée. Une autre personne décide.", "approved": "La demande est approuvée.", "rejected": "La demande est rejetée ou retirée.",
		"dismissed": "Le fichier est écarté.", "reopened": "Le fichier est de nouveau en attente de vérification.",
	},
}

var englishImports = importWords{
	Title: "Statements", One: "Statement of account %s", ImportedAt: "Imported", Agency: "Agency", Account: "Account", Days: "Days", Lines: "Lines", Net: "Net sum",
	State: "State", AnyState: "All states", DayHint: "Day of the import, in Brazzaville.",
	None: "No imported statements. The command “quittance statements import” imports a file.", NoneSo: "No statement meets these conditions. Remove a condition.",
	Statement: "Statement", Statements: "What the file has", Others: "Accepted statements of the same id", Opening: "Opening balance", Closing: "Closing balance",
	Why: "Why it waits", Actor: "Imported by", Profile: "Format", Digest: "SHA-256 of the file", Size: "Size", File: "File", FileKept: "Kept, encrypted", FileGone: "Deleted at the end of its time",
	Bytes:         "%d bytes",
	Unsigned:      "The stored state is not signed by the people who must decide it. The file is in quarantine still: decide again, and tell the security officer.",
	Lapsed:        "The file was not imported again within the 24 hours after its release: the release is over. The file is in quarantine again.",
	RequestsTitle: "Requests and decisions", NoRequests: "No requests. One person requests, another one approves.", RequestedBy: "Requested by", RequestedAt: "Requested at", DecidedBy: "Decided by",
	Until: "Until", Command: "Command", Over: "Lapsed", Reject: "Reject the request", TakeBack: "Withdraw my request",
	ApproveText: "Your passkey signs the request, its reason and the hash of the file.", Ask: "Request with a passkey", Dismiss: "Dismiss with a passkey", Reopen: "Back to quarantine",
	Read: "Download the file", ReadHint: "It has names and numbers of payers. Each download is recorded with the reason of the request. Delete the file when you have read it.",
	States: map[string]string{"accepted": "Accepted", "quarantined": "In quarantine", "released": "To be imported again", "dismissed": "Dismissed", "withdrawn": "Withdrawn"},
	Faults: map[string]string{
		"changed":   "A statement of this id was accepted with other content.",
		"days":      "Its days are far from those of the account’s last statement.",
		"withdrawn": "Two people have withdrawn the same statement before.",
		"overlap":   "An accepted statement covers these days.",
		"sequence":  "It does not follow the account’s last statement.",
		"balance":   "Its opening balance is not the account’s last closing balance.",
	},
	Requests: map[string]string{
		"release": "Release of the file", "restoration": "Back to an earlier version", "withdrawal": "Withdrawal of the statement", "reading": "Reading the file", "dismissal": "Dismissal",
	},
	RequestStates: map[string]string{
		"requested": "Waits for another person", "agreed": "Approved, to be carried out", "approved": "Approved", "done": "Carried out", "rejected": "Rejected or withdrawn",
	},
	Means: map[string]string{
		"release requested": "Another person approves it within 24 hours.", "restoration requested": "Another person approves it within 24 hours.",
		"withdrawal requested": "Another person approves it within 24 hours.", "reading requested": "Another person approves it within 24 hours.",
		"release approved":   "The file is accepted if it is imported again before that time.",
		"restoration agreed": "The command “quittance statements carry-out” carries it out before that time.",
		"withdrawal agreed":  "The command “quittance statements carry-out” carries it out before that time. Until then the lines count.",
		"reading approved":   "Whoever requested it can download the file before that time. The download opens within seconds of the approval.",
		"withdrawal done":    "The lines of the statement do not count any more.",
		"dismissal approved": "Nothing of the file counts.", "dismissal rejected": "The file was put back into quarantine.",
	},
	Acts: map[string]string{
		"release": "Release the file", "restoration": "Go back to this version", "withdrawal": "Withdraw the statement", "reading": "Read the file", "dismissal": "Dismiss the file", "reopen": "Take the dismissal back",
	},
	ActTexts: map[string]string{
		"release":     "The file is right. After another person’s approval it is accepted if it is imported again within 24 hours. Its lines then count beside those of the accepted statement.",
		"restoration": "This statement is an earlier version of the account’s last one. After another person’s approval it is the last one again.",
		"withdrawal":  "The statement was accepted by mistake. After another person’s approval its lines do not count any more, but for those that another statement has. It is possible while its days are open.",
		"reading":     "The file has names and numbers of payers. After another person’s approval you can download it for 24 hours.",
		"dismissal":   "The accepted statement is right. Nothing of this file counts; it is kept, and the dismissal can be taken back. One person decides.",
		"reopen":      "The file goes back into quarantine, where nothing of it counts.",
	},
	Done: map[string]string{
		"asked": "The request is stored. Another person decides.", "approved": "The request is approved.", "rejected": "The request is rejected or withdrawn.",
		"dismissed": "The file is dismissed.", "reopened": "The file is in quarantine again.",
	},
}
