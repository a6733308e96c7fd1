package notify

import (
	"encoding/hex"
	"fmt"
	"strings"

	"quittance/internal/contact"
	"quittance/internal/provider"
)

// FieldError says that a field of a Message is wrong. It never has the field's value.
type FieldError struct {
	Field string
	// Mend says what the field must be.
	Mend string
}

// Error names the field and the mend.
func (e *FieldError) Error() string { return e.Field + ": " + e.Mend }

// address is a usable address of a channel.
type address struct {
	channel provider.Channel
	// to is in the form that providers take.
	to string
	// phone is the number of an SMS; empty for an e-mail.
	phone  string
	masked string
}

// readAddress checks an address. SMS go to mobiles of +242 only. The error is a *FieldError.
func readAddress(channel provider.Channel, to string) (address, error) {
	switch channel {
	case provider.ChannelSMS:
		phone, err := contact.ParsePhone(to)
		if err != nil {
			return address{}, &FieldError{"To", "must be a mobile number of Congo, such as +242 06 600 00 01; other people are reached by e-mail"}
		}
		return address{channel, strings.TrimPrefix(phone.Text(), "+"), phone.Text(), phone.Masked()}, nil
	case provider.ChannelEmail:
		email, err := contact.ParseEmail(to)
		if err != nil {
			return address{}, &FieldError{"To", "must be an e-mail address, such as name@example.org"}
		}
		return address{channel: channel, to: email.Text(), masked: email.Masked()}, nil
	}
	return address{}, &FieldError{"Channel", fmt.Sprintf("must be one of %q", provider.Channels)}
}

// labelAddresses is the label of the hash of addresses.
const labelAddresses = "message addresses"

// destinationOf returns the id of the address as a destination: the channel, and a keyed hash.
// Without the key nobody can find the number by trying all numbers.
func destinationOf(mac func(string) [32]byte, a address) string {
	sum := mac(string(a.channel) + "\x00" + a.to)
	return string(a.channel) + "_" + hex.EncodeToString(sum[:16])
}

// channelOf returns the channel of a destination.
func channelOf(destinationID string) provider.Channel {
	channel, _, _ := strings.Cut(destinationID, "_")
	return provider.Channel(channel)
}

// uri returns the masked address as operators see it.
func uri(channel provider.Channel, masked string) string {
	if channel == provider.ChannelEmail {
		return "mailto:" + masked
	}
	return string(channel) + ":" + masked
}
