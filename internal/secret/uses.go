package secret

// Labels of derived keys that several packages name: one signs, seals or makes MACs, another opens or
// verifies. Labels of one package stay there. No label is used for two things.
const (
	// LabelRegistryRows signs the rows of Postgres that decide: configuration, hashes of keys, clerks,
	// staff, keys of receipts. Whoever only reads them verifies.
	LabelRegistryRows = "registry rows"
	// LabelDecisions signs proposals and approvals of staff, where the person's key was checked.
	LabelDecisions = "staff decisions"
	// LabelListen is of the secrets that sign what `listen` shows, see ListenSecret.
	LabelListen = "webhook-listen"
	// LabelOutcomes is of the MACs by which sink erp proves what ERPs answered, to itself: other sinks write
	// the same topic.
	LabelOutcomes = "outcomes of confirmations"
	// LabelWebhookBodies is of the MACs by which the processor authenticates what workers sign and send.
	LabelWebhookBodies = "webhook bodies"
)

// LabelCommands returns the label of the MACs of commands that a role sends. The processor holds those of
// all roles.
func LabelCommands(role string) string { return "commands of " + role }
