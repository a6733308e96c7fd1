// Package contact reads the addresses of people: mobile numbers of Congo and e-mail addresses.
//
// There is one rule, so that every address with which a person can sign in is one to which a
// provider of messages can send, and a payer's number has one form for all operators.
package contact

import (
	"net/mail"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"quittance/internal/operation"
)

// Kind is the kind of an address.
type Kind string

// The kinds.
const (
	Phone Kind = "phone"
	Email Kind = "email"
)

// Address is where messages are sent. Its text is personal data: it goes into no log, error or
// metric. Two equal addresses compare as equal. The zero value is no address.
type Address struct {
	Kind Kind
	// text is the national number of a Congolese mobile, or an e-mail address in lower case
	// whose domain is in ASCII.
	text string
}

// Lengths of an e-mail address and of what is before its @ (RFC 5321, 4.5.3.1).
const (
	maxEmail = 254
	maxLocal = 64
)

// Parse returns the address of a kind. Its errors are those of ParsePhone and ParseEmail.
func Parse(kind Kind, text string) (Address, error) {
	if kind == Phone {
		return ParsePhone(text)
	}
	return ParseEmail(text)
}

// ParsePhone returns the address of a Congolese mobile (04, 05 or 06) in any usual spelling.
// The error is an *operation.Error of the field phone, without the text.
func ParsePhone(text string) (Address, error) {
	number, err := MobileOf(text, "04", "05", "06")
	if err != nil {
		return Address{}, operation.Refuse("citizen.phone_invalid", "phone", nil)
	}
	return Address{Phone, number[len(countryCode):]}, nil
}

// domains are names of the DNS. A name in other letters becomes its ASCII form.
var domains = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// ParseEmail returns an e-mail address (RFC 5322, addr-spec) in lower case, so that the person
// who asks for a code and the one who has the mailbox are the same however it is spelt. The
// local part must be in ASCII: many mail servers take no other (RFC 6531). The error is an
// *operation.Error of the field email, without the text.
func ParseEmail(text string) (Address, error) {
	refused := operation.Refuse("citizen.email_invalid", "email", nil)
	text = strings.TrimSpace(Visible(text))
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Name != "" || parsed.Address != text {
		return Address{}, refused
	}
	at := strings.LastIndexByte(text, '@')
	local := strings.ToLower(text[:at])
	if len(local) > maxLocal || strings.ContainsFunc(text[:at], func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == '"' || r == '\\' }) {
		return Address{}, refused
	}
	domain, err := domains.ToASCII(text[at+1:])
	top := domain[strings.LastIndexByte(domain, '.')+1:]
	if err != nil || top == domain || strings.Trim(top, "0123456789") == "" || len(local)+1+len(domain) > maxEmail {
		return Address{}, refused
	}
	return Address{Email, local + "@" + domain}, nil
}

// Text returns the address in full: +242 and nine digits, or an e-mail address.
func (a Address) Text() string {
	if a.Kind == Phone {
		return "+" + countryCode + a.text
	}
	return a.text
}

// Key is what a keyed hash of the address is made of. It never changes.
func (a Address) Key() string { return string(a.Kind) + "|" + a.text }

// Prefix is what numbers share that are bought in bulk: the number without its last four
// digits. It is empty for an e-mail address.
func (a Address) Prefix() string {
	if a.Kind != Phone {
		return ""
	}
	return a.text[:len(a.text)-4]
}

// Domain is the domain of an e-mail address, in small letters. It is empty for a phone number.
func (a Address) Domain() string {
	if a.Kind != Email {
		return ""
	}
	return strings.ToLower(a.text[strings.LastIndexByte(a.text, '@')+1:])
}

// Masked returns the address as pages show it, with no-break spaces:
// "+242 06 ••• •• 01", or "m•••@example.org".
func (a Address) Masked() string {
	if a.Kind == Phone {
		return Mask(a.text)
	}
	at := strings.LastIndexByte(a.text, '@')
	return a.text[:1] + "•••" + a.text[at:]
}

// String returns no part of the address.
func (a Address) String() string { return string(a.Kind) }

// GoString returns no part of the address.
func (a Address) GoString() string { return string(a.Kind) }
