package identity

import "slices"

// Role is what a member of staff does. A person has one or several.
type Role string

// The roles of an agency's people.
const (
	RoleReader      Role = "reader"
	RoleAccountant  Role = "accountant"
	RolePreparer    Role = "preparer"
	RoleApprover    Role = "approver"
	RoleSupervisor  Role = "supervisor"
	RoleAgencyAdmin Role = "agency-admin"
)

// The roles of the service's people, who belong to no agency.
const (
	RoleSupport         Role = "support"
	RoleOperator        Role = "operator"
	RoleLead            Role = "lead"
	RoleAdmin           Role = "admin"
	RoleSecurityOfficer Role = "security-officer"
	RoleAuditor         Role = "auditor"
)

// Permission is one thing that a role allows.
type Permission string

// The permissions. Each is for the agencies that the person acts for (Staff.ActsFor).
const (
	// MaySeePayments shows payments, dues, cases, deliveries and reports, with contact data masked.
	MaySeePayments Permission = "payments.see"
	// MaySeeLines shows the lines of disbursement batches.
	MaySeeLines Permission = "lines.see"
	// MaySeeContacts shows contact data, for a purpose.
	MaySeeContacts Permission = "contacts.see"
	// MayExport makes files of what the person sees.
	MayExport Permission = "exports.make"
	// MayPropose proposes resolutions of cases, statements, breaks and closes.
	MayPropose Permission = "decisions.propose"
	// MayApprove approves what another person has proposed.
	MayApprove Permission = "decisions.approve"
	// MayDecide takes a step of a decision. Each step asks for MayPropose or MayApprove, too.
	MayDecide Permission = "decisions.decide"
	// MayRequestRefund opens a refund request.
	MayRequestRefund Permission = "refunds.request"
	// MayRetry retries one delivery, and MayManageEndpoints suspends, resumes and recovers destinations.
	MayRetry           Permission = "deliveries.retry"
	MayManageEndpoints Permission = "endpoints.manage"
	// MayReplay replays topics, and runs jobs of more than 1,000 rows.
	MayReplay Permission = "replays.run"
	// MayMap maps the codes of an ERP.
	MayMap Permission = "mappings.set"
	// MayImportStatements imports files of statements.
	MayImportStatements Permission = "statements.import"
	// MayManageCounters adds, limits and revokes clerks and devices.
	MayManageCounters Permission = "counters.manage"
	// MayPrepareBatches imports, seals and recalls disbursement batches.
	MayPrepareBatches Permission = "batches.prepare"
	// MaySeeBatches shows disbursement batches of the agency, without their lines; MaySeeLines shows those.
	MaySeeBatches Permission = "batches.see"
	// MayApproveBatches approves, rejects and releases batches, for whom the batch lists.
	MayApproveBatches Permission = "batches.approve"
	// MayManageBatches holds and stops batches, and signs the end of a hold and changes of people and policy.
	MayManageBatches Permission = "batches.manage"
	// MayManagePeople invites, confirms and suspends people of the own group, and gives roles.
	MayManagePeople Permission = "people.manage"
	// MayDraft drafts changes of the registry, and MayApproveDrafts approves them.
	MayDraft         Permission = "drafts.write"
	MayApproveDrafts Permission = "drafts.approve"
	// MayManageKeys mints, rotates and revokes keys of applications.
	MayManageKeys Permission = "keys.manage"
	// MaySeeAudit shows who did what: everything, or all about the own agency.
	MaySeeAudit Permission = "audit.see"
	// MaySeeTrail shows who has read and changed one payment or one case, on its page.
	MaySeeTrail Permission = "trail.see"
)

// roleRule is what a role allows, and for whom it is.
type roleRule struct {
	Role Role
	// Service is true for a role of the service's people.
	Service bool
	May     []Permission
	// Excludes are roles that the same person must not have.
	Excludes []Role
}

// roleRules is the one table of roles (docs/design/staff.md).
var roleRules = []roleRule{
	{Role: RoleReader, May: []Permission{MaySeePayments, MaySeeBatches}},
	{Role: RoleAccountant, May: []Permission{MaySeePayments, MaySeeBatches, MayPropose, MayDecide, MayExport, MayMap, MayRetry, MayImportStatements}},
	{Role: RolePreparer, May: []Permission{MaySeePayments, MaySeeBatches, MaySeeLines, MayPrepareBatches, MayManageBatches}},
	{Role: RoleApprover, May: []Permission{MaySeePayments, MaySeeBatches, MaySeeLines, MayApprove, MayDecide, MayApproveBatches, MayManageBatches, MaySeeTrail}},
	{Role: RoleSupervisor, May: []Permission{MaySeePayments, MaySeeTrail, MayManageCounters, MayRequestRefund}},
	{Role: RoleAgencyAdmin, May: []Permission{MayManagePeople, MaySeeAudit}, Excludes: []Role{RoleApprover, RolePreparer}},
	{Role: RoleSupport, Service: true, May: []Permission{MaySeePayments}},
	{Role: RoleOperator, Service: true, May: []Permission{MaySeePayments, MayPropose, MayDecide, MayRetry, MayManageEndpoints, MayImportStatements, MayExport}},
	{Role: RoleLead, Service: true, May: []Permission{
		MaySeePayments, MayPropose, MayApprove, MayDecide, MayRetry, MayManageEndpoints, MayReplay, MayImportStatements, MaySeeContacts, MayExport, MaySeeTrail,
	}},
	{Role: RoleAdmin, Service: true, May: []Permission{MayDraft, MayManageKeys}, Excludes: []Role{RoleSecurityOfficer}},
	{Role: RoleSecurityOfficer, Service: true, May: []Permission{MayApproveDrafts, MayManagePeople, MaySeeAudit}},
	{Role: RoleAuditor, Service: true, May: []Permission{MaySeePayments, MaySeeAudit, MaySeeTrail}, Excludes: []Role{
		RoleSupport, RoleOperator, RoleLead, RoleAdmin, RoleSecurityOfficer,
	}},
}

// Roles returns all roles: those of agencies, then those of the service.
func Roles() []Role {
	out := make([]Role, len(roleRules))
	for i, r := range roleRules {
		out[i] = r.Role
	}
	return out
}

// rule returns the rule of a role; false for an unknown one.
func (r Role) rule() (roleRule, bool) {
	i := slices.IndexFunc(roleRules, func(rule roleRule) bool { return rule.Role == r })
	if i < 0 {
		return roleRule{}, false
	}
	return roleRules[i], true
}

// OfService reports whether the role is one of the service's people.
func (r Role) OfService() bool {
	rule, _ := r.rule()
	return rule.Service
}

// Allowed reports whether one of the roles has a permission. An unknown role has none.
func Allowed(roles []Role, p Permission) bool {
	return slices.ContainsFunc(roles, func(r Role) bool {
		rule, _ := r.rule()
		return slices.Contains(rule.May, p)
	})
}

// Exclusive returns two roles that no person may have together; false if there are none.
func Exclusive(roles []Role) (a, b Role, found bool) {
	for _, r := range roles {
		rule, _ := r.rule()
		for _, other := range rule.Excludes {
			if slices.Contains(roles, other) {
				return r, other, true
			}
		}
	}
	return "", "", false
}
