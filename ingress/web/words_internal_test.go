package web

import (
	"testing"

	"quittance/checkout/language/languagetest"
)

func TestLayoutHasEveryText(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, words)
}
