package connector

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// callbackLabel is the label of the MACs in callback addresses.
const callbackLabel = "callback"

// maxMAC is the maximum length of a MAC in an address. HMAC-SHA256 has 43 characters.
const maxMAC = 64

// Signer makes the MACs of callback addresses. *secret.Keys is a Signer.
type Signer interface {
	MAC(label string, data []byte) []byte
}

// Verifier checks MACs, also those of earlier keys. *secret.Keys is a Verifier.
type Verifier interface {
	VerifyMAC(label string, data, mac []byte) bool
}

// CallbackURL returns the address for an operator's reports about one collection:
// {base}/callbacks/{operator}/{session_id}/{collection_id}/{mac}. Only the service and
// the operator know it (architecture, "External effects happen only in sinks"). Do not
// log it.
func CallbackURL(signer Signer, base, operator, sessionID, collectionID string) string {
	mac := signer.MAC(callbackLabel, addressData(operator, sessionID, collectionID))
	return strings.TrimRight(base, "/") + "/callbacks/" + url.PathEscape(operator) + "/" + url.PathEscape(sessionID) + "/" +
		url.PathEscape(collectionID) + "/" + base64.RawURLEncoding.EncodeToString(mac)
}

// VerifyCallback reports whether mac is the MAC that CallbackURL writes for this operator,
// session and collection.
func VerifyCallback(verifier Verifier, operator, sessionID, collectionID, mac string) bool {
	if len(mac) > maxMAC {
		return false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	return err == nil && verifier.VerifyMAC(callbackLabel, addressData(operator, sessionID, collectionID), raw)
}

// addressData is the text that the MAC of an address covers. It includes the operator, so
// that an address of an operator that signs its reports cannot be used as an address of
// an operator that does not.
func addressData(operator, sessionID, collectionID string) []byte {
	return []byte(operator + "|" + sessionID + "|" + collectionID)
}

// callbackData is the additional data of a sealed redirect. Neither id contains a bar.
func callbackData(sessionID, collectionID string) []byte {
	return []byte(sessionID + "|" + collectionID)
}
