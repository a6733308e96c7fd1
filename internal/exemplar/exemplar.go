// Package exemplar names one example of what a histogram has counted, by an id that leads
// an operator to it. OpenMetrics carries it. Whoever reads metrics may see it, so it holds
// neither a session's id, which opens a page, nor anything of a person.
package exemplar

import (
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// Label says what the id of an example is.
type Label string

// The labels of examples. There are no others.
const (
	// RequestID is the X-Request-Id of an answer; problem documents and logs have it.
	RequestID Label = "request_id"
	// DeliveryID is for `quittance deliveries show`.
	DeliveryID Label = "delivery_id"
	// CollectionID is the id under which an operator knows a collection.
	CollectionID Label = "collection_id"
	// PayoutRef is the reference of an attempt to pay a line, which statements show.
	PayoutRef Label = "payout_ref"
)

// Labels are all labels of examples.
var Labels = []Label{RequestID, DeliveryID, CollectionID, PayoutRef}

// most is the longest id. OpenMetrics allows an example 128 characters in all, and the
// client library panics beyond that.
const most = 100

// Observe counts a value with its example. It counts the value alone if the id is empty,
// longer than 100 bytes or no text.
func Observe(o prometheus.Observer, value float64, label Label, id string) {
	with, ok := o.(prometheus.ExemplarObserver)
	if !ok || id == "" || len(id) > most || !utf8.ValidString(id) {
		o.Observe(value)
		return
	}
	with.ObserveWithExemplar(value, prometheus.Labels{string(label): id})
}
