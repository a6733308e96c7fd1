package citizens_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"quittance/internal/citizens"
	"quittance/internal/contact"
	"quittance/internal/operation"
)

const lease = 5 * time.Minute

var taxes = citizens.Subject{AgencyID: "018f0000-0000-7000-8000-000000000001", Ref: "NIU-2026-1001"}

// linked signs a person in and links the account to a subject.
func (o *office) linked(a contact.Address, subject citizens.Subject) (citizens.Citizen, citizens.Link) {
	o.t.Helper()
	_, c := o.signIn(a)
	code, err := o.LinkCode(o.t.Context(), subject)
	if err != nil {
		o.t.Fatal(err)
	}
	proof, err := o.Prove(o.t.Context(), c.ID, subject, code)
	if err != nil {
		o.t.Fatal(err)
	}
	return c, proof.Link
}

func (o *office) choose(c citizens.Citizen, kind contact.Kind) {
	o.t.Helper()
	if err := o.ChooseReminders(o.t.Context(), c.ID, kind); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) chosen(c citizens.Citizen) contact.Kind {
	o.t.Helper()
	choice, err := o.Reminders(o.t.Context(), c.ID)
	if err != nil {
		o.t.Fatal(err)
	}
	return choice.Kind
}

// remind takes the accounts that are to be looked at.
func (o *office) remind() []citizens.Reminded {
	o.t.Helper()
	all, err := o.Remind(o.t.Context(), false, 10, lease)
	if err != nil {
		o.t.Fatal(err)
	}
	return all
}

func (o *office) one() citizens.Reminded {
	o.t.Helper()
	all := o.remind()
	if len(all) != 1 {
		o.t.Fatalf("%d accounts are to be looked at, want one", len(all))
	}
	return all[0]
}

func (o *office) write(r citizens.Reminded, dues ...citizens.ReminderDue) []citizens.ReminderMessage {
	o.t.Helper()
	messages, err := o.Write(o.t.Context(), r, dues)
	if err != nil {
		o.t.Fatal(err)
	}
	return messages
}

// Nobody gets reminders who has not chosen them, and only at an address that the account has
// proven. They end with the choice, with the account, and when the address was not proven for 90
// days.
func TestRemindersAreChosen(t *testing.T) {
	t.Parallel()
	o := open(t)
	c, link := o.linked(phone(t, 1), taxes)
	choice, err := o.Reminders(t.Context(), c.ID)
	if err != nil || choice.Kind != "" || !slices.Equal(choice.Addresses, []contact.Address{phone(t, 1)}) {
		t.Fatalf("%v, %v", choice, err)
	}
	if got := o.remind(); len(got) != 0 {
		t.Fatalf("an account that has chosen nothing is looked at")
	}
	if err := o.ChooseReminders(t.Context(), c.ID, contact.Email); !errors.Is(err, citizens.ErrNoAddress) {
		t.Fatalf("an address that the account has not proven: %v", err)
	}
	o.choose(c, contact.Phone)
	r := o.one()
	o.choose(c, contact.Phone)
	if len(o.remind()) != 0 {
		t.Error("the same choice makes the account be looked at again")
	}
	if r.CitizenID != c.ID || r.Address != phone(t, 1) || r.Locale != "fr" || len(r.Links) != 1 || r.Links[0].ID != link.ID || r.Links[0].Subject != taxes {
		t.Errorf("%+v", r)
	}
	if live, err := o.Remind(t.Context(), true, 10, lease); err != nil || len(live) != 0 {
		t.Errorf("an account that is another's is taken: %v, %v", live, err)
	}
	o.choose(c, "")
	if o.chosen(c) != "" || len(o.remind()) != 0 {
		t.Error("the choice does not end")
	}
	if err := o.Rest(t.Context(), r, start); err != nil || len(o.remind()) != 0 {
		t.Errorf("the end of a lease revives a choice: %v", err)
	}

	o.choose(c, contact.Phone)
	o.wait(90 * 24 * time.Hour)
	if o.chosen(c) != "" || len(o.remind()) != 0 {
		t.Error("a number that was not proven for 90 days gets reminders")
	}
	if err := citizens.Sweep(t.Context(), o.pool, o.cfg.Now()); err != nil {
		t.Fatal(err)
	}
	again, _ := o.linked(phone(t, 1), taxes) // whoever has the number now
	if o.chosen(again) != "" || len(o.remind()) != 0 {
		t.Error("the next owner of a number gets reminders")
	}

	o.choose(again, contact.Phone)
	actor := operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}
	if erased, err := o.Erase(t.Context(), actor, phone(t, 1), ""); err != nil || !erased {
		t.Fatal(erased, err)
	}
	var rows int
	if err := o.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM citizen_reminders) + (SELECT count(*) FROM citizen_reminded)`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows are left of an erased account, %v", rows, err)
	}
}

// A process dies between its steps: before it has sent a message, after that, and after it has
// recorded it. Each due is in one message, and a message that is made again is the same one.
func TestRemindersAreWrittenOnce(t *testing.T) {
	t.Parallel()
	o := open(t)
	c, link := o.linked(phone(t, 1), taxes)
	o.choose(c, contact.Phone)
	first := o.one()
	a, b := citizens.ReminderDue{Link: link, Ref: "A", Stage: citizens.StageWeek}, citizens.ReminderDue{Link: link, Ref: "B", Stage: citizens.StageDay}
	made := o.write(first, a, b, a)
	if len(made) != 1 || !slices.Equal(made[0].Dues, []int{0, 1}) {
		t.Fatalf("%+v", made)
	}
	if len(o.remind()) != 0 {
		t.Fatal("an account is two instances'")
	}

	// It died: another one takes the account. A is paid meanwhile, and there is a new due.
	o.wait(lease)
	second := o.one()
	if _, err := o.Write(t.Context(), first, []citizens.ReminderDue{a}); !errors.Is(err, citizens.ErrLease) {
		t.Errorf("a lease that has ended: %v", err)
	}
	next := citizens.ReminderDue{Link: link, Ref: "C", Stage: citizens.StageDay}
	again := o.write(second, b, next)
	if len(again) != 2 || again[0].Key != made[0].Key || !slices.Equal(again[0].Dues, []int{0}) || again[1].Key == made[0].Key || !slices.Equal(again[1].Dues, []int{1}) {
		t.Fatalf("%+v", again)
	}
	for _, m := range again {
		if err := o.Wrote(t.Context(), second, m.Key); err != nil {
			t.Fatal(err)
		}
	}
	if more := o.write(second, a, b, next); len(more) != 0 {
		t.Errorf("what was sent is made again: %+v", more)
	}
	week := citizens.ReminderDue{Link: link, Ref: "A", Stage: citizens.StageDay}
	if more := o.write(second, week); len(more) != 1 {
		t.Errorf("the next stage of a due: %+v", more)
	}

	// Who ends reminders and chooses them again is not reminded twice, also not of what may be
	// on its way.
	o.choose(c, "")
	o.choose(c, contact.Phone)
	third := o.one()
	if more := o.write(third, a, b, next, week); len(more) != 0 {
		t.Errorf("after another choice: %+v", more)
	}
	// The link ends while the ERP is asked.
	if ok, err := o.Unlink(t.Context(), c.ID, link.ID); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if more := o.write(third, citizens.ReminderDue{Link: link, Ref: "D", Stage: citizens.StageDay}); len(more) != 0 {
		t.Errorf("of a reference that was removed: %+v", more)
	}
	if err := o.Rest(t.Context(), third, o.cfg.Now().Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if len(o.remind()) != 0 {
		t.Error("an account that rests is looked at")
	}
	// A new reference is looked at at once.
	other, otherLink := o.linked(phone(t, 1), citizens.Subject{AgencyID: taxes.AgencyID, Ref: "NIU-2026-1002"})
	if got := o.one(); other.ID != c.ID || len(got.Links) != 1 || got.Links[0].ID != otherLink.ID {
		t.Errorf("%+v", got)
	}
}

// All instances together ask an ERP once in each gap.
func TestRemindersPace(t *testing.T) {
	t.Parallel()
	o := open(t)
	second := o.instance(o.pool)
	const gap = time.Minute
	for i, s := range []*citizens.Store{o.Store, second, o.Store} {
		wait, ok, err := s.AskPace(t.Context(), taxes.AgencyID, gap, 2*gap)
		if want := time.Duration(i) * gap; err != nil || !ok || wait > want || wait < want-10*time.Second {
			t.Errorf("question %d waits %v, %v, %v", i, wait, ok, err)
		}
	}
	if wait, ok, err := second.AskPace(t.Context(), taxes.AgencyID, gap, 2*gap); ok || err != nil {
		t.Errorf("a long wait is reserved: %v, %v", wait, err)
	}
	if wait, ok, err := second.AskPace(t.Context(), "018f0000-0000-7000-8000-000000000002", gap, 0); !ok || err != nil || wait != 0 {
		t.Errorf("another agency: %v, %v, %v", wait, ok, err)
	}
}

// An ERP postpones a due date of which an account was reminded. The new date is told too, once; one
// that is only a day later is not.
func TestPostponedDue(t *testing.T) {
	t.Parallel()
	o := open(t)
	c, link := o.linked(phone(t, 1), taxes)
	o.choose(c, contact.Phone)
	r, due := o.one(), citizens.ReminderDue{Link: link, Ref: "A", Stage: citizens.StageWeek, From: o.cfg.Now()}
	wrote := func(m []citizens.ReminderMessage) string {
		t.Helper()
		if len(m) != 1 {
			t.Fatalf("%d messages, want one", len(m))
		}
		if err := o.Wrote(t.Context(), r, m[0].Key); err != nil {
			t.Fatal(err)
		}
		return m[0].Key
	}
	first := wrote(o.write(r, due))
	due.From = due.From.Add(24 * time.Hour)
	o.wait(24 * time.Hour)
	if r = o.one(); len(o.write(r, due)) != 0 {
		t.Error("a due date that moves by a day is told again")
	}
	due.From = due.From.Add(7 * 24 * time.Hour)
	o.wait(7 * 24 * time.Hour)
	r = o.one()
	again := o.write(r, due)
	if made := o.write(r, due); len(again) != 1 || len(made) != 1 || made[0].Key != again[0].Key {
		t.Fatalf("a message that may be lost is made again as %+v, want %+v", made, again)
	}
	if wrote(again) == first {
		t.Error("the messages of both dates are one")
	}
	if len(o.write(r, due)) != 0 {
		t.Error("a postponed due date is told twice")
	}
}
