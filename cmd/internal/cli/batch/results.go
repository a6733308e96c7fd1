package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"quittance/cmd/internal/cli"
	"quittance/disbursement"
	"quittance/disbursement/paper"
	"quittance/internal/batchseal"
	"quittance/internal/build"
	"quittance/internal/disbursements"
	"quittance/internal/registry"
	"quittance/internal/report"
	"quittance/money/localtime"
)

// Formats of exports.
const (
	formatJSON = "json"
	formatCSV  = "csv"
	formatXLSX = "xlsx"
)

// resultsOf returns what became of the lines of a batch, as Kafka proves it. It has no name and no account of a payee.
func resultsOf(m *cli.Meta, p disbursements.Proof, slug string) report.Table {
	t := report.Table{
		Name: "batch-results", Stamp: stampOf(m, "results of a batch", p, slug), Rows: [][]any{},
		Columns: []report.Column{
			{Name: "position", Number: true},
			{Name: "line_ref"},
			{Name: "payout_ref"},
			{Name: "status"},
			{Name: "code"},
			{Name: "amount_minor", Number: true},
			{Name: "currency"},
			{Name: "account"},
			{Name: "attempts", Number: true},
			{Name: "sent_at"},
			{Name: "ended_at"},
			{Name: "operator_ref"},
			{Name: "corrects"},
			{Name: "case"},
		},
	}
	b := p.Batch
	for position := range p.Lines {
		l, ok := p.Outcome(position)
		if !ok {
			continue // a proof without faults has all
		}
		attempt := ""
		if l.Attempt > 0 {
			attempt = paper.PayoutRef(l.Line)
		}
		account := ""
		if l.Account >= 0 && l.Account < len(b.Accounts) {
			account = b.Accounts[l.Account].Code
		}
		ended := l.EndedAt
		if l.Status == disbursement.LineReady || l.Status == disbursement.LineSent {
			ended = time.Time{} // of an earlier attempt
		}
		t.Rows = append(t.Rows, []any{
			int64(l.Position), l.Ref, attempt, statusText(l.Line), l.Code, l.Amount, b.Currency, account, int64(l.Attempt), moment(l.SentAt), moment(ended), l.OperatorRef, l.CorrectsRef, string(l.Case),
		})
	}
	return t
}

// moment is a time as reports write it; empty for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return localtime.In(t).Format(time.DateTime)
}

// stampOf says where a file about a batch comes from.
func stampOf(m *cli.Meta, name string, p disbursements.Proof, slug string) report.Stamp {
	b := p.Batch
	return report.Stamp{
		Report: name, Agency: slug, Mode: registry.Mode(b.Live), At: m.Now, Program: m.Program, Version: build.Read().Version(),
		Of: []report.Fact{
			{Name: "batch", Text: b.ID},
			{Name: "batch_ref", Text: fmt.Sprintf("%s, revision %d", b.BatchRef, b.Revision)},
			{Name: "status", Text: string(b.Status)},
			{Name: "digest", Text: p.Digest.String()},
			{Name: "records", Text: fmt.Sprintf("disbursement.events/%d@%d to %d", p.Partition, p.Offsets[0], p.Offsets[1])},
		},
	}
}

// encoded returns a table in a format.
func encoded(t report.Table, format string) ([]byte, error) {
	var out bytes.Buffer
	write := t.CSV
	if format == formatXLSX {
		write = t.XLSX
	}
	err := write(&out)
	return out.Bytes(), err
}

// encodedJSON returns a value as a line of JSON.
func encodedJSON(content any) ([]byte, error) {
	var out bytes.Buffer
	err := json.NewEncoder(&out).Encode(content)
	return out.Bytes(), err
}

// signatureEnding is what the name of a signature ends with, after that of its file.
const signatureEnding = ".jws"

// signedFile writes a new file and its detached JWS beside it: both, or none.
func signedFile(path string, live bool, content []byte, with *batchseal.Signer) error {
	signature, err := with.Detached(live, content)
	if err != nil {
		return err
	}
	if err := writeBytes(path+signatureEnding, []byte(signature+"\n")); err != nil {
		return err
	}
	if err := writeBytes(path, content); err != nil {
		return errors.Join(err, os.Remove(path+signatureEnding))
	}
	return nil
}
