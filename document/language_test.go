package document

import (
	"testing"

	"quittance/money/language/languagetest"
)

func TestBothLanguagesSayEverything(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, receiptTexts)
	languagetest.Whole(t, noticeTexts)
	languagetest.Whole(t, certificateTexts)
	languagetest.Whole(t, adviceTexts)
}
