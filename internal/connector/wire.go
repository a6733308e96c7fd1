package connector

import (
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
)

var errID = errors.New("not an id of ours")

// ShortID returns our UUID without dashes, for an operator whose ids have fewer than 36 characters.
func ShortID(id string) (string, error) {
	u, err := uuid.Parse(id)
	if err != nil {
		return "", errID
	}
	return hex.EncodeToString(u[:]), nil
}

// LongID is the inverse of ShortID. It accepts letters of either case.
func LongID(id string) (string, error) {
	var u uuid.UUID
	if len(id) != 2*len(u) {
		return "", errID
	}
	if _, err := hex.Decode(u[:], []byte(id)); err != nil {
		return "", errID
	}
	return u.String(), nil
}

// Text is a JSON string or number, as it is written. Any other value is empty: Airtel sometimes sends false as an id.
type Text string

// UnmarshalJSON reads a string, or a number as it is written.
func (t *Text) UnmarshalJSON(b []byte) error {
	*t = ""
	switch {
	case len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9'):
		*t = Text(b)
	case len(b) > 0 && b[0] == '"':
		return json.Unmarshal(b, (*string)(t))
	}
	return nil
}
