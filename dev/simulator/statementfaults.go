package simulator

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Faults that can be planted in statements. The first ones are in one line, in every statement
// that has it. The others are in the whole file of a day.
const (
	faultDrop     = "drop"      // the line is missing
	faultDouble   = "double"    // the line is there twice
	faultOneMore  = "one_more"  // one minor unit more
	faultOneLess  = "one_less"  // one minor unit less
	faultSwap     = "swap"      // its reference and that of the next line are exchanged
	faultNet      = "net"       // the amount is net, beside the fee
	faultReversal = "reversal"  // the keeper takes the money back at once
	faultUTC      = "utc"       // days and times in UTC; of all files
	faultRounding = "rounding"  // references as a spreadsheet leaves them
	faultTruncate = "truncated" // the end is missing
	faultOverlap  = "overlap"   // the file begins at noon of the day before
)

var (
	lineFaults = []string{faultDrop, faultDouble, faultOneMore, faultOneLess, faultSwap, faultNet, faultReversal}
	fileFaults = []string{faultUTC, faultRounding, faultTruncate, faultOverlap}
)

// plantedFault is a fault of an account's statements.
type plantedFault struct {
	Fault string `json:"fault"`
	// Line is the id of the line, and With that of the other line of a swap.
	Line string `json:"line,omitempty"`
	With string `json:"with,omitempty"`
	// Day is the day of the file.
	Day string `json:"day"`
}

// planted holds the faults of all accounts.
type planted struct {
	mu        sync.Mutex
	byAccount map[[2]string][]plantedFault // agency and code
}

func (a *StatementAccount) key() [2]string { return [2]string{a.Agency, a.Code} }

// of returns the faults of an account.
func (p *planted) of(a StatementAccount) []plantedFault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.byAccount[a.key()])
}

func (p *planted) add(a StatementAccount, f plantedFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byAccount[a.key()] = append(p.byAccount[a.key()], f)
}

func (p *planted) clear(a StatementAccount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byAccount, a.key())
}

// has reports whether the file of a day has a fault.
func (p *planted) has(a StatementAccount, fault, day string) bool {
	return slices.ContainsFunc(p.of(a), func(f plantedFault) bool { return f.Fault == fault && (f.Day == day || fault == faultUTC) })
}

// reversals returns the lines by which the keeper takes money back.
func (p *planted) reversals(a StatementAccount, all []movement) (out []movement) {
	for _, f := range p.of(a) {
		i := slices.IndexFunc(all, func(m movement) bool { return f.Fault == faultReversal && m.id == f.Line })
		if i < 0 {
			continue
		}
		m := all[i]
		m.id, m.kind, m.amount, m.fee = m.id+"-R", movementReversal, -m.amount, -m.fee
		out = append(out, m)
	}
	return out
}

// apply changes the lines that have a fault.
func (p *planted) apply(a StatementAccount, all []movement) []movement {
	for _, f := range p.of(a) {
		i := slices.IndexFunc(all, func(m movement) bool { return m.id == f.Line })
		if i < 0 {
			continue
		}
		m := &all[i]
		switch f.Fault {
		case faultDrop:
			all = slices.Delete(all, i, i+1)
		case faultDouble:
			all = slices.Insert(all, i+1, *m)
		case faultOneMore:
			m.amount++
		case faultOneLess:
			m.amount--
		case faultNet:
			m.amount = m.net()
		case faultSwap:
			if j := slices.IndexFunc(all, func(m movement) bool { return m.id == f.With }); j >= 0 {
				m.reference, all[j].reference = all[j].reference, m.reference
				if a.Profile == profileBank {
					m.batch, all[j].batch = all[j].batch, m.batch
				}
			}
		}
	}
	return all
}

// aim completes a fault of a line. Without a line it takes the first payment of the day that
// has no fault yet. why says why it cannot.
func (p *planted) aim(a StatementAccount, all []movement, f *plantedFault) (field, why, mend string) {
	taken := map[string]bool{}
	for _, other := range p.of(a) {
		taken[other.Line], taken[other.With] = true, true
	}
	free := func(m movement) bool { return m.kind == movementPayment && !taken[m.id] }
	if f.Line == "" {
		i := slices.IndexFunc(all, func(m movement) bool { return free(m) && a.day(m.at).Format(time.DateOnly) == f.Day })
		if i < 0 {
			return "day", f.Day + " has no payment without a fault", "pay something, or name a day with payments"
		}
		f.Line = all[i].id
	}
	i := slices.IndexFunc(all, func(m movement) bool { return m.id == f.Line })
	if i < 0 || !free(all[i]) {
		return "line", fmt.Sprintf("%q is not a payment without a fault on this account", f.Line), "take an id from the statement"
	}
	f.Day = a.day(all[i].at).Format(time.DateOnly)
	if f.Fault != faultSwap {
		return "", "", ""
	}
	j := slices.IndexFunc(all[i+1:], free)
	if j < 0 {
		return "line", "has no payment after it", "pay once more"
	}
	f.With = all[i+1+j].id
	return "", "", ""
}

// possible returns the faults that an account can have. The lines of banks and counters have no
// fees, and those of banks and acquirers no payment references.
func possible(profile string) []string {
	all := slices.Concat(lineFaults, fileFaults)
	if profile == profileBank || operatorFees[profile] == 0 {
		all = slices.DeleteFunc(all, func(f string) bool { return f == faultNet })
	}
	if profile == profileBank || profile == profileCard {
		all = slices.DeleteFunc(all, func(f string) bool { return f == faultRounding || f == faultSwap && profile == profileCard })
	}
	return all
}

// rounded returns a reference as a spreadsheet writes it that took it for a number.
func rounded(reference string) string {
	if len(reference) == 16 && strings.Trim(reference, "0123456789") == "" {
		return reference[:15] + "0"
	}
	return reference
}
