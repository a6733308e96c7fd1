package lines

import (
	"maps"
	"slices"

	"quittance/money"
	"quittance/money/language"
)

// FaultKind classifies faults. All refuse the file.
type FaultKind string

// Faults of the file.
const (
	FaultTooLarge   FaultKind = "too_large"
	FaultOther      FaultKind = "other_format" // neither CSV nor XLSX
	FaultUnreadable FaultKind = "unreadable"
	FaultExpands    FaultKind = "expands" // an archive that grows beyond the limit
	FaultEncoding   FaultKind = "encoding"
	FaultNoLines    FaultKind = "no_lines"
	FaultTooMany    FaultKind = "too_many_lines"
	FaultSum        FaultKind = "sum"
)

// Faults of sheets and of the shape of the table.
const (
	FaultHiddenSheet   FaultKind = "hidden_sheet"
	FaultSecondSheet   FaultKind = "second_sheet"
	FaultMerged        FaultKind = "merged"
	FaultHiddenRow     FaultKind = "hidden_row"
	FaultHiddenColumn  FaultKind = "hidden_column"
	FaultHeaderPlace   FaultKind = "header_place"
	FaultHeaderMissing FaultKind = "header_missing"
	FaultHeaderUnknown FaultKind = "header_unknown"
	FaultHeaderTwice   FaultKind = "header_twice"
	FaultHeaderAgain   FaultKind = "header_again" // a second row of headers
	FaultEmptyRow      FaultKind = "empty_row"
	FaultWidth         FaultKind = "width"
	FaultNoHeader      FaultKind = "no_header"
	FaultQuote         FaultKind = "quote"
)

// Faults of a cell that a spreadsheet makes.
const (
	FaultFormula    FaultKind = "formula"
	FaultNumber     FaultKind = "number"
	FaultDigits     FaultKind = "digits" // 15 digits are kept
	FaultScientific FaultKind = "scientific"
	FaultDate       FaultKind = "date"
	FaultError      FaultKind = "error_value"
	FaultBoolean    FaultKind = "boolean"
	FaultShown      FaultKind = "shown" // the format of the cell shows another number
	FaultApostrophe FaultKind = "apostrophe"
	FaultZeroLost   FaultKind = "zero_lost"
)

// Faults of the text of a cell.
const (
	FaultMissing      FaultKind = "missing"
	FaultUnwanted     FaultKind = "unwanted"
	FaultInvisible    FaultKind = "invisible"
	FaultSpaces       FaultKind = "spaces"
	FaultCharacter    FaultKind = "character"
	FaultScript       FaultKind = "script"
	FaultLength       FaultKind = "length"
	FaultAmount       FaultKind = "amount"
	FaultThousands    FaultKind = "thousands"
	FaultDecimals     FaultKind = "decimals"
	FaultNoDecimals   FaultKind = "no_decimals"
	FaultNotPositive  FaultKind = "not_positive"
	FaultAmountLarge  FaultKind = "amount_large"
	FaultCurrency     FaultKind = "currency"
	FaultMode         FaultKind = "mode"
	FaultModeCurrency FaultKind = "mode_currency"
	FaultPhone        FaultKind = "phone"
	FaultOperator     FaultKind = "operator"
	FaultTwoAccounts  FaultKind = "two_accounts"
	FaultIBAN         FaultKind = "iban"
	FaultIBANCountry  FaultKind = "iban_country"
	FaultIBANLength   FaultKind = "iban_length"
	FaultIBANCheck    FaultKind = "iban_check"
	FaultRIB          FaultKind = "rib"
	FaultRIBKey       FaultKind = "rib_key"
	FaultBIC          FaultKind = "bic"
	FaultTwice        FaultKind = "line_ref_twice"
	FaultCorrectsSelf FaultKind = "corrects_self"
	FaultCorrectTwice FaultKind = "corrects_twice"
)

// Faults of an item of an ERP's answer, beside those above.
const (
	FaultItemType   FaultKind = "item_type"
	FaultItemText   FaultKind = "item_text"
	FaultItemLength FaultKind = "item_length"
	FaultItemRange  FaultKind = "item_range"
	FaultItemPayee  FaultKind = "item_payee"
)

// FaultKinds lists all kinds of faults of files, in the order of the alphabet.
func FaultKinds() []FaultKind { return slices.Sorted(maps.Keys(faultWords[money.French])) }

// faultText says what is wrong and what to do. A text has at most one %s, for Fault.Want.
type faultText struct{ Detail, Mend string }

var faultWords = language.Table[map[FaultKind]faultText]{
	money.French: {
		FaultTooLarge:   {"Le fichier dépasse %s\u00a0Mo.", "Répartissez les lignes entre plusieurs lots."},
		FaultOther:      {"Le fichier n’est ni un CSV ni un classeur XLSX, ou il est protégé par un mot de passe.", "Dans le tableur, enregistrez-le au format «\u00a0Classeur Excel (.xlsx)\u00a0», sans mot de passe."},
		FaultUnreadable: {"Le fichier est abîmé ou incomplet.", "Ouvrez-le dans le tableur, enregistrez-le de nouveau en .xlsx, puis déposez-le."},
		FaultExpands:    {"Une fois décompressé, le classeur dépasse %s\u00a0Mo.", "Copiez les seules lignes à payer dans un modèle vierge."},
		FaultEncoding:   {"L’encodage du fichier ne peut pas être déterminé avec certitude.", "Enregistrez-le au format «\u00a0CSV UTF-8\u00a0», ou utilisez le modèle XLSX."},
		FaultNoLines:    {"Le fichier ne contient aucune ligne à payer.", "Ajoutez des lignes sous les en-têtes."},
		FaultTooMany:    {"Le fichier contient plus de %s lignes.", "Répartissez les lignes entre plusieurs lots."},
		FaultSum:        {"À partir de cette ligne, le total du lot dépasse %s unités.", "Vérifiez les montants, ou répartissez les lignes entre plusieurs lots."},

		FaultHiddenSheet:   {"Cette feuille est masquée.", "Affichez-la, puis supprimez-la."},
		FaultSecondSheet:   {"Cette feuille contient des données en plus de la feuille des lignes.", "Gardez toutes les lignes sur une seule feuille et supprimez les autres."},
		FaultMerged:        {"Les cellules %s sont fusionnées.", "Annulez la fusion et remplissez chaque cellule."},
		FaultHiddenRow:     {"Cette ligne est masquée ou filtrée, mais elle contient des données.", "Affichez-la, ou supprimez-la si elle ne doit pas être payée."},
		FaultHiddenColumn:  {"Cette colonne est masquée, mais elle contient des données.", "Affichez-la, ou supprimez-la."},
		FaultHeaderPlace:   {"La première ligne ne contient pas les en-têtes.", "Placez les en-têtes à la ligne 1, sans titre ni ligne vide au-dessus."},
		FaultHeaderMissing: {"Il manque la colonne «\u00a0%s\u00a0».", "Ajoutez-la, ou partez du modèle."},
		FaultHeaderUnknown: {"Cet en-tête est inconnu.", "Utilisez l’un de ceux-ci\u00a0: %s\u00a0; ou supprimez la colonne."},
		FaultHeaderTwice:   {"La colonne «\u00a0%s\u00a0» figure deux fois.", "Supprimez l’une des deux."},
		FaultHeaderAgain:   {"Les en-têtes figurent une seconde fois.", "Supprimez cette ligne."},
		FaultEmptyRow:      {"Cette ligne est vide, mais d’autres suivent.", "Supprimez-la, ou remplissez-la."},
		FaultWidth:         {"Cette ligne a moins de cellules que d’en-têtes\u00a0: elle est peut-être tronquée.", "Exportez de nouveau le fichier."},
		FaultNoHeader:      {"Cette cellule n’a pas d’en-tête. Un séparateur dans un texte a pu décaler la ligne.", "Videz la cellule, ou donnez un en-tête à la colonne."},
		FaultQuote:         {"Un guillemet manque ou est mal placé, ou la ligne est démesurée.", "Exportez de nouveau le fichier, ou utilisez le modèle XLSX."},

		FaultFormula:    {"La cellule contient une formule, ou un texte qu’un tableur prend pour une formule\u00a0: il commence par =, +, - ou @.", "Remplacez-la par sa valeur (copier, puis collage spécial, valeurs), ou commencez le texte autrement."},
		FaultNumber:     {"La cellule est un nombre. Le tableur supprime alors les zéros de tête et ne garde que 15 chiffres.", "Mettez la colonne au format Texte, puis saisissez de nouveau la valeur d’après le document d’origine."},
		FaultDigits:     {"Le nombre a plus de 15 chiffres\u00a0: le tableur a remplacé les suivants par des zéros.", "Mettez la colonne au format Texte, puis saisissez de nouveau la valeur d’après le document d’origine."},
		FaultScientific: {"Le tableur a mis la valeur en notation scientifique, et des chiffres ont pu se perdre.", "Mettez la colonne au format Texte, puis saisissez de nouveau la valeur d’après le document d’origine."},
		FaultDate:       {"La cellule est une date.", "Mettez la colonne au format Texte, puis saisissez de nouveau la valeur d’après le document d’origine."},
		FaultError:      {"La cellule contient une erreur du tableur.", "Saisissez la valeur."},
		FaultBoolean:    {"La cellule contient VRAI ou FAUX.", "Saisissez la valeur comme texte."},
		FaultShown:      {"Le format de la cellule affiche un autre nombre que celui qu’elle contient.", "Mettez la cellule au format Texte ou Nombre, puis vérifiez la valeur."},
		FaultApostrophe: {"Le texte commence par une apostrophe, signe par lequel un tableur marque un texte.", "Supprimez l’apostrophe."},
		FaultZeroLost:   {"Il manque sans doute un zéro\u00a0: un tableur supprime les zéros de tête.", "Mettez la colonne au format Texte, puis saisissez de nouveau la valeur d’après le document d’origine."},

		FaultMissing:      {"La valeur manque.", "Saisissez la valeur."},
		FaultUnwanted:     {"Le compte qui paie ce mode de paiement n’utilise pas cette valeur.", "Videz la cellule, ou corrigez le mode de paiement."},
		FaultInvisible:    {"Le texte contient un caractère invisible (%s).", "Saisissez de nouveau le texte, sans le copier."},
		FaultSpaces:       {"Le texte commence ou finit par une espace.", "Supprimez l’espace."},
		FaultCharacter:    {"Le texte contient un caractère qui n’est pas admis ici (%s).", "N’utilisez que des lettres sans accent, des chiffres, l’espace et la ponctuation courante."},
		FaultScript:       {"Le caractère %s ne peut pas être transcrit de façon lisible en lettres latines.", "Écrivez le texte en lettres latines, comme sur le compte du bénéficiaire."},
		FaultLength:       {"Le texte dépasse %s caractères, une fois transcrit en lettres latines.", "Raccourcissez-le."},
		FaultAmount:       {"Le montant n’est pas un nombre.", "Écrivez-le en chiffres, sans espace ni devise, par exemple %s."},
		FaultThousands:    {"Le montant contient des séparateurs de milliers, que l’on peut prendre pour des décimales.", "Écrivez-le sans séparateur, par exemple %s."},
		FaultDecimals:     {"Le montant a des décimales que sa devise n’a pas.", "Écrivez-le comme %s."},
		FaultNoDecimals:   {"Le montant n’a pas les décimales de sa devise.", "Écrivez-les toutes, comme texte, par exemple %s."},
		FaultNotPositive:  {"Le montant est nul ou négatif.", "Saisissez un montant positif, ou supprimez la ligne."},
		FaultAmountLarge:  {"Le montant dépasse %s unités.", "Vérifiez le montant."},
		FaultCurrency:     {"La devise n’est pas celle du lot, %s.", "Écrivez le code de la devise du lot, ou payez cette ligne dans un autre lot."},
		FaultMode:         {"Aucun compte de paiement n’accepte ce mode de paiement.", "Écrivez l’un des modes suivants\u00a0: %s."},
		FaultModeCurrency: {"Le compte qui paie ce mode de paiement est en %s, et non dans la devise du lot.", "Choisissez un autre mode de paiement, ou un lot dans cette devise."},
		FaultPhone:        {"Ce n’est pas un numéro de téléphone mobile.", "Saisissez le numéro complet du bénéficiaire."},
		FaultOperator:     {"Le numéro est d’un autre opérateur que celui du mode de paiement.", "Vérifiez le numéro et le mode de paiement."},
		FaultTwoAccounts:  {"La ligne donne un IBAN et un RIB.", "N’en gardez qu’un."},
		FaultIBAN:         {"Ce n’est pas un IBAN.", "Copiez l’IBAN du relevé d’identité bancaire\u00a0: deux lettres, deux chiffres, puis le compte."},
		FaultIBANCountry:  {"Le pays %s n’a pas d’IBAN connu.", "Vérifiez les deux premières lettres."},
		FaultIBANLength:   {"L’IBAN n’a pas les %s caractères de son pays. Un zéro a pu se perdre.", "Copiez-le de nouveau du relevé d’identité bancaire."},
		FaultIBANCheck:    {"La clé de l’IBAN est fausse\u00a0: un caractère est erroné ou deux sont inversés.", "Copiez-le de nouveau du relevé d’identité bancaire."},
		FaultRIB:          {"Le RIB n’a pas 23 chiffres\u00a0: banque 5, guichet 5, compte 11, clé 2.", "Copiez-le de nouveau du relevé d’identité bancaire."},
		FaultRIBKey:       {"La clé RIB est fausse\u00a0: un chiffre est erroné, manque ou a été déplacé.", "Copiez de nouveau le compte et sa clé du relevé d’identité bancaire."},
		FaultBIC:          {"Ce n’est pas un BIC.", "Saisissez 8 ou 11 lettres majuscules et chiffres, ou videz la cellule."},
		FaultTwice:        {"Cette référence est déjà celle de la ligne %s.", "Donnez à chaque ligne une référence qui lui est propre."},
		FaultCorrectsSelf: {"La ligne se corrige elle-même.", "Donnez-lui une référence nouvelle, et laissez dans cette colonne celle de la ligne à payer de nouveau."},
		FaultCorrectTwice: {"La ligne %s corrige déjà cette référence.", "Gardez une seule des deux lignes."},
	},
	money.English: {
		FaultTooLarge:   {"The file is larger than %s MB.", "Divide the lines among several batches."},
		FaultOther:      {"The file is neither CSV nor an XLSX workbook, or it is protected by a password.", "In the spreadsheet, save it as “Excel workbook (.xlsx)” without a password."},
		FaultUnreadable: {"The file is damaged or incomplete.", "Open it in the spreadsheet, save it as .xlsx again, and upload it."},
		FaultExpands:    {"Unpacked, the workbook is larger than %s MB.", "Copy the lines to pay, and nothing else, into a fresh template."},
		FaultEncoding:   {"The encoding of the file cannot be told with certainty.", "Save it as “CSV UTF-8”, or use the XLSX template."},
		FaultNoLines:    {"The file has no line to pay.", "Add lines below the headers."},
		FaultTooMany:    {"The file has more than %s lines.", "Divide the lines among several batches."},
		FaultSum:        {"From this row on, the sum of the batch is larger than %s units.", "Check the amounts, or divide the lines among several batches."},

		FaultHiddenSheet:   {"This sheet is hidden.", "Show it, then delete it."},
		FaultSecondSheet:   {"This sheet has data beside the sheet of the lines.", "Keep all lines on one sheet and delete the others."},
		FaultMerged:        {"The cells %s are merged.", "Undo the merge and fill in each cell."},
		FaultHiddenRow:     {"This row is hidden or filtered out, but it has data.", "Show it, or delete it if it must not be paid."},
		FaultHiddenColumn:  {"This column is hidden, but it has data.", "Show it, or delete it."},
		FaultHeaderPlace:   {"The first row does not have the headers.", "Put the headers in row 1, without a title or an empty row above."},
		FaultHeaderMissing: {"The column “%s” is missing.", "Add it, or start from the template."},
		FaultHeaderUnknown: {"This header is unknown.", "Use one of these: %s; or delete the column."},
		FaultHeaderTwice:   {"The column “%s” is there twice.", "Delete one of the two."},
		FaultHeaderAgain:   {"The headers are there a second time.", "Delete this row."},
		FaultEmptyRow:      {"This row is empty, but others follow.", "Delete it, or fill it in."},
		FaultWidth:         {"This row has fewer cells than there are headers: it may be cut off.", "Export the file again."},
		FaultNoHeader:      {"This cell has no header. A separator in a text may have shifted the row.", "Empty the cell, or give the column a header."},
		FaultQuote:         {"A quotation mark is missing or misplaced, or the row is far too long.", "Export the file again, or use the XLSX template."},

		FaultFormula:    {"The cell has a formula, or a text that spreadsheets take for one: it begins with =, +, - or @.", "Replace it with its value (copy, then paste special, values), or begin the text with another character."},
		FaultNumber:     {"The cell is a number. The spreadsheet then drops leading zeros and keeps only 15 digits.", "Format the column as text, then enter the value again from the original document."},
		FaultDigits:     {"The number has more than 15 digits: the spreadsheet has replaced the others with zeros.", "Format the column as text, then enter the value again from the original document."},
		FaultScientific: {"The spreadsheet has put the value in scientific notation, and digits may be lost.", "Format the column as text, then enter the value again from the original document."},
		FaultDate:       {"The cell is a date.", "Format the column as text, then enter the value again from the original document."},
		FaultError:      {"The cell has an error of the spreadsheet.", "Enter the value."},
		FaultBoolean:    {"The cell is TRUE or FALSE.", "Enter the value as text."},
		FaultShown:      {"The format of the cell shows another number than the cell has.", "Format the cell as text or number, then check the value."},
		FaultApostrophe: {"The text begins with an apostrophe, by which a spreadsheet marks a text.", "Delete the apostrophe."},
		FaultZeroLost:   {"A zero is probably missing: a spreadsheet drops leading zeros.", "Format the column as text, then enter the value again from the original document."},

		FaultMissing:      {"The value is missing.", "Enter the value."},
		FaultUnwanted:     {"The account that pays this payment mode does not use this value.", "Empty the cell, or correct the payment mode."},
		FaultInvisible:    {"The text has an invisible character (%s).", "Type the text again, without copying it."},
		FaultSpaces:       {"The text begins or ends with a space.", "Delete the space."},
		FaultCharacter:    {"The text has a character that is not allowed here (%s).", "Use letters without accents, digits, the space and common punctuation only."},
		FaultScript:       {"The character %s cannot be written readably in Latin letters.", "Write the text in Latin letters, as on the payee’s account."},
		FaultLength:       {"The text has more than %s characters, once written in Latin letters.", "Shorten it."},
		FaultAmount:       {"The amount is not a number.", "Write it in digits, without spaces or currency, such as %s."},
		FaultThousands:    {"The amount has separators of thousands, which can be taken for decimals.", "Write it without separators, such as %s."},
		FaultDecimals:     {"The amount has decimals that its currency does not have.", "Write it like %s."},
		FaultNoDecimals:   {"The amount lacks the decimals of its currency.", "Write all of them, as text, such as %s."},
		FaultNotPositive:  {"The amount is zero or negative.", "Enter a positive amount, or delete the row."},
		FaultAmountLarge:  {"The amount is larger than %s units.", "Check the amount."},
		FaultCurrency:     {"The currency is not that of the batch, %s.", "Write the code of the batch’s currency, or pay this line in another batch."},
		FaultMode:         {"No payout account takes this payment mode.", "Write one of these modes: %s."},
		FaultModeCurrency: {"The account that pays this payment mode is in %s, not in the currency of the batch.", "Choose another payment mode, or a batch in that currency."},
		FaultPhone:        {"This is not a mobile phone number.", "Enter the payee’s number in full."},
		FaultOperator:     {"The number is of another operator than that of the payment mode.", "Check number and payment mode."},
		FaultTwoAccounts:  {"The row has both an IBAN and a RIB.", "Keep one of the two."},
		FaultIBAN:         {"This is not an IBAN.", "Copy the IBAN from the bank details: two letters, two digits, then the account."},
		FaultIBANCountry:  {"The country %s has no known IBAN.", "Check the first two letters."},
		FaultIBANLength:   {"The IBAN does not have the %s characters of its country. A zero may be lost.", "Copy it from the bank details again."},
		FaultIBANCheck:    {"The check digits of the IBAN are wrong: a character is wrong, or two are exchanged.", "Copy it from the bank details again."},
		FaultRIB:          {"The RIB does not have 23 digits: bank 5, branch 5, account 11, key 2.", "Copy it from the bank details again."},
		FaultRIBKey:       {"The RIB key is wrong: a digit is wrong, missing or was moved.", "Copy account and key from the bank details again."},
		FaultBIC:          {"This is not a BIC.", "Enter 8 or 11 capital letters and digits, or empty the cell."},
		FaultTwice:        {"Row %s has this line_ref already.", "Give each line a reference of its own."},
		FaultCorrectsSelf: {"The line corrects itself.", "Give it a new reference, and leave in this column that of the line to pay again."},
		FaultCorrectTwice: {"Row %s corrects this reference already.", "Keep only one of the two rows."},
	},
}

// itemWords are the words of faults of items where they differ from those of files.
var itemWords = language.Table[map[FaultKind]faultText]{
	money.French: {
		FaultNoLines:    {"L’ERP n’a aucune ligne sous cette référence de lot.", "Vérifiez la référence du lot, et dans l’ERP que ses lignes sont prêtes."},
		FaultFormula:    {"Le texte commence par =, +, - ou @. Un tableur le prendrait pour une formule.", "Commencez-le autrement, dans l’ERP."},
		FaultScientific: {"La valeur est en notation scientifique, et des chiffres ont pu se perdre.", "Corrigez dans l’ERP la valeur d’après le document d’origine."},
		FaultDigits:     {"Le nombre finit par des zéros après 15 chiffres, comme s’il venait d’un tableur.", "Corrigez dans l’ERP la valeur d’après le document d’origine."},
		FaultDate:       {"La valeur est une date.", "Corrigez dans l’ERP la valeur d’après le document d’origine."},
		FaultError:      {"La valeur est une erreur d’un tableur.", "Corrigez dans l’ERP la valeur."},
		FaultApostrophe: {"Le texte commence par une apostrophe, signe par lequel un tableur marque un texte.", "Supprimez l’apostrophe, dans l’ERP."},
		FaultZeroLost:   {"Il manque sans doute un zéro.", "Corrigez dans l’ERP la valeur d’après le document d’origine, et envoyez-la comme texte."},
		FaultMissing:    {"La valeur manque.", "Complétez la ligne dans l’ERP."},
		FaultUnwanted:   {"Le compte qui paie ce mode de paiement n’utilise pas cette valeur.", "Retirez-la, ou corrigez le mode de paiement, dans l’ERP."},
		FaultInvisible:  {"Le texte contient un caractère invisible (%s).", "Corrigez le texte dans l’ERP."},
		FaultBIC:        {"Ce n’est pas un BIC.", "Envoyez 8 ou 11 lettres majuscules et chiffres, ou rien."},
		FaultTwice:      {"L’élément %s a déjà cette référence.", "Donnez à chaque ligne une référence qui lui est propre."},
		FaultItemType:   {"La valeur n’est pas du type que le contrat demande.", "Envoyez un objet, un texte ou un nombre entier, comme le décrit le guide de l’ERP."},
		FaultItemText:   {"Le texte contient un caractère que le contrat n’admet pas.", "Envoyez des caractères imprimables, sur une seule ligne."},
		FaultItemLength: {"Le texte est vide, ou plus long que le contrat ne l’admet.", "Envoyez un texte de la longueur que décrit le guide de l’ERP."},
		FaultItemRange:  {"Le montant n’est pas un entier supérieur à zéro, dans la plus petite unité de la devise.", "Corrigez le montant dans l’ERP, ou retirez la ligne."},
		FaultItemPayee:  {"Il faut un seul moyen de payer le bénéficiaire\u00a0: un numéro de téléphone, un IBAN ou un numéro de compte.", "Envoyez soit msisdn, soit account avec iban ou number."},
	},
	money.English: {
		FaultNoLines:    {"The ERP has no line under this reference of a batch.", "Check the reference, and in the ERP that its lines are ready."},
		FaultFormula:    {"The text begins with =, +, - or @. A spreadsheet would take it for a formula.", "Begin it with another character, in the ERP."},
		FaultScientific: {"The value is in scientific notation, and digits may be lost.", "Correct it in the ERP from the original document."},
		FaultDigits:     {"The number has zeros after 15 digits, as if it came from a spreadsheet.", "Correct it in the ERP from the original document."},
		FaultDate:       {"The value is a date.", "Correct it in the ERP from the original document."},
		FaultError:      {"The value is an error of a spreadsheet.", "Correct it in the ERP."},
		FaultApostrophe: {"The text begins with an apostrophe, by which a spreadsheet marks a text.", "Remove the apostrophe, in the ERP."},
		FaultZeroLost:   {"A zero is probably missing.", "Correct it in the ERP from the original document, and send it as a string."},
		FaultMissing:    {"The value is missing.", "Complete the line in the ERP."},
		FaultUnwanted:   {"The account that pays this payment mode does not use this value.", "Remove it, or correct the payment mode, in the ERP."},
		FaultInvisible:  {"The text has an invisible character (%s).", "Correct the text in the ERP."},
		FaultBIC:        {"This is not a BIC.", "Send 8 or 11 capital letters and digits, or nothing."},
		FaultTwice:      {"%s has this reference already.", "Give each line a reference of its own."},
		FaultItemType:   {"The value is not of the type that the contract asks for.", "Send an object, a string or an integer, as the guide of the ERP says."},
		FaultItemText:   {"The text has a character that the contract does not take.", "Send printable characters on one line."},
		FaultItemLength: {"The text is empty, or longer than the contract takes.", "Send a text of the length that the guide of the ERP says."},
		FaultItemRange:  {"The amount is no integer above zero in minor units of the currency.", "Correct the amount in the ERP, or remove the line."},
		FaultItemPayee:  {"A beneficiary is paid in one way: a phone number, an IBAN or an account number.", "Send either msisdn, or account with iban or number."},
	},
}

// place has the words before a fault.
type place struct{ Row, Column, Header, Cell, Colon string }

var placeWords = language.Table[place]{
	money.French:  {"Ligne %s", "colonne %s", "«\u00a0%s\u00a0»", "valeur «\u00a0%s\u00a0»", "\u00a0: "},
	money.English: {"Row %s", "column %s", "“%s”", "value “%s”", ": "},
}

// headers are the words over a column in the template.
var headers = map[Column]map[money.Language]string{
	ColumnRef:      {money.French: "Référence", money.English: "Reference"},
	ColumnName:     {money.French: "Bénéficiaire", money.English: "Payee"},
	ColumnAmount:   {money.French: "Montant", money.English: "Amount"},
	ColumnCurrency: {money.French: "Devise", money.English: "Currency"},
	ColumnMode:     {money.French: "Mode de paiement", money.English: "Payment mode"},
	ColumnPhone:    {money.French: "Téléphone", money.English: "Phone"},
	ColumnIBAN:     {money.French: "IBAN", money.English: "IBAN"},
	ColumnNumber:   {money.French: "RIB", money.English: "Account number"},
	ColumnBIC:      {money.French: "BIC", money.English: "BIC"},
	ColumnPurpose:  {money.French: "Motif", money.English: "Purpose"},
	ColumnCorrects: {money.French: "Corrige", money.English: "Corrects"},
}

// otherHeaders are further words over a column. Case, accents, hyphens and underscores do not count.
var otherHeaders = map[string]Column{
	"reference de ligne": ColumnRef, "line reference": ColumnRef, "nom": ColumnName, "nom du beneficiaire": ColumnName, "payee name": ColumnName,
	"numero de telephone": ColumnPhone, "phone number": ColumnPhone, "numero de compte": ColumnNumber, "objet": ColumnPurpose, "mode": ColumnMode,
}

// validation has what a spreadsheet says of a value that the template does not allow.
type validation struct{ Other, Long string }

var validationWords = language.Table[validation]{
	money.French:  {"Choisissez une valeur de la liste.", "Le texte ne peut pas dépasser %s caractères."},
	money.English: {"Choose a value of the list.", "The text cannot have more than %s characters."},
}

// instructions are the first lines of the sheet of instructions.
var instructions = language.Table[[6]string]{
	money.French: {
		"Une ligne par paiement. Les en-têtes restent à la ligne 1\u00a0; l’ordre des colonnes est libre.",
		"Toutes les cellules sont au format Texte\u00a0: le tableur garde ainsi les zéros de tête et tous les chiffres. Pour coller des données, choisissez «\u00a0Collage spécial, valeurs\u00a0».",
		"Ni formule, ni cellule fusionnée, ni ligne, colonne ou feuille masquée, ni ligne vide entre deux lignes.",
		"Une seule ligne erronée fait refuser tout le fichier\u00a0; toutes les erreurs sont indiquées en une fois.",
		"Les noms et les motifs sont transcrits en lettres latines sans accent avant le scellement\u00a0; vérifiez le résultat affiché.",
		"Au plus 100\u00a0000 lignes et 64\u00a0Mo.",
	},
	money.English: {
		"One row for each payment. The headers stay in row 1; the columns may be in any order.",
		"All cells are formatted as text, so that the spreadsheet keeps leading zeros and all digits. To paste data, choose “Paste special, values”.",
		"No formulas, no merged cells, no hidden rows, columns or sheets, no empty row between two rows.",
		"One faulty row refuses the whole file; all faults are told at once.",
		"Names and purposes are written in Latin letters without accents before sealing; check the result that is shown.",
		"At most 100,000 rows and 64 MB.",
	},
}

// columnHelp says what each column has.
var columnHelp = language.Table[map[Column]string]{
	money.French: {
		ColumnRef:      "Obligatoire. Référence de la ligne, unique, de 140 caractères au plus, sans accent.",
		ColumnName:     "Obligatoire. Nom du bénéficiaire, tel que sur son compte, de 70 caractères au plus.",
		ColumnAmount:   "Obligatoire. Montant en chiffres, sans espace ni séparateur de milliers, avec toutes les décimales de la devise si elle en a.",
		ColumnCurrency: "Obligatoire. Devise du lot\u00a0: %s.",
		ColumnMode:     "Obligatoire. L’un des modes suivants\u00a0: %s.",
		ColumnPhone:    "Numéro de téléphone mobile du bénéficiaire, pour un paiement par mobile money.",
		ColumnIBAN:     "IBAN du bénéficiaire, pour un virement. Donnez un IBAN ou un RIB.",
		ColumnNumber:   "RIB du bénéficiaire\u00a0: banque 5 chiffres, guichet 5, compte 11, clé 2.",
		ColumnBIC:      "Facultatif. BIC de la banque du bénéficiaire, 8 ou 11 caractères.",
		ColumnPurpose:  "Facultatif. Motif que le bénéficiaire reçoit, de 140 caractères au plus.",
		ColumnCorrects: "Facultatif. Référence d’une ligne refusée, annulée ou retournée que cette ligne paie de nouveau.",
	},
	money.English: {
		ColumnRef:      "Required. Reference of the line, unique, at most 140 characters without accents.",
		ColumnName:     "Required. Name of the payee, as on the account, at most 70 characters.",
		ColumnAmount:   "Required. Amount in digits, without spaces or separators of thousands, with all decimals of the currency if it has any.",
		ColumnCurrency: "Required. Currency of the batch: %s.",
		ColumnMode:     "Required. One of these modes: %s.",
		ColumnPhone:    "Mobile phone number of the payee, for a payment by mobile money.",
		ColumnIBAN:     "IBAN of the payee, for a bank transfer. Give an IBAN or a RIB.",
		ColumnNumber:   "RIB of the payee: bank 5 digits, branch 5, account 11, key 2.",
		ColumnBIC:      "Optional. BIC of the payee’s bank, 8 or 11 characters.",
		ColumnPurpose:  "Optional. Purpose that the payee receives, at most 140 characters.",
		ColumnCorrects: "Optional. Reference of a refused, cancelled or returned line that this line pays again.",
	},
}
