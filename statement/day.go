package statement

import (
	"fmt"
	"time"
)

// Day is a calendar day, counted from 1970-01-01.
type Day int32

// DayOf returns the day of a time in a time zone.
func DayOf(at time.Time, zone *time.Location) Day {
	at = at.In(zone)
	return Day((at.Unix() + int64(offset(at))) / 86400) //nolint:gosec // years 1970 to 2200
}

func offset(at time.Time) int {
	_, seconds := at.Zone()
	return seconds
}

// ParseDay reads a day such as 2026-11-21.
func ParseDay(text string) (Day, error) {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0, fmt.Errorf("reading a day: %w", err)
	}
	return DayOf(at, time.UTC), nil
}

// String returns the day such as 2026-11-21.
func (d Day) String() string { return time.Unix(int64(d)*86400, 0).UTC().Format(time.DateOnly) }
