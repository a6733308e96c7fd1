package secret

// Labels of derived keys that several packages name: one signs, seals or makes MACs, another opens or
// verifies. Labels of one package stay there. No label is used for two things.
const (
	// LabelRegistryRows signs the rows of Postgres that decide: configuration, hashes of keys, clerks,
	// staff, keys of receipts. Whoever only reads them verifies.
	LabelRegistryRows = "registry rows"
	// LabelStaffRows signs the manifest of the rows of staff, and the rows of invitations and requests, which the staff
	// pages write.
	LabelStaffRows = "staff rows"
	// LabelPeopleRows signs all rows of staff: who they are, their roles and passkeys. The role that carries out what
	// people ask for on pages has it, and no page has it.
	LabelPeopleRows = "people rows"
	// LabelDecisions signs proposals and approvals of staff, where the person's key was checked.
	LabelDecisions = "staff decisions"
	// LabelOfficeDecisions signs what staff decide on pages. Such a step counts with the proof of a passkey only,
	// so that whoever takes the pages proposes and approves nothing.
	LabelOfficeDecisions = "staff decisions on pages"
	// LabelListen is of the secrets that sign what `listen` shows, see ListenSecret.
	LabelListen = "webhook-listen"
	// LabelWebhookBodies is of the MACs by which the processor authenticates what workers sign and send.
	LabelWebhookBodies = "webhook bodies"
	// LabelPayoutRequests is of the MACs by which the processor of batches proves its requests to pay.
	LabelPayoutRequests = "requests to pay"
	// LabelCaseEvents is of the MACs by which the sink of cases proves the events that it writes.
	LabelCaseEvents = "events of cases"
)

// LabelCommands returns the label of the MACs of commands that a role sends. The processor holds those of
// all roles.
func LabelCommands(role string) string { return "commands of " + role }

// LabelOutcomes returns the label of the MACs by which the worker of a kind of deliveries proves its outcomes.
// Those who believe them hold the keys of all kinds. Workers of confirmations have proved theirs under a name of its own
// since they were the only ones who did; another name would make them forgeries while two releases run.
func LabelOutcomes(kind string) string {
	if kind == "erp" {
		return "outcomes of confirmations"
	}
	return "outcomes of " + kind
}
