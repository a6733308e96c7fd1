package problem

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"quittance/checkout"
	"quittance/internal/form"
)

// MaxBody is the largest body that is read, in bytes (decisions § 2).
const MaxBody = 64 << 10

// ReadBody reads a request's JSON body whole. The error is a *Problem; whether the
// body is JSON is for package form to say, see Malformed.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, &Problem{
			Status: http.StatusUnsupportedMediaType, Code: "generic.unsupported_media_type", Title: "Unsupported media type",
			Detail: "The body must be JSON: send Content-Type: application/json.",
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &Problem{
			Status: http.StatusRequestEntityTooLarge, Code: "generic.body_too_large", Title: "Body too large",
			Detail: fmt.Sprintf("The body is larger than %d bytes.", MaxBody),
		}
	case err != nil:
		return nil, malformed("The body could not be read to its end: send it again.")
	}
	return body, nil
}

// Malformed is the problem of a body that form.Decode could not read.
func Malformed(err error) *Problem {
	var not *form.MalformedError
	if errors.As(err, &not) {
		return malformed(not.Detail)
	}
	return malformed("The body is not one JSON object.")
}

// Invalid is the problem of fields at fault, at least one.
func Invalid(faults []form.Fault) *Problem {
	p := &Problem{
		Status: http.StatusUnprocessableEntity, Code: string(checkout.CodeValidationFailed), Title: "Validation failed", Faults: faults,
		Detail: fmt.Sprintf("%d fields are not as they must be; errors names each.", len(faults)),
	}
	if len(faults) == 1 {
		p.Detail = faults[0].Message
	}
	return p
}

func malformed(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: "generic.malformed_json", Title: "Malformed JSON", Detail: detail}
}
