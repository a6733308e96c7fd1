package staff

import (
	"bytes"
	"compress/gzip"
	"testing"

	"quittance/money/language/languagetest"
)

func TestBothLanguagesAreWhole(t *testing.T) {
	t.Parallel()
	languagetest.Whole(t, texts.Table)
}

// Style and script stay small: staff work over the same networks as citizens.
func TestAssetsAreSmall(t *testing.T) {
	t.Parallel()
	if len(style) > 8<<10 {
		t.Errorf("the style has %d bytes, want at most 8 KiB", len(style))
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = z.Write(script)
	if err := z.Close(); err != nil || b.Len() > 4<<10 {
		t.Errorf("the script has %d bytes with gzip, want at most 4 KiB, %v", b.Len(), err)
	}
}
