package card

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"quittance/internal/connector"
	"quittance/internal/secret"
)

// tolerance is the allowed age of a signature, including the difference between the clocks
// of acquirer and service.
const tolerance = 5 * time.Minute

// authorization matches the header of signed requests and reports. A merchant is printable
// ASCII without quotation marks and backslashes, so that it needs no escaping.
var authorization = regexp.MustCompile(`^HMAC-SHA256 merchant="([!#-\[\]-~]{1,200})", timestamp="([0-9]{1,12})", signature="([0-9a-f]{64})"$`)

var errCredentials = errors.New("the account's merchant or secret cannot be used")

// sign returns the Authorization header of a request to address.
func sign(account Account, at time.Time, method, address string, body []byte) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the account's address is malformed")
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	header := fmt.Sprintf(`HMAC-SHA256 merchant="%s", timestamp="%s", signature="%s"`, account.Merchant, timestamp,
		hex.EncodeToString(mac(account.Secret, "request", account.Merchant, timestamp, method, u.RequestURI(), digest(body))))
	if account.Secret == "" || !authorization.MatchString(header) {
		return "", errCredentials
	}
	return header, nil
}

// verify checks the Authorization header of a report. Errors wrap ErrSignature, or are secret.ErrNotHeld in a
// process that cannot tell.
func verify(account Account, header http.Header, body []byte, now time.Time) error {
	refuse := func(why string) error { return fmt.Errorf("%w: %s", connector.ErrSignature, why) }
	values := header.Values("Authorization")
	if len(values) != 1 {
		return refuse("not one Authorization header")
	}
	parts := authorization.FindStringSubmatch(values[0])
	if parts == nil {
		return refuse("a malformed Authorization header")
	}
	merchant, timestamp, signature := parts[1], parts[2], parts[3]
	// Anyone could sign with an empty secret.
	key := cmp.Or(account.ReportSecret, account.Secret)
	if key == "" && account.Merchant != "" {
		return fmt.Errorf("the secret that signs reports: %w", secret.ErrNotHeld)
	}
	if account.Merchant == "" || merchant != account.Merchant {
		return refuse("another merchant")
	}
	given, err := hex.DecodeString(signature)
	if err != nil || !hmac.Equal(given, mac(key, "report", merchant, timestamp, digest(body))) {
		return refuse("another secret or content")
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Unix(seconds, 0).Sub(now).Abs() > tolerance {
		return refuse("another time")
	}
	return nil
}

func mac(key string, lines ...string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(strings.Join(lines, "\n")))
	return m.Sum(nil)
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
