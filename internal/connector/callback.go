package connector

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// callbackLabel names the use of the key behind callback addresses.
const callbackLabel = "callback"

// maxMAC is how long a MAC in an address may be; HMAC-SHA256 needs 43.
const maxMAC = 64

// Signer makes the MACs of callback addresses; *secret.Keys is one.
type Signer interface {
	MAC(label string, data []byte) []byte
}

// Verifier checks MACs, also those of earlier keys; *secret.Keys is one.
type Verifier interface {
	VerifyMAC(label string, data, mac []byte) bool
}

// CallbackURL is the address that an operator is told for one collection:
// {base}/callbacks/{operator}/{session_id}/{collection_id}/{mac}. Only the service and
// the operator know it, so a report to it counts (architecture, "External effects
// happen only in sinks"). Do not log it.
func CallbackURL(signer Signer, base, operator, sessionID, collectionID string) string {
	mac := signer.MAC(callbackLabel, addressData(operator, sessionID, collectionID))
	return strings.TrimRight(base, "/") + "/callbacks/" + url.PathEscape(operator) + "/" + url.PathEscape(sessionID) + "/" +
		url.PathEscape(collectionID) + "/" + base64.RawURLEncoding.EncodeToString(mac)
}

// VerifyCallback says whether mac is the one that CallbackURL wrote for this
// operator, session and collection.
func VerifyCallback(verifier Verifier, operator, sessionID, collectionID, mac string) bool {
	if len(mac) > maxMAC {
		return false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	return err == nil && verifier.VerifyMAC(callbackLabel, addressData(operator, sessionID, collectionID), raw)
}

// addressData is what the MAC of an address covers. It includes the operator: whoever
// knows an address of an operator that signs its reports must not be able to use it as
// one of an operator that does not sign.
func addressData(operator, sessionID, collectionID string) []byte {
	return []byte(operator + "|" + sessionID + "|" + collectionID)
}

// callbackData is what a sealed redirect is bound to. Neither id contains a bar.
func callbackData(sessionID, collectionID string) []byte {
	return []byte(sessionID + "|" + collectionID)
}
