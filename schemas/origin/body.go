package origin

import (
	"encoding/binary"

	"quittance/schemas/record"
)

// SignBody proves that the processor made the body of a notification, for whom and of what. topic is the
// name of the notification's topic without the installation's prefix. Everything but the MAC is final.
func SignBody(topic string, n *record.Notification, macs MACs) {
	n.Mac = macs.Append(nil, body(topic, bodyOf{n.EventID, n.Event, n.ApplicationID, n.TenantID, n.SessionID, n.URL, n.Livemode, n.OccurredAt.UnixMilli(), n.Body}))
}

// VerifyBody returns nil for a delivery whose body and addressee SignBody has proved for a notification of
// the topic. The errors are ErrUnsigned and ErrForged. The destination within the addressee, such as one of
// an application's endpoints, is the caller's to check.
func VerifyBody(topic string, d *record.Delivery, macs MACs) error {
	if len(d.Mac) == 0 {
		return ErrUnsigned
	}
	if !macs.Verify(body(topic, bodyOf{d.EventID, d.Event, d.ApplicationID, d.TenantID, d.SessionID, d.URL, d.Livemode, d.OccurredAt.UnixMilli(), d.Body}), d.Mac) {
		return ErrForged
	}
	return nil
}

// bodyOf is what the MAC of a body covers, besides the topic.
type bodyOf struct {
	eventID, event, applicationID, tenantID, sessionID, url string
	live                                                    bool
	occurredAt                                              int64 // Unix milliseconds
	body                                                    []byte
}

// body returns the bytes of b. Each text has its length before it, as in message.
func body(topic string, b bodyOf) []byte {
	dst := append(make([]byte, 0, len(b.body)+512), "body\x00"...)
	for _, part := range [...]string{topic, b.eventID, b.event, b.applicationID, b.tenantID, b.sessionID, b.url} {
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(part))), part...) //nolint:gosec // a record is smaller
	}
	live := byte(0)
	if b.live {
		live = 1
	}
	dst = binary.BigEndian.AppendUint64(append(dst, live), uint64(b.occurredAt)) //nolint:gosec // as it is
	return append(dst, b.body...)
}
