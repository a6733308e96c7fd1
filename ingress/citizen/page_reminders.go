package citizen

import (
	"errors"
	"net/http"

	"quittance/internal/citizens"
	"quittance/internal/contact"
)

// remindersView is what the page of reminders shows.
type remindersView struct {
	// Chosen is the value that is chosen now.
	Chosen string
	// Options are the addresses that may get reminders, masked.
	Options []reminderOption
}

type reminderOption struct{ Value, Label string }

// The values of fieldReminders.
const (
	remindNone  = "none"
	remindSMS   = "sms"
	remindEmail = "email"
)

// remindBy are the kinds of addresses by values of fieldReminders.
var remindBy = map[string]contact.Kind{remindNone: "", remindSMS: contact.Phone, remindEmail: contact.Email}

// showReminders is GET /portal/reminders.
func (v visit) showReminders(status int, fault string) {
	choice, err := v.p.service.cfg.Citizens.Reminders(v.R.Context(), v.who.ID)
	if err != nil {
		v.unavailable("reading reminders", err)
		return
	}
	links, err := v.p.service.linksOf(v.R.Context(), v.who.ID)
	if err != nil {
		v.unavailable("reading links", err)
		return
	}
	out := v.view(v.w.RemindersTitle, "reminders", "reminders")
	out.NoLinks = len(links) == 0
	out.Reminders = &remindersView{Chosen: remindNone}
	for _, a := range choice.Addresses {
		option := reminderOption{remindEmail, v.w.Say(v.w.ByEmail, a.Masked())}
		if a.Kind == contact.Phone {
			option = reminderOption{remindSMS, v.w.Say(v.w.BySMS, a.Masked())}
		}
		if a.Kind == choice.Kind {
			out.Reminders.Chosen = option.Value
		}
		out.Reminders.Options = append(out.Reminders.Options, option)
	}
	if fault != "" {
		out.Fault(fieldReminders, fault, "")
	}
	v.Write(status, "reminders", out)
}

// chooseReminders is POST /portal/reminders.
func (v visit) chooseReminders() {
	kind, ok := remindBy[v.Form.Get(fieldReminders)]
	if !ok {
		v.showReminders(http.StatusUnprocessableEntity, v.w.RemindersMissing)
		return
	}
	err := v.p.service.cfg.Citizens.ChooseReminders(v.R.Context(), v.who.ID, kind)
	switch {
	case errors.Is(err, citizens.ErrNoAddress):
		v.showReminders(http.StatusUnprocessableEntity, v.w.RemindersMissing)
	case err != nil:
		v.unavailable("choosing reminders", err)
	case kind == "":
		v.See("reminders", queryDone, doneRemindersEnded)
	default:
		v.See("reminders", queryDone, doneReminders)
	}
}
