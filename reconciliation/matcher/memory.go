package matcher

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"quittance/internal/registry"
	"quittance/statement"
)

// memory is what a process keeps of the rows of an account, so that its next run reads only what was added
// since, and not some columns of the whole history. It may have more than there is, which costs the reading
// of a few rows, but never less.
type memory struct {
	// rewrites is how often rows of earlier records were written again, which may be below the watermarks.
	rewrites uint64
	// at are the watermarks below which pairs and undecided have all rows.
	at marks
	// pairs is whose money there is, of the agency and of no known agency.
	pairs map[pair]bool
	// undecided are the ids of collections that their operator has not decided.
	undecided map[string]bool
	refs      references
}

// references are the hashes of the references of rows that runs have read, with the days of the rows.
type references struct {
	// months are entries by the month of their day, such as 202603, sorted and each once. An entry is the upper
	// 48 bits of a hash and, below, the day as ClickHouse counts them, since 1970.
	months map[uint32][]uint64
	// at are the watermarks below which they have the lines of accounts, by their codes, and the money of
	// pairs.
	at       marks
	accounts map[string]bool
	pairs    map[pair]bool
}

// dayMask is the part of an entry that is its day.
const dayMask = 1<<16 - 1

// add adds entries of a month. It changes their order, and does not keep the list.
func (f *references) add(month uint32, entries []uint64) {
	if len(entries) > 0 {
		slices.Sort(entries)
		f.months[month] = merged(f.months[month], slices.Compact(entries))
	}
}

// merged returns the entries of two sorted lists, each once.
func merged(a, b []uint64) []uint64 {
	out := make([]uint64, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch least := min(a[0], b[0]); {
		case a[0] > least:
			out, b = append(out, least), b[1:]
		case b[0] > least:
			out, a = append(out, least), a[1:]
		default:
			out, a, b = append(out, least), a[1:], b[1:]
		}
	}
	out = append(append(out, a...), b...)
	if len(out) < cap(out)/8*7 { // a line mostly has the references of its payment
		out = slices.Clone(out)
	}
	return out
}

// known returns the hashes of a sorted list that have entries, and the days of these.
func (f *references) known(hashes []uint64) (known []uint64, days map[statement.Day]bool) {
	is, days := make([]bool, len(hashes)), map[statement.Day]bool{}
	for _, entries := range f.months {
		for i, hash := range hashes {
			entries = entries[leap(entries, hash&^dayMask):]
			for _, entry := range entries {
				if entry&^dayMask != hash&^dayMask {
					break
				}
				is[i], days[statement.Day(entry&dayMask)] = true, true
			}
		}
	}
	for i, hash := range hashes {
		if is[i] {
			known = append(known, hash)
		}
	}
	return known, days
}

// leap returns where the first entry of a sorted list is that is not below another. It is fast if that is near
// the beginning.
func leap(entries []uint64, least uint64) int {
	from, to := 0, 1
	for to < len(entries) && entries[to] < least {
		from, to = to, 2*to
	}
	at, _ := slices.BinarySearch(entries[from:min(to, len(entries))], least)
	return from + at
}

// recall takes the memory of the account, so that no other run has it until keep. A run that finds none begins
// with an empty one.
func (r *run) recall(ctx context.Context) error {
	var rewrites uint64
	if err := r.cfg.ClickHouse.QueryRow(ctx, "SELECT count() FROM rewrites").Scan(&rewrites); err != nil {
		return fmt.Errorf("asking whether the journal was written again: %w", err)
	}
	r.remembering.Lock()
	r.memory = r.memories[r.account.StatementAccountKey]
	delete(r.memories, r.account.StatementAccountKey)
	r.remembering.Unlock()
	if r.memory == nil || r.memory.rewrites != rewrites || !r.memory.at.within(r.marks) || !r.memory.refs.at.within(r.marks) {
		r.memory = newMemory(rewrites)
	}
	return nil
}

// keep leaves the memory to the next run of the account.
func (r *run) keep() {
	r.remembering.Lock()
	defer r.remembering.Unlock()
	r.memories[r.account.StatementAccountKey] = r.memory
	size := int64(0)
	for _, m := range r.memories {
		for _, entries := range m.refs.months {
			size += int64(cap(entries)) * 8
		}
	}
	r.remembered.Store(size)
	if r.cfg.Kept != nil {
		r.cfg.Kept(size)
	}
}

func newMemory(rewrites uint64) *memory {
	return &memory{rewrites: rewrites, pairs: map[pair]bool{}, undecided: map[string]bool{}, refs: references{months: map[uint32][]uint64{}, accounts: map[string]bool{}, pairs: map[pair]bool{}}}
}

// within reports whether no mark of a partition is above that of other marks. The partitions of another
// account, which settles no more, may be missing there.
func (m marks) within(other marks) bool {
	for name, at := range m {
		if end, ok := other[name]; ok && at > end {
			return false
		}
	}
	return true
}

// learn adds to the memory whose money there is, and which collections are undecided, of the rows below the
// watermarks.
func (r *run) learn(ctx context.Context) error {
	added := r.below(moneyTopics...) + " AND " + r.offsets(r.memory.at, ">=", moneyTopics)
	if err := r.learnPairs(ctx, added); err != nil {
		return err
	}
	if err := r.learnUndecided(ctx, added); err != nil {
		return fmt.Errorf("asking for undecided collections: %w", err)
	}
	r.memory.at = maps.Clone(r.marks)
	return nil
}

// learnPairs adds to the memory whose money fulfils a condition. It asks for the agency and for no agency
// apart, so that each query groups by one column: to group by several, ClickHouse compares the texts of every
// row.
func (r *run) learnPairs(ctx context.Context, which string) error {
	of := "SELECT ?, toString(account), groupUniqArray(offer_id) FROM expected_money WHERE tenant_id = ? AND livemode = ? AND currency = ? AND " + which + " GROUP BY account"
	agency, live, currency := r.account.AgencyID, r.account.Live, r.account.Currency
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), of+" UNION ALL "+of, agency, agency, live, currency, "", "", live, currency)
	if err != nil {
		return fmt.Errorf("asking whose money is expected: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var p pair
		var offers []string
		if err := rows.Scan(&p.tenant, &p.account, &offers); err != nil {
			return fmt.Errorf("asking whose money is expected: %w", err)
		}
		for _, p.offer = range offers {
			r.memory.pairs[p] = true
		}
	}
	return rows.Err()
}

func (r *run) learnUndecided(ctx context.Context, added string) error {
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), `SELECT concat(toString(local_date), '/', toString(entry_id)), max(withdrawn) FROM expected_money
		WHERE tenant_id IN (?, '') AND livemode = ? AND currency = ? AND kind = 'undecided' AND `+added+" GROUP BY local_date, entry_id", r.account.AgencyID, r.account.Live, r.account.Currency)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		var withdrawn uint8
		if err := rows.Scan(&id, scanBool{&withdrawn}); err != nil {
			return err
		}
		if withdrawn != 0 {
			delete(r.memory.undecided, id)
		} else {
			r.memory.undecided[id] = true
		}
	}
	return rows.Err()
}

// learnRefs adds to the memory the references of the rows that earlier runs have read: of accounts and money
// that it has, those of rows that were added since; of others, those of all.
func (r *run) learnRefs(ctx context.Context) error {
	if err := r.learnLines(ctx, "ref_hashes", "1", r.account); err != nil {
		return err
	}
	if err := r.learnLines(ctx, "[cityHash64(batch)]", "batch != ''", r.settling...); err != nil {
		return err
	}
	if err := r.learnMoney(ctx); err != nil {
		return err
	}
	r.memory.refs.at = maps.Clone(r.before)
	return nil
}

func (r *run) learnLines(ctx context.Context, hashes, which string, accounts ...registry.StatementAccount) error {
	refs := &r.memory.refs
	had, others := parted(accounts, func(a registry.StatementAccount) bool { return refs.accounts[a.Code] })
	for _, part := range []struct {
		accounts []registry.StatementAccount
		at       marks
	}{{had, refs.at}, {others, marks{}}} {
		if len(part.accounts) == 0 {
			continue
		}
		if err := r.learnHashes(ctx, hashes, "local_day", "statement_lines", which+" AND "+r.ofAccounts(part.accounts, r.before, "<")+" AND "+r.ofAccounts(part.accounts, part.at, ">=")); err != nil {
			return err
		}
	}
	for _, a := range others {
		refs.accounts[a.Code] = true
	}
	return nil
}

func (r *run) learnMoney(ctx context.Context) error {
	refs := &r.memory.refs
	had, others := parted(r.whose, func(p pair) bool { return refs.pairs[p] })
	for _, part := range []struct {
		pairs []pair
		at    marks
	}{{had, refs.at}, {others, marks{}}} {
		if len(part.pairs) == 0 {
			continue
		}
		if err := r.learnHashes(ctx, "ref_hashes", "local_date", "expected_money", ownedBy(part.pairs)+" AND "+r.offsets(r.before, "<", moneyTopics)+" AND "+r.offsets(part.at, ">=", moneyTopics)); err != nil {
			return err
		}
	}
	for _, p := range others {
		refs.pairs[p] = true
	}
	return nil
}

// parted divides a list into what fulfils a condition and the rest.
func parted[T any](all []T, is func(T) bool) (yes, no []T) {
	for _, one := range all {
		if is(one) {
			yes = append(yes, one)
		} else {
			no = append(no, one)
		}
	}
	return yes, no
}

// learnHashes adds the entries of the agency's rows of a table that fulfil a condition, month by month: a single
// list of all would be copied as it grows, and to group by days takes three times as long.
func (r *run) learnHashes(ctx context.Context, hashes, day, table, which string) error {
	entries := fmt.Sprintf("arrayMap(hash -> bitOr(bitAnd(hash, %d), toUInt64(toUInt16(%s))), %s)", ^uint64(dayMask), day, hashes)
	rows, err := r.cfg.ClickHouse.Query(querying(ctx), "SELECT toYYYYMM(any("+day+")), reinterpretAsString(groupArrayArray("+entries+")) FROM "+table+" WHERE tenant_id IN (?, '') AND livemode = ? AND "+which+" GROUP BY _partition_id",
		r.account.AgencyID, r.account.Live)
	if err != nil {
		return fmt.Errorf("reading references: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var month uint32
		var read []byte
		if err := rows.Scan(&month, &read); err != nil {
			return fmt.Errorf("reading references: %w", err)
		}
		entries := make([]uint64, len(read)/8)
		for i := range entries {
			entries[i] = binary.LittleEndian.Uint64(read[8*i:])
		}
		r.memory.refs.add(month, entries)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading references: %w", err)
	}
	return nil
}
