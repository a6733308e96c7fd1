package secret

import "encoding/base64"

// maxAddressMAC is the greatest length of a MAC in an address. HMAC-SHA256 has 43 characters.
const maxAddressMAC = 64

// Signer makes MACs. *Keys is a Signer.
type Signer interface {
	MAC(label string, data []byte) []byte
}

// Verifier checks MACs in constant time, also those of earlier keys. *Keys is a Verifier.
type Verifier interface {
	VerifyMAC(label string, data, mac []byte) bool
}

// AddressMAC returns the MAC of data as a part of an address: base64url (RFC 4648, section 5)
// without padding. Whoever knows it can use the address: do not log it.
func AddressMAC(signer Signer, label string, data []byte) string {
	return base64.RawURLEncoding.EncodeToString(signer.MAC(label, data))
}

// VerifyAddressMAC reports whether mac is what AddressMAC returns for this label and data.
func VerifyAddressMAC(verifier Verifier, label string, data []byte, mac string) bool {
	if len(mac) > maxAddressMAC {
		return false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	return err == nil && verifier.VerifyMAC(label, data, raw)
}
