package papers_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/internal/papers"
	"quittance/money"
)

// The bytes of a paper depend on nothing but its arguments. The sums were taken on one
// machine; this test runs on others. A change of the layout, of a library or of Go's
// compressor changes them on purpose: then set the new sums.
func TestGolden(t *testing.T) {
	t.Parallel()
	got := samples(t)
	for name, want := range map[string]string{
		"receipt-fr":         "469a0ea7d370f33355c555236eecc64a724b8ca7d2789d880cb0df8a2aac7f8e",
		"receipt-reversed":   "7efb49e1ae20d513c0ef4aae720a4033e173f2165dd4b5d2441ea7ce64184a2e",
		"receipt-hostile":    "04e2d29048974e6655d10465ba0b7fcce3bff0111fbc47990d8ff4d31e8b2112",
		"notice-fr":          "32f4696a2f94cbf358dedc34d2706af420ff5ec7aa2eedc026781b864e35456f",
		"certificate-fr":     "411b84ca0a25fc044b212eddb37e2f0ff53de28537de87f587a409e490bd8d7d",
		"certificate-many":   "ba23d0ac46be0a3302dce8ef52aaf27df12e4fb3bd7401c79b745ac386f36d60",
		"advice-fr":          "a58eb7293fede4e93c0743d06a7feb24e4d7ba17376db4a5ee314c69b8326ea8",
		"advice-returned-en": "a58b0e07fe321a83bd6fa04506c59ecd9a4c8254d12393e9cd2d67f3eb9b24f0",
		"advice-hostile":     "1bd55a0ab997dfcef57354acae99335c3a2549a83ae3cf738a1c4b1ded7252b2",
	} {
		if sum := fmt.Sprintf("%x", sha256.Sum256(got[name])); sum != want {
			t.Errorf("%s has the sum %s, want %s", name, sum, want)
		}
	}
	// Others make papers at the same time.
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for name, again := range samples(t) {
				if !bytes.Equal(again, got[name]) {
					t.Errorf("%s has other bytes the second time", name)
				}
			}
		})
	}
	group.Wait()
}

// A receipt costs at most 0.7 of the CPU of compressing 256 KiB, which took 7.1 ms on the machine of
// the first measurement. Both are measured by turns and the best turn of each counts, so a slow or a
// busy machine makes both slower.
func TestCost(t *testing.T) {
	r, err := payment(t).receipt(money.French)
	if err != nil {
		t.Fatal(err)
	}
	at := address(t, session())
	text := make([]byte, 256<<10)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range text {
		text[i] = "0123456789 abcdef"[random.IntN(17)]
	}
	paper, compression := time.Hour, time.Hour
	for range 8 {
		paper = min(paper, cpu(t, func() error {
			_, err := papers.ReceiptPDF(r, at)
			return err
		}))
		compression = min(compression, cpu(t, func() error {
			w := zlib.NewWriter(io.Discard)
			if _, err := w.Write(text); err != nil {
				return err
			}
			return w.Close()
		}))
	}
	ratio := float64(paper) / float64(compression)
	t.Logf("a receipt costs %s of CPU, %.2f of the compression's %s", paper, ratio, compression)
	if ratio > 0.7 {
		t.Errorf("a receipt costs %.2f of the CPU of compressing 256 KiB, at most 0.7 are allowed", ratio)
	}
}

// cpu returns the CPU time of one call of work, the mean of ten.
func cpu(t *testing.T, work func() error) time.Duration {
	t.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	const calls = 10
	before := used()
	for range calls {
		if err := work(); err != nil {
			t.Fatal(err)
		}
	}
	return (used() - before) / calls
}
