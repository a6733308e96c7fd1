package oversight

// reportWords are those of the page of reports.
type reportWords struct {
	Title, Report, ReportHint, Month, MonthHint, ModeHint, AgencyHint string
	ReportUnknown, MonthMalformed, ModeUnknown, AgencyUnknown         string
	Restored, NotYet, Slow, Away                                      string
	Busy, Larger                                                      string // number
	Empty                                                             string // month
	Stamp, Positions, PositionsText, MadeAt                           string
	Source, Compared, NotCompared, Program, AllAndNone                string
	Names, About, Columns                                             map[string]string
}

var frenchReports = reportWords{
	Title: "Rapports", Report: "Rapport", ReportHint: "Les chiffres viennent du journal du service.", Month: "Mois", MonthHint: "À Brazzaville, par exemple 2026-11.", ModeHint: "Un paiement de test ne déplace pas d’argent.", AgencyHint: "Sans choix\u00a0: toutes, et les sommes d’aucune.",
	ReportUnknown: "Choisissez un rapport de la liste.", MonthMalformed: "Le mois s’écrit AAAA-MM, par exemple 2026-11.", ModeUnknown: "Choisissez un mode de la liste.", AgencyUnknown: "Choisissez une administration de la liste.",
	Restored: "ClickHouse a été restauré d’une sauvegarde et n’a pas tout ce que le journal avait\u00a0: un rapport serait faux. L’exploitation lance quittance rebuild journal, puis ce rapport redevient possible.",
	NotYet:   "ClickHouse ne connaît pas encore cette administration. Son nom y arrive un quart de minute après sa création, si quittance sink journal fonctionne.",
	Slow:     "Le rapport demande plus de 25 secondes. La commande ci-dessous attend autant qu’il faut.",
	Away:     "ClickHouse ne répond pas\u00a0: les rapports manquent, les autres pages fonctionnent. L’exploitation voit la cause avec quittance doctor office. Rechargez la page dans un instant.",
	Busy:     "%d rapports sont déjà en préparation. Rechargez la page dans un instant.",
	Larger:   "Le rapport a plus de %d lignes, ce qu’une page ne montre pas. La commande ci-dessous en fait un fichier.",
	Empty:    "Rien à montrer pour %s. Vérifiez le mois et le mode.",
	Stamp:    "Provenance", Positions: "Enregistrements pris en compte", PositionsText: "Sujet Kafka, partition, et position au-dessous de laquelle tous les enregistrements sont pris en compte.", MadeAt: "Établi le",
	Source: "Journal", Compared: "Complet, comparé avec Kafka", NotCompared: "Non comparé avec Kafka, qui ne répond pas", Program: "Programme", AllAndNone: "Toutes, et les sommes d’aucune",
	Names: map[string]string{
		"takings": "Recettes", "fees": "Frais", "channels": "Recettes par moyen de paiement", "undelivered": "Envois non acceptés", "open-cases": "Cas ouverts", "reconciliation": "Rapprochement", "breaks": "Écarts", "operator-fees": "Frais des opérateurs",
	},
	About: map[string]string{
		"takings": "Ce que les comptes ont reçu, par service.", "fees": "Les frais que les usagers ont payés, par moyen de paiement.", "channels": "Où se trouve l’argent, par compte marchand ou guichet.",
		"undelivered": "Les webhooks et les confirmations aux ERP qui ne sont pas acceptés jusqu’à maintenant.", "open-cases": "Les cas ouverts à la fin du mois.", "reconciliation": "Les comptes par jour\u00a0: attendu, trouvé, rapproché et ouvert, et l’argent d’aucun compte.",
		"breaks": "Les écarts et les propositions ouverts à la fin du mois, avec leur âge.", "operator-fees": "Ce que les opérateurs ont retenu, par compte.",
	},
	Columns: map[string]string{
		"account": "Compte", "action": "Action", "age": "Âge", "agency": "Administration", "amount": "Montant", "attempts": "Appels", "business_date": "Jour", "case_id": "Cas", "channel": "Canal", "charges": "Commissions", "completed": "Payé à temps", "currency": "Devise", "day": "Jour", "days": "Âge en jours",
		"delivery_id": "Envoi", "destination": "Destination", "due": "Dû", "event": "Événement", "expected": "Attendu", "fees": "Frais", "finding_id": "Constat", "first_at": "Premier appel", "found": "Trouvé", "given_back": "Restitué", "gross": "Brut", "http_status": "Statut HTTP", "kind": "Type", "last_at": "Dernier appel",
		"late": "Payé en retard", "lines": "Lignes", "matched": "Rapproché", "matched_payments": "Paiements rapprochés", "movements": "Mouvements", "net": "Net", "of_no_account": "Argent d’aucun compte", "offer_id": "Moyen de paiement", "open_expected": "Attendu ouvert", "open_found": "Trouvé ouvert", "open_lines": "Lignes ouvertes", "open_payments": "Paiements ouverts",
		"opened_at": "Ouvert le", "operator_ref": "Référence d’opérateur", "order_id": "Dossier", "outcome": "Résultat", "payment_ref": "Référence de paiement", "payments": "Paiements", "proposed_by": "Proposé par", "proposed_resolution": "Proposition", "reason": "Motif", "received": "Reçu", "service": "Service", "service_code": "Code du service", "total": "Total", "type": "Nature", "unmatched": "Sans paiement",
	},
}

var englishReports = reportWords{
	Title: "Reports", Report: "Report", ReportHint: "The figures are those of the service’s journal.", Month: "Month", MonthHint: "In Brazzaville, such as 2026-11.", ModeHint: "A test payment moves no money.", AgencyHint: "None chosen: all, and the money of none.",
	ReportUnknown: "Choose a report of the list.", MonthMalformed: "Write the month as YYYY-MM, such as 2026-11.", ModeUnknown: "Choose a mode of the list.", AgencyUnknown: "Choose an agency of the list.",
	Restored: "ClickHouse was restored from a backup and lacks what the journal had: a report would be wrong. Operations run quittance rebuild journal; then this report is possible again.",
	NotYet:   "ClickHouse does not know this agency yet. Its name is there a quarter of a minute after it was made, if quittance sink journal runs.",
	Slow:     "The report takes more than 25 seconds. The command below waits as long as it takes.",
	Away:     "ClickHouse does not answer: reports are missing, the other pages work. Operations see the cause with quittance doctor office. Load the page again in a moment.",
	Busy:     "%d reports are being made already. Load the page again in a moment.",
	Larger:   "The report has more than %d rows, which a page does not show. The command below makes a file of it.",
	Empty:    "There is nothing to show for %s. Check the month and the mode.",
	Stamp:    "Provenance", Positions: "Records that count", PositionsText: "Topic, partition, and the position below which all records count.", MadeAt: "Made at",
	Source: "Journal", Compared: "Whole, compared with Kafka", NotCompared: "Not compared with Kafka, which does not answer", Program: "Program", AllAndNone: "All, and the money of none",
	Names: map[string]string{
		"takings": "Takings", "fees": "Fees", "channels": "Takings by channel", "undelivered": "Undelivered", "open-cases": "Open cases", "reconciliation": "Reconciliation", "breaks": "Breaks", "operator-fees": "Operators’ fees",
	},
	About: map[string]string{
		"takings": "What the accounts took, by service.", "fees": "The fees that citizens paid, by channel.", "channels": "Where the money is, by merchant account or counter.",
		"undelivered": "Webhooks and ERP confirmations that are not accepted until now.", "open-cases": "Operator cases that were open at the end of the month.", "reconciliation": "Accounts by day: expected, found, matched and open, and money of no account.",
		"breaks": "Breaks and proposals that were open at the end of the month, with their age.", "operator-fees": "What operators kept, by account.",
	},
	Columns: map[string]string{
		"account": "Account", "action": "Action", "age": "Age", "agency": "Agency", "amount": "Amount", "attempts": "Attempts", "business_date": "Day", "case_id": "Case", "channel": "Channel", "charges": "Charges", "completed": "Paid in time", "currency": "Currency", "day": "Day", "days": "Age in days",
		"delivery_id": "Delivery", "destination": "Destination", "due": "Due", "event": "Event", "expected": "Expected", "fees": "Fees", "finding_id": "Finding", "first_at": "First attempt", "found": "Found", "given_back": "Given back", "gross": "Gross", "http_status": "HTTP status", "kind": "Kind", "last_at": "Last attempt",
		"late": "Paid late", "lines": "Lines", "matched": "Matched", "matched_payments": "Matched payments", "movements": "Movements", "net": "Net", "of_no_account": "Money of no account", "offer_id": "Offer", "open_expected": "Open, expected", "open_found": "Open, found", "open_lines": "Open lines", "open_payments": "Open payments",
		"opened_at": "Opened", "operator_ref": "Operator’s reference", "order_id": "Order", "outcome": "Outcome", "payment_ref": "Payment reference", "payments": "Payments", "proposed_by": "Proposed by", "proposed_resolution": "Proposal", "reason": "Reason", "received": "Received", "service": "Service", "service_code": "Service code", "total": "Total", "type": "Type", "unmatched": "Not matched with a payment",
	},
}
