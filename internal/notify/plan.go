package notify

import (
	"strings"

	"quittance/internal/deliveries"
	"quittance/internal/provider"
	"quittance/schemas"
	"quittance/schemas/record"
)

// DeliveryKind is the name of messages as a kind of delivery.
const DeliveryKind deliveries.Kind = "notify"

// eventPrefix begins the event of a message's delivery; the name of its kind follows.
const eventPrefix = "message."

// Event returns the event of the deliveries of a kind.
func (k Kind) Event() string { return eventPrefix + k.Name }

// KindOfEvent finds the kind of a delivery.
func KindOfEvent(event string) (Kind, bool) {
	name, ok := strings.CutPrefix(event, eventPrefix)
	if !ok {
		return Kind{}, false
	}
	return KindOf(name)
}

// Plan returns the delivery of a record of the topic of messages. Its body is the record, and
// its address is masked. Errors wrap schemas.ErrUndecodable, or are those of a schema registry
// that is away.
func Plan(codec *schemas.Codec, value []byte) ([]record.Delivery, error) {
	var m record.Message
	if err := codec.Decode(value, &m); err != nil {
		return nil, err
	}
	return []record.Delivery{{
		DeliveryID: deliveries.ID(DeliveryKind, m.MessageID, m.DestinationID), Kind: string(DeliveryKind), DestinationID: m.DestinationID,
		EventID: m.MessageID, Event: eventPrefix + m.Kind, TenantID: m.TenantID, SessionID: m.SessionID, Livemode: m.Livemode,
		OccurredAt: m.OccurredAt, Attempt: 1, Body: value, URL: uri(provider.Channel(m.Channel), m.AddressMasked),
	}}, nil
}
