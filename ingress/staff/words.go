package staff

import (
	"quittance/money"
	"quittance/money/language"
)

// words are the texts of the frame in one language. A field's comment says what the verbs of package fmt in its text
// stand for.
type words struct {
	Title      string
	SignedInAs string // name
	Moved      string // date and time
	Zone       string

	SignInTitle, SignInText, SignIn, NoScript, NoPasskey, SignInFailed string
	DemoTitle, DemoText                                                string
	Ended, EndedInForm                                                 string
	AgainTitle, Again, Continue                                        string
	SearchLabel, Search, Work                                          string
	SessionsTitle, SessionsText, SessionOwn, SessionBegun, SessionUsed string
	SessionOther, EndOthers, SessionsEnded, SessionsLink               string
	NotPermittedTitle, UnknownTitle, Unknown                           string
	UnavailableTitle, Unavailable                                      string
	RefusedTitle                                                       string
	RefusedBy                                                          string // code
	TooManyTitle, TooMany                                              string
	TooManySearches                                                    string // number
	Next, First                                                        string
	Paused, Pause, Resume, Over, Once                                  string
	PressNoScript, PressFailed, PressWithout                           string

	Join joinWords
	// Roles are the names of roles.
	Roles map[string]string

	// Refusals are the words of refusals, by code. {name} stands for an argument.
	Refusals map[string]string
}

// joinWords are those of the page of an invited person.
type joinWords struct {
	Title, Intro, NoScript, NoLink, Begin, Name, Roles, First, Second, Make, Failed, Tell, Then string
	Step                                                                                        string // number, number
	Passkey                                                                                     string // number
}

// other returns the language that a page links to.
func (t table) other(lang money.Language) money.Language {
	if lang == money.English {
		return money.French
	}
	return money.English
}

type table struct{ language.Table[*words] }

var texts = table{language.Table[*words]{money.French: &french, money.English: &english}}

var french = words{ //nolint:gosec // texts, no credential
	Title: "Exploitation", SignedInAs: "Connecté\u00a0: %s",
	Moved: "L’horloge du service a été déplacée\u00a0: il est %s pour le service.", Zone: "Heures de Brazzaville (UTC+1).",
	DemoTitle: "Personnes de démonstration", DemoText: "Cette installation de développement a des personnes de démonstration. Leur clé d’accès est un logiciel\u00a0; le service la vérifie comme une autre.",
	SignInTitle:  "Connexion des agents",
	SignInText:   "Connectez-vous avec la clé d’accès que vous avez créée sur cet appareil, sur votre téléphone ou sur une clé de sécurité.",
	SignIn:       "Se connecter avec une clé d’accès",
	NoScript:     "La connexion demande une clé d’accès, que seul JavaScript peut lire. Autorisez JavaScript pour ce site, puis rechargez la page. Une fois connecté, vous pouvez consulter et proposer sans JavaScript.",
	NoPasskey:    "Ce navigateur ne sait pas utiliser les clés d’accès, ou cette page n’est pas ouverte à l’adresse du service. Ouvrez-la avec un navigateur récent, à l’adresse que votre responsable vous a donnée.",
	SignInFailed: "La connexion n’a pas abouti. Recommencez, et choisissez une clé d’accès de ce service.",
	Ended:        "Votre session a pris fin\u00a0: après 15 minutes sans activité, ou 8 heures en tout. Connectez-vous de nouveau.",
	EndedInForm:  "Votre session a pris fin, et rien n’a été enregistré. Connectez-vous de nouveau, revenez à la page, puis recommencez.",
	AgainTitle:   "Ouverture de la page", Again: "Vous venez d’un autre site. La page s’ouvre dans un instant\u00a0; sinon, continuez.", Continue: "Continuer",
	SearchLabel: "Dossier, référence de paiement ou référence d’opérateur", Search: "Rechercher", Work: "À traiter",
	SessionsTitle: "Vos sessions", SessionsText: "Vous pouvez avoir trois sessions à la fois. Si vous n’en reconnaissez pas une, fermez les autres et prévenez votre responsable.",
	SessionOwn: "Celle-ci", SessionOther: "Une autre", SessionBegun: "Ouverte le", SessionUsed: "Dernière activité", EndOthers: "Fermer les autres sessions", SessionsEnded: "Les autres sessions sont fermées.", SessionsLink: "Vos sessions",
	NotPermittedTitle: "Page non autorisée",
	UnknownTitle:      "Introuvable", Unknown: "Rien ne correspond à cette adresse, ou vous n’êtes pas autorisé à le voir. Vérifiez l’adresse, ou recherchez le dossier.",
	UnavailableTitle: "Le service ne répond pas", Unavailable: "Le service ne répond pas. Rien n’a été enregistré\u00a0: recommencez dans un instant.",
	RefusedTitle: "Demande refusée", RefusedBy: "La demande est refusée (%s). Rien n’a été enregistré.",
	TooManyTitle: "Trop de demandes", TooMany: "Trop de demandes viennent de votre réseau. Réessayez dans un instant.",
	TooManySearches: "Vous avez fait plus de %d recherches en une minute. Réessayez dans un instant.",
	Next:            "Page suivante", First: "Première page",
	Paused: "Mise à jour suspendue", Pause: "Suspendre la mise à jour", Resume: "Reprendre la mise à jour", Over: "Votre session a pris fin\u00a0: rechargez la page.", Once: "Envoi en cours…",
	PressNoScript: "Cette opération se signe avec une clé d’accès, que seul JavaScript peut lire. Autorisez JavaScript pour ce site, puis rechargez la page.",
	PressFailed:   "La clé d’accès n’a pas signé, et rien n’est enregistré. Recommencez, et choisissez une de vos clés d’accès.",
	PressWithout:  "Ce navigateur ne sait pas utiliser les clés d’accès, ou cette page n’est pas ouverte à l’adresse du service.",
	Join: joinWords{ //nolint:gosec // texts, no credential
		Title: "Créer vos clés d’accès", Intro: "Vous êtes invité à travailler sur ce service. Vous allez créer deux clés d’accès, sur deux appareils ou supports différents\u00a0: ce téléphone ou cet ordinateur, et un autre téléphone ou une clé de sécurité. Le lien ne sert qu’une fois\u00a0: commencez quand vous les avez sous la main.",
		NoScript: "Une clé d’accès ne se crée qu’avec JavaScript. Autorisez JavaScript pour ce site, puis ouvrez de nouveau le lien.",
		NoLink:   "L’adresse est incomplète\u00a0: ouvrez le lien entier du message d’invitation.",
		Begin:    "Commencer", Name: "Nom", Roles: "Rôles", Step: "Clé d’accès %d sur %d",
		First:  "Créez la première clé d’accès. Votre appareil vous demande un code, une empreinte ou votre visage.",
		Second: "Créez la seconde sur un autre appareil ou support. Si vous perdez l’un, l’autre vous permet de revenir.",
		Make:   "Créer une clé d’accès", Failed: "La clé d’accès n’est pas créée. Recommencez\u00a0; pour la seconde, choisissez un autre appareil.",
		Tell: "Vos deux clés d’accès sont créées. Dictez ces huit chiffres, de vive voix, à la personne qui confirme votre compte. Ne les envoyez pas par message.",
		Then: "Vous pourrez vous connecter après cette confirmation, et approuver 24 heures plus tard.", Passkey: "Clé d’accès %d",
	},
	Roles: map[string]string{
		"reader": "lecteur", "accountant": "comptable", "preparer": "préparateur", "approver": "approbateur", "supervisor": "responsable des guichets", "agency-admin": "gestionnaire des comptes",
		"support": "agent d’assistance", "operator": "exploitant", "lead": "responsable d’exploitation", "admin": "administrateur de la configuration", "security-officer": "responsable de la sécurité", "auditor": "auditeur",
	},
	Refusals: map[string]string{ //nolint:gosec // texts, no credential
		"invitation.unknown":          "Aucune invitation n’a cet identifiant.",
		"invitation.open":             "{name} a déjà une invitation valable jusqu’au {until}. Retirez-la avant d’en faire une autre.",
		"invitation.not_active":       "{name} ne peut pas être invité\u00a0: le compte est «\u00a0{state}\u00a0».",
		"invitation.has_passkeys":     "{name} a deux clés d’accès. Passez par «\u00a0Inviter de nouveau\u00a0» sur sa fiche si elles sont perdues.",
		"invitation.over":             "L’invitation de {name} n’est plus en cours\u00a0: {state}. Invitez la personne de nouveau.",
		"invitation.not_ready":        "{name} n’a pas encore créé ses deux clés d’accès. Attendez les huit chiffres.",
		"invitation.inviter_gone":     "La personne qui a invité {name} ne gère plus les comptes. Retirez l’invitation, puis invitez de nouveau.",
		"invitation.second_person":    "Vous avez invité {name}\u00a0: une autre personne confirme.",
		"invitation.own":              "Personne ne confirme sa propre invitation\u00a0: une autre personne le fait.",
		"invitation.digits_wrong":     "Ce ne sont pas les chiffres de cette invitation. Appelez la personne et demandez-les de nouveau. Essais restants\u00a0: {left}.",
		"staff.unknown":               "Aucune personne n’a cet identifiant.",
		"staff.name_malformed":        "Indiquez le nom, en une ligne de {most} caractères au plus.",
		"staff.name_taken":            "{name} existe déjà ({state}). Un nom ne sert qu’une fois\u00a0: donnez-en un qui distingue les deux personnes.",
		"staff.number_malformed":      "Le matricule tient en une ligne de {most} caractères au plus.",
		"staff.number_taken":          "{name} a ou a eu ce matricule dans le groupe ({group}). Donnez-en un autre.",
		"staff.role_unknown":          "Ce rôle n’existe pas. Rôles du groupe\u00a0: {roles}.",
		"staff.role_of_others":        "Le rôle «\u00a0{role}\u00a0» n’existe pas dans ce groupe. Choisissez parmi\u00a0: {roles}.",
		"staff.role_twice":            "Le rôle «\u00a0{role}\u00a0» est à la fois à donner et à retirer. Cochez-le une fois.",
		"staff.roles_exclusive":       "Une même personne ne peut pas avoir les rôles «\u00a0{role}\u00a0» et «\u00a0{other}\u00a0». Retirez l’un des deux.",
		"staff.roles_same":            "{name} a déjà ces rôles\u00a0: {roles}. Cochez un changement.",
		"staff.last_managers":         "{name} est l’une des deux dernières personnes qui gèrent les comptes du groupe. Donnez d’abord ce rôle à une autre personne.",
		"staff.page_decides":          "Deux personnes de ce groupe décident de ses comptes sur ces pages.",
		"staff.other_people":          "Les personnes de {group} décident de leurs comptes. Adressez-vous à l’une d’elles.",
		"staff.is_revoked":            "Le compte de {name} est fermé définitivement. Invitez la personne sous un autre nom.",
		"staff.reason_malformed":      "Indiquez le motif, en une ligne de {most} caractères au plus.",
		"staff.not_active":            "{name} ne peut pas être suspendu\u00a0: le compte est «\u00a0{state}\u00a0».",
		"staff.suspends_self":         "Personne ne se suspend soi-même. Adressez-vous à une autre personne qui gère les comptes.",
		"staff.suspends_too_many":     "Une personne suspend au plus {most} personnes en {hours} heures. Adressez-vous à une autre personne qui gère les comptes.",
		"staff.not_suspended":         "{name} n’est pas suspendu\u00a0: le compte est «\u00a0{state}\u00a0».",
		"staff.lifts_own":             "Vous avez suspendu {name}\u00a0: une autre personne lève la suspension.",
		"staff_change.unknown":        "Aucune proposition n’a cet identifiant.",
		"staff_change.waits":          "Une proposition de {proposer} au sujet de {name} est déjà en attente. Il faut l’approuver ou la rejeter d’abord.",
		"staff_change.second_person":  "Vous avez fait cette proposition au sujet de {name}\u00a0: une autre personne l’approuve.",
		"staff_change.lapsed":         "La proposition au sujet de {name} est caduque\u00a0: elle a plus de sept jours, ou son auteur ne gère plus les comptes. Proposez de nouveau.",
		"staff_change.decided":        "La proposition au sujet de {name} est déjà décidée\u00a0: {state}.",
		"staff_request.unknown":       "Aucune demande n’a cet identifiant.",
		"staff_request.id_malformed":  "Le formulaire est incomplet. Rechargez la page, puis recommencez.",
		"staff_request.other":         "Ce formulaire a déjà servi. Rechargez la page, puis recommencez.",
		"staff_request.too_many":      "Vous avez déjà {most} demandes en attente. Attendez leur exécution.",
		"staff_request.late":          "La demande n’a pas été exécutée dans l’heure et n’a pas eu d’effet. Recommencez, et prévenez l’exploitation si cela se répète.",
		"staff_request.not_proven":    "Votre clé d’accès n’a pas signé cette demande. Recommencez, et prévenez l’exploitation si cela se répète.",
		"staff_request.carried_out":   "Cette demande est déjà exécutée.",
		"passkey.unknown":             "Vous n’avez pas cette clé d’accès.",
		"passkey.last":                "C’est votre dernière clé d’accès. Demandez une nouvelle invitation avant de la retirer.",
		"agency.unknown":              "Aucune administration n’a cet identifiant.",
		"rows.no_key":                 "Le service ne peut pas enregistrer cette demande. Prévenez l’exploitation.",
		"rows.unsigned":               "Une mise à jour du service n’est pas terminée. Prévenez l’exploitation.",
		"invitation.link_over":        "Ce lien n’est plus valable\u00a0: il a déjà servi, il a plus de 72 heures, ou il est retiré. Demandez-en un autre à la personne qui vous a invité.",
		"invitation.passkeys_made":    "Vos deux clés d’accès sont déjà créées.",
		"passkey.refused":             "La clé d’accès n’est pas créée. Recommencez, et confirmez avec votre code, votre empreinte ou votre visage.",
		"passkey.known":               "Cette clé d’accès existe déjà. Créez-la sur un autre appareil ou support.",
		"passkey.name_malformed":      "Le nom de la clé d’accès tient en une ligne de {most} caractères au plus.",
		codeNotPermitted:              "Votre rôle ne permet pas cette opération. Adressez-vous à la personne qui gère les comptes de votre groupe.",
		codePasskeyRefused:            "Cette clé d’accès n’est pas reconnue. Choisissez une clé d’accès de ce service, ou adressez-vous à la personne qui gère les comptes de votre groupe.",
		"staff.revoked":               "Le compte de cette personne est fermé.",
		"staff.suspended":             "Le compte de cette personne est suspendu. Adressez-vous à la personne qui gère les comptes de votre groupe.",
		"staff.not_approved":          "Le compte de cette personne n’est pas encore approuvé.",
		"rows.forged":                 "Le compte de cette personne n’est pas tel qu’il a été enregistré. Prévenez l’exploitation\u00a0: rien n’est possible avant la vérification.",
		"list.cursor_foreign":         "Cette page appartient à une autre liste\u00a0: revenez à la première page.",
		"list.cursor_malformed":       "L’adresse de cette page est incomplète\u00a0: revenez à la première page.",
		"record.changed":              "Le dossier a changé depuis que vous l’avez affiché. Relisez-le, puis recommencez.",
		"decision.no_signing_key":     "Cette installation ne peut pas signer de proposition pour le moment. Prévenez l’exploitation.",
		"decision.passkey_needed":     "Cette décision se signe avec une clé d’accès.",
		"decision.not_signed":         "La clé d’accès n’a pas signé cette décision. Recommencez, et choisissez votre clé d’accès.",
		"decision.challenge_over":     "Le délai de cinq minutes est passé, ou la décision est déjà prise. Rechargez la page, puis recommencez.",
		"decision.two_passkeys":       "Il faut deux clés d’accès pour signer une décision, et vous en avez {number}. Adressez-vous à la personne qui gère les comptes de votre groupe.",
		"decision.not_yet":            "Vos clés d’accès sont récentes\u00a0: vous pourrez signer des décisions à partir du {from}.",
		"decision.other_passkeys":     "Aucune de vos clés d’accès n’est inscrite dans la liste des signataires de lots. Faites-la ajouter sur la page des signataires\u00a0: elle compte 24 heures après.",
		"case.unknown":                "Aucun cas n’a cet identifiant.",
		"case.closed":                 "Ce cas est déjà clos\u00a0: une somme n’a qu’une issue.",
		"case.changed":                "Une autre proposition a été faite depuis que vous avez affiché le cas. Relisez-le avant d’en faire une.",
		"case.own_cash":               "Vous avez reçu ou rendu ces espèces au guichet, ou vous êtes agent de guichet de cette administration\u00a0: deux autres personnes traitent le cas.",
		"case.second_person":          "La personne qui a proposé ne peut pas approuver\u00a0: une autre personne le fait.",
		"case.no_proposal":            "Aucune proposition n’est en attente.",
		"case.proposal_waits":         "Une proposition de {proposer} est déjà en attente. Il faut la rejeter avant d’en faire une autre.",
		"case.proposal_over":          "La proposition {number} n’est plus en attente.",
		"case.proposal_not_believed":  "La proposition {number} n’est pas valablement signée, ou le cas a changé depuis. Rejetez-la, puis proposez de nouveau.",
		"case.proposal_unknown":       "Le cas n’a pas cette proposition.",
		"case.which_proposal":         "Le cas a eu plusieurs propositions\u00a0: indiquez laquelle.",
		"case.resolution_not_allowed": "Cette issue n’est pas possible pour ce cas. Issues possibles\u00a0: {allowed}.",
		"case.resolution_missing":     "Choisissez une issue.",
		"case.reason_malformed":       "Indiquez le motif, en une ligne de {most} caractères au plus.",
		"case.reference_malformed":    "La pièce tient en une ligne de {most} caractères au plus.",
		"case.reference_missing":      "Indiquez la pièce qui justifie l’issue\u00a0: référence et date de la restitution, lettre de l’opérateur, ou référence de l’ERP.",
		"case.not_asked_for":          "Cette somme ne répond à aucune demande du service\u00a0: elle ne peut régler aucune créance. Elle peut être restituée ou passée en perte.",
		"case.too_little":             "La somme reçue est inférieure à la somme due, ou dans une autre monnaie\u00a0: elle ne peut pas régler la créance.",
		"case.no_break_to_match":      "{case} n’est pas un écart ouvert du même compte. Indiquez les cas des autres écarts, séparés par des virgules.",
		"case.nothing_to_match":       "L’écart n’a de lignes que d’un côté. Indiquez les cas des autres écarts, séparés par des virgules.",
		"case.sums_differ":            "Les écarts diffèrent encore de {difference} {currency} (dans la plus petite unité). Un rapprochement à la main exige un total de zéro.",
		"delivery.unknown":            "Aucun envoi n’a cet identifiant.",
		"delivery.accepted":           "L’envoi est déjà accepté.",
		"delivery.superseded":         "Un envoi plus récent du même paiement est déjà accepté\u00a0: celui-ci n’est plus envoyé.",
		"delivery.body_gone":          "Le contenu de l’envoi n’est plus conservé. Une commande de l’exploitation peut le refaire\u00a0: quittance replay.",
		"delivery.state_unknown":      "Aucun envoi n’a cet état.",
		"delivery.not_retryable":      "Un envoi dans cet état ne peut pas être repris.",
		"delivery.too_many":           "{n} envois à reprendre\u00a0: une page en envoie {most} au plus. L’exploitation les envoie tous par une commande\u00a0: quittance deliveries retry --endpoint {destination} --state {state}.",
		"destination.suspended":       "La destination est suspendue\u00a0: rétablissez-la d’abord.",
		"destination.never_suspended": "Un ERP n’est jamais suspendu\u00a0: chaque paiement doit lui parvenir.",
	},
}

var english = words{
	Title: "Operations", SignedInAs: "Signed in: %s",
	Moved: "The service's clock was moved: it is %s for the service.", Zone: "Times are those of Brazzaville (UTC+1).",
	DemoTitle: "Demo people", DemoText: "This developer’s installation has demo people. Their passkey is software; the service verifies it like any other.",
	SignInTitle:  "Staff sign-in",
	SignInText:   "Sign in with the passkey that you have made on this device, on your phone or on a security key.",
	SignIn:       "Sign in with a passkey",
	NoScript:     "Signing in needs a passkey, which only JavaScript can read. Allow JavaScript for this site and load the page again. Once you are signed in, you can read and propose without JavaScript.",
	NoPasskey:    "This browser cannot use passkeys, or this page is not open at the address of the service. Open it with a recent browser, at the address that you were given.",
	SignInFailed: "The sign-in did not succeed. Try again, and choose a passkey of this service.",
	Ended:        "Your session has ended: after 15 minutes without activity, or 8 hours in all. Sign in again.",
	EndedInForm:  "Your session has ended, and nothing was saved. Sign in again, go back to the page, and try again.",
	AgainTitle:   "Opening the page", Again: "You come from another site. The page opens in a moment; if not, continue.", Continue: "Continue",
	SearchLabel: "Order, payment reference or operator's reference", Search: "Search", Work: "To do",
	SessionsTitle: "Your sessions", SessionsText: "You can have three sessions at a time. If you do not know one of them, end the others and tell your supervisor.",
	SessionOwn: "This one", SessionOther: "Another one", SessionBegun: "Begun", SessionUsed: "Last activity", EndOthers: "End the other sessions", SessionsEnded: "The other sessions have ended.", SessionsLink: "Your sessions",
	NotPermittedTitle: "Page not allowed",
	UnknownTitle:      "Not found", Unknown: "Nothing is at this address, or you may not see it. Check the address, or search for the order.",
	UnavailableTitle: "The service does not answer", Unavailable: "The service does not answer. Nothing was saved: try again in a moment.",
	RefusedTitle: "Refused", RefusedBy: "The request is refused (%s). Nothing was saved.",
	TooManyTitle: "Too many requests", TooMany: "Your network sends too many requests. Try again in a moment.",
	TooManySearches: "You have made more than %d searches in a minute. Try again in a moment.",
	Next:            "Next page", First: "First page",
	Paused: "Updates are paused", Pause: "Pause updates", Resume: "Resume updates", Over: "Your session has ended: load the page again.", Once: "Sending…",
	PressNoScript: "This is signed with a passkey, which only JavaScript can read. Allow JavaScript for this site and load the page again.",
	PressFailed:   "The passkey has not signed, and nothing is stored. Try again, and choose one of your passkeys.",
	PressWithout:  "This browser cannot use passkeys, or this page is not open at the address of the service.",
	Join: joinWords{
		Title: "Make your passkeys", Intro: "You are invited to work on this service. You will make two passkeys, on two different devices: this phone or computer, and another phone or a security key. The link works once: begin when you have both at hand.",
		NoScript: "A passkey is made with JavaScript only. Allow JavaScript for this site and open the link again.",
		NoLink:   "The address is incomplete: open the whole link of the invitation.",
		Begin:    "Begin", Name: "Name", Roles: "Roles", Step: "Passkey %d of %d",
		First:  "Make the first passkey. Your device asks for a code, a fingerprint or your face.",
		Second: "Make the second one on another device. If you lose one of them, the other one lets you come back.",
		Make:   "Make a passkey", Failed: "The passkey was not made. Try again; for the second one choose another device.",
		Tell: "Your two passkeys are made. Tell these eight digits, by voice, to the person who confirms your account. Do not send them in a message.",
		Then: "You can sign in after this confirmation, and approve 24 hours later.", Passkey: "Passkey %d",
	},
	Roles: map[string]string{
		"reader": "reader", "accountant": "accountant", "preparer": "preparer", "approver": "approver", "supervisor": "supervisor of counters", "agency-admin": "manager of accounts",
		"support": "support", "operator": "operator", "lead": "lead", "admin": "administrator", "security-officer": "security officer", "auditor": "auditor",
	},
	Refusals: map[string]string{ //nolint:gosec // texts, no credential
		"invitation.unknown":          "No invitation has this id.",
		"invitation.open":             "{name} has an open invitation until {until}. Withdraw it before you make another.",
		"invitation.not_active":       "{name} cannot be invited: the account is \"{state}\".",
		"invitation.has_passkeys":     "{name} has two passkeys. Use \"Invite again\" on the record if they are lost.",
		"invitation.over":             "The invitation of {name} is over: {state}. Invite the person again.",
		"invitation.not_ready":        "{name} has not made both passkeys yet. Wait for the eight digits.",
		"invitation.inviter_gone":     "Whoever invited {name} does not manage people any more. Withdraw the invitation and invite again.",
		"invitation.second_person":    "You have invited {name}: another person confirms.",
		"invitation.own":              "Nobody confirms their own invitation: another person does.",
		"invitation.digits_wrong":     "These are not the digits of this invitation. Call the person and ask again. Tries left: {left}.",
		"staff.unknown":               "No person has this id.",
		"staff.name_malformed":        "Give the name, in one line of at most {most} characters.",
		"staff.name_taken":            "{name} exists already ({state}). A name is used once: give one that tells the two people apart.",
		"staff.number_malformed":      "The staff number is one line of at most {most} characters.",
		"staff.number_taken":          "{name} has or had this staff number in the group ({group}). Give another one.",
		"staff.role_unknown":          "There is no such role. Roles of the group: {roles}.",
		"staff.role_of_others":        "The role \"{role}\" does not exist in this group. Choose from: {roles}.",
		"staff.role_twice":            "The role \"{role}\" is both to be given and to be ended. Tick it once.",
		"staff.roles_exclusive":       "One person cannot have the roles \"{role}\" and \"{other}\". End one of them.",
		"staff.roles_same":            "{name} has these roles already: {roles}. Tick a change.",
		"staff.last_managers":         "{name} is one of the last two people who manage the accounts of the group. Give this role to another person first.",
		"staff.page_decides":          "Two people of this group decide about its people on these pages.",
		"staff.other_people":          "The people of {group} decide about their accounts. Ask one of them.",
		"staff.is_revoked":            "The account of {name} is closed, permanently. Invite the person under another name.",
		"staff.reason_malformed":      "Say why, in one line of at most {most} characters.",
		"staff.not_active":            "{name} cannot be suspended: the account is \"{state}\".",
		"staff.suspends_self":         "Nobody suspends themselves. Ask another person who manages people.",
		"staff.suspends_too_many":     "One person suspends at most {most} people within {hours} hours. Ask another person who manages people.",
		"staff.not_suspended":         "{name} is not suspended: the account is \"{state}\".",
		"staff.lifts_own":             "You have suspended {name}: another person lifts the suspension.",
		"staff_change.unknown":        "No proposal has this id.",
		"staff_change.waits":          "A proposal of {proposer} about {name} waits already. It must be approved or rejected first.",
		"staff_change.second_person":  "You have made this proposal about {name}: another person approves it.",
		"staff_change.lapsed":         "The proposal about {name} has lapsed: it is older than seven days, or its proposer does not manage people any more. Propose again.",
		"staff_change.decided":        "The proposal about {name} was decided already: {state}.",
		"staff_request.unknown":       "No request has this id.",
		"staff_request.id_malformed":  "The form is incomplete. Load the page again, then try again.",
		"staff_request.other":         "This form was used already. Load the page again, then try again.",
		"staff_request.too_many":      "{most} of your requests wait already. Wait until they are carried out.",
		"staff_request.late":          "The request was not carried out within an hour and had no effect. Try again, and tell operations if it happens again.",
		"staff_request.not_proven":    "Your passkey has not signed this request. Try again, and tell operations if it happens again.",
		"staff_request.carried_out":   "This request was carried out already.",
		"passkey.unknown":             "You do not have this passkey.",
		"passkey.last":                "This is your last passkey. Ask for a new invitation before you remove it.",
		"agency.unknown":              "No agency has this id.",
		"rows.no_key":                 "The service cannot store this request. Tell operations.",
		"rows.unsigned":               "An upgrade of the service is not finished. Tell operations.",
		"invitation.link_over":        "This link is not valid any more: it was used, it is older than 72 hours, or it was withdrawn. Ask whoever invited you for another one.",
		"invitation.passkeys_made":    "Your two passkeys are made already.",
		"passkey.refused":             "The passkey was not made. Try again, and confirm with your code, fingerprint or face.",
		"passkey.known":               "This passkey exists already. Make it on another device.",
		"passkey.name_malformed":      "The name of a passkey is one line of at most {most} characters.",
		codeNotPermitted:              "Your role does not allow this. Ask whoever manages the accounts of your group.",
		codePasskeyRefused:            "This passkey is not known. Choose a passkey of this service, or ask whoever manages the accounts of your group.",
		"staff.revoked":               "The account of this person is closed.",
		"staff.suspended":             "The account of this person is suspended. Ask whoever manages the accounts of your group.",
		"staff.not_approved":          "The account of this person is not approved yet.",
		"rows.forged":                 "The account of this person is not as it was stored. Tell operations: nothing is possible before it is checked.",
		"list.cursor_foreign":         "This page belongs to another list: go back to the first page.",
		"list.cursor_malformed":       "The address of this page is incomplete: go back to the first page.",
		"record.changed":              "The record has changed since you saw it. Read it again, then try again.",
		"decision.no_signing_key":     "This installation cannot sign a proposal at the moment. Tell operations.",
		"decision.passkey_needed":     "This decision is signed with a passkey.",
		"decision.not_signed":         "The passkey has not signed this decision. Try again, and choose your passkey.",
		"decision.challenge_over":     "The five minutes are over, or the decision was made already. Load the page again, then try again.",
		"decision.two_passkeys":       "Signing a decision needs two passkeys, and you have {number}. Ask whoever manages the accounts of your group.",
		"decision.not_yet":            "Your passkeys are new: you can sign decisions from {from} on.",
		"decision.other_passkeys":     "None of your passkeys is on the list of people who sign for batches. Have it added on the page of signatories; it counts 24 hours later.",
		"case.unknown":                "No case has this id.",
		"case.closed":                 "This case is closed already: a sum has one exit only.",
		"case.changed":                "Another proposal was made since you saw the case. Read it again before you make one.",
		"case.own_cash":               "You took or gave back this cash at a counter, or you are a clerk of this agency: two other people resolve the case.",
		"case.second_person":          "Whoever proposed cannot approve: another person does.",
		"case.no_proposal":            "No proposal waits.",
		"case.proposal_waits":         "A proposal by {proposer} waits already. It must be rejected before you make another.",
		"case.proposal_over":          "Proposal {number} does not wait any more.",
		"case.proposal_not_believed":  "Proposal {number} is not signed as it must be, or the case has changed since. Reject it and propose again.",
		"case.proposal_unknown":       "The case does not have this proposal.",
		"case.which_proposal":         "The case has had several proposals: say which.",
		"case.resolution_not_allowed": "This case cannot be resolved so. It can be resolved by: {allowed}.",
		"case.resolution_missing":     "Choose a resolution.",
		"case.reason_malformed":       "Say why, in one line of at most {most} characters.",
		"case.reference_malformed":    "The evidence is one line of at most {most} characters.",
		"case.reference_missing":      "Name what proves it: reference and date of the refund, the operator's letter, or the ERP's reference.",
		"case.not_asked_for":          "This money belongs to no payment that the service asked for, so it cannot pay one. It can be refunded or written off.",
		"case.too_little":             "Less was reported than was owed, or another currency: it cannot pay the session.",
		"case.no_break_to_match":      "{case} is no open break of the same account. Name the cases of the other breaks, separated by commas.",
		"case.nothing_to_match":       "The break has rows on one side only. Name the cases of the other breaks, separated by commas.",
		"case.sums_differ":            "The breaks still differ by {difference} {currency}. What is matched by hand must add up to zero.",
		"delivery.unknown":            "No delivery has this id.",
		"delivery.accepted":           "The delivery was accepted already.",
		"delivery.superseded":         "A later delivery of the same payment was accepted already: this one is never sent again.",
		"delivery.body_gone":          "The content of the delivery is no longer kept. A command of operations can make it again: quittance replay.",
		"delivery.state_unknown":      "No delivery has this state.",
		"delivery.not_retryable":      "A delivery in this state cannot be retried.",
		"delivery.too_many":           "{n} deliveries would be sent again, and a page sends {most} at most. Operations send them all with a command: quittance deliveries retry --endpoint {destination} --state {state}.",
		"destination.suspended":       "The destination is suspended: resume it first.",
		"destination.never_suspended": "An ERP is never suspended: every payment must reach it.",
	},
}
