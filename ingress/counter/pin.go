package counter

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"quittance/ingress/web"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

// Fields of the sign-in with a PIN, and of the page where a clerk chooses one.
const (
	fieldCode  = "code"
	fieldPIN   = "pin"
	fieldAgain = "again"
)

// maxPINTyped bounds what is compared with a PIN: bcrypt takes at most 72 bytes.
const maxPINTyped = 64

// pinWords are the texts of the short sign-in. A field's comment says what its verbs stand
// for.
type pinWords struct {
	CodeLabel, CodeHint, PINLabel, PINHint string
	WithKey                                string
	Wrong                                  string // number of attempts
	UsedUp                                 string
	Choose, Change, Title                  string
	Text                                   string // code of the clerk
	NewHint                                string
	AgainLabel, AgainHint, Save            string
	Differs, Malformed, Guessable          string
	KeyHint, NotYourKey                    string
	Chosen, Forget, ForgetText, Forgotten  string
}

var frenchPIN = pinWords{
	CodeLabel: "Code de guichet", CodeHint: "Celui de vos reçus, comme c01.", PINLabel: "Code PIN", PINHint: "Celui que vous avez choisi sur cet appareil.",
	WithKey: "Avec la clé du guichet",
	Wrong:   "Code de guichet ou code PIN incorrect. Après %d essais incorrects, la clé du guichet est nécessaire.",
	UsedUp:  "Trop d’essais incorrects\u00a0: ce code PIN ne sert plus. Entrez la clé du guichet, puis choisissez un autre code PIN.",
	Choose:  "Choisir un code PIN pour cet appareil", Change: "Changer de code PIN, oublier cet appareil", Title: "Connexion avec un code PIN",
	Text:    "Sur cet appareil, le code PIN remplace la clé du guichet. La prochaine fois, entrez votre code de guichet, %s, et votre code PIN. Ne le communiquez à personne.",
	NewHint: "De 6 à 12 chiffres, difficiles à deviner.", AgainLabel: "Code PIN, une seconde fois", AgainHint: "Le même, contre les fautes de frappe.", Save: "Enregistrer",
	Differs: "Les deux codes PIN ne sont pas les mêmes.", Malformed: "Le code PIN a de 6 à 12 chiffres, et rien d’autre.",
	Guessable: "Ce code PIN est trop facile à deviner\u00a0: évitez les suites et les chiffres répétés.",
	KeyHint:   "Elle prouve que c’est vous. Elle commence par ck_.", NotYourKey: "Cette clé n’est pas celle de votre guichet.",
	Chosen: "Le code PIN est enregistré. La prochaine fois, il remplace la clé sur cet appareil.",
	Forget: "Oublier cet appareil", ForgetText: "Le code PIN ne servira plus ici, et vous serez déconnecté. Il faudra de nouveau la clé du guichet.",
	Forgotten: "Cet appareil est oublié. Entrez la clé du guichet.",
}

var englishPIN = pinWords{
	CodeLabel: "Counter code", CodeHint: "That of your receipts, such as c01.", PINLabel: "PIN", PINHint: "The one that you chose on this device.",
	WithKey: "With the counter key",
	Wrong:   "Wrong counter code or PIN. After %d wrong attempts the counter key is needed.",
	UsedUp:  "Too many wrong attempts: this PIN is no longer valid. Enter the counter key, then choose another PIN.",
	Choose:  "Choose a PIN for this device", Change: "Change the PIN, forget this device", Title: "Sign-in with a PIN",
	Text:    "On this device the PIN replaces the counter key. Next time enter your counter code, %s, and your PIN. Tell it to nobody.",
	NewHint: "6 to 12 digits, hard to guess.", AgainLabel: "PIN, once more", AgainHint: "The same, against slips.", Save: "Save",
	Differs: "The two PINs are not the same.", Malformed: "A PIN has 6 to 12 digits and nothing else.",
	Guessable: "This PIN is too easy to guess: avoid sequences and repeated digits.",
	KeyHint:   "It proves that it is you. It begins with ck_.", NotYourKey: "This is not the key of your counter.",
	Chosen: "The PIN is saved. Next time it replaces the key on this device.",
	Forget: "Forget this device", ForgetText: "The PIN is then no longer valid here, and you are signed out. You will need the counter key again.",
	Forgotten: "This device is forgotten. Enter the counter key.",
}

// signInWithPIN is POST /counter/sign-in/pin.
func (v visit) signInWithPIN() {
	ref := reference(v.Form.Get(fieldRef))
	device, _, ok := v.c.devices.Session(v.R)
	code, pin := strings.ToLower(strings.TrimSpace(v.Form.Get(fieldCode))), strings.TrimSpace(v.Form.Get(fieldPIN))
	if !ok && !v.c.wrong.Allow(v.R) { // a known device has a limit of its own
		v.c.signIns.WithLabelValues(outcomeLimited).Inc()
		v.wait(time.Minute)
		v.askForKey(http.StatusTooManyRequests, ref, v.w.TooManyWrong)
		return
	}
	if !ok || len(pin) > maxPINTyped {
		v.c.signIns.WithLabelValues("pin_wrong").Inc()
		v.askForPIN(ref, code, fieldPIN, v.wrongPIN())
		return
	}
	session, err := v.c.cfg.Identities.SignInWithPIN(v.R.Context(), device, storable(code), pin)
	switch {
	case errors.Is(err, identity.ErrPINUsedUp):
		v.c.signIns.WithLabelValues("pin_used_up").Inc()
		v.askForPIN(ref, code, fieldKey, v.w.PIN.UsedUp)
		return
	case errors.Is(err, identity.ErrPINWrong):
		v.c.signIns.WithLabelValues("pin_wrong").Inc()
		v.askForPIN(ref, code, fieldPIN, v.wrongPIN())
		return
	case errors.Is(err, identity.ErrUnauthorized):
		v.refuseKey(ref)
		return
	}
	if err == nil {
		err = v.c.devices.Begin(v.W, device) // its cookie lasts from the last sign-in
	}
	if err == nil {
		err = v.c.signIn.Begin(v.W, session)
	}
	if err != nil {
		v.unavailable("signing a clerk in with a PIN", err, v.w.NothingDone)
		return
	}
	v.c.signIns.WithLabelValues("pin").Inc()
	v.toPayment(ref)
}

func (v visit) wrongPIN() string { return fmt.Sprintf(v.w.PIN.Wrong, identity.MaxWrongPINs) }

// askForPIN says what is wrong at a field of the sign-in.
func (v visit) askForPIN(ref, code, field, fault string) {
	out := v.signInView(ref)
	if !out.PINKnown {
		field = fieldKey // the only one
	}
	out.Typed[fieldCode] = code
	out.Fault(field, fault, "")
	v.Write(http.StatusUnauthorized, "signin", out)
}

// showPIN is GET /counter/pin.
func (v visit) showPIN() { v.writePIN(http.StatusOK, "", "") }

func (v visit) writePIN(status int, field, fault string) {
	out := v.viewAt("pin", v.w.PIN.Title)
	out.Stands = fmt.Sprintf(v.w.PIN.Text, v.desk.Code)
	out.PINKnown = v.desk.Device != ""
	if fault != "" {
		out.Fault(field, fault, "")
	}
	v.Write(status, "pin", out)
}

// choosePIN is POST /counter/pin. It takes the key besides the session.
func (v visit) choosePIN() {
	pin := strings.TrimSpace(v.Form.Get(fieldPIN))
	if err := identity.CheckPIN(pin); err != nil {
		v.writePIN(http.StatusUnprocessableEntity, fieldPIN, v.pinFault(err))
		return
	}
	if pin != strings.TrimSpace(v.Form.Get(fieldAgain)) {
		v.writePIN(http.StatusUnprocessableEntity, fieldAgain, v.w.PIN.Differs)
		return
	}
	if err := v.proveKey(); err != nil {
		if !errors.Is(err, identity.ErrUnauthorized) {
			v.unavailable("checking a clerk's key", err, v.w.NothingDone)
			return
		}
		v.writePIN(http.StatusUnprocessableEntity, fieldKey, v.w.PIN.NotYourKey)
		return
	}
	device, _, _ := v.c.devices.Session(v.R)
	device, err := v.c.cfg.Identities.RememberDevice(v.R.Context(), v.actor(), v.desk.ClerkPrincipal, v.session, device, pin)
	if err == nil {
		err = v.c.devices.Begin(v.W, device)
	}
	if err != nil {
		v.unavailable("remembering a device", err, v.w.NothingDone)
		return
	}
	v.See("", queryDone, doneChosen)
}

// proveKey reports whether the form has a key of the signed-in clerk. A session alone, on a
// desk that was left open, must not give somebody else a PIN of their own. The error is
// ErrUnauthorized for a key that is not the clerk's.
func (v visit) proveKey() error {
	clerk, err := v.c.cfg.Identities.AuthenticateClerk(strings.TrimSpace(v.Form.Get(fieldKey)))
	if err == nil && (clerk.AgencyID != v.desk.AgencyID || clerk.Code != v.desk.Code || clerk.Live != v.desk.Live) {
		err = identity.ErrUnauthorized
	}
	return err
}

func (v visit) pinFault(err error) string {
	refused := &operation.Error{}
	if errors.As(err, &refused) && refused.Code == "clerk.pin_guessable" {
		return v.w.PIN.Guessable
	}
	return v.w.PIN.Malformed
}

// forgetDevice is POST /counter/pin/forget. It ends all sessions of the clerk.
func (v visit) forgetDevice() {
	if err := v.c.cfg.Identities.ForgetDevice(v.R.Context(), v.actor(), v.desk.ClerkPrincipal); err != nil {
		v.unavailable("forgetting a device", err, v.w.StillSignedIn)
		return
	}
	if v.desk.Device == "" { // the session is not the device's
		if err := v.c.cfg.Identities.EndClerkSession(v.R.Context(), v.session); err != nil {
			v.unavailable("signing a clerk out", err, v.w.StillSignedIn)
			return
		}
	}
	v.c.signIn.End(v.W)
	v.See("", queryDone, doneForgotten)
}

// actor is the signed-in clerk in the audit table.
func (v visit) actor() operation.Actor {
	return operation.Actor{Kind: operation.ActorPerson, Name: v.desk.Ref(), Origin: web.Client(v.R)}
}
