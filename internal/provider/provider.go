package provider

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Channel is a way to reach a person. Rows, records and metrics contain it, so it never
// changes.
type Channel string

// The channels.
const (
	ChannelSMS   Channel = "sms"
	ChannelEmail Channel = "email"
)

// Channels lists all channels.
var Channels = []Channel{ChannelSMS, ChannelEmail}

// Message is a message as a provider sends it.
type Message struct {
	// ID is the message's own, at most 36 letters, digits and underscores. The provider gets
	// it, and it is the same at every attempt.
	ID string
	// To is a number in the form 242060000001, or an e-mail address.
	To string
	// Subject is empty in an SMS.
	Subject string
	// Text is plain text: of an SMS in GSM-7, of an e-mail in any script.
	Text string
	// Attachments are only of an e-mail.
	Attachments []Attachment
	// At is the time of the message, UTC.
	At time.Time
	// NotAfter is the time after which the message is worthless; zero for none. A provider
	// that can is told to drop it then.
	NotAfter time.Time
	// ReportURL is where the provider reports what becomes of the message, if it is a
	// Reporter; empty for no report. It is a secret: whoever knows it can report.
	ReportURL string
}

// Attachment is a file of an e-mail.
type Attachment struct {
	// Name is the file's, of letters, digits, hyphens and its ending.
	Name        string
	ContentType string
	Content     []byte
}

// Provider carries messages of one channel. Safe for concurrent use.
type Provider interface {
	// Name returns the provider's short name, as in its Registration.
	Name() string
	// Send hands a message over. It returns nil when the provider has accepted it. Errors
	// are *Error.
	Send(ctx context.Context, m Message) error
	// Check asks whether the provider accepts our credentials. It sends no message. Errors
	// are *Error.
	Check(ctx context.Context) error
}

// Fault says what an error means for the message. It is a label of metrics.
type Fault string

// The faults.
const (
	// FaultRefused: the provider refuses the message and will always refuse it.
	FaultRefused Fault = "refused"
	// FaultBusy: the provider has certainly not accepted the message, and may accept it
	// later.
	FaultBusy Fault = "busy"
	// FaultNotSent: the message has certainly not reached the provider.
	FaultNotSent Fault = "not_sent"
	// FaultCredentials: the provider does not accept our credentials, and so not the message.
	FaultCredentials Fault = "credentials"
	// FaultUnknown: the provider may have accepted the message.
	FaultUnknown Fault = "unknown"
)

// Faults lists all faults.
var Faults = []Fault{FaultRefused, FaultBusy, FaultNotSent, FaultCredentials, FaultUnknown}

// Definite reports whether the provider has certainly not accepted the message.
func (f Fault) Definite() bool { return f != FaultUnknown }

// Error says that a message was not accepted, or that nobody knows.
type Error struct {
	// Doing describes the call: "sending an SMS".
	Doing string
	Fault Fault
	// Code is the provider's code, at most 40 letters, digits and _ . - signs; empty for
	// none. It is never prose, because prose may repeat the address.
	Code string
	// Unknown is true when the provider says that the address reaches nobody: a mailbox or a
	// subscriber that does not exist.
	Unknown bool
	// RetryAfter is the time to wait as the provider asks; 0 if it does not.
	RetryAfter time.Duration
}

// Error returns the description, the fault and the code.
func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("%s: %s", e.Doing, e.Fault)
	}
	return fmt.Sprintf("%s: %s (%s)", e.Doing, e.Fault, e.Code)
}

// Of returns err as an *Error. An error of another type says nothing, so its fault is
// FaultUnknown.
func Of(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Doing: "sending a message", Fault: FaultUnknown}
}

// maxCode is the greatest length of a code.
const maxCode = 40

// Code returns the text of a provider if it looks like a code, otherwise an empty text.
func Code(text string) string {
	if len(text) > maxCode {
		return ""
	}
	letters := false
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			letters = true
		case '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return ""
		}
	}
	if !letters && len(text) > maxDigits { // it may be a number of a phone
		return ""
	}
	return text
}

// maxDigits is the greatest length of a code without letters. Numbers of phones are longer.
const maxDigits = 7
