package lines_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements/lines"
	"quittance/money"
)

// many returns lines with all members that a line can have.
func many(n int) []digest.Line {
	out := make([]digest.Line, n)
	for i := range out {
		out[i] = digest.Line{
			LineRef: fmt.Sprintf("SAL-2026-11/%06d", i), Name: fmt.Sprintf("NGOMA MBEMBA JEAN PAUL %d", i), Amount: int64(100_000 + i), Currency: "XAF", PaymentMode: "MOMO",
			PayoutAccount: "mtn", MSISDN: fmt.Sprintf("24206%07d", i), Purpose: fmt.Sprintf("SALAIRE 11/2026 MATRICULE %06d", i), Corrects: fmt.Sprintf("SAL-2026-10/%06d", i),
		}
		if i%2 == 0 {
			out[i].PaymentMode, out[i].PayoutAccount, out[i].MSISDN, out[i].Number, out[i].BIC = "VIREMENT", "bank", "", goodRIB, "BCCGCGCGXXX"
		}
	}
	return out
}

// file writes lines in a format.
func file(t testing.TB, format lines.Format, in []digest.Line) []byte {
	t.Helper()
	var out bytes.Buffer
	write := lines.WriteCSV
	if format == lines.FormatXLSX {
		write = lines.WriteXLSX
	}
	if err := write(&out, money.French, rules(), in); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// cpu is the time of the processors that the process has used: other work on the machine does not count.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRead reads and seals a file of the largest size. heap-MB is what is live besides the file at the end of reading.
func BenchmarkRead(b *testing.B) {
	for _, format := range []lines.Format{lines.FormatCSV, lines.FormatXLSX} {
		b.Run(string(format), func(b *testing.B) {
			text := file(b, format, many(disbursement.MaxLines))
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			live := func() uint64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before, most := live(), uint64(0)
			b.ResetTimer()
			start := cpu()
			for b.Loop() {
				f := read(b, text, rules())
				if f.Refused() || len(f.Lines) != disbursement.MaxLines {
					b.Fatalf("%d lines, %s", len(f.Lines), faults(f))
				}
				s, err := lines.Seal(f.Lines, rand.Reader)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				most = max(most, live()-before)
				runtime.KeepAlive(f)
				runtime.KeepAlive(s)
				b.StartTimer()
			}
			b.ReportMetric((cpu()-start).Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(most)/(1<<20), "heap-MB")
		})
	}
}
