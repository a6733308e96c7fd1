package sessions

import (
	"fmt"

	"quittance/checkout"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// Snapshot is a session as it stands after an event.
type Snapshot struct {
	checkout.Session
	// Value is that of the event's record: schema id and Avro, with what is sealed in
	// it. It holds no contact data.
	Value []byte
}

// Read reads a record of checkout.events. The snapshot is nil for an event of no
// session. Errors are those of Codec.Decode.
//
// Events carry neither contact data nor what opens a client_secret. Should one carry
// them, they are taken out: a read model that holds them could not erase them.
func Read(codec *schemas.Codec, value []byte) (checkout.EventType, *Snapshot, error) {
	var e record.Event
	if err := codec.Decode(value, &e); err != nil {
		return "", nil, err
	}
	if e.Session == nil {
		return checkout.EventType(e.Type), nil, nil
	}
	if e.Session.Customer != nil || e.Session.ClientSecretSealed != nil {
		e.Session.Customer, e.Session.ClientSecretSealed = nil, nil
		var err error
		if value, err = codec.Encode(&e); err != nil {
			return "", nil, fmt.Errorf("taking contact data out of an event: %w", err)
		}
	}
	s := &Snapshot{Session: mapping.ToSession(e.Session), Value: value}
	s.Sequence = e.Sequence
	return checkout.EventType(e.Type), s, nil
}
