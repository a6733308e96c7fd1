package staff

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"quittance/ingress/web"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// Joining lets invited people make their passkeys: the invitations of internal/identity.
type Joining interface {
	// Accept uses a link up and returns the secret with which the browser goes on.
	Accept(ctx context.Context, link secret.Text, origin string) (identity.InvitationEntry, secret.Text, error)
	// Invitation returns the open invitation that a browser has accepted.
	Invitation(ctx context.Context, browser secret.Text) (identity.InvitationEntry, error)
	// Begin returns the options with which the browser makes a passkey, and Add adds it.
	Begin(ctx context.Context, browser secret.Text) (json.RawMessage, error)
	Add(ctx context.Context, browser secret.Text, name string, response []byte, origin string) (identity.InvitationEntry, error)
}

// cookieJoining is the secret of the browser that has accepted an invitation.
const cookieJoining = "quittance_staff_joining"

// joiningSeconds is how long the browser keeps it: as long as an invitation lasts.
const joiningSeconds = int(identity.InvitationLife / 1e9)

// fieldLink is the secret of the link. It stands behind the # of the address, which browsers send to nobody: it is in
// no log and in no Referer. The script puts it into the form.
const fieldLink = "link"

// joinView is the page of an invited person.
type joinView struct {
	View
	Name, Roles, Digits string
	// Made is the number of passkeys that the person has made. Accepted is false before the link is used.
	Accepted bool
	Made     int
	Host     string
	Step     string
	// Issuer is the identity provider at which the person signs in first; empty for none. Subject is who the person is there.
	Issuer, Subject string
}

// showJoin is GET /join.
func (v *Visit) showJoin() { v.writeJoin(http.StatusOK, "") }

func (v *Visit) writeJoin(status int, refused string) {
	out := &joinView{View: v.View(v.w.Join.Title, "join"), Host: v.site.host}
	if browser, present := v.cookie(cookieJoining); present {
		i, err := v.site.cfg.Joining.Invitation(v.Context(), browser)
		var refusal *operation.Error
		switch {
		case errors.As(err, &refusal): // it is over: another link may be used
			v.cookieOf(cookieJoining).Set(v.W, "", -1)
		case err != nil:
			v.Unavailable("reading an invitation", err)
			return
		default:
			out.join(v, i)
		}
	}
	if refused != "" {
		out.Fault("", refused, "")
	}
	v.Write(status, "join", out)
}

// join shows how far the person has come.
func (out *joinView) join(v *Visit, i identity.InvitationEntry) {
	out.Accepted, out.Name, out.Made = true, i.Of.Name, len(i.Passkeys)
	var roles []string
	for _, r := range i.Roles {
		roles = append(roles, v.RoleName(r))
	}
	out.Roles = strings.Join(roles, ", ")
	if i.Subject != "" {
		out.Subject = cmp.Or(i.Email, i.Subject)
	}
	if i.AtIssuer() {
		out.Issuer = i.Issuer.Address
	}
	if digits := i.Digits(); len(digits) == 8 {
		out.Digits = digits[:4] + " " + digits[4:]
	}
	out.Step = fmt.Sprintf(v.w.Join.Step, min(out.Made+1, identity.MinPasskeys), identity.MinPasskeys)
}

// RoleName returns the name of a role in the reader's language.
func (v *Visit) RoleName(r identity.Role) string {
	if name := v.w.Roles[string(r)]; name != "" {
		return name
	}
	return string(r)
}

// acceptInvitation is POST /join/accept. A press of the person uses the link up: programs that open links of messages
// do not.
func (v *Visit) acceptInvitation() {
	_, browser, err := v.site.cfg.Joining.Accept(v.Context(), secret.NewText(v.Form.Get(fieldLink)), web.Client(v.R))
	var refusal *operation.Error
	switch {
	case errors.As(err, &refusal):
		v.writeJoin(StatusOf(err), v.Refusal(err))
		return
	case err != nil:
		v.Unavailable("accepting an invitation", err)
		return
	}
	v.cookieOf(cookieJoining).Set(v.W, browser.Reveal(), joiningSeconds)
	v.See("join")
}

// joinIssuer is POST /join/issuer. It leads to the identity provider of the group.
func (v *Visit) joinIssuer() {
	browser, _ := v.cookie(cookieJoining)
	turn, err := v.site.cfg.Desk.InvitedTurn(v.Context(), browser, v.URL("join"))
	var refusal *operation.Error
	switch {
	case errors.As(err, &refusal):
		v.writeJoin(StatusOf(err), v.Refusal(err))
		return
	case err != nil:
		v.Unavailable("leading an invited person to an issuer", err)
		return
	}
	v.turnCookie().Set(v.W, turn.Reveal(), turnSeconds)
	v.See("sign-in/issuer")
}

// beginPasskey is POST /join/passkey/begin. It answers with the options for navigator.credentials.create.
func (v *Visit) beginPasskey() {
	browser, _ := v.cookie(cookieJoining)
	options, err := v.site.cfg.Joining.Begin(v.Context(), browser)
	if err != nil {
		v.refuseJoining(err, "beginning to make a passkey")
		return
	}
	v.AnswerJSON(http.StatusOK, options)
}

// addPasskey is POST /join/passkey, with what the browser has made.
func (v *Visit) addPasskey() {
	browser, _ := v.cookie(cookieJoining)
	i, err := v.site.cfg.Joining.Invitation(v.Context(), browser)
	var made []byte
	if err == nil {
		if made, err = v.ReadAnswer(); err != nil {
			err = operation.Refuse("passkey.refused", "", nil)
		}
	}
	if err == nil {
		_, err = v.site.cfg.Joining.Add(v.Context(), browser, fmt.Sprintf(v.w.Join.Passkey, len(i.Passkeys)+1), made, web.Client(v.R))
	}
	if err != nil {
		v.refuseJoining(err, "adding a passkey of an invited person")
		return
	}
	v.AnswerJSON(http.StatusOK, map[string]string{"next": v.URL("join")})
}

func (v *Visit) refuseJoining(err error, doing string) {
	var refusal *operation.Error
	if !errors.As(err, &refusal) {
		v.AnswerUnavailable(doing, err)
		return
	}
	v.AnswerRefusal(StatusOf(err), err)
}
