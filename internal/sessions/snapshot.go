package sessions

import (
	"fmt"

	"quittance/checkout"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// Snapshot is the state of a session after an event.
type Snapshot struct {
	checkout.Session
	// Value is the value of the event's record: schema id and Avro, with its sealed
	// fields. It holds no contact data in plain.
	Value []byte
	// Erased says that the event erased the personal data, so that their keys are deleted.
	Erased bool
	// Told is the event if integrators can subscribe to it; otherwise nil.
	Told *Event
}

// Read reads a record of checkout.events. The snapshot is nil for an event without a
// session. Errors are those of Codec.Decode.
//
// Current events carry neither contact data in plain nor a sealed client_secret. Read
// removes them from an event that does, because the read model could not erase them later.
func Read(codec *schemas.Codec, value []byte) (checkout.EventType, *Snapshot, error) {
	e, s, err := read(codec, value)
	if err == nil && s != nil {
		s.Told, err = toldOf(e)
	}
	if err != nil {
		return "", nil, err
	}
	return checkout.EventType(e.Type), s, nil
}

// read is Read without Told.
func read(codec *schemas.Codec, value []byte) (*record.Event, *Snapshot, error) {
	var e record.Event
	if err := codec.Decode(value, &e); err != nil {
		return nil, nil, err
	}
	if e.Session == nil {
		return &e, nil, nil
	}
	if e.Session.Customer != nil || e.Session.ClientSecretSealed != nil {
		e.Session.Customer, e.Session.ClientSecretSealed = nil, nil
		var err error
		if value, err = codec.Encode(&e); err != nil {
			return nil, nil, fmt.Errorf("removing contact data from an event: %w", err)
		}
	}
	s := &Snapshot{Session: mapping.ToSession(e.Session), Value: value, Erased: e.Session.Archived || e.Type == string(checkout.EventErased)}
	s.Sequence = e.Sequence
	return &e, s, nil
}
