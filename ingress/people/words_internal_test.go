package people

import (
	"testing"

	"quittance/casework"
	"quittance/internal/identity"
	"quittance/money/language/languagetest"
)

// Both languages have every text, and a word for each state, kind and act of the nouns.
func TestBothLanguagesAreWhole(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, texts)
	has := func(what string, table map[string]string, name string) {
		if table[name] == "" {
			t.Errorf("no word for %s %q", what, name)
		}
	}
	for _, s := range []identity.StaffState{identity.StaffStateProposed, identity.StaffStateWaiting, identity.StaffStateActive, identity.StaffStateSuspended, identity.StaffStateRevoked} {
		has("state", french.States, string(s))
	}
	for _, s := range []identity.InvitationState{identity.InvitationSent, identity.InvitationAccepted, identity.InvitationReady, identity.InvitationConfirmed, identity.InvitationWithdrawn, identity.InvitationEnded} {
		has("stage", french.Stages, string(s))
		has("state of an invitation", french.InvitationStates, string(s))
	}
	for _, s := range []casework.DecisionState{casework.DecisionProposed, casework.DecisionApproved, casework.DecisionRejected, casework.DecisionLapsed} {
		has("stage", french.Stages, string(s))
	}
	for _, k := range []identity.StaffChangeKind{identity.StaffChangeRoles, identity.StaffChangeRevoke, identity.StaffChangeSuspend, identity.StaffChangeLift, "invitation"} {
		has("kind", french.Kinds, string(k))
	}
	for _, k := range []identity.PeopleKind{
		identity.PeopleInvite, identity.PeopleConfirm, identity.PeopleWithdraw, identity.PeoplePropose, identity.PeopleApprove, identity.PeopleReject, identity.PeopleSuspend, identity.PeopleLift, identity.PeopleRemovePasskey,
	} {
		has("request", french.Requests, string(k))
	}
}
