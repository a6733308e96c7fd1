package staff

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"quittance/internal/operation"
	"quittance/money/language"
)

// Codes of refusals that the frame knows (operation.Error).
const (
	codeNotPermitted   = "staff.not_permitted"
	codePasskeyRefused = "staff.passkey_refused" //nolint:gosec // a code, no credential
)

// Refusal returns the words of a refusal of a noun in the reader's language. A code without words is named itself, so
// that whoever is called about it finds it.
func (v *Visit) Refusal(err error) string {
	var refusal *operation.Error
	if !errors.As(err, &refusal) {
		return v.w.Unavailable
	}
	text, ok := v.w.Refusals[refusal.Code]
	if !ok {
		return fmt.Sprintf(v.w.RefusedBy, refusal.Code)
	}
	for name, value := range refusal.Args {
		text = strings.ReplaceAll(text, "{"+name+"}", v.argument(value))
	}
	return text
}

// argument returns a value of a refusal as people read it.
func (v *Visit) argument(value any) string {
	switch is := value.(type) {
	case time.Time:
		return v.At(is)
	case string:
		if at, err := time.Parse(time.RFC3339, is); err == nil {
			return v.At(at)
		}
		return is
	default:
		return fmt.Sprint(value)
	}
}

// StatusOf returns the status of the answer to a refusal.
func StatusOf(err error) int {
	var refusal *operation.Error
	switch {
	case !errors.As(err, &refusal):
		return http.StatusServiceUnavailable
	case refusal.Code == codeNotPermitted:
		return http.StatusForbidden
	case strings.HasSuffix(refusal.Code, ".unknown"):
		return http.StatusNotFound
	case slices.Contains([]string{"list.cursor_foreign", "list.cursor_malformed"}, refusal.Code), strings.HasSuffix(refusal.Code, "_malformed"), strings.HasSuffix(refusal.Code, "_missing"):
		return http.StatusUnprocessableEntity
	}
	return http.StatusConflict
}

// At returns a time in the zone of the agencies, with the zone.
func (v *Visit) At(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return language.Date(v.Lang, t)
}
