// Command gen generates the conversions of schemas/mapping and schemas/mapping/batches that copy field for
// field between a domain and the records that schemas/gen makes of the Avro schemas. A field that has no
// counterpart on the other side is an error. go generate runs it; its output is committed.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"log"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/disbursement"
	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/schemas/record"
)

// pair is a type of the domain and its record.
type pair struct {
	domain, record any
	// names are the names of fields of the record that differ from those of the domain. A
	// duration has the suffix Ms in the record.
	names map[string]string
	// part says that the record has further fields, of which the domain's type knows nothing.
	part bool
	// present is the field of the domain's type that is empty when the value is absent. The record
	// is nil then.
	present string
	// exported conversions are used outside of the package.
	exported bool
	// as is the name of the conversions, in place of that of the domain's type.
	as string
}

// target is a package of conversions, for one domain.
type target struct {
	name, file string
	pairs      []pair
}

var targets = []target{{"mapping", "mapping_gen.go", checkoutPairs}, {"batches", filepath.Join("batches", "batches_gen.go"), batchPairs}}

var checkoutPairs = []pair{
	{domain: checkout.Session{}, record: record.Session{}, names: map[string]string{"Live": "Livemode"}, exported: true},
	{domain: checkout.Item{}, record: record.Item{}},
	{domain: checkout.Confirmation{}, record: record.Confirmation{}, present: "Status"},
	{domain: checkout.Offer{}, record: record.Offer{}},
	{domain: checkout.Collection{}, record: record.Collection{}},
	{domain: checkout.Report{}, record: record.Report{}},
	{domain: checkout.Refusal{}, record: record.Refusal{}},
	{domain: checkout.Case{}, record: record.Case{}},
	{domain: checkout.Cashin{}, record: record.Cashin{}},

	{domain: checkout.Order{}, record: record.Order{}, exported: true},
	{domain: checkout.Idempotency{}, record: record.Idempotency{}, exported: true},
	{domain: checkout.Fault{}, record: record.Fault{}},
	{domain: checkout.Token{}, record: record.Token{}, exported: true},
	{domain: checkout.TokenList{}, record: record.TokenList{}, exported: true},
	{domain: checkout.Till{}, record: record.Till{}, exported: true},
	{domain: checkout.External{}, record: record.ExternalNumber{}, exported: true},
	{domain: checkout.Claim{}, record: record.Claim{}, exported: true},
	{domain: checkout.RefusingERP{}, record: record.RefusingERP{}, exported: true},

	{domain: checkout.Create{}, record: record.CreateSession{}},
	{domain: checkout.Collect{}, record: record.StartCollection{}},
	{domain: checkout.Outcome{}, record: record.CollectionOutcome{}},
	{domain: checkout.Redirected{}, record: record.CollectionRedirect{}},
	{domain: checkout.IssueToken{}, record: record.CompletionToken{}, part: true},
	{domain: checkout.ConsumeToken{}, record: record.CompletionToken{}, part: true},
	{domain: checkout.OpenRefundRequest{}, record: record.CaseEntry{}, part: true},
	{domain: casework.Signed{}, record: record.SignedStep{}},
	{domain: checkout.Resolve{}, record: record.CaseEntry{}, names: map[string]string{"Number": "Proposal"}, part: true},
	{domain: checkout.NoteProposal{}, record: record.CaseEntry{}, names: map[string]string{"Number": "Proposal"}, part: true},
	{domain: checkout.Confirmed{}, record: record.ConfirmationAnswer{}},
	{domain: checkout.Credit{}, record: record.StatementCredit{}, part: true},
	{domain: checkout.CreditWithdrawn{}, record: record.StatementCredit{}, part: true},
	{domain: checkout.Answer{}, record: record.Reply{}, part: true, exported: true},
}

var batchPairs = []pair{
	{domain: disbursement.Batch{}, record: record.Batch{}, names: live, exported: true},
	{domain: disbursement.Hold{}, record: record.BatchHold{}},
	{domain: digest.Tree{}, record: record.LeafTree{}},
	{domain: disbursement.Total{}, record: record.LineTotal{}},
	{domain: disbursement.Totals{}, record: record.LineTotals{}},
	{domain: disbursement.Funding{}, record: record.BatchFunding{}},
	{domain: disbursement.Proof{}, record: record.BatchLineProof{}},
	{domain: disbursement.LineKey{}, record: record.BatchLineKey{}},
	{domain: disbursement.LineKey{}, record: record.BatchLineRef{}, exported: true, as: "Ref"},
	{domain: disbursement.Line{}, record: record.BatchLine{}, exported: true},
	{domain: disbursement.Sealing{}, record: record.BatchSealing{}, exported: true},
	{domain: digest.Batch{}, record: record.SealedBatch{}, as: "Sealed"},
	{domain: digest.Account{}, record: record.SealedAccount{}, as: "SealedAccount"},
	{domain: policy.Level{}, record: record.ApprovalLevel{}},
	{domain: policy.Approver{}, record: record.Approver{}},
	{domain: disbursement.Approved{}, record: record.BatchApproval{}},
	{domain: disbursement.Signed{}, record: record.PasskeySignature{}},
	{domain: assertion.Assertion{}, record: record.PasskeyAssertion{}},
	{domain: disbursement.Queued{}, record: record.QueuedLine{}, exported: true},
	{domain: disbursement.Account{}, record: record.PayoutAccount{}, names: live, exported: true},
	{domain: disbursement.Agency{}, record: record.BatchAgency{}, names: live, exported: true},
	{domain: policy.Policy{}, record: record.ApprovalPolicy{}},
	{domain: policy.Tier{}, record: record.ApprovalTier{}},
	{domain: policy.Rule{}, record: record.ApprovalRule{}},
	{domain: disbursement.Roster{}, record: record.BatchRoster{}, exported: true},
	{domain: policy.Person{}, record: record.RosterPerson{}},
	{domain: policy.Key{}, record: record.RosterKey{}},
	{domain: disbursement.BatchRef{}, record: record.BatchRevision{}, exported: true},

	{domain: disbursement.Open{}, record: record.OpenBatch{}},
	{domain: disbursement.Payout{}, record: record.BatchPayout{}},
	{domain: disbursement.AddLines{}, record: record.AddBatchLines{}},
	{domain: disbursement.NewLine{}, record: record.NewBatchLine{}},
	{domain: disbursement.Seal{}, record: record.SealBatch{}},
	{domain: disbursement.Word{}, record: record.PayoutWord{}},
	{domain: disbursement.SetPolicy{}, record: record.ChangePolicy{}},
	{domain: disbursement.Enrol{}, record: record.EnrolPeople{}},
	{domain: disbursement.Enrolled{}, record: record.EnrolledPerson{}},
	{domain: disbursement.Revoke{}, record: record.RevokePerson{}},

	{domain: disbursement.Event{}, record: record.DisbursementEvent{}, names: live, exported: true},
	{domain: disbursement.Answer{}, record: record.DisbursementReply{}, part: true, exported: true},
	{domain: disbursement.Refusal{}, record: record.CommandRefusal{}},
	{domain: disbursement.Request{}, record: record.PayoutRequest{}, names: live, exported: true},
}

var live = map[string]string{"Live": "Livemode"}

func (p pair) types() (domain, record reflect.Type) {
	return reflect.TypeOf(p.domain), reflect.TypeOf(p.record)
}

// function returns the name of a conversion.
func (p pair) function(prefix string) string {
	if p.exported {
		prefix = map[string]string{"from": "From", "to": "To"}[prefix]
	}
	return prefix + cmp.Or(p.as, reflect.TypeOf(p.domain).Name())
}

// generator writes functions and collects the packages that they use.
type generator struct {
	pairs   []pair
	out     bytes.Buffer
	imports map[string]bool
}

func main() {
	log.SetFlags(0)
	for _, t := range targets {
		t.generate()
	}
}

func (t target) generate() {
	g := &generator{pairs: t.pairs, imports: map[string]bool{}}
	for _, p := range t.pairs {
		g.pair(p)
	}
	var file bytes.Buffer
	fmt.Fprint(&file, "// Code generated by schemas/mapping/gen from the domain and the Avro schemas; DO NOT EDIT.\n\n")
	fmt.Fprintf(&file, "package %s\n\nimport (\n\t\"time\"\n\n", t.name)
	for _, path := range slices.Sorted(maps.Keys(g.imports)) {
		fmt.Fprintf(&file, "\t%q\n", path)
	}
	fmt.Fprintf(&file, ")\n%s", g.out.Bytes())
	src, err := format.Source(file.Bytes())
	if err != nil {
		log.Fatalf("%v\n%s", err, file.String())
	}
	if err := os.WriteFile(t.file, src, 0o644); err != nil { //nolint:gosec // source code
		log.Fatal(err)
	}
}

// pair writes both conversions of a pair.
func (g *generator) pair(p pair) {
	domain, rec := p.types()
	from := fmt.Sprintf("\n// %[1]s converts to a record.\nfunc %[1]s(v %[2]s) (r %[3]s)", p.function("from"), g.name(domain), g.name(rec))
	to := fmt.Sprintf("\n// %[1]s converts from a record.\nfunc %[1]s(r *%[3]s) (v %[2]s)", p.function("to"), g.name(domain), g.name(rec))
	if domain.ConvertibleTo(rec) {
		fmt.Fprintf(&g.out, "%s { return %s(v) }\n%s { return %s(*r) }\n", from, rec, to, domain)
		return
	}
	var there, back bytes.Buffer
	used := map[string]bool{}
	for _, d := range reflect.VisibleFields(domain) {
		if d.Anonymous { // its fields are visible too
			continue
		}
		r := p.counterpart(d, rec)
		used[r.Name] = true
		there.WriteString(g.assign("r."+r.Name, r.Type, "v."+d.Name, d.Type, "from"))
		back.WriteString(g.assign("v."+d.Name, d.Type, "r."+r.Name, r.Type, "to"))
	}
	for i := range rec.NumField() {
		if name := rec.Field(i).Name; !used[name] && !p.part {
			log.Fatalf("%s has no field for %s.%s", domain, rec, name)
		}
	}
	fmt.Fprintf(&g.out, "%s {\n%s\treturn r\n}\n%s {\n%s\treturn v\n}\n", from, there.Bytes(), to, back.Bytes())
}

// counterpart returns the field of the record for a field of the domain.
func (p pair) counterpart(d reflect.StructField, rec reflect.Type) reflect.StructField {
	name := d.Name
	if other, ok := p.names[name]; ok {
		name = other
	}
	if d.Type == reflect.TypeFor[time.Duration]() {
		name += "Ms"
	}
	r, ok := rec.FieldByName(name)
	if !ok {
		log.Fatalf("%s has no field %s for that of %T", rec, name, p.domain)
	}
	return r
}

// name returns the name of a type and notes its package.
func (g *generator) name(t reflect.Type) string {
	if path := t.PkgPath(); path != "" && path != "time" {
		g.imports[path] = true
	}
	return t.String()
}

// assign returns the statement that converts src to dst. prefix says in which direction.
func (g *generator) assign(dst string, dt reflect.Type, src string, st reflect.Type, prefix string) string {
	duration := reflect.TypeFor[time.Duration]()
	switch {
	case st == dt:
		return fmt.Sprintf("\t%s = %s\n", dst, src)
	case st == duration:
		return fmt.Sprintf("\t%s = %s.Milliseconds()\n", dst, src)
	case dt == duration:
		return fmt.Sprintf("\t%s = %s(%s) * time.Millisecond\n", dst, g.name(duration), src)
	case st.Kind() == reflect.Slice && dt.Kind() == reflect.Slice:
		item := g.assign(dst+"[i]", dt.Elem(), src+"[i]", st.Elem(), prefix)
		return fmt.Sprintf("\tif len(%[2]s) > 0 {\n\t\t%[1]s = make([]%[3]s, len(%[2]s))\n\t\tfor i := range %[2]s {\n%[4]s\t\t}\n\t}\n", dst, src, g.name(dt.Elem()), item)
	case st.Kind() == reflect.Pointer && dt.Kind() == reflect.Pointer && st.ConvertibleTo(dt):
		g.name(dt.Elem())
		return fmt.Sprintf("\t%s = (%s)(%s)\n", dst, dt, src)
	case st.Kind() == reflect.Pointer || dt.Kind() == reflect.Pointer:
		return g.optional(dst, dt, src, st, prefix)
	case st.Kind() == reflect.Struct:
		return fmt.Sprintf("\t%s = %s\n", dst, g.call(src, st, dt, prefix))
	case st.Kind() == reflect.Array:
		return fmt.Sprintf("\t%s = hashBytes(%s)\n", dst, src)
	case dt.Kind() == reflect.Array:
		return fmt.Sprintf("\t%s = hashOf[%s](%s)\n", dst, g.name(dt), src)
	case st.Kind() == dt.Kind(), st.Kind() == reflect.Int && dt.Kind() == reflect.Int32, st.Kind() == reflect.Int32 && dt.Kind() == reflect.Int:
		return fmt.Sprintf("\t%s = %s(%s)\n", dst, g.name(dt), src)
	}
	log.Fatalf("%s is %s and %s is %s: no conversion", src, st, dst, dt)
	return ""
}

// optional returns the statement for a value that is a pointer on one side or on both.
func (g *generator) optional(dst string, dt reflect.Type, src string, st reflect.Type, prefix string) string {
	if st.Kind() != reflect.Pointer {
		p := g.find(st, dt.Elem())
		if p.present == "" {
			log.Fatalf("%s is %s and %s is %s: which field says that it is absent?", src, st, dst, dt)
		}
		return fmt.Sprintf("\tif %s.%s != \"\" {\n\t\t%s = new(%s)\n\t}\n", src, p.present, dst, g.call(src, st, dt.Elem(), prefix))
	}
	elem, value := dt, "%s"
	if dt.Kind() == reflect.Pointer {
		elem, value = dt.Elem(), "new(%s)"
	}
	return fmt.Sprintf("\tif %s != nil {\n\t\t%s = %s\n\t}\n", src, dst, fmt.Sprintf(value, g.call("*"+src, st.Elem(), elem, prefix)))
}

// call returns the call of the conversion of src. A record is passed by its address.
func (g *generator) call(src string, st, dt reflect.Type, prefix string) string {
	domain, rec := st, dt
	if prefix == "to" {
		domain, rec = dt, st
		if src[0] == '*' {
			src = src[1:]
		} else {
			src = "&" + src
		}
	}
	return fmt.Sprintf("%s(%s)", g.find(domain, rec).function(prefix), src)
}

func (g *generator) find(domain, rec reflect.Type) pair {
	for _, p := range g.pairs {
		if d, r := p.types(); d == domain && r == rec {
			return p
		}
	}
	log.Fatalf("%s and %s are no pair", domain, rec)
	return pair{}
}
