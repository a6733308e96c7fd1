package citizen

import (
	"testing"

	"quittance/money"
)

// Citizens type an amount as the pages write it, in both languages.
func TestAmountsAsTheyAreWritten(t *testing.T) {
	for _, c := range []struct {
		currency, text string
		want           int64 // 0 for no amount
	}{
		{"XAF", "4000", 4000},
		{"XAF", "4 000", 4000},
		{"XAF", "4\u202f000", 4000},
		{"XAF", "4\u00a0000", 4000},
		{"XAF", "4,000", 4000},
		{"XAF", "4.000", 4000},
		{"XAF", "1,204,000", 1204000},
		{"XAF", "4000,00", 4000},
		{"XAF", "4,00", 4},
		{"XAF", "4,5", 0},
		{"XAF", "1,2000", 0},
		{"EUR", "12,50", 1250},
		{"EUR", "12.50", 1250},
		{"EUR", "1,234.56", 123456},
		{"EUR", "1.234,56", 123456},
		{"EUR", "1 234,56", 123456},
		{"EUR", "12.345.6", 0},
		{"XAF", "-4000", 0},
		{"XAF", "0", 0},
		{"XAF", "mille", 0},
	} {
		currency, _ := money.Lookup(c.currency)
		if got, err := parseAmount(currency, c.text); got != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%s %q is read as %d, %v, want %d", c.currency, c.text, got, err, c.want)
		}
	}
}
