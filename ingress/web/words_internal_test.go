package web

import (
	"testing"

	"quittance/money/language/languagetest"
)

func TestLayoutHasEveryText(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, words)
}
