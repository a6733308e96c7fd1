package connector

import (
	"net/url"
	"strings"

	"quittance/internal/secret"
)

// LabelCallback is the label of the MACs in callback addresses.
const LabelCallback = "callback"

// CallbackURL returns the address for an operator's reports about one collection:
// {base}/callbacks/{operator}/{session_id}/{collection_id}/{mac}. Only the service and
// the operator know it (architecture, "External effects happen only in sinks"). Do not
// log it.
func CallbackURL(signer secret.Signer, base, operator, sessionID, collectionID string) string {
	mac := secret.AddressMAC(signer, LabelCallback, addressData(operator, sessionID, collectionID))
	return strings.TrimRight(base, "/") + "/callbacks/" + url.PathEscape(operator) + "/" + url.PathEscape(sessionID) + "/" +
		url.PathEscape(collectionID) + "/" + mac
}

// VerifyCallback reports whether mac is the MAC that CallbackURL writes for this operator,
// session and collection.
func VerifyCallback(verifier secret.Verifier, operator, sessionID, collectionID, mac string) bool {
	return secret.VerifyAddressMAC(verifier, LabelCallback, addressData(operator, sessionID, collectionID), mac)
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
