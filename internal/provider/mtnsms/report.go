package mtnsms

import (
	"encoding/json"
	"fmt"

	"quittance/internal/provider"
)

// states are the values of deliveryStatus. Another value says nothing, so its message is
// pending: the list may not be complete.
var states = map[string]provider.ReportState{
	"DELIVERED":   provider.ReportDelivered,
	"UNDELIVERED": provider.ReportUndelivered,
	"EXPIRED":     provider.ReportUndelivered,
	"REJECTED":    provider.ReportUndelivered,
	"DELETED":     provider.ReportUndelivered,
	"ACCEPTD":     provider.ReportPending,
	"ENROUTE":     provider.ReportPending,
	"UNKNOWN":     provider.ReportPending,
}

// readReports reads a body with a delivery report. MTN describes no reason that a program
// could rely on, so no report says that a number reaches nobody (provider.Report.Unknown).
func readReports(body []byte) ([]provider.Report, error) {
	var in struct {
		ClientCorrelatorID string `json:"clientCorrelatorId"`
		DeliveryStatus     string `json:"deliveryStatus"`
	}
	switch {
	case json.Unmarshal(body, &in) != nil:
		return nil, fmt.Errorf("%w: it is not JSON with the types that MTN describes", provider.ErrReport)
	case in.ClientCorrelatorID == "":
		return nil, fmt.Errorf("%w: clientCorrelatorId is missing", provider.ErrReport)
	case in.DeliveryStatus == "":
		return nil, fmt.Errorf("%w: deliveryStatus is missing", provider.ErrReport)
	}
	report := provider.Report{MessageID: in.ClientCorrelatorID, State: provider.ReportPending}
	if state, known := states[in.DeliveryStatus]; known {
		report.State = state
	}
	if report.State == provider.ReportUndelivered {
		report.Code = in.DeliveryStatus
	}
	return []provider.Report{report}, nil
}
