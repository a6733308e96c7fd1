package connector

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// callbackLabel names the use of the key behind callback addresses.
const callbackLabel = "callback"

// maxMAC bounds what is decoded of an address; HMAC-SHA256 needs 43.
const maxMAC = 64

// Signer makes the MACs of callback addresses; *secret.Keys is one.
type Signer interface {
	MAC(label string, data []byte) []byte
}

// Verifier checks them, also under earlier keys; *secret.Keys is one.
type Verifier interface {
	VerifyMAC(label string, data, mac []byte) bool
}

// CallbackURL is the address that an operator is told for one collection:
// {base}/callbacks/{operator}/{session_id}/{collection_id}/{mac}. Who knows it got
// it from us or from the operator, so that a report to it counts (architecture,
// "External effects happen only in sinks"). It belongs in no log.
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

// addressData holds the operator too: who knows the address of one that signs its
// reports must not get by without a signature at one that does not.
func addressData(operator, sessionID, collectionID string) []byte {
	return []byte(operator + "|" + sessionID + "|" + collectionID)
}

// callbackData is unambiguous: neither id holds a bar.
func callbackData(sessionID, collectionID string) []byte {
	return []byte(sessionID + "|" + collectionID)
}
