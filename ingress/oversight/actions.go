package oversight

// The words of actions of the audit table. One that is not here is shown by its code, which stands beside the words, too.
var (
	frenchActions = map[string]string{ //nolint:gosec // texts, no credential
		"session.read": "Paiement consulté", "session.find": "Paiement recherché",
		"case.read": "Cas consulté", "case.open": "Cas ouvert", "case.propose": "Proposition sur un cas", "case.approve": "Proposition approuvée", "case.reject": "Proposition rejetée", "case.withdraw": "Proposition retirée", "case.carried_out": "Décision exécutée", "case.refused": "Décision refusée à l’exécution",
		"statements.import": "Relevé importé", "statements.quarantine": "Relevé mis en attente", "statements.release": "Libération d’un relevé", "statements.withdraw": "Retrait d’un relevé", "statements.dismiss": "Relevé écarté", "statements.reopen": "Relevé repris",
		"delivery.retry": "Envoi repris", "delivery.redeliver": "Envoi répété", "delivery.replay": "Envois rejoués", "destination.retry": "Envois repris", "destination.suspend": "Destination suspendue", "destination.resume": "Destination reprise",
		"endpoint.add": "Adresse de webhook ajoutée", "endpoint.set": "Adresse de webhook changée", "endpoint.remove": "Adresse de webhook retirée", "endpoint.rotate_secret": "Secret de webhook renouvelé",
		"staff.sign_in": "Connexion", "staff.refused": "Page refusée", "staff.read": "Fiche d’un agent consultée", "staff.invite": "Invitation", "staff.confirm": "Invitation confirmée", "staff.roles": "Rôles changés", "staff.suspend": "Suspension", "staff.lift": "Suspension levée", "staff.revoke": "Compte fermé",
		"staff.propose_change": "Proposition sur un agent", "staff.approve_change": "Proposition approuvée", "staff.reject_change": "Proposition rejetée ou retirée", "staff.passkey_remove": "Clé d’accès retirée", "staff.invitation_accept": "Lien d’invitation ouvert", "staff.invitation_passkey": "Clé d’accès créée", "staff.invitation_withdraw": "Invitation retirée",
		"batch.read": "Lot consulté", "batch.import": "Lot importé", "batch.pull": "Lot demandé à l’ERP", "batch.seal": "Lot scellé", "batch.approve": "Lot approuvé", "batch.reject": "Lot rejeté", "batch.release": "Lot libéré", "batch.hold": "Lot retenu", "batch.resume": "Retenue levée", "batch.stop": "Lot arrêté", "batch.recall": "Lot rappelé", "batch.discard": "Brouillon supprimé", "batch.export": "Lot exporté", "batch.certificate": "Certificat d’approbation téléchargé", "batch.advice": "Avis de paiement téléchargé",
		"key.create": "Clé d’API créée", "key.rotate": "Clé d’API renouvelée", "key.revoke": "Clé d’API révoquée", "registry.apply": "Configuration appliquée", "mapping.change": "Correspondance d’un code changée",
		"clerk.limit": "Plafond d’un guichet changé", "till.open": "Caisse ouverte", "till.close": "Caisse fermée", "till.sign": "Caisse visée",
		"audit.accept": "Écart du journal admis", "secrets.reseal": "Secrets scellés de nouveau", "citizen.erase": "Compte d’usager effacé", "personal.erase": "Données personnelles effacées", "report.read": "Rapport consulté", "report.download": "Rapport téléchargé",
	}
	englishActions = map[string]string{ //nolint:gosec // texts, no credential
		"session.read": "Payment read", "session.find": "Payment searched",
		"case.read": "Case read", "case.open": "Case opened", "case.propose": "Proposal about a case", "case.approve": "Proposal approved", "case.reject": "Proposal rejected", "case.withdraw": "Proposal withdrawn", "case.carried_out": "Decision carried out", "case.refused": "Decision refused when carried out",
		"statements.import": "Statement imported", "statements.quarantine": "Statement quarantined", "statements.release": "Release of a statement", "statements.withdraw": "Withdrawal of a statement", "statements.dismiss": "Statement dismissed", "statements.reopen": "Dismissal taken back",
		"delivery.retry": "Delivery retried", "delivery.redeliver": "Delivery repeated", "delivery.replay": "Deliveries replayed", "destination.retry": "Deliveries retried", "destination.suspend": "Destination suspended", "destination.resume": "Destination resumed",
		"endpoint.add": "Webhook endpoint added", "endpoint.set": "Webhook endpoint changed", "endpoint.remove": "Webhook endpoint removed", "endpoint.rotate_secret": "Webhook secret rotated",
		"staff.sign_in": "Sign-in", "staff.refused": "Page refused", "staff.read": "Record of a person read", "staff.invite": "Invitation", "staff.confirm": "Invitation confirmed", "staff.roles": "Roles changed", "staff.suspend": "Suspension", "staff.lift": "Suspension lifted", "staff.revoke": "Account closed",
		"staff.propose_change": "Proposal about a person", "staff.approve_change": "Proposal approved", "staff.reject_change": "Proposal rejected or withdrawn", "staff.passkey_remove": "Passkey removed", "staff.invitation_accept": "Link of an invitation opened", "staff.invitation_passkey": "Passkey made", "staff.invitation_withdraw": "Invitation withdrawn",
		"batch.read": "Batch read", "batch.import": "Batch imported", "batch.pull": "Batch asked of the ERP", "batch.seal": "Batch sealed", "batch.approve": "Batch approved", "batch.reject": "Batch rejected", "batch.release": "Batch released", "batch.hold": "Batch held", "batch.resume": "Hold ended", "batch.stop": "Batch stopped", "batch.recall": "Batch recalled", "batch.discard": "Draft discarded", "batch.export": "Batch exported", "batch.certificate": "Approval certificate downloaded", "batch.advice": "Payment advice downloaded",
		"key.create": "API key minted", "key.rotate": "API key rotated", "key.revoke": "API key revoked", "registry.apply": "Configuration applied", "mapping.change": "Mapping of a code changed",
		"clerk.limit": "Limit of a counter changed", "till.open": "Till opened", "till.close": "Till closed", "till.sign": "Till signed off",
		"audit.accept": "Difference of the audit table accepted", "secrets.reseal": "Secrets sealed anew", "citizen.erase": "Citizen’s account erased", "personal.erase": "Personal data erased", "report.read": "Report read", "report.download": "Report downloaded",
	}
)
