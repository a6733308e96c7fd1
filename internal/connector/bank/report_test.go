package bank_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quittance/internal/connector/bank"
)

// status is a level of a pain.002 as a bank writes it.
type status struct {
	id, code string
	reasons  []string
	count    string // of the original
	sum      string
	by       map[string]int // NbOfTxsPerSts
	below    []status
}

func (s status) reasonsXML() string {
	var b strings.Builder
	for _, r := range s.reasons {
		if len(r) == 4 {
			fmt.Fprintf(&b, "<StsRsnInf><Rsn><Cd>%s</Cd></Rsn><AddtlInf>Veuillez nous appeler</AddtlInf></StsRsnInf>", r)
		} else {
			fmt.Fprintf(&b, "<StsRsnInf><Rsn><Prtry>%s</Prtry></Rsn></StsRsnInf>", r)
		}
	}
	return b.String()
}

func (s status) countsXML() string {
	var b strings.Builder
	for _, code := range []string{"ACCP", "ACSC", "RJCT"} {
		if n, ok := s.by[code]; ok {
			fmt.Fprintf(&b, "<NbOfTxsPerSts><DtldNbOfTxs>%d</DtldNbOfTxs><DtldSts>%s</DtldSts></NbOfTxsPerSts>", n, code)
		}
	}
	return b.String()
}

func element(name, text string) string {
	if text == "" {
		return ""
	}
	return "<" + name + ">" + text + "</" + name + ">"
}

// pain002 writes a report.
func pain002(version string, file status) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.%s"><CstmrPmtStsRpt>`, version)
	b.WriteString("<GrpHdr><MsgId>BANK-1</MsgId><CreDtTm>2026-12-24T09:00:00Z</CreDtTm></GrpHdr><OrgnlGrpInfAndSts>")
	b.WriteString(element("OrgnlMsgId", file.id) + "<OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>" + element("OrgnlNbOfTxs", file.count) + element("OrgnlCtrlSum", file.sum))
	b.WriteString(element("GrpSts", file.code) + file.reasonsXML() + file.countsXML() + "</OrgnlGrpInfAndSts>")
	for _, g := range file.below {
		b.WriteString("<OrgnlPmtInfAndSts>" + element("OrgnlPmtInfId", g.id) + element("OrgnlNbOfTxs", g.count) + element("OrgnlCtrlSum", g.sum))
		b.WriteString(element("PmtInfSts", g.code) + g.reasonsXML() + g.countsXML())
		for _, l := range g.below {
			b.WriteString("<TxInfAndSts>" + element("OrgnlInstrId", l.id) + element("OrgnlEndToEndId", l.id) + element("TxSts", l.code) + l.reasonsXML())
			if l.sum != "" {
				b.WriteString(`<OrgnlTxRef><Amt><InstdAmt Ccy="XAF">` + l.sum + "</InstdAmt></Amt></OrgnlTxRef>")
			}
			b.WriteString("</TxInfAndSts>")
		}
		b.WriteString("</OrgnlPmtInfAndSts>")
	}
	b.WriteString("</CstmrPmtStsRpt></Document>\n")
	return []byte(b.String())
}

// said returns what a report says of the lines of a file, such as "0 refused RJCT AC04".
func said(t *testing.T, b bank.Built, data []byte) (out []string, err error) {
	t.Helper()
	r, err := bank.Read(data)
	if err != nil {
		return nil, err
	}
	answers, err := r.Answers(b.ID, b.Sent)
	for _, a := range answers {
		for i, s := range b.Sent {
			if s.Ref == a.Ref {
				out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", i, a.Meaning, a.Verdict.Status, strings.Join(a.Verdict.Reasons, " "))))
			}
		}
	}
	return out, err
}

// Each status means the same on each level, and a level without a status has that of the level above. Lines 0, 2 and 3 go
// through SYSTAC, line 1 through SYGMA.
func TestReports(t *testing.T) {
	t.Parallel()
	b := build(t, profile(t), salaries(t))
	small, large := b.ID+"-SYSTAC", b.ID+"-SYGMA"
	all := func(text string) []string { return []string{"0 " + text, "1 " + text, "2 " + text, "3 " + text} }
	line := func(i int, code string, reasons ...string) status {
		return status{id: ref(i), code: code, reasons: reasons}
	}
	group := func(id, code string, below ...status) status { return status{id: id, code: code, below: below} }
	reports := map[string][]byte{}
	for _, c := range []struct {
		name string
		file status
		want []string
	}{
		{"all refused", status{code: "RJCT", reasons: []string{"AM04"}}, all("refused RJCT AM04")},
		{"the file is known", status{code: "RJCT", reasons: []string{"DU01"}}, all("known RJCT DU01")},
		{"known in the bank's own words", status{code: "RJCT", reasons: []string{"NARR", "AM05", "Fichier en double"}}, all("known RJCT NARR AM05")},
		{"a line inherits that its file is known", status{code: "RJCT", reasons: []string{"DU01"}, below: []status{group(small, "", line(0, "RJCT"), line(2, ""))}}, all("known RJCT DU01")},
		{"a group is refused", status{code: "PART", below: []status{group(large, "RJCT")}}, []string{"1 refused RJCT"}},
		{"partly", status{code: "PART", below: []status{group(small, "PART", line(0, "ACSC"), line(2, "RJCT", "AC04"))}}, []string{"0 paid ACSC", "2 refused RJCT AC04"}},
		{"the line counts, not the file", status{code: "ACSP", below: []status{group(small, "", line(3, "RJCT", "AG01"))}}, []string{"0 sent ACSP", "1 sent ACSP", "2 sent ACSP", "3 refused RJCT AG01"}},
		{"a good line of a refused group", status{code: "PART", below: []status{group(small, "RJCT", line(0, "ACCP"))}}, []string{"0 sent ACCP", "2 refused RJCT", "3 refused RJCT"}},
		{"blocked", status{code: "PART", below: []status{group(large, "", line(1, "BLCK"))}}, []string{"1 blocked BLCK"}},
		{"an unknown code", status{code: "ZZZZ"}, all("sent ZZZZ")},
		{"nothing is said", status{below: []status{group(small, "", line(0, ""))}}, nil},
		{"counts", status{
			code: "PART", count: "4", sum: "200185000.00", by: map[string]int{"ACSC": 3, "RJCT": 1},
			below: []status{{id: small, count: "3", sum: "100185000", by: map[string]int{"ACSC": 2, "RJCT": 1}, below: []status{line(2, "RJCT", "AC04")}}},
		}, []string{"2 refused RJCT AC04"}},
		{"an amount", status{below: []status{group(small, "", status{id: ref(0), code: "ACCC", sum: "185000"})}}, []string{"0 paid ACCC"}},
	} {
		c.file.id = b.ID
		for _, version := range []string{"03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15"} {
			data := pain002(version, c.file)
			got, err := said(t, b, data)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s, version %s: %q, %v; want %q", c.name, version, got, err, c.want)
			}
			// The schema of version 03 lists the codes, without ACCC and BLCK.
			if text := string(data); version == "03" && !strings.Contains(text, ">ZZZZ<") && !strings.Contains(text, ">ACCC<") && !strings.Contains(text, ">BLCK<") ||
				slices.Contains([]string{"12", "14", "15"}, version) {
				reports[version+" "+c.name+".xml"] = data
			}
		}
	}
	for _, code := range []string{"RCVD", "ACTC", "ACCP", "ACFC", "ACWC", "ACSP", "PDNG", "PATC", "ACWP"} {
		if got, err := said(t, b, pain002("12", status{id: b.ID, code: code})); err != nil || !reflect.DeepEqual(got, all("sent "+code)) {
			t.Errorf("%s: %q, %v", code, got, err)
		}
	}
	if _, complaints := valid(t, reports); complaints != "" {
		t.Errorf("the reports of this test are not valid: %s", complaints)
	}
}

// A report that does not fit the file in all it says is none: it may be of another file, or damaged.
func TestReportsThatDoNotFit(t *testing.T) {
	t.Parallel()
	b := build(t, profile(t), salaries(t))
	small, large := b.ID+"-SYSTAC", b.ID+"-SYGMA"
	refused := status{id: ref(0), code: "RJCT"}
	for name, file := range map[string]status{
		"another file":            {id: "QF0", code: "RJCT"},
		"count":                   {count: "5", code: "RJCT"},
		"sum":                     {sum: "200185000.01", code: "RJCT"},
		"another sum":             {sum: "200185001", code: "RJCT"},
		"count of a group":        {below: []status{{id: small, count: "4", code: "RJCT"}}},
		"sum of a group":          {below: []status{{id: large, sum: "1", code: "RJCT"}}},
		"unknown group":           {below: []status{{id: "X", code: "RJCT"}}},
		"a group twice":           {below: []status{{id: small, code: "RJCT"}, {id: small, code: "ACSC"}}},
		"unknown line":            {below: []status{{id: small, below: []status{{id: ref(9), code: "RJCT"}}}}},
		"line of another group":   {below: []status{{id: large, below: []status{refused}}}},
		"a line twice":            {below: []status{{id: small, below: []status{refused, {id: ref(0), code: "ACSC"}}}}},
		"a line without an id":    {below: []status{{id: small, below: []status{{code: "RJCT"}}}}},
		"another amount":          {below: []status{{id: small, below: []status{{id: ref(0), code: "ACSC", sum: "185001"}}}}},
		"more lines than counted": {by: map[string]int{"RJCT": 1}, below: []status{{id: small, below: []status{refused, {id: ref(2), code: "RJCT"}}}}},
		"a status not counted":    {by: map[string]int{"ACSC": 4}, below: []status{{id: small, below: []status{refused}}}},
		"more counted than lines": {by: map[string]int{"ACSC": 4, "RJCT": 1}},
		"no code":                 {code: "refused"},
	} {
		if file.id == "" {
			file.id = b.ID
		}
		if got, err := said(t, b, pain002("12", file)); !errors.Is(err, bank.ErrReport) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	good := string(pain002("12", status{id: b.ID, code: "RJCT", below: []status{{id: small, below: []status{refused}}}}))
	for name, damage := range map[string][2]string{
		"no XML":          {"</Document>", ""},
		"document type":   {"<Document ", `<!DOCTYPE Document [<!ENTITY a "b">]><Document `},
		"version 02":      {"pain.002.001.12", "pain.002.001.02"},
		"version 16":      {"pain.002.001.12", "pain.002.001.16"},
		"a statement":     {"pain.002.001.12", "camt.053.001.08"},
		"two documents":   {"</Document>", "</Document><Document/>"},
		"another space":   {"<GrpSts>", `<GrpSts xmlns="urn:x">`},
		"encoding":        {"UTF-8", "ISO-8859-7"},
		"two statuses":    {"<GrpSts>RJCT</GrpSts>", "<GrpSts>RJCT</GrpSts><GrpSts>ACSC</GrpSts>"},
		"two ids":         {"<OrgnlInstrId>" + ref(0), "<OrgnlInstrId>" + ref(2)},
		"no file":         {"<OrgnlMsgId>" + b.ID + "</OrgnlMsgId>", ""},
		"a direct debit":  {"pain.001.001.09", "pain.008.001.08"},
		"too deep":        {"<GrpHdr>", strings.Repeat("<a>", 50) + strings.Repeat("</a>", 50) + "<GrpHdr>"},
		"no group header": {"<MsgId>BANK-1</MsgId>", ""},
	} {
		if text := strings.Replace(good, damage[0], damage[1], 1); text == good {
			t.Errorf("%s: nothing is damaged", name)
		} else if got, err := said(t, b, []byte(text)); !errors.Is(err, bank.ErrReport) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := bank.Read(nil); !errors.Is(err, bank.ErrReport) {
		t.Error(err)
	}
}

// Whatever the bank says on its three levels, a line is refused only if the nearest level that speaks of it says RJCT, and
// no level names our own request; paid only if that level says so.
func TestRefusalsAreCertain(t *testing.T) {
	t.Parallel()
	b := build(t, profile(t), salaries(t))
	rapid.Check(t, func(t *rapid.T) {
		level := func(name string) status {
			return status{
				code:    rapid.SampledFrom([]string{"", "RJCT", "RJCT", "PART", "ACSC", "ACSP", "BLCK"}).Draw(t, name),
				reasons: rapid.SliceOfN(rapid.SampledFrom([]string{"AC04", "DU01", "AM05", "Doublon"}), 0, 2).Draw(t, name+" reasons"),
			}
		}
		file, group, line := level("file"), level("group"), level("line")
		file.id, group.id, line.id = b.ID, b.ID+"-SYSTAC", ref(0)
		group.below = []status{line}
		file.below = []status{group}
		r, err := bank.Read(pain002("12", file))
		if err != nil {
			t.Fatal(err)
		}
		answers, err := r.Answers(b.ID, b.Sent)
		if err != nil {
			t.Fatal(err)
		}
		effective, duplicate := "", false
		for _, l := range []status{line, group, file} {
			if effective == "" {
				effective = l.code
			}
			duplicate = duplicate || slices.Contains(l.reasons, "DU01") || slices.Contains(l.reasons, "AM05")
		}
		for _, a := range answers {
			if a.Ref != line.id {
				continue
			}
			if a.Meaning == bank.MeaningRefused && (effective != "RJCT" || duplicate) || a.Meaning == bank.MeaningPaid && effective != "ACSC" {
				t.Fatalf("%s: file %s %v, group %s %v, line %s %v", a.Meaning, file.code, file.reasons, group.code, group.reasons, line.code, line.reasons)
			}
		}
	})
}

// Whatever arrives, a report is taken or refused, and what is taken speaks of lines that were sent.
func FuzzRead(f *testing.F) {
	f.Add(pain002("12", status{id: "QF1", code: "PART", below: []status{{id: "QF1-SYSTAC", below: []status{{id: "QD1", code: "RJCT", reasons: []string{"DU01"}, sum: "5"}}}}}))
	f.Add(pain002("03", status{id: "QF1", code: "ACSC", count: "1", sum: "5.00", by: map[string]int{"ACSC": 1}}))
	f.Add([]byte(`<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.15"><CstmrPmtStsRpt><SplmtryData><x xmlns="y"/></SplmtryData></CstmrPmtStsRpt></Document>`))
	sent := []bank.Sent{{Ref: "QD1", Amount: 5, Group: "QF1-SYSTAC"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := bank.Read(data)
		var answers []bank.Answer
		if err == nil {
			answers, err = r.Answers("QF1", sent)
		}
		if err != nil && !errors.Is(err, bank.ErrReport) || len(answers) > 1 || len(answers) == 1 && answers[0].Ref != "QD1" {
			t.Fatalf("%v, %v", answers, err)
		}
	})
}
