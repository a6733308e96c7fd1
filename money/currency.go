package money

// Default is the currency of a session that names none, and the only one that
// mobile money and agency counters take (contract, "Limits").
const Default = "XAF"

// Currency is one row of the service's own ISO 4217 table. The zero value is no currency:
// its code is empty, and its amounts must not be formatted. Values are comparable with ==.
type Currency struct {
	code     string
	decimals int
	card     bool   // in the contract's list for the card offer
	french   string // symbol after the number in French
	english  string // symbol before the number in English
}

// currencies has XAF and, in the contract's order, the 37 currencies of the card offer. No
// two rows have the same symbol. Dollars have the country in it, crowns and pesos the ISO
// code, because "$" and "kr" are the symbols of several countries.
var currencies = [...]Currency{
	{code: "XAF", decimals: 0, french: "FCFA", english: "FCFA"},
	{code: "USD", decimals: 2, card: true, french: "$US", english: "US$"},
	{code: "EUR", decimals: 2, card: true, french: "€", english: "€"},
	{code: "GBP", decimals: 2, card: true, french: "£", english: "£"},
	{code: "AUD", decimals: 2, card: true, french: "$AU", english: "A$"},
	{code: "CAD", decimals: 2, card: true, french: "$CA", english: "CA$"},
	{code: "CHF", decimals: 2, card: true, french: "CHF", english: "CHF"},
	{code: "DKK", decimals: 2, card: true, french: "DKK", english: "DKK"},
	{code: "NOK", decimals: 2, card: true, french: "NOK", english: "NOK"},
	{code: "SEK", decimals: 2, card: true, french: "SEK", english: "SEK"},
	{code: "PLN", decimals: 2, card: true, french: "PLN", english: "PLN"},
	{code: "HUF", decimals: 2, card: true, french: "HUF", english: "HUF"},
	{code: "CZK", decimals: 2, card: true, french: "CZK", english: "CZK"},
	{code: "RON", decimals: 2, card: true, french: "RON", english: "RON"},
	{code: "BGN", decimals: 2, card: true, french: "BGN", english: "BGN"},
	{code: "MXN", decimals: 2, card: true, french: "$MX", english: "MX$"},
	{code: "BRL", decimals: 2, card: true, french: "R$", english: "R$"},
	{code: "ARS", decimals: 2, card: true, french: "$AR", english: "ARS"},
	{code: "CLP", decimals: 0, card: true, french: "$CL", english: "CLP"},
	{code: "COP", decimals: 2, card: true, french: "$CO", english: "COP"},
	{code: "PEN", decimals: 2, card: true, french: "PEN", english: "PEN"},
	{code: "INR", decimals: 2, card: true, french: "₹", english: "₹"},
	{code: "SGD", decimals: 2, card: true, french: "$SG", english: "SGD"},
	{code: "HKD", decimals: 2, card: true, french: "$HK", english: "HK$"},
	{code: "TWD", decimals: 2, card: true, french: "TWD", english: "NT$"},
	{code: "KRW", decimals: 0, card: true, french: "₩", english: "₩"},
	{code: "JPY", decimals: 0, card: true, french: "JPY", english: "¥"},
	{code: "NZD", decimals: 2, card: true, french: "$NZ", english: "NZ$"},
	{code: "ZAR", decimals: 2, card: true, french: "ZAR", english: "ZAR"},
	{code: "ILS", decimals: 2, card: true, french: "₪", english: "₪"},
	{code: "TRY", decimals: 2, card: true, french: "TRY", english: "TRY"},
	{code: "AED", decimals: 2, card: true, french: "AED", english: "AED"},
	{code: "SAR", decimals: 2, card: true, french: "SAR", english: "SAR"},
	{code: "THB", decimals: 2, card: true, french: "THB", english: "THB"},
	{code: "MYR", decimals: 2, card: true, french: "MYR", english: "MYR"},
	{code: "PHP", decimals: 2, card: true, french: "PHP", english: "PHP"},
	{code: "IDR", decimals: 2, card: true, french: "IDR", english: "IDR"},
	{code: "VND", decimals: 0, card: true, french: "₫", english: "₫"},
}

// Lookup finds a currency by its ISO 4217 code in capitals. It returns false for every
// code that the contract does not list.
func Lookup(code string) (Currency, bool) {
	for _, c := range currencies {
		if c.code == code {
			return c, true
		}
	}
	return Currency{}, false
}

// All returns every currency of the table: XAF first, then those of the card offer in the
// contract's order. The caller may change the slice.
func All() []Currency {
	return append([]Currency(nil), currencies[:]...)
}

// Code returns the ISO 4217 code, such as "XAF".
func (c Currency) Code() string { return c.code }

// Symbol returns what stands beside an amount: before the number in English, else after it.
func (c Currency) Symbol(lang Language) string {
	if lang == English {
		return c.english
	}
	return c.french
}

// Decimals returns the number of decimals of the currency: 0 for XAF, JPY, KRW, CLP and
// VND, 2 for the others.
func (c Currency) Decimals() int { return c.decimals }

// Card reports whether the contract lists the currency for the card offer. It does not
// list XAF, but an acquirer may be configured for XAF (contract docs/design/decisions.md § 7).
func (c Currency) Card() bool { return c.card }
