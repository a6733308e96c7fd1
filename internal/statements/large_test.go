package statements_test

import (
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"quittance/internal/statements"
)

var largeMB = flag.Int("mb", 8, "size of the generated files in MB; 1000 takes two minutes")

// generated is a file of a head, one row for each number below n, and a tail. It exists only
// while it is read.
type generated struct {
	head, tail string
	row        func(i int) string
	n, i       int
	rest       string
}

func (g *generated) Read(p []byte) (int, error) {
	for g.rest == "" {
		switch {
		case g.i == 0 && g.head != "":
			g.rest, g.head = g.head, ""
		case g.i < g.n:
			g.rest = g.row(g.i)
			g.i++
		case g.tail != "":
			g.rest, g.tail = g.tail, ""
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// camtOf is a statement of n entries of 100 francs.
func camtOf(n int) io.Reader {
	balance := func(code string, amount int) string {
		return fmt.Sprintf(`<Bal><Tp><CdOrPrtry><Cd>%s</Cd></CdOrPrtry></Tp><Amt Ccy="XAF">%d</Amt><CdtDbtInd>CRDT</CdtDbtInd></Bal>`, code, amount)
	}
	return &generated{
		n: n,
		head: `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><GrpHdr/><Stmt><Id>L1</Id><Acct><Id><IBAN>CG3930011000101013451300019</IBAN></Id></Acct>` +
			balance("OPBD", 0) + balance("CLBD", 100*n),
		row: func(i int) string {
			return fmt.Sprintf(`<Ntry><Amt Ccy="XAF">100</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-11-20</Dt></BookgDt><AcctSvcrRef>R%09d</AcctSvcrRef>`+
				`<NtryDtls><TxDtls><Refs><EndToEndId>E%09d</EndToEndId></Refs><Amt Ccy="XAF">100</Amt><RltdPties><Dbtr><Nm>NOM PRENOM</Nm></Dbtr></RltdPties><RmtInf><Ustrd>%s</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>`+"\n",
				i, i, strings.Repeat("libelle ", 12))
		},
		tail: `</Stmt></BkToCstmrStmt></Document>`,
	}
}

// A file of any size is read in bounded memory: a hash for each id, and one entry.
func TestLargeFile(t *testing.T) {
	mb := *largeMB
	if testing.Short() {
		mb = min(mb, 2)
	}
	n := mb * 1e6 / 440
	began, peak, counted := time.Now(), uint64(0), 0
	file, err := statements.Read(camtOf(n), accountOf("bank-a.xml"), func(*statements.Line) error {
		if counted++; counted%5_000 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
		return nil
	})
	if err != nil || file.Refused() || counted != n {
		t.Fatalf("%d lines, %v, %v", counted, file.Faults, err)
	}
	t.Logf("%d MB, %d lines, %v, peak heap %d MB", file.Size/1e6, counted, time.Since(began).Round(time.Millisecond), peak/1e6)
	if limit := uint64(64e6 + 160*n); peak > limit {
		t.Errorf("peak heap %d, limit %d", peak, limit)
	}
}

// endless never ends.
type endless string

func (e endless) Read(p []byte) (int, error) { return copy(p, e), nil }

// What never ends is refused as soon as it passes a limit, not when the memory is full.
func TestEndless(t *testing.T) {
	t.Parallel()
	head := `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt>`
	for name, test := range map[string]struct {
		profile string
		in      io.Reader
	}{
		"one text":       {"bank-a.xml", io.MultiReader(strings.NewReader(head+"<Id>"), endless(strings.Repeat("x", 4096)))},
		"one attribute":  {"bank-a.xml", io.MultiReader(strings.NewReader(head+`<Id a="`), endless(strings.Repeat("x", 4096)))},
		"one entry":      {"bank-a.xml", io.MultiReader(strings.NewReader(head+"<Ntry>"), endless("<NtryRef>x</NtryRef>"))},
		"depth":          {"bank-a.xml", io.MultiReader(strings.NewReader(head), endless("<a>"))},
		"a comment":      {"bank-a.xml", io.MultiReader(strings.NewReader("<!--"), endless("xxxx"))},
		"a quoted cell":  {"mtn.csv", io.MultiReader(strings.NewReader("Id,External id,Status,Type,Date,Amount,Fee,Currency,From,To,Balance\n\""), endless(strings.Repeat("x", 4096)))},
		"the first row":  {"mtn.csv", endless(strings.Repeat("x", 4096))},
		"an endless row": {"mtn.csv", io.MultiReader(strings.NewReader("Id,External id,Status,Type,Date,Amount,Fee,Currency,From,To,Balance\n"), endless("a,"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The rest of a refused file is read for its digest, so it must end some day.
			file, err := statements.Read(io.LimitReader(test.in, 20<<20), accountOf(test.profile), nil)
			if err != nil || !file.Refused() {
				t.Fatalf("%+v, %v", file, err)
			}
			if last := file.Faults[len(file.Faults)-1]; last.Kind != statements.FaultSyntax && last.Kind != statements.FaultColumns {
				t.Errorf("%s", last)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		if _, err := statements.Read(camtOf(2000), accountOf("bank-a.xml"), nil); err != nil {
			b.Fatal(err)
		}
	}
}
