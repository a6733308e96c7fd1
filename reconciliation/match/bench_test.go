package match_test

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"quittance/reconciliation/match"
	"quittance/statement"
)

var rows = flag.Int("rows", 1_000_000, "lines of the benchmark, all of one account and day")

// BenchmarkDay matches the lines of one account and day. Run it once, alone:
//
//	go test ./reconciliation/match -run '^$' -bench Day -benchtime 1x
//
// It prints the greatest memory that the process has ever had, its rows included.
func BenchmarkDay(b *testing.B) {
	d, err := statement.ParseDay("2026-11-20")
	if err != nil {
		b.Fatal(err)
	}
	debug.SetMemoryLimit(1200 << 20) // the collector runs more often near it
	in := match.Receipts{Account: "a", Rules: rules, Today: d, Expected: make([]match.Expected, 0, *rows), Lines: make([]match.Line, 0, *rows)}
	for i := range *rows {
		in.Expected = append(in.Expected, match.Expected{
			ID: fmt.Sprintf("col_%032d", i), At: noon(d), Amount: fees[i%len(fees)], Currency: "XAF", OperatorRef: fmt.Sprintf("%011d", i), PaymentRef: fmt.Sprintf("%016d", i),
		})
		l := match.Line{Line: statement.Line{
			ID: fmt.Sprintf("mtn-1/%011d", i), Day: d, Kind: statement.KindPayment, Amount: fees[i%len(fees)], Currency: "XAF",
			OperatorRef: fmt.Sprintf("%011d", i), PaymentRef: fmt.Sprintf("%016d", i),
		}}
		if i%100 == 0 {
			l.OperatorRef, l.PaymentRef = "", "" // a hundredth without references, in large groups
		}
		in.Lines = append(in.Lines, l)
	}
	for b.Loop() {
		r, err := in.Run()
		if err != nil || len(r.Matches) != *rows-(*rows+99)/100 {
			b.Fatal(len(r.Matches), err)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return // not Linux
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			b.Log("greatest memory:", strings.TrimSpace(value))
		}
	}
}
