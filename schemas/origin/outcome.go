package origin

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas"
	"quittance/schemas/record"
)

// Outcomes is the one rule of who is believed about a delivery: the worker of its kind, which signs its records
// of deliveries.attempts with SignKeyed and the name of the kind. Several roles may write the topic. The zero
// value believes nobody.
type Outcomes struct {
	// Workers has the key of each kind's worker by the name of the kind.
	Workers Verifier
	// AcceptUnproven believes records without headers, as those of a release whose workers proved nothing.
	// It never accepts a forged one.
	AcceptUnproven bool
	// Refused is called for each record that is refused, with ErrUnsigned or ErrForged, and Unproven for each
	// that AcceptUnproven lets pass. Both may be nil.
	Refused  func(reason error)
	Unproven func()
}

// Verify returns nil if the worker of the outcome's kind has written the record, which decodes to a. Its errors
// wrap schemas.ErrUndecodable, because the record never gets a proof, and ErrUnsigned or ErrForged.
func (o Outcomes) Verify(r *kgo.Record, a *record.Attempt) error {
	from, err := o.Workers.VerifyKeyed(r)
	if err == nil && from != a.Delivery.Kind {
		err = ErrForged
	}
	switch {
	case err == nil:
		return nil
	case o.AcceptUnproven && errors.Is(err, ErrUnsigned):
		if o.Unproven != nil {
			o.Unproven()
		}
		return nil
	}
	if o.Refused != nil {
		o.Refused(err)
	}
	return fmt.Errorf("an outcome of kind %q: %w: %w", a.Delivery.Kind, err, schemas.ErrUndecodable)
}

// Unproven reports whether err says that a record does not prove who wrote it.
func Unproven(err error) bool { return errors.Is(err, ErrUnsigned) || errors.Is(err, ErrForged) }

// Reason returns the word for an error of Verify in metrics: "unsigned" or "forged".
func Reason(err error) string {
	if errors.Is(err, ErrUnsigned) {
		return "unsigned"
	}
	return "forged"
}

// Reasons are the words that Reason returns.
var Reasons = []string{"unsigned", "forged"}
