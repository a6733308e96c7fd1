package money

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// PartsPerMillion is the ratio 1 (100 %) as a [Schedule] holds it.
const PartsPerMillion = 1_000_000

const ratioDecimals = 6

// Errors of this file, for errors.Is.
var (
	ErrAmount   = errors.New("amount is negative")
	ErrOverflow = errors.New("amount is out of range")
	ErrRatio    = errors.New("ratio must be a decimal from 0 to 1 with at most 6 decimals")
	ErrSchedule = errors.New("fee schedule is invalid")
)

// Schedule is what an agency charges the citizen for one channel, in minor
// units of one currency (contract docs/design/decisions.md § 7). The zero value charges
// nothing.
type Schedule struct {
	// RatioPPM is the share of the due amount in parts per million: 15000 for
	// "0.015". See [ParseRatio].
	RatioPPM int64
	// Fixed is added to the share.
	Fixed int64
	// Minimum is the smallest fee, even if share and fixed part are zero.
	Minimum int64
	// Maximum is the largest fee if HasMaximum is set, and ignored otherwise.
	Maximum    int64
	HasMaximum bool
	// Step is what the total is a multiple of: the fee is raised, after minimum and maximum, until
	// amount and fee together are one. Cash in XAF has 5, because coins of 1 to 4 F do not circulate.
	// 0 and 1 raise nothing.
	Step int64
}

// Validate returns an error that wraps [ErrSchedule] for a negative part, a ratio above 1,
// a negative step, or a maximum below the minimum.
func (s Schedule) Validate() error {
	switch {
	case s.RatioPPM < 0 || s.RatioPPM > PartsPerMillion:
		return fmt.Errorf("%w: ratio of %d parts per million is outside 0 to %d", ErrSchedule, s.RatioPPM, PartsPerMillion)
	case s.Fixed < 0:
		return fmt.Errorf("%w: fixed part %d is negative", ErrSchedule, s.Fixed)
	case s.Minimum < 0:
		return fmt.Errorf("%w: minimum %d is negative", ErrSchedule, s.Minimum)
	case s.Step < 0:
		return fmt.Errorf("%w: step %d is negative", ErrSchedule, s.Step)
	case s.HasMaximum && s.Maximum < s.Minimum:
		return fmt.Errorf("%w: maximum %d is below the minimum %d", ErrSchedule, s.Maximum, s.Minimum)
	}
	return nil
}

// Fee returns clamp(round_half_up(amount × ratio) + fixed, minimum, maximum), raised until amount and
// fee are a multiple of the step, exact to the minor unit for every int64
// (docs/design/decisions.md § 7). The amount is the due amount; the citizen pays amount and fee
// together, see [Total].
//
// The error is [ErrAmount] for a negative amount, [ErrSchedule] for an invalid schedule,
// and [ErrOverflow] for a fee above the largest int64, which needs a schedule without a
// maximum or with a step.
func Fee(amount int64, s Schedule) (int64, error) {
	if amount < 0 {
		return 0, fmt.Errorf("computing the fee of %d: %w", amount, ErrAmount)
	}
	if err := s.Validate(); err != nil {
		return 0, fmt.Errorf("computing a fee: %w", err)
	}
	// amount × ratio fits 128 bits. The ratio is at most 1, so the quotient is at most the
	// amount, and share + fixed fit a uint64.
	hi, lo := bits.Mul64(uint64(amount), uint64(s.RatioPPM)) //nolint:gosec // neither is negative
	lo, carry := bits.Add64(lo, PartsPerMillion/2, 0)
	share, _ := bits.Div64(hi+carry, lo, PartsPerMillion)
	fee := max(share+uint64(s.Fixed), uint64(s.Minimum)) //nolint:gosec // neither is negative
	if s.HasMaximum {
		fee = min(fee, uint64(s.Maximum)) //nolint:gosec // not below the minimum
	}
	// A fee that is out of range already is not raised: its sum with the amount may not fit a uint64.
	if step := uint64(s.Step); step > 1 && fee <= math.MaxInt64 { //nolint:gosec // not negative
		fee += (step - (uint64(amount)+fee)%step) % step
	}
	if fee > math.MaxInt64 {
		return 0, fmt.Errorf("computing the fee of %d: %w", amount, ErrOverflow)
	}
	return int64(fee), nil
}

// Total returns what the citizen pays: amount + fee. The error is [ErrAmount] if either is
// negative and [ErrOverflow] if the sum exceeds an int64.
func Total(amount, fee int64) (int64, error) {
	if amount < 0 || fee < 0 {
		return 0, fmt.Errorf("adding %d and %d: %w", amount, fee, ErrAmount)
	}
	if amount > math.MaxInt64-fee {
		return 0, fmt.Errorf("adding %d and %d: %w", amount, fee, ErrOverflow)
	}
	return amount + fee, nil
}

// Divide divides a fee among items in proportion to their amounts, in whole minor units:
// the largest remainders get the units that are left, the earlier item first among equal
// ones (docs/design/decisions.md § 7). The parts add up to the fee. Negative amounts count as 0; if all are
// 0, the first item gets the fee.
func Divide(fee int64, amounts []int64) []int64 {
	parts := make([]int64, len(amounts))
	if len(parts) == 0 || fee <= 0 {
		return parts
	}
	var sum uint64
	for _, a := range amounts {
		sum += uint64(max(a, 0))
	}
	if sum == 0 {
		parts[0] = fee
		return parts
	}
	left, remainders, order := fee, make([]uint64, len(parts)), make([]int, len(parts))
	for i, a := range amounts {
		hi, lo := bits.Mul64(uint64(fee), uint64(max(a, 0)))
		share, remainder := bits.Div64(hi, lo, sum)                    // at most the fee
		parts[i], remainders[i], order[i] = int64(share), remainder, i //nolint:gosec // at most the fee
		left -= parts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
	for _, i := range order[:left] {
		parts[i]++
	}
	return parts
}

// ParseRatio reads a ratio such as "0.015" as parts per million, exactly. It accepts digits
// with at most six decimals, from "0" to "1": a larger number is a percentage in the wrong
// unit. Everything else, such as signs, exponents and spaces, is [ErrRatio].
func ParseRatio(s string) (int64, error) {
	whole, fraction, pointed := strings.Cut(s, ".")
	if !isDigits(whole) || pointed && !isDigits(fraction) || len(fraction) > ratioDecimals {
		return 0, fmt.Errorf("parsing ratio %q: %w", s, ErrRatio)
	}
	ppm, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", ratioDecimals-len(fraction)), 10, 64)
	if err != nil || ppm > PartsPerMillion {
		return 0, fmt.Errorf("parsing ratio %q: %w", s, ErrRatio)
	}
	return ppm, nil
}

// FormatRatio returns parts per million, from 0 to [PartsPerMillion], as the shortest
// decimal that [ParseRatio] reads as the same ratio, such as "0.015".
func FormatRatio(ppm int64) string {
	fraction := strings.TrimRight(fmt.Sprintf("%06d", ppm%PartsPerMillion), "0")
	whole := strconv.FormatInt(ppm/PartsPerMillion, 10)
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}
