package registry

import (
	"errors"
	"slices"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/disbursement"
	"quittance/internal/address"
	"quittance/internal/operation"
)

// Limits of what a registry file or a command sets. A number beyond them is a mistake.
const (
	MaxName      = 200 // characters
	MaxInFlight  = 1_024
	MaxPerSecond = 100_000
	MaxPerMinute = 10_000_000
	MaxPageSize  = 100
	MinLifetime  = time.Second
	MaxLifetime  = 30 * 24 * time.Hour // as long as idempotency keys are remembered
)

// CheckOrigin refuses what is not an https origin as a browser writes it. It serves the
// pages that embed ours and the pages to which a citizen returns.
func CheckOrigin(raw string) error {
	u, err := address.Parse(raw)
	if err != nil || len(raw) > address.MaxLength || u.Scheme != "https" || raw != "https://"+u.Host || u.Host != strings.ToLower(u.Host) || u.Port() == "443" {
		return errors.New("must be an https origin in lower case without a path, such as https://guichet.example")
	}
	return nil
}

// WebhookEvents lists the events to which an endpoint can subscribe. An endpoint names each event that it gets: one that was
// registered before an event existed does not get it.
func WebhookEvents() (events []string) {
	for _, t := range checkout.EventTypes() {
		if t.Webhook() {
			events = append(events, string(t))
		}
	}
	for _, t := range disbursement.EventTypes() {
		if name := t.Webhook(); name != "" {
			events = append(events, name)
		}
	}
	return events
}

// OfferIDs lists the offers that an application can have.
func OfferIDs() (ids []string) {
	for _, o := range checkout.Offers {
		ids = append(ids, o.ID)
	}
	return ids
}

// refuseOthers refuses values that are not among the known ones, repeated ones and an empty
// list. Nil is no list.
func refuseOthers(field string, values, known []string) error {
	if values != nil && len(values) == 0 {
		return operation.Refuse("registry.not_among", field, operation.Args{"known": known})
	}
	for i, v := range values {
		if !slices.Contains(known, v) || slices.Contains(values[:i], v) {
			return operation.Refuse("registry.not_among", field, operation.Args{"known": known})
		}
	}
	return nil
}

// refuseOutside refuses a number outside its limits. Nil is no number.
func refuseOutside(field string, value *int64, least, most int64) error {
	if value != nil && (*value < least || *value > most) {
		return operation.Refuse("registry.out_of_range", field, operation.Args{"least": least, "most": most})
	}
	return nil
}
