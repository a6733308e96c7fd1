package identity

import (
	"time"

	"quittance/internal/passkeys"
)

// What signed.Read reads of the tables of people and their keys.
type (
	keyRow struct {
		ID                            string
		Hash                          []byte
		ApplicationID, ClerkAgencyID  *string
		ClerkCode, StaffID, Replaces  *string
		Live                          bool
		Agencies, Withdrawn           []string
		ReadsPerMinute                *int64
		CreatedAt                     time.Time
		RevokedAt, EndsAt, LastUsedAt *time.Time
	}
	clerkRow struct {
		AgencyID, Code, Name, Counter string
		Active                        bool
		PaymentLimit, DayLimit        int64
		CreatedAt                     time.Time
	}
	staffRow struct {
		ID, Name                         string
		AgencyID, ProposedBy, ApprovedBy *string
		Clerks                           []string
		CreatedAt                        time.Time
		ApprovedAt, RevokedAt            *time.Time
		Number, SuspendedBy              *string
		SuspendedAt                      *time.Time
		Invited                          bool
		Issuer, Subject                  *string
	}
	roleRow struct {
		StaffID, Role string
	}
	passkeyRow struct {
		ID, StaffID, Host, Name string
		Credential              passkeys.Credential
		SpkiHash                []byte
		CreatedAt, ApprovesFrom time.Time
		RemovedAt, LastUsedAt   *time.Time
		SignCount               int64
	}
	invitationRow struct {
		ID, StaffID                          string
		Roles                                []string
		TokenHash                            []byte
		InvitedBy, ConfirmedBy               *string
		InvitedAt, EndsAt                    time.Time
		AcceptedAt, ConfirmedAt, WithdrawnAt *time.Time
		Passkeys                             []invitedRow
		Wrong                                int64
		Issuer, Subject, Email               *string
	}
	changeRow struct {
		ID, StaffID, Kind, Reason, State string
		AddRoles, EndRoles               []string
		ProposedBy, DecidedBy            *string
		ProposedAt                       time.Time
		DecidedAt                        *time.Time
	}
	requestRow struct {
		ID, Kind, AskedBy, Origin, Subject, State, Code string
		AgencyID, DecisionID                            *string
		Body                                            PeopleBody
		TokenHash                                       []byte
		CreatedAt, EndsAt                               time.Time
		Args                                            map[string]any
		DoneAt                                          *time.Time
	}
	issuerRow struct {
		ID, Address, ClientID string
		SecretSealed          []byte
		AgencyID              *string
		Algorithms            []string
		CreatedAt             time.Time
		OutageUntil           *time.Time
		OutageReason          string
	}
	contactRow struct {
		ID, StaffID, Masked, Locale string
		Sealed                      []byte
		SetAt                       time.Time
	}
)

// invitedRow is a passkey in the column passkeys of an invitation.
type invitedRow struct {
	Name       string              `json:"name"`
	Host       string              `json:"host"`
	SPKIHash   []byte              `json:"spki_hash"`
	Credential passkeys.Credential `json:"credential"`
	CreatedAt  time.Time           `json:"created_at"`
}
