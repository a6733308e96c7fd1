package identity

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Statement is what a person signs with a passkey: a verdict about what the page has shown.
type Statement struct {
	// Kind is that of the decision, and Subject the id of what it is about.
	Kind, Subject string
	// Digest is the SHA-256, in hexadecimal, of the canonical JSON of what is decided on.
	Digest string
	// Verdict is what the person does, such as propose, approve or reject.
	Verdict string
	// AgencyID is whose matter it is; empty for operations. It is not signed.
	AgencyID string
	// Alone says that no second person is needed, as casework.Signed does.
	Alone bool
}

// Signer is the person who acts on a page, with the proof of what the person has signed there.
type Signer interface {
	// Person is who has signed in. Whether the person is in force is read again in the transaction.
	Person() Staff
	// Signed reports nil when the person has signed the statement with a passkey that is in force and approves now,
	// and uses the proof up. A refusal is an *operation.Error; the transaction must not commit then.
	Signed(ctx context.Context, tx pgx.Tx, s Statement) error
}
