package ministry

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"quittance/checkout"
	"quittance/ingress/problem"
	"quittance/internal/contact"
	"quittance/internal/form"
	"quittance/money"
)

// longestOrderID is the most characters of an order_id (docs/design/decisions.md § 1).
const longestOrderID = 200

// createRequest is the body of POST /checkout/sessions.
type createRequest struct {
	// Session has the well-formed fields of the body and nothing else. Its TenantID is
	// empty when the body names none.
	checkout.Session
	// hash is SHA-256 of the body as canonical JSON.
	hash []byte
}

// body is a request's body as a JSON object, or the reason why it is none.
type body struct {
	fields map[string]any
	err    error // a *form.MalformedError
}

func readBody(text []byte) (b body) {
	b.fields, b.err = form.Decode(text)
	return b
}

// hash is SHA-256 of the canonical form: sorted keys, no white space, numbers as written.
func (b body) hash() []byte {
	sum := sha256.Sum256(canonical(make([]byte, 0, 1<<10), b.fields))
	return sum[:]
}

// parseCreate returns the request and all faults of its fields. The error is a
// *problem.Problem for a body that is not a JSON object.
func parseCreate(b body, live bool) (createRequest, []form.Fault, error) {
	if b.err != nil {
		return createRequest{}, nil, problem.Malformed(b.err)
	}
	f := fields{form.Of(b.fields)}
	q := createRequest{hash: b.hash(), Session: checkout.Session{
		OrderID:     f.Text("order_id", true, 1, longestOrderID),
		Amount:      f.Amount("amount"),
		Currency:    f.Text("currency", false, 3, 3),
		TenantID:    f.UUID("tenant_id", false),
		ServiceCode: f.Text("service_code", false, 1, 50),
		Description: f.Text("description", false, 1, 200),
		Note:        f.Text("note", false, 1, 500),
		Customer:    f.customer("customer"),
		CustomerID:  f.Text("customer_id", false, 1, 200),
		Metadata:    f.metadata("metadata"),
		SuccessURL:  f.url("success_url", live),
		CancelURL:   f.url("cancel_url", live),
		Mode:        checkout.Mode(f.Text("mode", false, 1, 50)),
	}}
	switch capitals := strings.ToUpper(q.Currency); {
	case q.Currency == "" && !f.Faulty("currency"):
		q.Currency = "XAF"
	case capitals != q.Currency && known(capitals):
		f.Fault("currency", "format", `must be in capital letters: "`+capitals+`"`)
		q.Currency = ""
	}
	switch q.Mode {
	case checkout.ModeHosted, checkout.ModeEmbedded:
	case "":
		q.Mode = checkout.ModeHosted
	default:
		f.Fault("mode", "enum", `must be "hosted" or "embedded"`)
	}
	return q, f.Faults(), nil
}

// known reports whether there is a currency of this code.
func known(code string) bool {
	_, ok := money.Lookup(code)
	return ok
}

// verification is the body of verify-completion.
type verification struct {
	token    string
	orderID  string // empty: any order
	tenantID string
}

// parseVerify reads the body of verify-completion, as parseCreate does.
func parseVerify(b body) (v verification, faults []form.Fault, err error) {
	if b.err != nil {
		return verification{}, nil, problem.Malformed(b.err)
	}
	f := form.Of(b.fields)
	return verification{
		// Any length is accepted: a token that is too long is one that does not exist.
		token:    f.Text("completion_token", true, 1, problem.MaxBody),
		orderID:  f.Text("order_id", false, 1, longestOrderID),
		tenantID: f.UUID("tenant_id", false),
	}, f.Faults(), nil
}

// canonical appends v in canonical form. The form is only compared, never read, so it
// has lengths instead of quotes and escapes.
func canonical(b []byte, v any) []byte {
	text := func(kind byte, s string) {
		b = append(binary.AppendUvarint(append(b, kind), uint64(len(s))), s...)
	}
	switch v := v.(type) {
	case map[string]any:
		b = binary.AppendUvarint(append(b, '{'), uint64(len(v)))
		keys := slices.AppendSeq(make([]string, 0, len(v)), maps.Keys(v))
		slices.Sort(keys)
		for _, k := range keys {
			text('k', k)
			b = canonical(b, v[k])
		}
	case []any:
		b = binary.AppendUvarint(append(b, '['), uint64(len(v)))
		for _, e := range v {
			b = canonical(b, e)
		}
	case string:
		text('"', v)
	case json.Number:
		text('0', v.String())
	case bool:
		b = strconv.AppendBool(b, v)
	case nil:
		b = append(b, 'n')
	}
	return b
}

// fields is a form with the rules of this API.
type fields struct{ *form.Form }

func (f fields) url(field string, live bool) string {
	s := f.Text(field, false, 1, 2048)
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		f.Fault(field, "url", "must be an absolute URL")
	case u.Scheme != "https" && (live || u.Scheme != "http"):
		f.Fault(field, "url", "must use https (http is allowed with test keys only)")
	case u.User != nil:
		f.Fault(field, "url", "must not have a user name or a password")
	case !possiblePort(u.Port()):
		f.Fault(field, "url", "must have a port from 1 to 65535, or none")
	default:
		return s
	}
	return ""
}

// possiblePort reports whether a browser can connect to the port of an address; empty is the
// scheme's own.
func possiblePort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

func (f fields) customer(field string) *checkout.Customer {
	var c checkout.Customer
	f.Object(field, func(in *form.Form) {
		c = checkout.Customer{Name: in.Text("name", false, 1, 200), Email: in.Text("email", false, 1, 254), Phone: in.Text("phone", false, 1, 32)}
		if c.Email != "" {
			if _, err := contact.ParseEmail(c.Email); err != nil || strings.TrimSpace(c.Email) != c.Email {
				in.Fault("email", "format", "must be an e-mail address")
			}
		}
		if c.Phone != "" && !contact.PossibleNumber(c.Phone) {
			in.Fault("phone", "format", "must be a telephone number, with its country code unless it is a national one")
		}
	})
	if c == (checkout.Customer{}) {
		return nil
	}
	return &c
}

func (f fields) metadata(field string) map[string]string {
	out := map[string]string{}
	f.Object(field, func(in *form.Form) {
		keys := in.Names()
		if len(keys) > 20 {
			f.Fault(field, "size", "must have at most 20 keys")
			return // a body may have thousands
		}
		for _, key := range keys {
			value, _ := in.Take(key, false)
			v, ok := value.(string)
			switch n := utf8.RuneCountInString(key); {
			case n == 0 || n > 64:
				in.Fault(key, "length", "must have a key of 1 to 64 characters")
			case !ok:
				in.Fault(key, "type", "must be a string")
			case strings.ContainsAny(key+v, "\x00\uFFFD"): // half a surrogate pair is decoded to U+FFFD
				in.Fault(key, "format", "must not have the zero character, U+FFFD or half a surrogate pair")
			case utf8.RuneCountInString(v) > 500:
				in.Fault(key, "length", "must have at most 500 characters")
			default:
				out[key] = v
			}
		}
	})
	if len(out) == 0 {
		return nil
	}
	return out
}
