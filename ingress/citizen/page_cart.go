package citizen

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"quittance/internal/form"
	"quittance/money"
)

func itoa(n int) string { return strconv.Itoa(n) }

// maxPage is the last page of payments that is shown.
const maxPage = 10_000

// pageNumber reads the number of a page; 1 for anything else.
func pageNumber(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return 1
	}
	return n
}

// cartView is a cart before its checkout.
type cartView struct {
	Agency string
	Rows   []cartRow
	// Key makes a double click one checkout.
	Key string
	// Replace offers to give up the account's open payment of a due.
	Replace bool
}

type cartRow struct {
	dueView
	// Field is the name of the amount's field; empty where the whole due must be paid. Hint is
	// the range of the amount, Typed what the field has.
	Field, Hint, Typed, Fault string
	// Was is the amount that was shown before.
	Was string
}

// openCart is POST /portal/cart: the amounts of the dues that were chosen.
func (v visit) openCart() { v.showCart(http.StatusOK, cartState{}) }

// cartState is what a checkout that was refused says about its cart.
type cartState struct {
	faults  []form.Fault
	replace bool
	// gone says that dues of the cart are no longer owed or cannot be chosen.
	gone bool
}

// showCart answers with the cart of the form, as the ERP states its dues now.
func (v visit) showCart(status int, state cartState) {
	if v.Unread == http.StatusRequestEntityTooLarge || len(v.Form[fieldDue]) > MaxItems {
		v.explain(http.StatusUnprocessableEntity, v.w.CartRefused, v.w.Say(v.w.TooManyDues, itoa(MaxItems)))
		return
	}
	list, err := v.p.service.Dues(v.R.Context(), v.who, DuesRequest{Shown: true})
	if err != nil {
		v.unavailable("reading dues", err)
		return
	}
	cart, gone, away := v.cartOf(list, state)
	gone = gone || state.gone
	switch {
	case len(cart.Rows) > 0:
	case away:
		v.explain(http.StatusServiceUnavailable, v.w.CartRefused, v.w.CartSource)
		return
	case gone:
		v.explain(http.StatusConflict, v.w.CartRefused, v.w.AllGone)
		return
	default:
		v.explain(http.StatusUnprocessableEntity, v.w.CartRefused, v.w.NothingChosen)
		return
	}
	out := v.view(v.w.CartTitle, "dues", "")
	out.Cart, out.Faults = cart, append(out.Faults, v.faultsOfCart(cart, state.faults, gone, away)...)
	if status == http.StatusOK && len(out.Faults) > 0 {
		status = http.StatusConflict
	}
	v.Write(status, "cart", out)
}

// cartOf returns the cart of the form's dues of one agency. gone says that dues were left out
// because they cannot be chosen any more, away that an ERP did not tell.
func (v visit) cartOf(list DueList, state cartState) (cart *cartView, gone, away bool) {
	cart = &cartView{Key: uuid.NewString(), Replace: state.replace}
	agency := ""
	for i, value := range v.Form[fieldDue] {
		c, ok := parseChosen(value)
		if !ok {
			continue
		}
		at := slices.IndexFunc(list.Dues, func(d Due) bool {
			return d.Ref == c.Ref && d.Link.Agency.ID == c.Tenant && d.Link.SubjectRef == c.Subject
		})
		if at < 0 && list.away(c.Tenant, c.Subject) {
			away = true
			continue
		}
		if at < 0 || list.Dues[at].Paid() || list.Dues[at].State == Recording || list.Dues[at].State == InPayment && !list.Dues[at].Replaceable {
			gone = true
			continue
		}
		d := list.Dues[at]
		if agency != "" && agency != d.Link.Agency.ID {
			continue
		}
		agency, cart.Agency = d.Link.Agency.ID, d.Link.Agency.Name
		cart.Rows = append(cart.Rows, v.cartRow(len(cart.Rows), i, d, c, state.faults))
		cart.Replace = cart.Replace || d.State == InPayment && d.Own != nil
	}
	return cart, gone, away
}

// faultsOfCart returns what the page says above a cart: what was left out, what has changed, and
// the faults of the form.
func (v visit) faultsOfCart(cart *cartView, faults []form.Fault, gone, away bool) (out []form.Fault) {
	if gone {
		out = append(out, form.Fault{Message: v.w.SomeGone})
	}
	if away && !slices.ContainsFunc(faults, func(f form.Fault) bool { return f.Message == v.w.CartSource }) {
		out = append(out, form.Fault{Message: v.w.CartSource})
	}
	if slices.ContainsFunc(cart.Rows, func(r cartRow) bool { return r.Was != "" }) {
		out = append(out, form.Fault{Message: v.w.Changed})
	}
	for _, row := range cart.Rows {
		if row.Fault != "" {
			out = append(out, form.Fault{Field: row.Field, Message: row.Fault})
		}
	}
	for _, f := range faults {
		if f.Field == "" {
			out = append(out, f)
		}
	}
	return out
}

// cartRow is the due at position at of the form, in row n of the cart.
func (v visit) cartRow(n, at int, d Due, c chosen, faults []form.Fault) cartRow {
	row := cartRow{dueView: v.dueView(d)}
	if c.Outstanding != d.Outstanding || c.Currency != d.Currency {
		row.Was = v.format(c.Currency, c.Outstanding)
	}
	if row.Least == "" {
		return row
	}
	row.Field = fieldAmount + itoa(n)
	row.Hint = v.w.Say(v.w.AmountHint, row.Least, row.Outstanding)
	row.Typed = strings.TrimSpace(v.Form.Get(fieldAmount + itoa(at)))
	if row.Typed == "" {
		if currency, ok := money.Lookup(d.Currency); ok {
			row.Typed = currency.Decimal(d.Outstanding)
		}
	}
	for _, f := range faults {
		if f.Field == fieldAmount+itoa(at) {
			row.Fault = v.w.Say(v.w.AmountFault, row.Least, row.Outstanding)
		}
	}
	return row
}

// errAmount says that the text is no amount.
var errAmount = errors.New("no amount")

// grouped is a number whose digits are in groups of three, as a page in English writes it.
var grouped = regexp.MustCompile(`^\d{1,3}(?:,\d{3})+(?:\.\d+)?$|^\d{1,3}(?:\.\d{3})+(?:,\d+)?$`)

// parseAmount reads an amount as people and the pages write it: with spaces, commas or points
// between groups of three digits, and a comma or a point before the decimals. Three digits after
// a comma or a point are a group.
func parseAmount(currency money.Currency, text string) (int64, error) {
	text = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "").Replace(text)
	if grouped.MatchString(text) {
		group := text[strings.IndexAny(text, ",."):][:1]
		text = strings.ReplaceAll(text, group, "")
	}
	n, err := currency.ParseDecimal(strings.ReplaceAll(text, ",", "."))
	if err != nil || n <= 0 {
		return 0, errAmount
	}
	return n, nil
}

// payCart is POST /portal/checkout: the cart becomes a session, which the hosted page takes
// payment for.
func (v visit) payCart() {
	q := CheckoutRequest{
		IdempotencyKey: v.Form.Get(fieldKey), Replace: v.Form.Get(fieldReplace) != "",
		SuccessURL: v.absolute("payments"), CancelURL: v.absolute(""),
	}
	var faults []form.Fault
	for i, value := range v.Form[fieldDue] {
		c, ok := parseChosen(value)
		if !ok {
			continue
		}
		shown := c.Outstanding
		it := CheckoutItem{TenantID: c.Tenant, SubjectRef: c.Subject, ERPDueRef: c.Ref, Outstanding: &shown, Currency: c.Currency}
		if typed := strings.TrimSpace(v.Form.Get(fieldAmount + itoa(i))); typed != "" {
			currency, _ := money.Lookup(c.Currency)
			amount, err := parseAmount(currency, typed)
			if err != nil {
				faults = append(faults, form.Fault{Field: fieldAmount + itoa(i)})
			}
			it.Amount = &amount
		}
		q.Items = append(q.Items, it)
	}
	if len(faults) > 0 || len(q.Items) == 0 {
		v.showCart(http.StatusUnprocessableEntity, cartState{faults: faults})
		return
	}
	cart, err := v.p.service.Checkout(v.R.Context(), v.who, q)
	if err != nil {
		v.cartRefused(err)
		return
	}
	v.seeSession(v.p.service.CheckoutURL(cart.Session) + "?lang=" + string(v.Lang))
}

// cartRefused answers a checkout that was refused: the cart again, with what is wrong.
func (v visit) cartRefused(err error) {
	if faulty := (*form.FaultsError)(nil); errors.As(err, &faulty) {
		v.showCart(http.StatusUnprocessableEntity, cartState{faults: v.cartFaults(faulty.Faults)})
		return
	}
	switch RefusalOf(err).Code {
	case CodeDueChanged:
		v.showCart(http.StatusConflict, cartState{})
	case CodeDueInPayment:
		v.showCart(http.StatusConflict, cartState{faults: []form.Fault{{Message: v.w.CartInPayment}}})
	case CodeSourceUnavailable:
		v.showCart(http.StatusServiceUnavailable, cartState{faults: []form.Fault{{Message: v.w.CartSource}}})
	case "idempotency.key_reused", "idempotency.key_invalid":
		v.showCart(http.StatusConflict, cartState{faults: []form.Fault{{Message: v.w.CartStale}}})
	case "checkout.no_channel":
		v.explain(http.StatusConflict, v.w.CartRefused, v.w.NoChannel)
	default:
		v.refused("making a cart", err)
	}
}

// cartFaults turns the faults of a request into those of the page.
func (v visit) cartFaults(faults []form.Fault) (out []form.Fault) {
	for _, f := range faults {
		position, field, _ := strings.Cut(strings.TrimPrefix(f.Field, "items."), ".")
		switch {
		case field == "amount_minor":
			out = append(out, form.Fault{Field: fieldAmount + position})
		case f.Rule == "one_currency":
			out = append(out, form.Fault{Message: v.w.OneCurrency})
		case f.Rule == "one_agency":
			out = append(out, form.Fault{Message: v.w.OneAgency})
		default:
			out = append(out, form.Fault{Message: v.w.CartStale})
		}
	}
	return out
}

// absolute returns an address of the portal for the hosted page.
func (v visit) absolute(path string) string {
	return strings.TrimSuffix(v.p.service.cfg.PublicURL, "/") + v.URL(path)
}

// seeSession sends the browser to the hosted page of a session.
func (v visit) seeSession(address string) {
	v.W.Header().Set("Cache-Control", "no-store")
	http.Redirect(v.W, v.R, address, http.StatusSeeOther)
}
