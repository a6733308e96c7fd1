package bank

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"quittance/internal/disbursements/lines"
	"quittance/internal/latin"
	"quittance/statement"
)

// Version is a version of the message that asks a bank to pay.
type Version string

// The versions.
const (
	Version03 Version = "pain.001.001.03"
	Version09 Version = "pain.001.001.09"
)

// Bounds of a file.
const (
	// MaxLines is the most lines of a file.
	MaxLines = 10_000
	// MaxBytes is the most bytes of a file, before it is encrypted.
	MaxBytes = 20 << 20
	// SYGMAFrom is the amount in XAF from which BEAC's gross settlement (SYGMA) carries a transfer. Below it the clearing
	// (SYSTAC) does.
	SYGMAFrom = 100_000_000
)

// Currency is the one currency of the files: SYSTAC and SYGMA carry no other.
const Currency = "XAF"

// ErrProfile says that a bank's profile cannot be used. Its text names the field and the mend.
var ErrProfile = errors.New("profile of a bank")

// Profile is what an agency has agreed with its bank. It has no secret: Access has them.
type Profile struct {
	// Version of the files; Version09 when empty.
	Version Version
	// Debtor is the name of the account's holder: 70 characters.
	Debtor string
	// Client is the number that the bank gave the agency for its files; empty for none.
	Client string
	// Account is the account that is debited, an IBAN of CEMAC or a RIB, and BIC that of its bank.
	Account, BIC string
	// Charges says who bears the banks' fees: SLEV (the default: as the clearing's rules say), SHAR, DEBT or CRED.
	Charges string
	// OneDebit says that the bank debits the sum of a group of lines, not each line.
	OneDebit bool
	// DebitIsPaid says that a debit on a statement proves that a line is paid.
	DebitIsPaid bool
	// Zone is the bank's time zone, and CutOff the time after midnight there from which a file is of the next business day.
	Zone   *time.Location
	CutOff time.Duration
	// Holidays are days besides Saturdays and Sundays on which the bank does not work.
	Holidays []statement.Day
	// SYGMAFrom, MaxLines and MaxBytes are the bank's limits; the constants of the package when 0. The last two can only be
	// smaller.
	SYGMAFrom          int64
	MaxLines, MaxBytes int
	// Out, In and Archive are folders on the bank's server: of files for the bank, of its answers, and where it puts the
	// files that it took. Archive may be empty.
	Out, In, Archive string
	// Prefix begins the names of our files.
	Prefix string
}

var (
	bic    = regexp.MustCompile(`^[A-Z]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$`)
	prefix = regexp.MustCompile(`^[A-Za-z0-9_-]{0,30}$`)
	client = regexp.MustCompile(`^[A-Za-z0-9-]{0,35}$`)
)

// WithDefaults returns the profile with the defaults in place of empty fields.
func (p Profile) WithDefaults() Profile {
	p.Version, p.Charges = cmp.Or(p.Version, Version09), cmp.Or(p.Charges, "SLEV")
	p.SYGMAFrom, p.MaxLines, p.MaxBytes = cmp.Or(p.SYGMAFrom, SYGMAFrom), cmp.Or(p.MaxLines, MaxLines), cmp.Or(p.MaxBytes, MaxBytes)
	return p
}

// Validate returns ErrProfile if a field of a profile with defaults cannot be used.
func (p Profile) Validate() error {
	debtor, err := written("debtor", p.Debtor, lines.MaxName)
	switch {
	case p.Version != Version03 && p.Version != Version09:
		return faulty("version", "choose "+string(Version03)+" or "+string(Version09))
	case err != nil || debtor == "":
		return faulty("debtor", "give the holder's name in Latin letters, at most 70")
	case !client.MatchString(p.Client):
		return faulty("client", "give the number that the bank gave, at most 35 letters, digits and hyphens")
	case accountFault(p.Account) != "":
		return faulty("account", "give the IBAN or the RIB of the account, "+accountFault(p.Account))
	case !bic.MatchString(p.BIC):
		return faulty("bic", "give the bank's BIC, 8 or 11 characters")
	case !slices.Contains([]string{"SLEV", "SHAR", "DEBT", "CRED"}, p.Charges):
		return faulty("charges", "choose SLEV, SHAR, DEBT or CRED")
	case p.Zone == nil:
		return faulty("zone", "give the bank's time zone, such as Africa/Brazzaville")
	case p.CutOff < 0 || p.CutOff > 24*time.Hour:
		return faulty("cut_off", "give a time of the day, such as 14:30")
	case !prefix.MatchString(p.Prefix):
		return faulty("prefix", "give at most 30 letters, digits, hyphens and underscores")
	}
	return cmp.Or(p.limits(), p.folders())
}

func (p Profile) limits() error {
	switch {
	case p.SYGMAFrom < 1:
		return faulty("sygma_from", "give an amount above 0")
	case p.MaxLines < 1 || p.MaxLines > MaxLines:
		return faulty("max_lines", fmt.Sprintf("choose 1 to %d", MaxLines))
	case p.MaxBytes < 1 || p.MaxBytes > MaxBytes:
		return faulty("max_bytes", fmt.Sprintf("choose 1 to %d", MaxBytes))
	}
	return nil
}

func (p Profile) folders() error {
	for _, f := range []struct{ name, folder string }{{"out", p.Out}, {"in", p.In}, {"archive", p.Archive}} {
		if f.folder == "" && f.name == "archive" {
			continue
		}
		if f.folder == "" || path.Clean(f.folder) != f.folder || strings.HasPrefix(f.folder, "..") || latin.Unprintable(f.folder) != "" {
			return faulty(f.name, "give the path of a folder, without . and ..")
		}
	}
	if p.Out == p.In || p.Out == p.Archive {
		return faulty("out", "choose a folder of its own for the files for the bank")
	}
	return nil
}

func faulty(field, mend string) error { return fmt.Errorf("%w: %s: %s", ErrProfile, field, mend) }

// ErrTooLate says that a bank would pay after the last day on which a batch may be paid.
var ErrTooLate = errors.New("the bank's next business day is after the last day of the batch")

// Execution returns the day on which the bank is to pay a file that it gets at a time: the bank's first business day that
// is neither before the date of the batch nor one of which the cut-off is over. The error is ErrTooLate if that is after
// the last day.
func (p Profile) Execution(at time.Time, date, last statement.Day) (statement.Day, error) {
	local := at.In(p.Zone)
	day := statement.DayOf(at, p.Zone)
	if time.Duration(local.Hour())*time.Hour+time.Duration(local.Minute())*time.Minute+time.Duration(local.Second())*time.Second >= p.CutOff {
		day++
	}
	for day = max(day, date); day <= last; day++ {
		if p.works(day) {
			return day, nil
		}
	}
	return 0, fmt.Errorf("%w, %s", ErrTooLate, last)
}

// works reports whether the bank works on a day.
func (p Profile) works(day statement.Day) bool {
	weekday := time.Unix(int64(day)*86400, 0).UTC().Weekday()
	return weekday != time.Saturday && weekday != time.Sunday && !slices.Contains(p.Holidays, day)
}
