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
	// Total is the sum of the amounts; empty while one of them is faulty, or their currencies
	// differ. Amounts says that a field can change it.
	Total   string
	Amounts bool
}

type cartRow struct {
	dueView
	// Field is the name of the amount's field; empty where the whole due must be paid. Hint is
	// the range of the amount, Typed what the field has.
	Field, Hint, Typed, Fault string
	// Was is the amount that was shown before.
	Was string
	// amount is what is paid of the due, in minor units of currency.
	amount   int64
	currency string
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
	cart, left := v.cartOf(list, state)
	left.gone = left.gone || state.gone
	switch {
	case len(cart.Rows) > 0:
	case left.away:
		v.explain(http.StatusServiceUnavailable, v.w.CartRefused, v.w.CartSource)
		return
	case left.untaken != "":
		v.explain(http.StatusConflict, v.w.CartRefused, v.w.Say(v.w.Untaken, left.untaken))
		return
	case left.gone:
		v.explain(http.StatusConflict, v.w.CartRefused, v.w.AllGone)
		return
	default:
		v.explain(http.StatusUnprocessableEntity, v.w.CartRefused, v.w.NothingChosen)
		return
	}
	out := v.view(v.w.CartTitle, "dues", "")
	out.Cart, out.Faults = cart, append(out.Faults, v.faultsOfCart(cart, state.faults, left)...)
	switch {
	case status != http.StatusOK || len(out.Faults) == 0:
	case slices.ContainsFunc(out.Faults, func(f form.Fault) bool { return f.Field == "" }):
		status = http.StatusConflict
	default:
		status = http.StatusUnprocessableEntity
	}
	v.Write(status, "cart", out)
}

// leftOut is why dues of a form are not in its cart: gone because they cannot be chosen any
// more, away because an ERP did not tell, untaken because nothing takes their currency, which it
// names.
type leftOut struct {
	gone, away bool
	untaken    string
}

// cartOf returns the cart of the form's dues of one agency, and what was left out.
func (v visit) cartOf(list DueList, state cartState) (cart *cartView, left leftOut) {
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
			left.away = true
			continue
		}
		if at < 0 || list.Dues[at].Paid() || list.Dues[at].State == Recording || list.Dues[at].State == InPayment && !list.Dues[at].Replaceable {
			left.gone = true
			continue
		}
		if list.Dues[at].Untaken {
			left.untaken = list.Dues[at].Currency
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
	cart.sum(v)
	return cart, left
}

// sum sets the cart's total.
func (c *cartView) sum(v visit) {
	total := int64(0)
	for _, row := range c.Rows {
		c.Amounts = c.Amounts || row.Field != ""
		if row.Fault != "" || row.currency != c.Rows[0].currency {
			c.Total = ""
			return
		}
		total += row.amount
		c.Total = v.format(row.currency, total)
	}
}

// faultsOfCart returns what the page says above a cart: what was left out, what has changed, and
// the faults of the form.
func (v visit) faultsOfCart(cart *cartView, faults []form.Fault, left leftOut) (out []form.Fault) {
	if left.gone {
		out = append(out, form.Fault{Message: v.w.SomeGone})
	}
	if left.untaken != "" {
		out = append(out, form.Fault{Message: v.w.Say(v.w.Untaken, left.untaken)})
	}
	if left.away && !slices.ContainsFunc(faults, func(f form.Fault) bool { return f.Message == v.w.CartSource }) {
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
	row := cartRow{dueView: v.dueView(d), amount: d.Outstanding, currency: d.Currency}
	if c.Outstanding != d.Outstanding || c.Currency != d.Currency {
		row.Was = v.format(c.Currency, c.Outstanding)
	}
	if row.Least == "" {
		return row
	}
	row.Field = fieldAmount + itoa(n)
	row.Hint = v.w.Say(v.w.AmountHint, row.Least, row.Outstanding)
	currency, _ := money.Lookup(d.Currency)
	typed, given := v.typedAmount(at)
	if row.Typed = typed; !given {
		row.Typed = currency.Decimal(d.Outstanding)
		return row
	}
	var err error
	row.amount, err = parseAmount(currency, typed)
	if err != nil || !d.Takes(row.amount) || slices.ContainsFunc(faults, func(f form.Fault) bool { return f.Field == fieldAmount+itoa(at) }) {
		row.Fault = v.w.Say(v.w.AmountFault, row.Least, row.Outstanding)
	}
	return row
}

// typedAmount returns the amount that was typed for the due at a position of the form. given is
// false when the form has no such field, and true when somebody cleared it: an empty field does
// not stand for the whole due.
func (v visit) typedAmount(at int) (typed string, given bool) {
	return strings.TrimSpace(v.Form.Get(fieldAmount + itoa(at))), v.Form.Has(fieldAmount + itoa(at))
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
		if typed, given := v.typedAmount(i); given {
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
