package disbursement

import (
	"strconv"

	"quittance/disbursement"
	"quittance/processors/entry"
	"quittance/schemas/mapping/batches"
)

// kinds are the kinds of entries in disbursement.state. All are kept: a line_ref is taken for ever once it is paid.
var kinds = entry.NewKinds(&batchEntries, &sealings, &lines, &queues, &accounts, &agencies, &rosters, &refs, &batchRefs)

// batchEntries by id.
var batchEntries = entry.Entry[string, disbursement.Batch]{
	Letter: 'b',
	Key:    entry.Text,
	Record: entry.Of(batches.FromBatch, batches.ToBatch),
	WakeAt: disbursement.Batch.Deadline,
}

// sealings by batch.
var sealings = entry.Entry[string, disbursement.Sealing]{
	Letter: 's',
	Key:    entry.Text,
	Record: entry.Of(batches.FromSealing, batches.ToSealing),
}

var lines = entry.Entry[disbursement.LineKey, disbursement.Line]{
	Letter: 'l',
	Key:    func(k disbursement.LineKey) string { return entry.Parts(k.Batch, strconv.Itoa(k.Position)) },
	Record: entry.Of(batches.FromLine, batches.ToLine),
}

var queues = entry.Entry[disbursement.QueueKey, disbursement.Queued]{
	Letter: 'q',
	Key:    func(k disbursement.QueueKey) string { return entry.Parts(k.Owner, strconv.FormatInt(k.N, 10)) },
	Record: entry.Of(batches.FromQueued, batches.ToQueued),
	Empty:  func(q disbursement.Queued) bool { return q == disbursement.Queued{} },
}

var accounts = entry.Entry[disbursement.AccountKey, disbursement.Account]{
	Letter: 'a',
	Key: func(k disbursement.AccountKey) string {
		return entry.Parts(k.TenantID, disbursement.Mode(k.Live), k.Code)
	},
	Record: entry.Of(batches.FromAccount, batches.ToAccount),
	WakeAt: disbursement.Account.Deadline,
}

var agencies = entry.Entry[disbursement.AgencyKey, disbursement.Agency]{
	Letter: 'g',
	Key:    func(k disbursement.AgencyKey) string { return entry.Parts(k.TenantID, disbursement.Mode(k.Live)) },
	Record: entry.Of(batches.FromAgency, batches.ToAgency),
}

// rosters by agency.
var rosters = entry.Entry[string, disbursement.Roster]{
	Letter: 'r',
	Key:    entry.Text,
	Record: entry.Of(batches.FromRoster, batches.ToRoster),
}

// refs have the last line with a line_ref, by its hash.
var refs = entry.Entry[disbursement.RefKey, disbursement.LineKey]{
	Letter: 'f',
	Key:    func(k disbursement.RefKey) string { return string(k[:]) },
	Record: entry.Of(batches.FromRef, batches.ToRef),
}

var batchRefs = entry.Entry[disbursement.BatchRefKey, disbursement.BatchRef]{
	Letter: 'v',
	Key: func(k disbursement.BatchRefKey) string {
		return entry.Parts(k.TenantID, disbursement.Mode(k.Live), k.BatchRef)
	},
	Record: entry.Of(batches.FromBatchRef, batches.ToBatchRef),
}

// write writes the entries that a decision changes.
func write(s *entry.State, d disbursement.Decision) {
	batchEntries.Put(s, d.Batches)
	sealings.Put(s, d.Sealings)
	lines.Put(s, d.Lines)
	queues.Put(s, d.Queues)
	accounts.Put(s, d.Accounts)
	agencies.Put(s, d.Agencies)
	rosters.Put(s, d.Rosters)
	refs.Put(s, d.Refs)
	batchRefs.Put(s, d.BatchRefs)
}

// view is the disbursement.View of one partition's state. The caller drops the decision if the state has an error.
type view struct{ state *entry.State }

func (v view) Batch(id string) (disbursement.Batch, bool) { return batchEntries.Get(v.state, id) }

func (v view) Sealing(batch string) disbursement.Sealing { return sealings.Value(v.state, batch) }

func (v view) Roster(tenantID string) disbursement.Roster { return rosters.Value(v.state, tenantID) }

func (v view) Ref(k disbursement.RefKey) disbursement.LineKey { return refs.Value(v.state, k) }

func (v view) Line(k disbursement.LineKey) (disbursement.Line, bool) { return lines.Get(v.state, k) }

func (v view) Queued(k disbursement.QueueKey) (disbursement.Queued, bool) {
	return queues.Get(v.state, k)
}

func (v view) Account(k disbursement.AccountKey) disbursement.Account {
	return accounts.Value(v.state, k)
}

func (v view) Agency(k disbursement.AgencyKey) disbursement.Agency { return agencies.Value(v.state, k) }

func (v view) BatchRef(k disbursement.BatchRefKey) disbursement.BatchRef {
	return batchRefs.Value(v.state, k)
}

var _ disbursement.View = view{}
