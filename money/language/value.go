package language

import (
	"fmt"
	"strings"
	"time"

	"quittance/money"
	"quittance/money/localtime"
)

var months = Table[[12]string]{
	money.French:  {"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre"},
	money.English: {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
}

// Clock formats the time of day in Brazzaville: 15:32.
func Clock(t time.Time) string {
	return localtime.In(t).Format("15:04")
}

// Date formats date and time of day in Brazzaville: 1er novembre 2026 à 15:32.
func Date(lang money.Language, t time.Time) string {
	if lang == money.English {
		return Day(lang, t) + ", " + Clock(t)
	}
	return Day(lang, t) + " à " + Clock(t)
}

// Day formats the date in Brazzaville: 1er novembre 2026.
func Day(lang money.Language, t time.Time) string {
	t = localtime.In(t)
	day := fmt.Sprint(t.Day())
	if t.Day() == 1 && lang != money.English {
		day = "1er"
	}
	return fmt.Sprintf("%s %s %d", day, months.In(lang)[t.Month()-1], t.Year())
}

// GroupReference formats a reference for reading aloud: in groups of four digits, with
// no-break spaces.
func GroupReference(ref string) string {
	var b strings.Builder
	for i, r := range ref {
		if i > 0 && i%4 == 0 {
			b.WriteRune('\u00a0')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// GroupIBAN returns an IBAN in groups of four, between which a line may break.
func GroupIBAN(iban string) string { return strings.ReplaceAll(GroupReference(iban), "\u00a0", " ") }
