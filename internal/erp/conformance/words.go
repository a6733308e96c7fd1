package conformance

import (
	"fmt"
	"net/http"
	"strings"

	"quittance/internal/address"
	"quittance/internal/call"
	"quittance/internal/erp"
)

// quoted is how much of an answer is shown.
const quoted = 300

var invalidWords = map[string][2]string{
	erp.InvalidHTML:       {"The answer is a page (HTML), not JSON.", "A proxy, a sign-in page or an error page answers instead of the ERP: call the address of the interface itself, and answer errors with a 4xx or 5xx."},
	erp.InvalidCompressed: {"The answer is compressed.", "Compress only for callers that send Accept-Encoding."},
	erp.InvalidUTF8:       {"The answer is not UTF-8.", "Encode JSON as UTF-8 (RFC 8259), not as ISO 8859-1 or Windows-1252."},
	erp.InvalidJSON:       {"The answer is not JSON.", "Send one complete JSON object and nothing else."},
	erp.InvalidItems:      {"The answer has no list items.", `Send {"items": […]}, also for one due and for none: {"items": []}.`},
	erp.InvalidTooMany:    {"The answer has more than 500 items.", "List open dues only, at most 500."},
}

var faultWords = map[string][2]string{
	call.FaultTimeout:    {"There was no complete answer in time.", "Answer within 5 s, 15 s for a confirmation; look for a slow query, or a body that is not ended."},
	call.FaultName:       {"The name of the host does not resolve.", "Check the address and the DNS record."},
	call.FaultConnect:    {"The connection was refused.", "Check the port, that the ERP runs, and that a firewall lets this machine in."},
	call.FaultConnection: {"The connection broke, or what answers does not speak HTTP.", "Check the port and https or http, and look into the log of the ERP for a crash."},
	call.FaultTooLarge:   {"The answer has more than 1 MiB.", "List open dues only, with the fields of the contract."},
	call.FaultUnusable:   {"The credentials are not usable.", "Check the kind of authentication and its secret."},
}

// batchWords are those of the answer with the lines of a batch, which has limits of its own.
var batchWords = map[string][2]string{
	erp.InvalidItems:    {"The answer has no list items.", `Send {"items": […]}, also for an unknown batch: {"items": []}.`},
	erp.InvalidTooMany:  {"The answer has more than 100,000 items.", "Make several batches of such a batch."},
	erp.InvalidItemSize: {"An item, or a value beside the items, has more than 128 KiB.", "Send the fields of the contract, with the lengths that it names."},
	call.FaultTooLarge:  {"The answer has more than 64 MiB.", "Send the fields of the contract, or make several batches of such a batch."},
	call.FaultTimeout:   {"There was no complete answer in time.", "Send the whole answer within 120 s; begin to send before the last line is read."},
}

var tlsWords = map[string]string{
	call.TLSExpired:          "The certificate has expired: renew it.",
	call.TLSNotYetValid:      "The certificate is not valid yet: check both clocks.",
	call.TLSUnknownAuthority: "No known authority signed the certificate: send the intermediate certificates too, or give the file of your own authority.",
	call.TLSWrongHost:        "The certificate is for other names: use the name in it, or one certificate for this name.",
}

// explain says in words what an answer means that is not the wanted one, and how to mend it. It quotes the answer.
func (c *check) explain(r call.Result) (said, mend string) {
	said, mend = explain(r)
	return said + c.quote(r.Answer), mend
}

// ExplainLines says in words what an answer of GET /disbursements means that is not the wanted one, and how to mend it. The words
// have nothing that the ERP sent.
func ExplainLines(r call.Result) (said, mend string) {
	what := r.Fault
	if what == erp.FaultInvalid {
		what = r.Detail
	}
	if words, ok := batchWords[what]; ok {
		return words[0], words[1]
	}
	return explain(r)
}

func explain(r call.Result) (said, mend string) {
	if words, ok := invalidWords[r.Detail]; ok && r.Fault == erp.FaultInvalid {
		return words[0], words[1]
	}
	if words, ok := faultWords[r.Fault]; ok {
		return words[0], words[1]
	}
	switch {
	case r.Fault == call.FaultTLS:
		mend = tlsWords[r.Detail]
		if mend == "" {
			mend = "Use TLS 1.2 or later with a valid certificate."
		}
		return "The TLS handshake failed.", mend
	case r.Fault == call.FaultAddress && r.Detail == string(address.ReasonMetadata):
		return "The address may not be called.", "It is that of a cloud's metadata service."
	case r.Fault != "":
		return "There was no answer: " + r.Reason() + ".", "Check the address."
	}
	said = fmt.Sprintf("The answer is %d %s.", r.Status, http.StatusText(r.Status))
	switch {
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		mend = "The ERP does not accept the credentials: compare kind, header name, user name and secret on both sides."
	case r.Status == http.StatusNotFound, r.Status == http.StatusMethodNotAllowed:
		mend = "The base address and the path together are not served: check the base address, which stands before /health, /dues, /disbursements and /payment-confirmations."
	case r.Status >= http.StatusMultipleChoices && r.Status < http.StatusBadRequest:
		mend = "Redirects are not followed: give the final address."
	case r.Status >= http.StatusInternalServerError:
		mend = "The ERP failed: look into its log."
	}
	return said, mend
}

// quote returns the beginning of an answer on one line, without our secret.
func (c *check) quote(answer string) string {
	if secret := c.Settings.Auth.Secret.Reveal(); secret != "" {
		answer = strings.ReplaceAll(answer, secret, "***")
	}
	text := []rune(strings.Join(strings.Fields(answer), " "))
	if len(text) == 0 || text[0] == '<' {
		return ""
	}
	if len(text) > quoted {
		text = append(text[:quoted], '…')
	}
	return " It says: " + string(text)
}
