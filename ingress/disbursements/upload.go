package disbursements

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"quittance/disbursement"
	"quittance/ingress/staff"
	"quittance/internal/commands"
	"quittance/internal/disbursements"
	"quittance/internal/disbursements/lines"
	"quittance/internal/operation"
	"quittance/money"
	"quittance/money/localtime"
)

// Fields of the form that imports a file. The currency has the name of that of a policy.
const (
	fieldFile   = "file"
	fieldDate   = "date"
	fieldFormat = "format" // of the template
)

const (
	// maxUpload is the most bytes of a file with its form: a workbook or a CSV of 100,000 lines has less.
	maxUpload = 24 << 20
	// maxUploadField is the longest other field.
	maxUploadField = 1 << 10
	// readAtOnce is how many files a process reads at the same time: each may take some 200 MB of memory, and the unit has 768
	// (cmd/internal/systemd). receivedAtOnce is how many it receives, one of each agency: a slow one keeps nobody else waiting.
	readAtOnce, receivedAtOnce = 2, 8
	// uploadPatience bounds the receiving of a file, readPatience the wait until it is read, importPatience the answer.
	uploadPatience, readPatience, importPatience = 2 * time.Minute, 30 * time.Second, 5 * time.Minute
	// A file that comes more slowly than slowest, in bytes a second, is cut after uploadGrace.
	slowest, uploadGrace = 16 << 10, 10 * time.Second
	// faultsShown is how many faults of a file the page has; all are counted.
	faultsShown = 200
)

// Importer makes batches of files: *disbursements.Importer.
type Importer interface {
	Import(ctx context.Context, q disbursements.Import) (disbursements.Imported, error)
}

// importView is the page with the form that imports a file.
type importView struct {
	view
	T              *importWords
	Modes          []staff.Choice
	URL            string
	Templates      []staff.Fact
	FileFaults     staff.Grid
	Currency, Date string
}

// showImport is GET /agency/batches/import.
func (v *visit) showImport() { v.writeImport(http.StatusOK, nil, nil, "", "") }

// writeImport shows the form, with what was typed, and what is wrong with a file or a field.
func (v *visit) writeImport(status int, typed url.Values, file *lines.File, field, fault string) {
	t := importTexts.In(v.Lang)
	test := v.Query(fieldMode) == modeTest || typed.Get(fieldMode) == modeTest
	out := &importView{view: v.page(t.Title, rootImport, fieldMode, disbursement.Mode(!test)), T: t, Currency: money.Default, Date: localtime.Day(v.Now)}
	out.BackURL, out.BackText, out.Test = v.URL(rootBatches, fieldMode, disbursement.Mode(!test)), v.w.Title, test
	out.Tagged = fault == ""
	out.URL = v.URL(rootImport)
	out.Modes = []staff.Choice{{Value: modeLive, Label: v.w.Live, Chosen: !test}, {Value: modeTest, Label: v.w.Test, Chosen: test}}
	for _, name := range []string{byRef, fieldDate, fieldCurrency} {
		if value := typed.Get(name); value != "" {
			out.Typed[name] = value
		}
	}
	if value := typed.Get(fieldDate); value != "" {
		out.Date = value
	}
	out.Command = staff.Command("quittance batches import FILE", "agency", v.agency(), "mode", disbursement.Mode(!test), "date", out.Date) + " --batch-ref REF"
	if value := typed.Get(fieldCurrency); value != "" {
		out.Currency = value
	}
	if fault != "" {
		out.Fault(field, fault, typed.Get(field))
	}
	for _, format := range []string{"xlsx", "csv"} {
		out.Templates = append(out.Templates, staff.Fact{Label: t.Template, Value: strings.ToUpper(format), URL: v.URL(rootTemplate, fieldMode, disbursement.Mode(!test), fieldFormat, format)})
	}
	if file != nil {
		out.FileFaults = staff.Grid{Caption: t.Faults, Heads: []string{t.Where, t.Cell, t.Happened}}
		for _, f := range file.Faults[:min(len(file.Faults), faultsShown)] {
			where := t.WholeFile
			switch {
			case f.Row > 0 && f.Column != "":
				where = fmt.Sprintf(t.RowColumn, f.Row, f.Column)
			case f.Row > 0:
				where = fmt.Sprintf(t.OnlyRow, f.Row)
			}
			out.FileFaults.Rows = append(out.FileFaults.Rows, []staff.Cell{{Text: where, More: string(f.Header)}, {Text: f.Cell}, {Text: f.Detail(v.Lang), More: f.Mend(v.Lang)}})
		}
	}
	v.Write(status, "batchimport", out)
}

// importFile is POST /agency/batches/import: the batch stays a draft, which its maker looks at and seals.
func (v *visit) importFile() {
	t := importTexts.In(v.Lang)
	done, ok := v.d.uploads.begin(v.agency())
	if !ok {
		v.RetryAfter(time.Minute)
		v.writeImport(http.StatusTooManyRequests, nil, nil, "", t.Busy)
		return
	}
	defer done()
	_ = http.NewResponseController(v.W).SetWriteDeadline(time.Now().Add(importPatience)) // a recorder of tests has no deadlines
	form, file, err := v.readUpload()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		v.writeImport(http.StatusRequestEntityTooLarge, form, nil, fieldFile, fmt.Sprintf(t.TooLarge, maxUpload>>20))
		return
	case errors.Is(err, os.ErrDeadlineExceeded):
		v.writeImport(http.StatusRequestTimeout, form, nil, fieldFile, t.TooSlow)
		return
	case err != nil || len(file) == 0:
		v.writeImport(http.StatusUnprocessableEntity, form, nil, fieldFile, t.NoFile)
		return
	}
	q := disbursements.Import{
		TenantID: v.agency(), Live: form.Get(fieldMode) != modeTest, BatchRef: strings.TrimSpace(form.Get(byRef)), Date: strings.TrimSpace(form.Get(fieldDate)),
		Currency: strings.ToUpper(strings.TrimSpace(form.Get(fieldCurrency))), Maker: v.Acting.Person.ID, Draft: true, File: bytes.NewReader(file), Size: int64(len(file)),
	}
	if field, fault := t.faultOf(q); fault != "" {
		v.writeImport(http.StatusUnprocessableEntity, form, nil, field, fault)
		return
	}
	release, ok := v.d.uploads.read(v.Context())
	if !ok {
		v.RetryAfter(time.Minute)
		v.writeImport(http.StatusTooManyRequests, form, nil, "", t.Busy)
		return
	}
	made, err := v.d.cfg.Importer.Import(v.Context(), q)
	release()
	var refused *disbursements.RefusedError
	switch {
	case errors.Is(err, disbursements.ErrFile):
		v.writeImport(http.StatusUnprocessableEntity, form, made.File, fieldFile, fmt.Sprintf(t.Refused, made.File.Count))
		return
	case errors.Is(err, disbursements.ErrNoAccounts):
		v.writeImport(http.StatusConflict, form, nil, fieldMode, t.NoAccounts)
		return
	case errors.As(err, &refused):
		field, text := t.refusal(v, refused)
		v.writeImport(http.StatusConflict, form, nil, field, text)
		return
	case errors.Is(err, commands.ErrUnavailable):
		v.writeImport(http.StatusServiceUnavailable, form, nil, "", t.NoAnswer)
		return
	case err != nil: // a draft may be left
		v.LogFailure("importing a file of lines", err)
		v.writeImport(http.StatusServiceUnavailable, form, nil, "", t.NoAnswer)
		return
	}
	b := made.Batch
	if err := v.Note(operation.Entry{
		Action: "batch.import", Subject: b.ID, AgencyID: b.TenantID, Detail: map[string]any{"batch_ref": b.BatchRef, "revision": b.Revision, "count": b.Count, "sum": b.Sum, "draft": true},
	}); err != nil {
		v.LogFailure("recording an import", err)
		v.writeImport(http.StatusServiceUnavailable, form, nil, "", t.NoAnswer)
		return
	}
	v.until(func(context.Context) bool {
		now, err := v.read(b.ID)
		return err == nil && now.Count == b.Count
	})
	v.See(rootBatches+"/"+b.ID, "done", "import")
}

// uploads bounds the files in memory. Safe for concurrent use.
type uploads struct {
	mu       sync.Mutex
	agencies map[string]bool // that send a file
	reading  chan struct{}   // has one entry for each file that is read
}

func newUploads() *uploads {
	return &uploads{agencies: map[string]bool{}, reading: make(chan struct{}, readAtOnce)}
}

// begin takes the place of an agency for the receiving of a file and its reading; false if the agency or too many others send one.
func (u *uploads) begin(agency string) (done func(), ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.agencies[agency] || len(u.agencies) >= receivedAtOnce {
		return nil, false
	}
	u.agencies[agency] = true
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.agencies, agency)
	}, true
}

// read waits for a place to read a file that is received.
func (u *uploads) read(ctx context.Context) (release func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	select {
	case u.reading <- struct{}{}:
		return func() { <-u.reading }, true
	case <-ctx.Done():
		return nil, false
	}
}

// steady is a body that must come at slowest or faster, in uploadPatience at most.
type steady struct {
	io.ReadCloser
	connection *http.ResponseController
	begun      time.Time
	received   int64
}

func (s *steady) Read(p []byte) (n int, err error) {
	within := min(uploadGrace+time.Duration(s.received)*time.Second/slowest, uploadPatience)
	_ = s.connection.SetReadDeadline(s.begun.Add(within)) // a recorder of tests has no deadlines
	n, err = s.ReadCloser.Read(p)
	s.received += int64(n)
	return n, err
}

// readUpload reads the form. The file is in memory only.
func (v *visit) readUpload() (form url.Values, file []byte, err error) {
	form = url.Values{}
	v.R.Body = &steady{v.R.Body, http.NewResponseController(v.W), time.Now(), 0}
	parts, err := v.R.MultipartReader()
	if err != nil {
		return form, nil, err
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return form, file, nil
		}
		if err != nil {
			return form, nil, err
		}
		if part.FormName() == fieldFile {
			if file, err = io.ReadAll(part); err != nil { // the body is bounded
				return form, nil, err
			}
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, maxUploadField))
		if err != nil {
			return form, nil, err
		}
		if utf8.Valid(value) {
			form.Set(part.FormName(), string(value))
		}
	}
}

// template is GET /agency/batches/template.
func (v *visit) template() {
	accounts, _ := v.d.cfg.Accounts(v.agency(), v.Query(fieldMode) != modeTest)
	if len(accounts) == 0 {
		v.writeImport(http.StatusConflict, url.Values{fieldMode: {v.Query(fieldMode)}}, nil, fieldMode, importTexts.In(v.Lang).NoAccounts)
		return
	}
	write, name := lines.WriteXLSX, "lines.xlsx"
	if v.Query(fieldFormat) == "csv" {
		write, name = lines.WriteCSV, "lines.csv"
	}
	var file bytes.Buffer
	if err := write(&file, v.Lang, disbursements.Rules(money.Default, accounts), nil); err != nil {
		v.Unavailable("writing a template", err)
		return
	}
	d := v.Download(name, int64(file.Len()))
	_, _ = d.Write(file.Bytes())
	d.End()
}

// seal is POST /agency/batches/{batch}/seal.
func (v *visit) seal() {
	v.act("seal", func(b disbursements.Batch) (disbursement.Action, string) {
		if b.Maker != v.Acting.Person.ID {
			return nil, importTexts.In(v.Lang).NotMaker
		}
		if notes, err := v.d.cfg.Batches.Notes(v.Context(), b.ID); err != nil || notes == nil { // what an import stores last
			return nil, importTexts.In(v.Lang).Incomplete
		}
		agency, _, err := v.d.cfg.Batches.Agency(v.Context(), b.TenantID, b.Live)
		var names disbursements.Names
		if err == nil {
			names, err = v.d.cfg.Batches.Names(v.Context(), b.ID)
		}
		if err != nil {
			v.LogFailure("reading what was told of payees' names", err)
			return nil, importTexts.In(v.Lang).NoAnswer
		}
		waiver := strings.TrimSpace(v.Form.Get(fieldWaiver))
		if utf8.RuneCountInString(waiver) > maxReason {
			return nil, v.w.NoReason
		}
		return disbursement.Seal{Count: b.Count, Sum: b.Sum, Root: b.Tree.Root(), Checked: names.Checked(agency.InForce(v.Now).NameCheck), Waiver: waiver}, ""
	})
}

// fieldWaiver is why payees' names were not checked.
const fieldWaiver = "names_not_checked"

// discard is POST /agency/batches/{batch}/discard.
func (v *visit) discard() {
	v.act("discard", func(disbursements.Batch) (disbursement.Action, string) {
		return disbursement.Discard{By: v.Acting.Person.ID}, ""
	})
}
