package provider

import "errors"

// ReportState is what a provider reports of a message that it has accepted.
type ReportState string

// The states of reports.
const (
	// ReportPending: the message is on its way. Another report may follow.
	ReportPending ReportState = "pending"
	// ReportDelivered: the phone has the message.
	ReportDelivered ReportState = "delivered"
	// ReportUndelivered: the provider has given the message up.
	ReportUndelivered ReportState = "undelivered"
)

// ReportStates lists all states of reports.
var ReportStates = []ReportState{ReportPending, ReportDelivered, ReportUndelivered}

// Report is a provider's delivery report on one message.
type Report struct {
	// MessageID is the id with which the message was sent. It is not checked.
	MessageID string
	State     ReportState
	// Code is the provider's code of a failure, in the form of Error.Code; empty for none.
	Code string
	// Unknown is true when the provider says that the number reaches nobody, and that this
	// lasts: no subscriber has it, or it may not receive SMS. It is false for a phone that is
	// off or away, and where the provider gives no reason.
	Unknown bool
}

// ErrReport says that a body is no delivery report. It is wrapped by the errors of
// Registration.Reports, which never have a part of the body.
var ErrReport = errors.New("the body is no delivery report")

// Reporter is a Provider that can report what becomes of accepted messages.
type Reporter interface {
	Provider
	// Reports is true when the provider is set up to report on messages with a
	// Message.ReportURL.
	Reports() bool
}
