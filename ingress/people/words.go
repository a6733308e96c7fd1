package people

import (
	"cmp"
	"fmt"

	"quittance/money"
	"quittance/money/language"
)

// words are the texts of the pages in one language. A field's comment says what the verbs of package fmt in its text stand
// for.
type words struct {
	Title, OwnPasskeys, OwnPasskeysText, Service, Show, Colon       string
	Name, Number, Group, State, Roles, Passkeys, LastUse, Address   string
	NoRoles, NoPasskeys, Forged, Nobody, CommandLine                string
	Since, What, AskedBy, DecidedBy, Waiting, NothingWaits, History string
	PeopleOf                                                        string // group
	WaitsForYou, YouAsked                                           string
	PagesDecide, CommandDecides, CommandDecidesAgency, NoCommand    string
	OthersDecide                                                    string // group
	SuspendedAt, SuspendedBy, MadeAt, ApprovesFrom, MayDo           string

	InviteTitle, InviteText, InviteSend, NameHint, NumberHint   string
	Reason, ReasonHint, Add, Remove, GetsRoles, HasRoles        string
	AtIssuer, Subject, Email                                    string
	InvitationOf, InvitedBy, InvitedAt, Until                   string
	Digits, DigitsHint, Confirm, AnotherConfirms, OwnInvitation string
	WithdrawTitle, Withdraw, WithdrawProposal, AnotherApproves  string
	Approve, ApproveText, RejectTitle, Reject, RemovePasskey    string
	RequestWaits, RequestDone, RequestRefused, Open             string
	LinkTitle, LinkText                                         string

	Acts map[string]actWords
	// States are those of people, Stages those of invitations and proposals, Kinds what waits, Requests what was asked for,
	// and Steps actions of the audit table.
	States, Stages, InvitationStates, Kinds, Requests, Steps map[string]string
}

// actWords are those of the page of one thing that one may do with a person.
type actWords struct{ Title, Text, Send string }

// anyState returns the word of a state of a refusal.
func (w *words) anyState(state any) string {
	name := fmt.Sprint(state)
	return cmp.Or(w.States[name], w.Stages[name], name)
}

var texts = language.Table[*words]{money.French: &french, money.English: &english}

var french = words{ //nolint:gosec // texts, no credential
	Title: "Agents", OwnPasskeys: "Vos clés d’accès", Service: "Service", Show: "Afficher", Colon: "\u00a0: ",
	OwnPasskeysText: "Vous pouvez retirer une clé d’accès tant qu’une autre reste valable. Si vous retirez celle qui a servi à vous connecter, votre session prend fin. Pour en ajouter une, demandez une nouvelle invitation à la personne qui gère les comptes de votre groupe\u00a0: elle remplace toutes vos clés.",
	Name:            "Nom", Number: "Matricule", Group: "Groupe", State: "État", Roles: "Rôles", Passkeys: "Clés d’accès", LastUse: "Dernière utilisation", Address: "Courriel",
	NoRoles: "aucun rôle", NoPasskeys: "Aucune clé d’accès n’est valable.", Forged: "Fiche altérée\u00a0: prévenez l’exploitation", Nobody: "Ce groupe n’a encore personne. Invitez deux personnes qui géreront les comptes.", CommandLine: "ligne de commande",
	Since: "Date", What: "Opération", AskedBy: "Par", DecidedBy: "Décidé par", Waiting: "En attente", NothingWaits: "Aucune invitation ni proposition n’est en attente.", History: "Historique",
	PeopleOf: "Agents\u00a0: %s", WaitsForYou: "Comptes d’agents\u00a0: à décider par vous", YouAsked: "Comptes d’agents\u00a0: vos demandes en attente",
	PagesDecide:          "Deux personnes de ce groupe décident de ses comptes sur ces pages. Les commandes quittance staff invite, confirm, roles et lift refusent\u00a0; suspend, revoke et invite --withdraw restent possibles.",
	CommandDecides:       "Moins de deux personnes de ce groupe gèrent les comptes avec deux clés d’accès\u00a0: les commandes quittance staff invite, confirm, roles et lift sont encore possibles.",
	CommandDecidesAgency: "Moins de deux personnes de cette administration gèrent les comptes avec deux clés d’accès\u00a0: deux responsables de la sécurité du service invitent les premières, et les commandes quittance staff sont encore possibles.",
	NoCommand:            "Aucune commande n’approuve ni ne rejette une proposition.",
	OthersDecide:         "Les personnes de %s décident de leurs comptes\u00a0: vous pouvez consulter.",
	SuspendedAt:          "Suspendu le", SuspendedBy: "Suspendu par", MadeAt: "Créée le", ApprovesFrom: "Approuve à partir du", MayDo: "Ce que vous pouvez faire",
	InviteTitle: "Inviter une personne", InviteText: "La personne reçoit un lien, crée deux clés d’accès et lit huit chiffres. Une autre personne que vous les lui demande de vive voix et confirme\u00a0: les rôles valent à partir de là.", InviteSend: "Inviter avec votre clé d’accès",
	NameHint: "Prénom et nom. Personne d’autre ne porte ou n’a porté ce nom ici.", NumberHint: "Facultatif. Il est unique dans le groupe.",
	Reason: "Motif", ReasonHint: "En une ligne. L’autre personne et l’historique le montrent.", Add: "Rôles à donner", Remove: "Rôles à retirer", GetsRoles: "Reçoit les rôles", HasRoles: "A les rôles",
	AtIssuer: "Fournisseur d’identité", Subject: "Identifiant chez lui", Email: "Adresse qu’il indique",
	InvitationOf: "Invitation\u00a0: ", InvitedBy: "Invité par", InvitedAt: "Invité le", Until: "Valable jusqu’au",
	Digits: "Les huit chiffres", DigitsHint: "Appelez la personne, reconnaissez sa voix, et demandez-lui les chiffres qu’elle lit. Ne les acceptez pas par message. Cinq erreurs mettent fin à l’invitation.", Confirm: "Confirmer avec votre clé d’accès",
	AnotherConfirms: "Vous avez invité cette personne\u00a0: une autre personne confirme.", OwnInvitation: "C’est votre invitation\u00a0: une autre personne confirme.",
	WithdrawTitle: "Retirer", Withdraw: "Retirer l’invitation", WithdrawProposal: "Retirer votre proposition", AnotherApproves: "Vous avez fait cette proposition\u00a0: une autre personne l’approuve.",
	Approve: "Approuver avec votre clé d’accès", ApproveText: "Votre clé d’accès signe ce que cette page montre. La proposition vaut dès votre approbation.", RejectTitle: "Rejeter", Reject: "Rejeter la proposition", RemovePasskey: "Retirer cette clé d’accès",
	RequestWaits: "Votre demande est enregistrée et en cours d’exécution. Cette page se met à jour. Si rien ne change en une heure, la demande prend fin sans effet.", RequestDone: "C’est fait.", RequestRefused: "La demande est refusée.", Open: "Ouvrir la fiche",
	LinkTitle: "Le lien de l’invitation", LinkText: "Donnez ce lien à la personne seule. Il sert une fois, pendant 72 heures, dès que la demande est exécutée. Cette page est la seule à le montrer, et elle ne le montrera plus\u00a0: copiez-le maintenant.",
	Acts: map[string]actWords{
		"roles":   {"Changer les rôles", "Vous proposez\u00a0; une autre personne qui gère les comptes approuve.", "Proposer avec votre clé d’accès"},
		"revoke":  {"Fermer le compte", "Vous proposez\u00a0; une autre personne qui gère les comptes approuve. La fermeture est définitive.", "Proposer avec votre clé d’accès"},
		"suspend": {"Suspendre", "La personne ne peut plus se connecter, et ses propositions en attente prennent fin. Une autre personne que vous peut lever la suspension.", "Suspendre avec votre clé d’accès"},
		"lift":    {"Lever la suspension", "La personne peut de nouveau se connecter avec ses clés d’accès.", "Lever avec votre clé d’accès"},
		"invite":  {"Inviter de nouveau", "Pour une personne qui n’a pas ses deux clés d’accès ou qui les a perdues. Ses clés actuelles prennent fin à la confirmation.", "Inviter avec votre clé d’accès"},
	},
	States: map[string]string{"proposed": "invité", "waiting": "en attente", "active": "actif", "suspended": "suspendu", "revoked": "compte fermé"},
	Stages: map[string]string{
		"sent": "lien pas encore ouvert", "accepted": "crée ses clés d’accès", "ready": "attend la confirmation", "confirmed": "confirmée", "withdrawn": "retirée", "ended": "délai dépassé",
		"proposed": "attend une approbation", "approved": "approuvée", "rejected": "rejetée ou retirée", "lapsed": "caduque",
	},
	InvitationStates: map[string]string{
		"sent": "La personne n’a pas encore ouvert le lien.", "accepted": "La personne a ouvert le lien et crée ses deux clés d’accès.", "ready": "La personne a créé ses deux clés d’accès et lit huit chiffres.",
		"confirmed": "L’invitation est confirmée.", "withdrawn": "L’invitation est retirée, ou cinq saisies fausses y ont mis fin.", "ended": "Le délai de 72 heures est passé. Invitez la personne de nouveau.",
	},
	Kinds: map[string]string{"invitation": "Invitation", "roles": "Changement de rôles", "revoke": "Fermeture du compte", "suspend": "Suspension", "lift": "Levée de suspension"},
	Requests: map[string]string{ //nolint:gosec // texts, no credential
		"invite": "Invitation", "confirm": "Confirmation", "withdraw": "Retrait de l’invitation", "propose": "Proposition", "approve": "Approbation", "reject": "Rejet de la proposition",
		"suspend": "Suspension", "lift": "Levée de suspension", "remove_passkey": "Retrait d’une clé d’accès",
	},
	Steps: map[string]string{ //nolint:gosec // texts, no credential
		"staff.add": "Compte créé avec une clé st_", "staff.approve": "Clé st_ approuvée", "staff.revoke": "Compte fermé", "staff.invite": "Invitation", "staff.invitation_accept": "Lien ouvert", "staff.invitation_passkey": "Clé d’accès créée", "staff.invitation_issuer": "Reconnu par le fournisseur d’identité", "staff.issuer_bind": "Relié au fournisseur d’identité",
		"staff.invitation_withdraw": "Invitation retirée", "staff.confirm": "Invitation confirmée", "staff.confirm_wrong_digits": "Chiffres faux", "staff.roles": "Rôles changés", "staff.propose_change": "Proposition",
		"staff.approve_change": "Proposition approuvée", "staff.reject_change": "Proposition rejetée ou retirée", "staff.suspend": "Suspension", "staff.lift": "Suspension levée", "staff.passkey_remove": "Clé d’accès retirée",
		"staff.set_contact": "Adresse changée", "staff.remove_contact": "Adresse retirée", "staff.read": "Fiche consultée",
	},
}

var english = words{
	Title: "People", OwnPasskeys: "Your passkeys", Service: "Service", Show: "Show", Colon: ": ",
	OwnPasskeysText: "You can remove a passkey while another one is in force. If you remove the one that you have signed in with, your session ends. To add one, ask whoever manages the accounts of your group for a new invitation: it replaces all your passkeys.",
	Name:            "Name", Number: "Staff number", Group: "Group", State: "State", Roles: "Roles", Passkeys: "Passkeys", LastUse: "Last use", Address: "E-mail address",
	NoRoles: "no role", NoPasskeys: "No passkey is in force.", Forged: "Record was altered: tell operations", Nobody: "This group has nobody yet. Invite two people who will manage its accounts.", CommandLine: "command line",
	Since: "Date", What: "What", AskedBy: "By", DecidedBy: "Decided by", Waiting: "Waiting", NothingWaits: "No invitation and no proposal waits.", History: "History",
	PeopleOf: "People: %s", WaitsForYou: "Accounts of people: for you to decide", YouAsked: "Accounts of people: what you have asked for",
	PagesDecide:          "Two people of this group decide about its people on these pages. The commands quittance staff invite, confirm, roles and lift refuse; suspend, revoke and invite --withdraw stay possible.",
	CommandDecides:       "Fewer than two people of this group manage people with two passkeys: the commands quittance staff invite, confirm, roles and lift are still possible.",
	CommandDecidesAgency: "Fewer than two people of this agency manage people with two passkeys: two security officers of the service invite the first ones, and the commands quittance staff are still possible.",
	NoCommand:            "No command approves or rejects a proposal.",
	OthersDecide:         "The people of %s decide about their accounts: you can look.",
	SuspendedAt:          "Suspended on", SuspendedBy: "Suspended by", MadeAt: "Made on", ApprovesFrom: "Approves from", MayDo: "What you can do",
	InviteTitle: "Invite a person", InviteText: "The person gets a link, makes two passkeys and reads eight digits. Another person than you asks for them by voice and confirms: the roles hold from then on.", InviteSend: "Invite with your passkey",
	NameHint: "First name and family name. Nobody else has or had this name here.", NumberHint: "Optional. It is unique in the group.",
	Reason: "Reason", ReasonHint: "In one line. The other person and the history see it.", Add: "Roles to give", Remove: "Roles to end", GetsRoles: "Gets the roles", HasRoles: "Has the roles",
	AtIssuer: "Identity provider", Subject: "Subject there", Email: "Address that it says",
	InvitationOf: "Invitation: ", InvitedBy: "Invited by", InvitedAt: "Invited on", Until: "Valid until",
	Digits: "The eight digits", DigitsHint: "Call the person, know the voice, and ask for the digits that the person reads. Do not take them from a message. Five wrong tries end the invitation.", Confirm: "Confirm with your passkey",
	AnotherConfirms: "You have invited this person: another person confirms.", OwnInvitation: "This is your invitation: another person confirms.",
	WithdrawTitle: "Withdraw", Withdraw: "Withdraw the invitation", WithdrawProposal: "Withdraw your proposal", AnotherApproves: "You have made this proposal: another person approves it.",
	Approve: "Approve with your passkey", ApproveText: "Your passkey signs what this page shows. The proposal holds from your approval on.", RejectTitle: "Reject", Reject: "Reject the proposal", RemovePasskey: "Remove this passkey",
	RequestWaits: "Your request is stored and being carried out. This page stays current. If nothing changes within an hour, the request ends without effect.", RequestDone: "It is done.", RequestRefused: "The request is refused.", Open: "Open the record",
	LinkTitle: "The link of the invitation", LinkText: "Give this link to the person alone. It works once, for 72 hours, as soon as the request is carried out. No other page shows it, and this one will not show it again: copy it now.",
	Acts: map[string]actWords{
		"roles":   {"Change the roles", "You propose; another person who manages people approves.", "Propose with your passkey"},
		"revoke":  {"Close the account", "You propose; another person who manages people approves. It is permanent.", "Propose with your passkey"},
		"suspend": {"Suspend", "The person cannot sign in any more, and what the person has proposed lapses. Another person than you can lift the suspension.", "Suspend with your passkey"},
		"lift":    {"Lift the suspension", "The person can sign in with the passkeys again.", "Lift with your passkey"},
		"invite":  {"Invite again", "For a person who lacks two passkeys or has lost them. The present ones end with the confirmation.", "Invite with your passkey"},
	},
	States: map[string]string{"proposed": "invited", "waiting": "waiting", "active": "active", "suspended": "suspended", "revoked": "account closed"},
	Stages: map[string]string{
		"sent": "link not opened yet", "accepted": "is making passkeys", "ready": "waits for confirmation", "confirmed": "confirmed", "withdrawn": "withdrawn", "ended": "too late",
		"proposed": "waits for approval", "approved": "approved", "rejected": "rejected or withdrawn", "lapsed": "lapsed",
	},
	InvitationStates: map[string]string{
		"sent": "The person has not opened the link yet.", "accepted": "The person has opened the link and is making two passkeys.", "ready": "The person has made two passkeys and reads eight digits.",
		"confirmed": "The invitation is confirmed.", "withdrawn": "The invitation was withdrawn, or five wrong tries have ended it.", "ended": "The 72 hours are over. Invite the person again.",
	},
	Kinds: map[string]string{"invitation": "Invitation", "roles": "Change of roles", "revoke": "Closing of the account", "suspend": "Suspension", "lift": "End of a suspension"},
	Requests: map[string]string{ //nolint:gosec // texts, no credential
		"invite": "Invitation", "confirm": "Confirmation", "withdraw": "Withdrawal of the invitation", "propose": "Proposal", "approve": "Approval", "reject": "Rejection of the proposal",
		"suspend": "Suspension", "lift": "End of a suspension", "remove_passkey": "Removal of a passkey",
	},
	Steps: map[string]string{
		"staff.add": "Account made with an st_ key", "staff.approve": "St_ key approved", "staff.revoke": "Account closed", "staff.invite": "Invitation", "staff.invitation_accept": "Link opened", "staff.invitation_passkey": "Passkey made",
		"staff.invitation_withdraw": "Invitation withdrawn", "staff.invitation_issuer": "Recognised by the identity provider", "staff.issuer_bind": "Linked to the identity provider", "staff.confirm": "Invitation confirmed", "staff.confirm_wrong_digits": "Wrong digits", "staff.roles": "Roles changed", "staff.propose_change": "Proposal",
		"staff.approve_change": "Proposal approved", "staff.reject_change": "Proposal rejected or withdrawn", "staff.suspend": "Suspension", "staff.lift": "Suspension lifted", "staff.passkey_remove": "Passkey removed",
		"staff.set_contact": "Address changed", "staff.remove_contact": "Address removed", "staff.read": "Record read",
	},
}
