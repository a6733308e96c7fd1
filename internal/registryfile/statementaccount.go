package registryfile

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/form"
	"quittance/internal/registry"
	"quittance/internal/statements"
	"quittance/money"
	"quittance/statement"
)

// statementAccount is an account whose statements are reconciled.
type statementAccount struct {
	path string
	registry.StatementAccount
}

var (
	fingerprintPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)
	numberPattern      = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z ./-]{0,62}$`)
	zonePattern        = regexp.MustCompile(`^(UTC|[A-Za-z_]+(/[A-Za-z0-9_+-]+)+)$`)
)

func (o object) statementAccount(agencyID string, live bool) statementAccount {
	a := registry.StatementAccount{
		StatementAccountKey: registry.StatementAccountKey{AgencyID: agencyID, Live: live, Code: o.slug("code")},
		Kind:                registry.AccountKind(o.text("kind", true)), Currency: money.Default, Zone: registry.DefaultZone, GraceDays: registry.DefaultGraceDays, KeepYears: registry.DefaultKeepYears,
	}
	if a.Kind != "" && !slices.Contains(registry.AccountKinds, a.Kind) {
		o.fault("kind", "enum", "must be operator (mobile money), acquirer (cards), bank or cash (deposit slips of the counters)")
		a.Kind = ""
	}
	if c := o.text("currency", false); c != "" {
		a.Currency = c
		if _, ok := money.Lookup(c); !ok {
			o.fault("currency", "enum", "is not in the contract's list of currencies")
		}
	}
	if payouts := o.text("payouts", false); payouts != "" {
		o.payoutsOf(&a, payouts)
	} else {
		o.offerOf(&a)
	}
	o.daysOf(&a)
	if settles := o.slugOrNone("settles_to"); settles != "" {
		a.SettlesTo = settles
		switch {
		case a.Kind == registry.AccountBank:
			o.fault("settles_to", "kind", "is not for a bank account: other accounts settle to it")
		case a.Payouts():
			o.fault("settles_to", "payouts", "is not for an account from which people are paid: its operator pays nothing out to a bank")
		}
	}
	o.filesOf(&a)
	return statementAccount{o.Path(), a}
}

// slugOrNone reads a slug that may be omitted.
func (o object) slugOrNone(field string) string {
	if value, ok := o.Take(field, false); !ok || value == "" {
		return ""
	}
	return o.slug(field)
}

// payoutsOf reads from which payout account people are paid.
func (o object) payoutsOf(a *registry.StatementAccount, code string) {
	a.Offer, a.Fingerprint = code, o.text("fingerprint", false)
	var codes []string
	for _, t := range o.operators.Accounts(connector.PurposePayout) {
		codes = append(codes, t.Name)
	}
	slices.Sort(codes)
	switch {
	case o.text("offer", false) != "":
		o.fault("payouts", "together", "cannot stand beside offer: an account takes money or pays people")
	case a.Kind != "" && a.Kind != registry.AccountOperator:
		o.fault("payouts", "kind", "is only for an account of kind operator: leave it out")
	case !slices.Contains(codes, code):
		o.fault("payouts", "enum", "must be one of %s", strings.Join(codes, ", "))
	}
	o.fingerprintOf(a)
}

// offerOf reads whose money arrives on an account.
func (o object) offerOf(a *registry.StatementAccount) {
	a.Offer, a.Fingerprint = o.text("offer", false), o.text("fingerprint", false)
	channels := a.Kind.Channels()
	of, known := checkout.OfferChannel(a.Offer)
	var offers []string
	for _, offer := range checkout.Offers {
		if slices.Contains(channels, offer.Channel) {
			offers = append(offers, offer.ID)
		}
	}
	switch {
	case a.Kind == "": // a fault already
	case a.Kind == registry.AccountBank && a.Offer == "":
	case a.Offer == "" && len(offers) == 1:
		a.Offer = offers[0]
	case a.Offer == "":
		o.fault("offer", "required", "is required: %s", strings.Join(offers, ", "))
	case !known || !slices.Contains(channels, of):
		o.fault("offer", "enum", "must be one of %s for an account of kind %s", strings.Join(offers, ", "), a.Kind)
	}
	o.fingerprintOf(a)
	o.transfersOf(a)
}

// transfersOf reads what payers must know of a bank account to transfer money to it. An account that is not offered any more
// keeps it: transfers that are under way still pay.
func (o object) transfersOf(a *registry.StatementAccount) {
	a.Holder, a.Bank = o.line("holder"), o.line("bank")
	for _, f := range []struct{ field, value string }{{"holder", a.Holder}, {"bank", a.Bank}} {
		taken := a.Offer == checkout.OfferBankTransfer || a.Holder != "" || a.Bank != ""
		switch {
		case a.Kind == registry.AccountBank && taken && f.value == "" && !o.Faulty(f.field):
			o.fault(f.field, "required", "is required of an account to which citizens transfer money: payers write it on their transfers")
		case a.Kind != registry.AccountBank && f.value != "":
			o.fault(f.field, "kind", "is only for an account of kind bank: leave it out")
		}
	}
}

// fingerprintOf checks which account of a merchant an account is.
func (o object) fingerprintOf(a *registry.StatementAccount) {
	switch {
	case a.Fingerprint == "":
	case a.Kind != registry.AccountOperator && a.Kind != registry.AccountAcquirer:
		o.fault("fingerprint", "kind", "is only for an account of kind operator or acquirer: leave it out")
	case !fingerprintPattern.MatchString(a.Fingerprint):
		o.fault("fingerprint", "format", "must be the 16 hexadecimal digits of a merchant account that was replaced; leave it out for the present one")
	}
}

// daysOf reads the days of an account.
func (o object) daysOf(a *registry.StatementAccount) {
	if zone := o.text("zone", false); zone != "" {
		a.Zone = zone
		if _, err := time.LoadLocation(zone); err != nil || !zonePattern.MatchString(zone) {
			o.fault("zone", "format", "must be a time zone of the tz database, such as Africa/Brazzaville")
		}
	}
	if cutoff := o.text("cutoff", false); cutoff != "" {
		at, err := time.Parse("15:04", cutoff)
		if err != nil || len(cutoff) != len("15:04") {
			o.fault("cutoff", "format", `must be a local time in quotes from "00:00" to "23:59", such as "17:00"`)
		}
		a.Cutoff = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	}
	if grace := o.Integer("grace_days", 0, registry.MaxGraceDays); grace != nil {
		a.GraceDays = int(*grace)
	}
	if years := o.Integer("keep_years", 1, registry.MaxKeepYears); years != nil {
		a.KeepYears = int(*years)
	}
}

// filesOf reads how the files of an account are read.
func (o object) filesOf(a *registry.StatementAccount) {
	if iban := o.text("iban", false); iban != "" {
		var ok bool
		if a.IBAN, ok = registry.ParseIBAN(iban); !ok {
			o.fault("iban", "format", "is not an IBAN: its length or its check digits are wrong; copy it again from a statement")
		}
	}
	if a.Number = o.text("number", false); a.Number != "" && !numberPattern.MatchString(a.Number) {
		o.fault("number", "format", "must be the account's number as its statements have it: letters, digits, spaces, dots, slashes and hyphens, at most 63")
	}
	a.Profile = o.text("profile", true)
	if profiles := a.Kind.Profiles(); a.Kind != "" && a.Profile != "" && !slices.Contains(profiles, a.Profile) {
		o.fault("profile", "enum", "must be one of %s for an account of kind %s", strings.Join(profiles, ", "), a.Kind)
	}
	a.BatchPattern = o.text("batch_pattern", false)
	if a.BatchPattern != "" {
		o.check("batch_pattern", checkPattern(a.BatchPattern))
		if a.Kind != "" && a.Kind != registry.AccountBank {
			o.fault("batch_pattern", "kind", "is only for a bank account: it finds the settlement batch in the bank's texts")
		}
	}
	declared := o.object("columns", func(o object) { a.Columns = o.columns() })
	switch csv := a.Profile == statements.ProfileCSV; {
	case csv && !declared:
		o.fault("columns", "required", "is required: the profile csv has no columns of its own")
	case a.Columns != nil && a.Payouts() && (a.Columns.Reference == 0 || a.Columns.Type == 0):
		o.fault("columns", "payouts", "must have reference and type: what people were paid is found by its payout_ref, and a type tells a payment from what came back")
	case !csv && declared:
		o.fault("columns", "profile", "is only for the profile csv: leave it out")
	case a.Columns != nil:
		if err := a.Columns.Validate(); err != nil && !o.Faulty("columns") {
			o.fault("columns", "format", "is not usable: %s", strings.TrimPrefix(err.Error(), statements.ErrProfile.Error()+": "))
		}
	}
	switch nameless := a.IBAN == "" && a.Number == "" && !o.Faulty("iban") && !o.Faulty("number"); {
	case nameless && a.Kind == registry.AccountBank && a.Offer == checkout.OfferBankTransfer:
		o.fault("iban", "required", "is required with the offer bank_transfer, or number: payers transfer money to it")
	case nameless && a.Profile != "" && statements.NamesAccount(a.Profile, a.Columns):
		o.fault("number", "required", "is required, or iban: files of the profile %s name their account, and those of another one are refused", a.Profile)
	}
}

// checkPattern checks the pattern of a settlement batch.
func checkPattern(text string) error {
	pattern, err := regexp.Compile(text)
	switch {
	case err != nil || len(text) > registry.MaxBatchPattern:
		return errors.New(`must be a regular expression (RE2) of at most 200 characters, such as '\bMTN-\d{8}\b'`)
	case pattern.MatchString(""):
		return errors.New("must not match an empty text")
	case pattern.NumSubexp() > 1:
		return errors.New("must have at most one group, which is the batch id")
	}
	return nil
}

// columns reads the columns of delimited text.
func (o object) columns() *statements.Layout {
	const most = 1000
	column := func(field string) int {
		if n := o.Integer(field, 0, most); n != nil {
			return int(*n)
		}
		return 0
	}
	l := &statements.Layout{
		Name: statements.ProfileCSV, Separators: o.raw("separators"), Width: column("width"), Header: o.words("header"), ID: o.numbers("id", most),
		OperatorRef: column("operator_ref"), Reference: column("reference"), Status: column("status"), Type: column("type"), Time: column("time"),
		Amount: column("amount"), Fee: column("fee"), Net: column("net"), Currency: column("currency"), Account: column("account"), Batch: column("batch"),
		Balance: column("balance"), Counterparty: column("counterparty"), Booked: o.words("booked"), NotBooked: o.words("not_booked"), Pending: o.words("pending"),
		TimeFormats: o.words("time_formats"), Decimal: o.raw("decimal"), Group: o.raw("group"), Trailer: o.raw("trailer"), TrailerCount: column("trailer_count"),
	}
	if negative := o.Bool("fee_negative"); negative != nil {
		l.FeeNegative = *negative
	}
	o.Object("types", func(f *form.Form) {
		l.Types = map[string]statement.Kind{}
		for _, word := range f.Names() {
			value, _ := f.Take(word, true)
			kind, _ := value.(string)
			l.Types[word] = statement.Kind(kind)
		}
	})
	return l
}

// raw reads a text that may be a space or a tab.
func (o object) raw(field string) string {
	value, ok := o.Take(field, false)
	s, is := value.(string)
	if ok && (!is || len(s) > registry.MaxName) {
		o.fault(field, "type", "must be text of at most %d characters: put it in quotes", registry.MaxName)
	}
	return s
}

// words reads a list of texts, which may be empty or occur twice.
func (o object) words(field string) (words []string) {
	o.List(field, func(element string, value any) {
		s, ok := value.(string)
		if !ok || len(s) > registry.MaxName {
			o.fault(element, "type", "must be text of at most %d characters: put it in quotes", registry.MaxName)
		}
		words = append(words, s)
	})
	return words
}

// numbers reads a list of columns.
func (o object) numbers(field string, most int64) (numbers []int) {
	o.List(field, func(element string, value any) {
		n, ok := value.(interface{ Int64() (int64, error) })
		var v int64
		var err error
		if ok {
			v, err = n.Int64()
		}
		if !ok || err != nil || v < 1 || v > most {
			o.fault(element, "range", "must be a column from 1 to %d", most)
		}
		numbers = append(numbers, int(v))
	})
	return numbers
}

// statementAccounts checks the accounts of an agency with each other and with the registry.
func (c *checker) statementAccounts(a agency) {
	if a.ID == "" {
		return
	}
	seen := map[registry.StatementAccountKey]bool{}
	var named []statementAccount
	for _, account := range a.statementAccounts {
		if account.Code != "" && once(c, seen, account.StatementAccountKey, account.path+".code") {
			named = append(named, account)
		}
	}
	var others []registry.StatementAccount // that the file does not name
	for _, live := range []bool{false, true} {
		for _, known := range c.known.StatementAccounts(a.ID, live) {
			if !seen[known.StatementAccountKey] {
				others = append(others, known)
			}
		}
	}
	all := slices.Clone(others)
	for _, account := range named {
		all = append(all, account.StatementAccount)
	}
	for _, account := range named {
		c.fixed(account)
		c.settles(account, all)
		for _, other := range others {
			c.apart(account, other)
		}
		others = append(others, account.StatementAccount) // so that a pair has one fault
	}
}

// moneyField is the field that says whose money the account has.
func (a statementAccount) moneyField() string {
	if a.Payouts() {
		return "payouts"
	}
	return "offer"
}

// fixed checks what never changes of an account.
func (c *checker) fixed(a statementAccount) {
	known, ok := c.known.StatementAccount(a.StatementAccountKey)
	if !ok || a.Kind == "" {
		return
	}
	for _, f := range []struct{ field, was, is string }{
		{"kind", string(known.Kind), string(a.Kind)}, {a.moneyField(), known.Offer, a.Offer}, {"currency", known.Currency, a.Currency}, {"zone", known.Zone, a.Zone},
	} {
		if f.was != f.is && (f.field != "offer" || a.Kind != registry.AccountBank) {
			c.fault(a.path+"."+f.field, "fixed", "was %q when the account was made and never changes, because its statements would count otherwise: give the new account another code", f.was)
		}
	}
}

// settles checks the bank account of an account.
func (c *checker) settles(a statementAccount, all []registry.StatementAccount) {
	if a.SettlesTo == "" {
		return
	}
	i := slices.IndexFunc(all, func(o registry.StatementAccount) bool { return o.Code == a.SettlesTo && o.Live == a.Live })
	switch {
	case i < 0:
		c.fault(a.path+".settles_to", "unknown", "is not an account of this agency in the mode %s: add the bank account %s", registry.Mode(a.Live), a.SettlesTo)
	case all[i].Kind != registry.AccountBank && all[i].Kind != "":
		c.fault(a.path+".settles_to", "kind", "is an account of kind %s: name a bank account", all[i].Kind)
	case all[i].Currency != a.Currency:
		c.fault(a.path+".settles_to", "currency", "is an account in %s, this one is in %s: name a bank account in the same currency", all[i].Currency, a.Currency)
	}
}

// apart checks that two accounts of an agency are not the same.
func (c *checker) apart(a statementAccount, other registry.StatementAccount) {
	name := other.Code + " of the mode " + registry.Mode(other.Live)
	if a.Live == other.Live && a.Offer != "" && c.operators.SameMerchant(a.Offer, other.Offer) && a.Currency == other.Currency && a.Fingerprint == other.Fingerprint {
		field, mend := "."+a.moneyField(), "give the account of a replaced merchant account its fingerprint"
		switch {
		case a.Fingerprint != "":
			field, mend = ".fingerprint", "name another merchant account"
		case a.Kind == registry.AccountBank:
			mend = "take the offer from the other account in the same file"
		}
		c.fault(a.path+field, "taken", "is that of account %s in the same currency, and money has one account: %s", name, mend)
	}
	if a.IBAN != "" && a.IBAN == other.IBAN {
		c.fault(a.path+".iban", "taken", "is that of account %s: a statement must belong to one account", name)
	}
	if a.Number != "" && strings.EqualFold(a.Number, other.Number) && a.Profile == other.Profile && a.Currency == other.Currency {
		c.fault(a.path+".number", "taken", "is that of account %s: a statement must belong to one account", name)
	}
}
