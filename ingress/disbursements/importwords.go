package disbursements

import (
	"fmt"
	"strings"

	"quittance/disbursement"
	"quittance/internal/disbursements"
	"quittance/money"
	"quittance/money/language"
	"quittance/money/localtime"
)

// importWords are the texts of the import of a file, and of what it found, in one language. A field's comment says what the verbs
// of package fmt in its text stand for.
type importWords struct {
	Title, Intro, RefHint, DateHint, File, FileHint, Send, Template        string
	Busy, TooSlow, NoFile, NoRef, NoDate, NoCurrency, NoAccounts, NoAnswer string
	TooLarge                                                               string // megabytes
	Refused                                                                string // number of faults
	Faults, Where, WholeFile, Cell, Happened                               string
	RowColumn                                                              string // row, column
	OnlyRow                                                                string // row
	AtRow                                                                  string // row of the file, line_ref
	NotMaker, Missing, FoundTitle, FoundText, NoWarnings                   string
	// With… are batch_ref, revision, date, the sum of the earlier batch, and that of this one.
	WithRevision, WithLast, Same                string
	Differences, Warnings, Kind, HowMany, Which string
	WaiverHint                                  string
	// NamesText has the number of lines, NamesWait that of names that are not told.
	Names, NamesText, NamesWait            string
	Verdicts                               map[string]string
	Incomplete                             string
	Seal, Discard                          actWords
	ChangeKinds, WarningKinds, CodeRefused map[string]string
}

var importTexts = language.Table[*importWords]{money.French: &frenchImport, money.English: &englishImport}

var frenchImport = importWords{
	Title:   "Importer un fichier de lignes",
	Intro:   "Le fichier est pris en entier ou refusé en entier. Toutes les erreurs sont affichées à la fois. S’il n’en a aucune, il devient un brouillon que vous relisez avant de le sceller. Rien n’est payé avant les approbations.",
	RefHint: "Votre référence du lot, comme «\u00a0salaires-2026-12\u00a0». Un nouvel import avec la même référence est la révision suivante.", DateHint: "La date de paiement du lot.",
	File: "Fichier", FileHint: "CSV ou classeur XLSX, 24 Mo au plus, 100\u00a0000 lignes au plus.", Send: "Importer", Template: "Modèle vide",
	Busy:    "D’autres fichiers sont en cours de lecture. Rien n’est importé\u00a0: recommencez dans une minute.",
	TooSlow: "Fichier\u00a0: il arrive trop lentement, rien n’est importé. Vérifiez la connexion, puis recommencez.",
	NoFile:  "Fichier\u00a0: choisissez un fichier CSV ou XLSX qui n’est pas vide.", NoRef: "Référence\u00a0: donnez de 1 à 140 caractères sans accent.", NoDate: "Date de paiement\u00a0: donnez une date comme 2026-12-20.",
	NoCurrency: "Devise\u00a0: donnez un code comme XAF.", NoAccounts: "Mode\u00a0: votre administration n’a pas de compte de paiement dans ce mode. Prévenez l’exploitation.",
	NoAnswer: "Le service n’a pas répondu à temps. Rien ne peut être payé\u00a0: s’il reste un brouillon, il prend fin sous sept jours, ou vous l’abandonnez. Recommencez dans une minute.",
	TooLarge: "Fichier\u00a0: il dépasse %d Mo. Partagez-le en plusieurs lots.", Refused: "Le fichier est refusé, rien n’est importé. Nombre d’erreurs\u00a0: %d.",
	Faults: "Erreurs du fichier", Where: "Endroit", WholeFile: "Fichier", Cell: "Contenu", Happened: "Ce qui s’est passé, et que faire", RowColumn: "Ligne %d, colonne %s", OnlyRow: "Ligne %d",
	AtRow:    "Ligne %d du fichier, référence %s\u00a0: ",
	NotMaker: "Seule la personne qui a préparé le lot le scelle.", Missing: "Ce que l’import a relevé n’a pas pu être lu. Rechargez la page.",
	Incomplete: "L’import n’est pas terminé, ou s’est arrêté avant la fin\u00a0: il peut manquer des lignes, et rien n’a été comparé aux lots précédents. Un brouillon dans cet état ne se scelle pas\u00a0: abandonnez-le et importez-le de nouveau.",
	FoundTitle: "Ce que l’import a relevé", FoundText: "Cette partie aide à relire. Elle n’est pas signée\u00a0: votre clé d’accès signe le lot et ses lignes, pas ces remarques. Après un changement des clés du service, des bénéficiaires déjà payés peuvent paraître nouveaux.",
	NoWarnings:   "Aucun avertissement.",
	WithRevision: "Comparé à la dernière révision (%s, révision %d, du %s)\u00a0: total %s, maintenant %s.", WithLast: "Comparé au dernier lot (%s, révision %d, du %s)\u00a0: total %s, maintenant %s.",
	Same: "Rien ne diffère.", Differences: "Différences", Warnings: "Avertissements", Kind: "Nature", HowMany: "Nombre", Which: "Références de lignes",
	WaiverHint: "Les règles demandent de vérifier les noms, et ils ne le sont pas tous. Attendez les réponses des opérateurs, ou écrivez pourquoi vous n’attendez pas\u00a0; les approbateurs le lisent.",
	Names:      "Noms des bénéficiaires chez les opérateurs", NamesText: "Lignes dont le nom est demandé à l’opérateur\u00a0: %s. Le nom que l’opérateur donne est comparé à celui de la ligne, puis oublié.",
	NamesWait: "Noms attendus\u00a0: %s, au plus dix par seconde et par compte. Rechargez la page pour la suite.",
	Verdicts: map[string]string{
		"match": "Même nom", "close": "Nom proche\u00a0: un mot manque, est abrégé ou diffère d’une lettre", "different": "Nom différent", "unknown": "Numéro ou nom inconnu de l’opérateur",
	},
	Seal:    actWords{"Sceller le lot", "Le lot est figé et attend les approbations. Vous pourrez le rappeler tant qu’il n’est pas mis en paiement.", "Sceller"},
	Discard: actWords{"Abandonner le brouillon", "Le brouillon prend fin. Sa référence est libre.", "Abandonner"},
	ChangeKinds: map[string]string{
		"added": "Lignes ajoutées", "removed": "Lignes retirées", "changed": "Lignes modifiées", "new_payee": "Bénéficiaires nouveaux", "gone_payee": "Bénéficiaires absents",
		"other_account": "Même nom, autre compte", "other_amount": "Même bénéficiaire, autre montant",
	},
	WarningKinds: map[string]string{
		"same_twice": "Même bénéficiaire et même montant qu’une autre ligne du lot", "same_recently": "Même bénéficiaire et même montant dans les 90 jours", "other_account": "Nom connu avec un compte qu’il n’a jamais eu", "other_name": "Compte connu avec un nom qu’il n’a jamais eu",
		"new_payee": "Bénéficiaire jamais payé",
	},
	CodeRefused: map[string]string{
		"batch.ref_live": "Référence\u00a0: un lot en cours l’a déjà. Rappelez-le ou abandonnez-le, ou donnez une autre référence.", "batch.too_many_live": "Votre administration a trop de lots en cours. Terminez-en ou abandonnez-en un.",
		"policy.missing": "Aucune règle d’approbation n’est en vigueur dans ce mode. Deux signataires en proposent sur la page «\u00a0Signataires et règles\u00a0».", "batch.currency": "Devise\u00a0: prenez celle des règles d’approbation.",
		"batch.line_ref_scope": "Vos lots précédents numérotent les lignes par lot\u00a0: importez avec la commande et --line-refs-per-batch.", "line.ref_taken": "cette référence de ligne est déjà payée, ou attend dans un autre lot. Retirez la ligne, ou donnez-lui une autre référence si c’est un autre paiement.",
		"line.must_correct": "cette référence a déjà servi à une ligne qui n’a pas été payée. Donnez une autre référence, et l’ancienne dans la colonne «\u00a0corrects\u00a0».", "line.not_correctable": "la ligne nommée dans «\u00a0corrects\u00a0» ne peut pas être corrigée\u00a0: elle est payée, ou peut encore l’être.",
		"batch.sum": "Le total est trop grand. Partagez le fichier.", "lines.too_many": "Le fichier a trop de lignes. Partagez-le.", "registry.stale": "Ce serveur n’a pas encore la dernière configuration. Recommencez dans une minute.",
		"disbursement.malformed": "Un champ n’est pas accepté\u00a0: donnez une référence sans accent et une date à moins d’un an.", "batch.date": "Date de paiement\u00a0: le dernier jour de paiement est passé.",
	},
}

var englishImport = importWords{
	Title:   "Import a file of lines",
	Intro:   "The file is taken as a whole or refused as a whole. All faults are shown at once. Without any it becomes a draft, which you look at before you seal it. Nothing is paid before the approvals.",
	RefHint: "Your reference of the batch, such as \"salaries-2026-12\". A new import with the same reference is the next revision.", DateHint: "The payment date of the batch.",
	File: "File", FileHint: "CSV or an XLSX workbook, at most 24 MB and 100,000 lines.", Send: "Import", Template: "Empty template",
	Busy:    "Other files are being read. Nothing is imported: try again in a minute.",
	TooSlow: "File: it arrives too slowly, nothing is imported. Check the connection, then try again.",
	NoFile:  "File: choose a CSV or XLSX file that is not empty.", NoRef: "Reference: give 1 to 140 characters without accents.", NoDate: "Payment date: give a date such as 2026-12-20.",
	NoCurrency: "Currency: give a code such as XAF.", NoAccounts: "Mode: your administration has no payout account in this mode. Tell whoever runs the service.",
	NoAnswer: "The service did not answer in time. Nothing can be paid: a draft that is left ends within seven days, or you discard it. Try again in a minute.",
	TooLarge: "File: it is larger than %d MB. Split it into several batches.", Refused: "The file is refused, and nothing is imported. Number of faults: %d.",
	Faults: "Faults of the file", Where: "Where", WholeFile: "File", Cell: "Content", Happened: "What happened, and what to do", RowColumn: "Row %d, column %s", OnlyRow: "Row %d",
	AtRow:    "Row %d of the file, reference %s: ",
	NotMaker: "Only the person who prepared the batch seals it.", Missing: "What the import found could not be read. Load the page again.",
	Incomplete: "The import is not over, or stopped before its end: lines may be missing, and nothing was compared with earlier batches. Such a draft cannot be sealed: discard it and import it again.",
	FoundTitle: "What the import found", FoundText: "This part helps to look at the batch. It is not signed: your passkey signs the batch and its lines, not these remarks. After a change of the service’s keys, payees who were paid before may look new.",
	NoWarnings:   "No warnings.",
	WithRevision: "Compared with the last revision (%s, revision %d, of %s): total %s, now %s.", WithLast: "Compared with the last batch (%s, revision %d, of %s): total %s, now %s.",
	Same: "Nothing differs.", Differences: "Differences", Warnings: "Warnings", Kind: "Kind", HowMany: "Number", Which: "Line references",
	WaiverHint: "The policy asks for a check of the names, and not all are checked. Wait for the operators' answers, or write why you do not wait; approvers read it.",
	Names:      "Payees’ names at the operators", NamesText: "Lines whose name the operator is asked for: %s. The name that the operator tells is compared with that of the line, and forgotten.",
	NamesWait: "Names not told yet: %s, at most ten a second an account. Load the page again for the rest.",
	Verdicts: map[string]string{
		"match": "Same name", "close": "Close name: a word is missing, short or differs by a letter", "different": "Different name", "unknown": "Number or name unknown to the operator",
	},
	Seal:    actWords{"Seal the batch", "The batch is fixed and waits for approvals. You can recall it until it is released.", "Seal"},
	Discard: actWords{"Discard the draft", "The draft ends. Its reference is free.", "Discard"},
	ChangeKinds: map[string]string{
		"added": "Lines added", "removed": "Lines removed", "changed": "Lines changed", "new_payee": "New payees", "gone_payee": "Payees gone",
		"other_account": "Same name, another account", "other_amount": "Same payee, another amount",
	},
	WarningKinds: map[string]string{
		"same_twice": "Payee and amount of another line of the batch", "same_recently": "Payee and amount of a payment in the last 90 days", "other_account": "Known name with an account that it never had", "other_name": "Known account with a name that it never had",
		"new_payee": "Payee never paid before",
	},
	CodeRefused: map[string]string{
		"batch.ref_live": "Reference: a live batch has it. Recall or discard that one, or give another reference.", "batch.too_many_live": "Your administration has too many live batches. Finish or discard one.",
		"policy.missing": "No policy is in force in this mode. Two signatories propose one on the page \"Signatories and policy\".", "batch.currency": "Currency: use that of the policy.",
		"batch.line_ref_scope": "Your earlier batches number their lines by batch: import with the command and --line-refs-per-batch.", "line.ref_taken": "this line reference is paid already, or waits in another batch. Remove the line, or give it another reference if it is another payment.",
		"line.must_correct": "this reference was that of a line that was not paid. Give another reference, and the old one in the column \"corrects\".", "line.not_correctable": "the line named in \"corrects\" cannot be corrected: it is paid, or may still be.",
		"batch.sum": "The total is too large. Split the file.", "lines.too_many": "The file has too many lines. Split it.", "registry.stale": "This server lacks the newest configuration. Try again in a minute.",
		"disbursement.malformed": "A field is not accepted: give a reference without accents, and a date within a year.", "batch.date": "Payment date: the last day of payment is over.",
	},
}

// faultOf returns the first field of an import that is not filled in, and its mend.
func (t *importWords) faultOf(q disbursements.Import) (field, mend string) {
	if q.BatchRef == "" || len(q.BatchRef) > disbursement.MaxText {
		return byRef, t.NoRef
	}
	if _, err := localtime.Begin(q.Date); err != nil {
		return fieldDate, t.NoDate
	}
	if _, ok := money.Lookup(q.Currency); !ok {
		return fieldCurrency, t.NoCurrency
	}
	return "", ""
}

// refusal returns the words of a refusal of the processor, and the field of the form that it is about; empty for none.
func (t *importWords) refusal(v *visit, r *disbursements.RefusedError) (field, text string) {
	text, ok := t.CodeRefused[string(r.Code)]
	if !ok {
		text = fmt.Sprintf(v.w.RefusedBy, r.Code)
	}
	switch r.Code {
	case disbursement.CodeRefLive, disbursement.CodeTooManyLive:
		return byRef, text
	case disbursement.CodeCurrency:
		return fieldCurrency, text
	case disbursement.CodeDate:
		return fieldDate, text
	default:
	}
	if r.LineRef != "" {
		return fieldFile, fmt.Sprintf(t.AtRow, r.Row, r.LineRef) + text
	}
	if strings.HasPrefix(r.Field, "lines") {
		return fieldFile, text
	}
	return "", text
}
