package notify

import (
	"encoding/hex"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"quittance/internal/connector"
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

// mobile are the beginnings of Congolese mobile numbers.
var mobile = []string{"04", "05", "06"}

// maxEmail is the greatest length of an e-mail address (RFC 5321, 4.5.3.1.3).
const maxEmail = 254

// readAddress checks an address. SMS go to mobiles of +242 only. The error is a *FieldError.
func readAddress(channel provider.Channel, to string) (address, error) {
	switch channel {
	case provider.ChannelSMS:
		national, ok := connector.NationalNumber(to)
		if !ok || !slices.Contains(mobile, national[:2]) {
			return address{}, &FieldError{"To", "must be a mobile number of Congo, such as +242 06 600 00 01; other people are reached by e-mail"}
		}
		return address{channel, "242" + national, national, connector.Mask(national)}, nil
	case provider.ChannelEmail:
		malformed := &FieldError{"To", "must be an e-mail address, such as name@example.org"}
		parsed, err := mail.ParseAddress(to)
		if err != nil || parsed.Address != to || len(to) > maxEmail || strings.ContainsFunc(to, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == '"' }) {
			return address{}, malformed
		}
		local, domain, _ := strings.Cut(to, "@")
		if !strings.Contains(domain, ".") || strings.HasPrefix(domain, "[") {
			return address{}, malformed
		}
		first, _ := utf8.DecodeRuneInString(local)
		return address{channel: channel, to: local + "@" + strings.ToLower(domain), masked: string(first) + "•••@" + strings.ToLower(domain)}, nil
	}
	return address{}, &FieldError{"Channel", fmt.Sprintf("must be one of %q", provider.Channels)}
}

// labelAddresses is the label of the hash of addresses.
const labelAddresses = "message addresses"

// destinationOf returns the id of the address as a destination: the channel, and a keyed hash.
// Without the key nobody can find the number by trying all numbers.
func destinationOf(mac func(string) [32]byte, a address) string {
	sum := mac(string(a.channel) + "\x00" + strings.ToLower(a.to))
	return string(a.channel) + "_" + hex.EncodeToString(sum[:16])
}

// uri returns the masked address as operators see it.
func uri(channel provider.Channel, masked string) string {
	if channel == provider.ChannelEmail {
		return "mailto:" + masked
	}
	return string(channel) + ":" + masked
}
