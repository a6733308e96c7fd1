package page

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"quittance/money"
	"quittance/money/language"
)

// ErrView is wrapped by the errors of [Renderer.Render] for a View that must not be
// shown: it lacks something that its state needs, or its amounts do not add up.
var ErrView = errors.New("view is incomplete")

//go:embed templates
var templates embed.FS

// Renderer holds the parsed templates and the assets. It is safe for
// concurrent use.
type Renderer struct {
	pages           map[State]*template.Template
	style           template.CSS
	script, journey Asset
}

// New parses the embedded templates. An error means a faulty build.
func New() (*Renderer, error) {
	layout, err := template.New("layout.html").Funcs(template.FuncMap{"num": num, "within": within}).ParseFS(templates, "templates/layout.html")
	if err != nil {
		return nil, fmt.Errorf("parsing the page layout: %w", err)
	}
	r := &Renderer{pages: make(map[State]*template.Template, len(States))}
	for _, state := range States {
		t, err := layout.Clone()
		if err != nil {
			return nil, fmt.Errorf("copying the page layout: %w", err)
		}
		if r.pages[state], err = t.ParseFS(templates, "templates/"+string(state)+".html"); err != nil {
			return nil, fmt.Errorf("parsing page %s: %w", state, err)
		}
	}
	r.style = template.CSS(style()) //nolint:gosec // our own file
	if r.script, err = loadAsset("page.js", ContentTypeScript); err != nil {
		return nil, err
	}
	if r.journey, err = loadAsset("embed.js", ContentTypeScript); err != nil {
		return nil, err
	}
	return r, nil
}

// Assets are the files that the pages refer to.
func (r *Renderer) Assets() []Asset {
	return []Asset{r.script, r.journey}
}

// Script is the address of the pages' script. It also shows the button that prints on other
// pages of ours.
func (r *Renderer) Script() string { return r.script.Path }

// Render writes the page of v.State as HTML in UTF-8. It writes nothing when it returns
// an error that wraps [ErrView].
func (r *Renderer) Render(w io.Writer, v View) error {
	t, ok := r.pages[v.State]
	if !ok {
		return fmt.Errorf("rendering page %q: %w: no such state", v.State, ErrView)
	}
	if err := v.check(); err != nil {
		return fmt.Errorf("rendering page %s: %w", v.State, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, r.content(v)); err != nil {
		return fmt.Errorf("rendering page %s: %w", v.State, err)
	}
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("writing page %s: %w", v.State, err)
	}
	return nil
}

// about reports whether the page is about a session.
func (s State) about() bool {
	return s != StateReference && s != StateReload && s != StateUnknown && s != StateUnavailable
}

// step reports whether the page has a forward form.
func (s State) step() bool {
	return s == StateChoose || s == StatePhone || s == StateReview
}

// sums reports whether the page shows due, fee and total.
func (s State) sums() bool {
	return s == StateReview || s == StateCash || s == StateTransfer || s == StateWaiting || s == StateCompleted || s == StateUndecided || s == StateLate || s == StateReversed
}

// settled reports whether the order of a review is paid already, so that nothing may be
// confirmed.
func (v View) settled() bool {
	return v.State == StateReview && slices.ContainsFunc(v.Errors, func(e FieldError) bool { return e.Code == ErrorOrderPaid })
}

// check refuses a View that would show a wrong amount or a page without a way on.
func (v View) check() error {
	if v.State == StateReference && v.Action == "" {
		return fmt.Errorf("%w: no address for its form", ErrView)
	}
	if !v.State.about() {
		return nil
	}
	_, listed := money.Lookup(v.Currency.Code())
	total, err := money.Total(v.Due, v.Fee)
	switch {
	case !listed:
		return fmt.Errorf("%w: no currency", ErrView)
	case v.Agency == "":
		return fmt.Errorf("%w: no agency", ErrView)
	case v.State.sums() && (err != nil || total != v.Total):
		return fmt.Errorf("%w: due %d and fee %d do not make %d", ErrView, v.Due, v.Fee, v.Total)
	case v.State.step() && v.Action == "" && (v.State != StateChoose || len(v.Offers) > 0):
		return fmt.Errorf("%w: no address for its form", ErrView)
	case v.CancelAction != "" && !strings.HasSuffix(v.CancelAction, "/cancel"):
		return fmt.Errorf("%w: address of the citizen's cancel does not end in /cancel", ErrView)
	case v.State == StateCancel && (v.CancelAction == "" || v.BackURL == ""):
		return fmt.Errorf("%w: no way to cancel, or to go on", ErrView)
	case (v.State == StateWaiting || v.State == StateCash || v.State == StateTransfer || v.State == StateBusy) && v.LiveURL != "" && v.SelfURL == "":
		return fmt.Errorf("%w: live status without an address to load again", ErrView)
	case v.State == StateCompleted && v.Send != nil && v.Send.Action == "":
		return fmt.Errorf("%w: no address for the form of the receipt", ErrView)
	case v.State == StateTransfer && (v.Transfer.Holder == "" || v.Transfer.Bank == "" || v.Transfer.IBAN == "" && v.Transfer.Number == ""):
		return fmt.Errorf("%w: no account to transfer money to", ErrView)
	case (v.State == StateCash || v.State == StateTransfer || v.State == StatePaid || v.State == StateHeld || v.State == StateClosed) && v.PaymentRef == "":
		return fmt.Errorf("%w: no payment reference", ErrView)
	}
	return nil
}

// content is a View as text, for the templates. It lacks what a page must not show.
type content struct {
	W        *words
	Title    string
	State    State
	Style    template.CSS
	Script   string
	Journey  string // the script that navigates in a frame
	Embed    *Embed
	TryAgain string // shown in a frame that could not send a form
	Test     bool
	Kind     Kind

	// Theirs marks the agency's texts, which are in French, on a page in another language. Subject
	// is that of the Description, which is sometimes ours.
	Theirs, Subject template.HTMLAttr

	Agency, Service, Description, PaymentRef string
	Logo                                     template.URL
	Contact                                  Contact
	Tel                                      string // Contact.Phone for a link
	Ask                                      bool   // the page tells the citizen to ask the agency: it has the contact itself
	Counters                                 string
	DueText, FeeText, TotalText              string

	Items             []item
	Choices           []choice
	Phone, PhoneFault string
	Example           string // a phone number, or a payment reference
	Typed, RefFault   string // a payment reference
	PayURL, NoticeURL string
	Payer, OfferLabel string
	Hidden            []Field
	Faults            []FieldError

	Redirect             string
	WaitStatus, WaitOver string
	Reference            string // PaymentRef in groups of four
	PayBefore            string
	Undecided            string // what the citizen must not do now
	UndecidedCheck       string // when and whom to ask
	Returned             bool   // see View.Returned
	ByReference          bool   // the step shows the reference
	Clock, Until, USSD   string
	Left                 int64 // whole seconds of the approval window
	Over                 bool
	Version, LiveURL     string
	RefreshURL           string
	RefreshAfter         int64 // seconds

	Receipt         Receipt
	Send            *Send
	SendFault, Sent string
	PaidAt, Failure string
	NotDebited      bool // see View.NotDebited
	Settled         bool // see View.settled
	ShowTotal       bool // beside the references to keep
	Transfer        Transfer
	Transfers       bool // a transfer may be on its way before a cancel
	PaperEnds       bool // a cancel ends the validity of a reference for the counter

	CancelFields                                                                                   []Field
	Action, CancelAction, SelfURL, BackURL, OffersURL, LanguageURL, SuccessURL, CancelURL, DuesURL string
}

type item struct{ Label, Amount string }

type choice struct {
	ID, Label, About string
	Fee, Free        string // one of them when the fee is known
}

func (r *Renderer) content(v View) content {
	w := texts.In(v.Lang).of(v.Offer)
	c := content{
		W: w, Title: v.title(w), State: v.State, Style: r.style, Script: r.script.Path, Test: v.Test, Kind: cmp.Or(v.Kind, KindMobileMoney),
		SelfURL: v.SelfURL, LanguageURL: v.LanguageURL,
	}
	if w.Code != string(money.French) {
		c.Theirs = ` lang="fr"`
	}
	if v.Embed != nil {
		c.Embed, c.Journey, c.TryAgain = v.Embed, r.journey.Path, w.Errors[ErrorTryAgain]
	}
	if v.State == StateReference {
		c.Action, c.Typed, c.Example = v.Action, v.Typed, language.GroupReference("4821093377150264")
		c.faults(v)
	}
	if !v.State.about() {
		return c
	}
	c.payment(v)
	c.Settled = v.settled()
	switch {
	case c.Settled:
		c.faults(v)
	case v.State.step():
		c.step(v)
	}
	c.state(v)
	c.links(v)
	return c
}

// payment is what is paid, to whom and for how much.
func (c *content) payment(v View) {
	w := c.W
	c.agency(v)
	c.Service, c.Description, c.PaymentRef, c.NotDebited = v.Service, v.Description, v.PaymentRef, v.NotDebited
	c.Subject = c.Theirs
	if c.Description == "" && len(v.SubjectEnds) > 0 {
		c.Subject = ""
		c.Description = fmt.Sprintf(w.SubjectEnds, strings.Join(v.SubjectEnds, ", "))
	}
	for _, it := range v.Items {
		c.Description = ""
		c.Items = append(c.Items, item{it.Label, v.Currency.Format(v.Lang, it.Amount)})
	}
	c.Reference = language.GroupReference(v.PaymentRef)
	c.OfferLabel = cmp.Or(v.OfferLabel, w.Offers[v.Offer])
	c.DueText = v.Currency.Format(v.Lang, v.Due)
	c.FeeText = v.Currency.Format(v.Lang, v.Fee)
	c.TotalText = v.Currency.Format(v.Lang, v.Total)
}

// step is a step of the citizen: its form, and the ways back and out.
func (c *content) step(v View) {
	c.Action, c.CancelAction, c.CancelFields, c.BackURL, c.OffersURL = v.Action, v.CancelAction, v.CancelFields, v.BackURL, v.OffersURL
	c.Hidden, c.ByReference = v.Hidden, v.ByReference && v.PaymentRef != ""
	c.Phone, c.Example = v.Phone, GroupPhone("06 612 34 56")
	if v.State == StateReview {
		c.Phone = GroupPhone(v.Phone)
	}
	c.choices(v)
	c.faults(v)
}

// state is what one state alone shows.
func (c *content) state(v View) {
	w := c.W
	switch v.State {
	case StateWaiting:
		c.wait(v)
		c.refresh(v)
	case StateBusy:
		c.Version, c.LiveURL = v.Version, v.LiveURL
		c.refresh(v)
	case StateCash:
		c.PayURL, c.NoticeURL = v.PayURL, v.NoticeURL
		c.CancelAction, c.CancelFields, c.OffersURL = v.CancelAction, v.CancelFields, v.OffersURL
		c.Version, c.LiveURL = v.Version, v.LiveURL
		c.Counters = strings.Join(v.Counters, ", ")
		c.refresh(v)
		if !v.ExpiresAt.IsZero() {
			c.PayBefore = fmt.Sprintf(w.CashUntil, language.Date(v.Lang, v.ExpiresAt))
		}
	case StateTransfer:
		c.Transfer, c.NoticeURL = v.Transfer, v.NoticeURL
		c.Transfer.IBAN = language.GroupIBAN(v.Transfer.IBAN)
		c.CancelAction, c.CancelFields, c.OffersURL = v.CancelAction, v.CancelFields, v.OffersURL
		c.Version, c.LiveURL = v.Version, v.LiveURL
		c.refresh(v)
		if !v.ExpiresAt.IsZero() {
			c.PayBefore = fmt.Sprintf(w.TransferUntil, language.Date(v.Lang, v.ExpiresAt))
		}
	case StateCancel:
		c.CancelAction, c.BackURL = v.CancelAction, v.BackURL
		c.PaperEnds = v.PaymentRef != "" && slices.ContainsFunc(v.Offers, func(o Offer) bool { return o.Kind == KindCash })
		c.Transfers = slices.ContainsFunc(v.Offers, func(o Offer) bool { return o.Kind == KindTransfer })
	case StateUndecided:
		c.Undecided, c.UndecidedCheck = w.Undecided[c.Kind], w.UndecidedCheck
		if !v.ReportedAt.IsZero() {
			c.UndecidedCheck = fmt.Sprintf(w.UndecidedUntil, language.Date(v.Lang, v.ReportedAt))
		}
	case StateCompleted:
		c.Payer, c.Receipt = masked(v.Payer), v.Receipt
		if !v.Receipt.PaidAt.IsZero() {
			c.PaidAt = language.Date(v.Lang, v.Receipt.PaidAt)
		}
		if v.Embed == nil && v.Send != nil {
			c.Send, c.Sent, c.Example = v.Send, w.Sent[v.Send.Asked], GroupPhone("06 612 34 56")
			c.faults(v)
		}
	case StateFailed:
		c.Failure = w.failure(v.FailureCode)
	case StateReversed:
		c.Receipt.Links = v.Receipt.Links
	default:
	}
}

// links are where the citizen goes after the end, and what money that arrived is found by.
func (c *content) links(v View) {
	switch v.State {
	case StateUndecided, StateLate, StateReversed, StateMismatched:
		// What arrived is another amount when it does not match.
		c.Receipt.OperatorRef, c.ShowTotal = v.Receipt.OperatorRef, v.State != StateMismatched
	default:
		// In a frame the page around it has these links.
		if v.Embed == nil {
			c.SuccessURL, c.CancelURL, c.DuesURL = v.SuccessURL, v.CancelURL, v.DuesURL
		}
	}
}

// agency is who is paid and how to reach it.
func (c *content) agency(v View) {
	c.Agency, c.Contact = v.Agency, v.Contact
	if len(v.Logo) > 0 {
		c.Logo = template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(v.Logo)) //nolint:gosec // base64
	}
	c.Contact.Phone = GroupPhone(v.Contact.Phone)
	c.Tel = strings.Map(func(r rune) rune {
		if r == '+' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, v.Contact.Phone)
	c.Ask = c.Ended() && v.State != StateCompleted || v.settled() || v.State == StateChoose && len(v.Offers) == 0
}

// Reachable reports whether the page knows how to reach the agency.
func (c content) Reachable() bool { return c.Contact != Contact{} }

func (v View) title(w *words) string {
	switch {
	case v.State == StateChoose && len(v.Offers) == 0:
		return w.ChooseNone
	case v.settled():
		return w.SettledTitle
	case v.State == StateWaiting && v.Kind == KindCard:
		return w.WaitCardTitle
	case v.State == StateWaiting && v.Kind == KindCash:
		return w.WaitCashTitle
	}
	return map[State]string{
		StateChoose: w.ChooseTitle, StatePhone: w.PhoneTitle, StateReview: w.ReviewTitle, StateCash: w.CashTitle, StateTransfer: w.TransferTitle, StateCancel: w.CancelTitle, StateWaiting: w.WaitTitle,
		StateCompleted: w.DoneTitle, StateFailed: w.FailTitle, StateExpired: w.ExpiredTitle, StateCancelled: w.CancelledTitle,
		StateUndecided: w.UndecidedTitle, StateLate: w.LateTitle, StateReversed: w.ReversedTitle, StateMismatched: w.MismatchTitle,
		StateReference: w.RefTitle, StateBusy: w.BusyTitle, StatePaid: w.PaidTitle, StateHeld: w.HeldTitle, StateClosed: w.ClosedTitle,
		StateReload: w.ReloadTitle, StateUnknown: w.UnknownTitle, StateUnavailable: w.DownTitle,
	}[v.State]
}

func (c *content) choices(v View) {
	if v.State != StateChoose {
		return
	}
	for _, o := range v.Offers {
		item := choice{ID: o.ID, Label: cmp.Or(o.Label, c.W.Offers[o.ID], o.ID), About: c.W.Kinds[o.Kind]}
		switch {
		case o.FeeKnown && o.Fee > 0:
			item.Fee = v.Currency.Format(v.Lang, o.Fee)
		case o.FeeKnown:
			item.Free = c.W.OfferFree
		}
		c.Choices = append(c.Choices, item)
	}
}

// message returns the page's own text for a fault.
func (c *content) message(e FieldError) string {
	text := c.W.Errors[e.Code]
	switch e.Code {
	case ErrorOperatorOther:
		return fmt.Sprintf(text, cmp.Or(c.W.Offers[e.Offer], e.Offer), c.OfferLabel)
	case ErrorRefused:
		next := c.W.PayAgain
		if !Definite(e.Failure) {
			next = fmt.Sprintf(c.W.FailKeep, c.Reference)
		}
		return fmt.Sprintf(text, c.W.failure(e.Failure), next)
	case ErrorReferencePaused:
		return fmt.Sprintf(text, max(e.Minutes, 1))
	case ErrorPromptsLimited, ErrorNetworkLimited:
		const hour = 60
		if e.Minutes > hour {
			return fmt.Sprintf(text, fmt.Sprint((e.Minutes+hour-1)/hour)+"\u00a0h")
		}
		return fmt.Sprintf(text, fmt.Sprint(max(e.Minutes, 1))+"\u00a0min")
	default:
		return cmp.Or(text, c.W.Errors[ErrorTryAgain])
	}
}

func (c *content) faults(v View) {
	for _, e := range v.Errors {
		e.Message = cmp.Or(e.Message, c.message(e))
		// The summary links only to a field that is on the page.
		switch {
		case e.Field == FieldPhone && v.State == StatePhone:
			c.PhoneFault = cmp.Or(c.PhoneFault, e.Message)
		case e.Field == FieldReference && v.State == StateReference:
			c.RefFault = cmp.Or(c.RefFault, e.Message)
		case e.Field == FieldAddress && c.Send != nil:
			c.SendFault = cmp.Or(c.SendFault, e.Message)
		case e.Field == FieldOffer && len(c.Choices) > 0:
		default:
			e.Field = ""
		}
		c.Faults = append(c.Faults, e)
	}
}

func (c *content) wait(v View) {
	c.USSD, c.Version, c.LiveURL, c.Redirect, c.Returned = v.USSD, v.Version, v.LiveURL, v.Redirect, v.Returned
	c.WaitStatus, c.WaitOver = c.W.WaitStatuses[c.Kind], c.W.WaitOvers[c.Kind]
	c.Payer = masked(v.Payer)
	if v.WindowEnds.IsZero() {
		return
	}
	left := v.WindowEnds.Sub(v.Now)
	if left <= 0 {
		c.Over = true
		return
	}
	c.Left = int64(left / time.Second)
	c.Until = fmt.Sprintf(c.W.WaitUntil, language.Clock(v.WindowEnds))
	c.Clock = c.W.WaitClockOne
	// Rounded up, so that no citizen hurries without need. Less than a minute has its own
	// text.
	if minutes := int(math.Ceil(left.Minutes())); minutes > 1 {
		c.Clock = fmt.Sprintf(c.W.WaitClock, minutes)
	}
}

// refresh is for browsers without JavaScript. A frame does nothing without JavaScript.
func (c *content) refresh(v View) {
	if v.Embed == nil {
		c.RefreshURL, c.RefreshAfter = v.Refresh.URL, int64(v.Refresh.After/time.Second)
	}
}

// num returns a text that never breaks inside, such as an amount or a reference. The style
// makes a long one smaller where it would be wider than the page.
func num(text string) template.HTML {
	class := "n n4"
	switch n := utf8.RuneCountInString(text); {
	case n <= 11: // 10 000 FCFA
		class = "n"
	case n <= 15: // 99 999 999 FCFA
		class = "n n2"
	case n <= 19: // a reference in groups
		class = "n n3"
	}
	return template.HTML(`<span class="` + class + `">` + template.HTMLEscapeString(text) + `</span>`) //nolint:gosec // it is escaped
}

// within puts a text that never breaks into a format with one %s.
func within(format, text string) template.HTML {
	before, after, _ := strings.Cut(format, "%s")
	return template.HTML(template.HTMLEscapeString(before)) + num(text) + template.HTML(template.HTMLEscapeString(after)) //nolint:gosec // it is escaped
}

// Ended reports whether nothing is left to do on the page.
func (c content) Ended() bool {
	return c.Settled || slices.Contains([]State{
		StatePaid, StateHeld, StateClosed,
		StateCompleted, StateFailed, StateExpired, StateCancelled, StateUndecided, StateLate, StateReversed, StateMismatched, StateUnknown,
	}, c.State)
}
