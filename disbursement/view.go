package disbursement

// View is the state of one partition, as Decide reads it. Values are read-only. When a read fails, the implementation
// remembers the error and returns the zero value; the caller of Decide then drops the decision.
type View interface {
	Batch(id string) (Batch, bool)
	Sealing(batch string) Sealing
	Line(LineKey) (Line, bool)
	Queued(QueueKey) (Queued, bool)
	Account(AccountKey) Account
	Agency(AgencyKey) Agency
	Roster(tenantID string) Roster
	// Ref is the last line with a line_ref; the zero key if there is none.
	Ref(RefKey) LineKey
	BatchRef(BatchRefKey) BatchRef
}

// Decision is the result of a command. The caller must commit all of it or nothing.
type Decision struct {
	// Events in order.
	Events []Event
	// Requests to operators, in order.
	Requests []Request
	// Questions are batches whose ERP is to be asked whether it has the same lines.
	Questions []Question
	// Answer is set exactly when the command has a ReplyTo.
	Answer *Answer

	// The entries that change.
	Batches   map[string]Batch
	Sealings  map[string]Sealing // by batch
	Lines     map[LineKey]Line
	Queues    map[QueueKey]Queued // the zero Queued: the entry is deleted
	Accounts  map[AccountKey]Account
	Agencies  map[AgencyKey]Agency
	Rosters   map[string]Roster // by agency
	Refs      map[RefKey]LineKey
	BatchRefs map[BatchRefKey]BatchRef
}
