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
	contactRow struct {
		ID, StaffID, Masked, Locale string
		Sealed                      []byte
		SetAt                       time.Time
	}
)
