package citizens

import (
	"net/mail"
	"strings"

	"golang.org/x/net/idna"

	"quittance/internal/connector"
	"quittance/internal/operation"
)

// Kind is the kind of an address.
type Kind string

// The kinds.
const (
	Phone Kind = "phone"
	Email Kind = "email"
)

// Address is where codes are sent. Its text is personal data: it goes into no log, error or
// metric. The zero value is no address.
type Address struct {
	Kind Kind
	// text is the national number of a Congolese mobile, or an e-mail address whose domain is
	// in ASCII.
	text string
}

// maxEmail is the longest e-mail address (RFC 5321, 4.5.3.1.3, without its brackets).
const maxEmail = 254

// ParsePhone returns the address of a Congolese mobile in any usual spelling. The error is
// an *operation.Error of the field phone.
func ParsePhone(text string) (Address, error) {
	national, ok := connector.NationalNumber(text)
	if !ok {
		return Address{}, operation.Refuse("citizen.phone_invalid", "phone", nil)
	}
	return Address{Phone, national}, nil
}

// ParseEmail returns an e-mail address (RFC 5322, addr-spec) in lower case. The error is an
// *operation.Error of the field email.
func ParseEmail(text string) (Address, error) {
	refused := operation.Refuse("citizen.email_invalid", "email", nil)
	text = strings.TrimSpace(text)
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Name != "" || parsed.Address != text {
		return Address{}, refused
	}
	at := strings.LastIndexByte(text, '@')
	domain, err := idna.Lookup.ToASCII(text[at+1:])
	local := strings.ToLower(text[:at])
	if err != nil || !strings.Contains(domain, ".") || strings.ContainsAny(local, "\" \\") || len(local)+1+len(domain) > maxEmail {
		return Address{}, refused
	}
	return Address{Email, local + "@" + domain}, nil
}

// Text returns the address as a provider of messages takes it: +242 and nine digits, or an
// e-mail address.
func (a Address) Text() string {
	if a.Kind == Phone {
		return "+242" + a.text
	}
	return a.text
}

// Masked returns the address as pages show it to its owner.
func (a Address) Masked() string {
	if a.Kind == Phone {
		return "+242 " + a.text[:2] + " ••• •• " + a.text[len(a.text)-2:]
	}
	at := strings.LastIndexByte(a.text, '@')
	return a.text[:1] + "•••" + a.text[at:]
}

// String returns no part of the address.
func (a Address) String() string { return string(a.Kind) }

// prefix is what numbers share that are bought in bulk: the number without its last four
// digits. An e-mail address has none.
func (a Address) prefix() string {
	if a.Kind != Phone {
		return ""
	}
	return a.text[:len(a.text)-4]
}
