package infobip

import (
	"encoding/json"
	"fmt"

	"quittance/internal/provider"
)

// nobody are the errors which say that no subscriber has the number, or that the operator or
// its owner has blocked it. Permanent errors of the group of handsets say so too.
var nobody = map[string]bool{
	"EC_UNKNOWN_SUBSCRIBER": true, "EC_UNIDENTIFIED_SUBSCRIBER": true,
	"EC_BLACKLISTED_DESTINATIONADDRESS": true, "EC_DEST_ADDRESS_BLACKLISTED": true, "EC_IMSI_BLACKLISTED": true,
}

// unreachable reports whether an error says that the number reaches nobody and that this
// lasts: no subscriber has it, or it may not receive SMS. A phone that is off or away
// (EC_ABSENT_SUBSCRIBER) has permanent false. code is the error's name, or the status's.
func unreachable(e *fault, code string) bool {
	if e != nil && e.Permanent != nil && !*e.Permanent {
		return false
	}
	return nobody[code] || e != nil && e.GroupID == groupHandset && e.Permanent != nil
}

// noError is the name of the error of a message without one.
const noError = "NO_ERROR"

// deliveredToOperator is a status of the group of delivered messages: the network has the
// message, and the phone may not have it yet. Infobip calls it intermediate.
const deliveredToOperator = "DELIVERED_TO_OPERATOR"

// readReports reads a body with delivery reports. A status of a group that is not known says
// nothing, so its message is pending.
func readReports(body []byte) (out []provider.Report, err error) {
	var in struct {
		Results []struct {
			MessageID string  `json:"messageId"`
			Status    *status `json:"status"`
			Error     *fault  `json:"error"`
		} `json:"results"`
	}
	if json.Unmarshal(body, &in) != nil {
		return nil, fmt.Errorf("%w: it is not JSON with the types that Infobip describes", provider.ErrReport)
	}
	if len(in.Results) == 0 {
		return nil, fmt.Errorf("%w: results is missing or empty", provider.ErrReport)
	}
	for n, r := range in.Results {
		switch {
		case r.MessageID == "":
			return nil, fmt.Errorf("%w: results[%d].messageId is missing", provider.ErrReport, n)
		case r.Status == nil:
			return nil, fmt.Errorf("%w: results[%d].status is missing", provider.ErrReport, n)
		}
		report := provider.Report{MessageID: r.MessageID, State: stateOf(*r.Status)}
		if report.State == provider.ReportUndelivered {
			report.Code = provider.Code(r.Status.Name)
			if r.Error != nil && r.Error.Name != noError && provider.Code(r.Error.Name) != "" {
				report.Code = r.Error.Name
			}
			report.Unknown = unreachable(r.Error, report.Code)
		}
		out = append(out, report)
	}
	return out, nil
}

// Further groups of statuses, of which reports have more than answers.
const (
	groupUndeliverable = 2
	groupRejected      = 5
)

func stateOf(s status) provider.ReportState {
	switch s.GroupID {
	case groupDelivered:
		if s.Name != deliveredToOperator {
			return provider.ReportDelivered
		}
	case groupUndeliverable, groupExpired, groupRejected:
		return provider.ReportUndelivered
	}
	return provider.ReportPending
}
