package oversight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"quittance/ingress/staff"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/internal/report"
	"quittance/money"
	"quittance/money/localtime"
)

// Reports makes reports: report.Desk.
type Reports interface {
	Run(ctx context.Context, r report.Request) (t report.Table, more bool, err error)
}

// Conditions of the page, by their names in the address, and the formats of files.
const (
	byReport = "report"
	byMonth  = "month"
	byMode   = "mode"

	modeLive = "live"
	modeTest = "test"
)

const (
	// reportsAtOnce is how many reports an instance makes at the same time: each reads a month of all movements.
	reportsAtOnce = 4
	// reportWithin bounds the time of a report, within that of an answer.
	reportWithin = 25 * time.Second
	monthLayout  = "2006-01"
)

// reportsView is the page of reports.
type reportsView struct {
	view
	Path                     string // of the form
	Reports, Modes, Agencies []staff.Choice
	Month                    string
	// Missing says why there is no report, Larger that it has too many rows for a page, Empty that it has none.
	Missing, Larger, Empty string
	About                  string // what the report says
	Grid                   staff.Grid
	Facts                  []staff.Fact
	Positions              []string
}

// asked is what a person asks for.
type asked struct {
	report.Request
	month, mode, agency string
}

// query are the conditions of the page's address.
func (a asked) query(more ...string) []string {
	out := []string{byReport, a.Report.Name, byMonth, a.month, byMode, a.mode}
	if a.agency != "" {
		out = append(out, byAgency, a.agency)
	}
	return append(out, more...)
}

// newReports returns the page with its form.
func (v *visit) newReports(a asked) *reportsView {
	w, path := v.w.Reports, v.root(opsRoot)+"reports"
	var conditions []string
	if a.Report.Name != "" {
		conditions = a.query()
	}
	out := &reportsView{view: v.page(w.Title, path, conditions...), Path: "/" + path, Month: a.month}
	for _, r := range report.All() {
		out.Reports = append(out.Reports, staff.Choice{Value: r.Name, Label: said(w.Names, r.Name), Chosen: r.Name == a.Report.Name})
	}
	out.Modes = []staff.Choice{{Value: modeLive, Label: v.w.Health.Live, Chosen: a.mode != modeTest}, {Value: modeTest, Label: v.w.Health.Test, Chosen: a.mode == modeTest}}
	out.Agencies = v.agencies(a.agency)
	out.Test = a.mode == modeTest
	return out
}

// ask reads what the address asks for. ok is false if it asks for nothing, or for what there is not: then the page is answered.
func (v *visit) ask() (a asked, ok bool) {
	w := v.w.Reports
	a.month, a.mode, a.agency = cmp.Or(v.Query(byMonth), localtime.Day(v.Now)[:len(monthLayout)]), cmp.Or(v.Query(byMode), modeLive), v.Query(byAgency)
	a.AgencyID, a.Live = a.agency, a.mode == modeLive
	if !v.Acting.Service() { // never all agencies
		a.AgencyID, a.agency = v.Acting.Person.AgencyID, ""
	}
	name := v.Query(byReport)
	if name == "" {
		v.Write(http.StatusOK, "reports", v.newReports(a))
		return a, false
	}
	var faults [][2]string
	all := report.All()
	if i := slices.IndexFunc(all, func(r report.Report) bool { return r.Name == name }); i >= 0 {
		a.Report = all[i]
	} else {
		faults = append(faults, [2]string{byReport, w.ReportUnknown})
	}
	var err error
	if a.Month, err = time.Parse(monthLayout, a.month); err != nil {
		faults = append(faults, [2]string{byMonth, w.MonthMalformed})
	}
	if a.mode != modeLive && a.mode != modeTest {
		faults = append(faults, [2]string{byMode, w.ModeUnknown})
	}
	if _, known := v.o.cfg.Registry.Agency(a.AgencyID); a.AgencyID != "" && !known {
		faults = append(faults, [2]string{byAgency, w.AgencyUnknown})
	}
	if len(faults) > 0 {
		out := v.newReports(a)
		for _, f := range faults {
			out.Fault(f[0], f[1], v.Query(f[0]))
		}
		v.Write(http.StatusUnprocessableEntity, "reports", out)
		return a, false
	}
	return a, true
}

// make makes a report; false after an answer that says why there is none.
func (v *visit) make(a asked) (t report.Table, more, ok bool) {
	refuse := func(why string) {
		out := v.newReports(a)
		out.Missing, out.Command = why, a.command(v.slug(a.AgencyID), "")
		v.Write(http.StatusServiceUnavailable, "reports", out)
	}
	w := v.w.Reports
	select {
	case v.o.reports <- struct{}{}:
		defer func() { <-v.o.reports }()
	default:
		refuse(fmt.Sprintf(w.Busy, reportsAtOnce))
		return t, false, false
	}
	ctx, cancel := context.WithTimeout(v.Context(), reportWithin)
	defer cancel()
	t, more, err := v.o.cfg.Reports.Run(ctx, a.Request)
	switch {
	case err == nil:
		return t, more, true
	case errors.Is(err, journal.ErrRestored):
		refuse(w.Restored)
	case errors.Is(err, report.ErrUnknownAgency):
		refuse(w.NotYet)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		refuse(w.Slow)
	default:
		refuse(w.Away)
	}
	v.LogFailure("making a report", err)
	return t, false, false
}

// command is the command that prints the same report; in a format, if one is given.
func (a asked) command(slug, format string) string {
	out := []string{byMonth, a.month, byAgency, slug}
	if a.mode == modeTest {
		out = append(out, byMode, modeTest)
	}
	if format != "" {
		out = append(out, staff.ByFormat, format, "out", a.Report.Name+"-"+a.month+"."+format)
	}
	return staff.Command("quittance report "+a.Report.Name, out...)
}

// showReport is GET /ops/reports and /agency/reports.
func (v *visit) showReport() {
	a, ok := v.ask()
	if !ok {
		return
	}
	t, more, ok := v.make(a)
	if !ok || !v.Record("report.read", a.Report.Name, a.AgencyID, map[string]any{byMonth: a.month, byMode: a.mode}) {
		return
	}
	w := v.w.Reports
	out := v.newReports(a)
	out.Command, out.About = a.command(v.slug(a.AgencyID), ""), w.About[a.Report.Name]
	switch {
	case more:
		out.Larger, out.Command = fmt.Sprintf(w.Larger, report.RowsAtMost), a.command(v.slug(a.AgencyID), staff.CSV)
	case len(t.Rows) == 0:
		out.Empty = fmt.Sprintf(w.Empty, a.month)
	default:
		out.Grid = v.tableGrid(t)
	}
	if !more {
		out.Files = v.Files(a.AgencyID, v.root(opsRoot)+"reports/file", a.query()...)
	}
	out.Facts, out.Positions = v.stamp(t.Stamp, a), t.Stamp.Offsets()
	v.Write(http.StatusOK, "reports", out)
}

// tableGrid is a report with its totals.
func (v *visit) tableGrid(t report.Table) staff.Grid {
	w := v.w.Reports
	g := staff.Grid{Caption: said(w.Names, t.Name)}
	for _, c := range t.Columns {
		g.Heads = append(g.Heads, said(w.Columns, strings.TrimSuffix(c.Name, "_minor")))
	}
	rows := t.Rows
	for _, sum := range t.Totals() {
		rows = append(rows[:len(rows):len(rows)], t.TotalRow(sum))
	}
	at := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.Name == "currency" })
	for _, row := range rows {
		var code string
		if at >= 0 {
			code, _ = row[at].(string)
		}
		cells := make([]staff.Cell, len(row))
		for i, c := range t.Columns {
			cells[i] = v.reportCell(t, row, i, code)
			if c.Number {
				cells[i].Class = staff.ClassSum
			}
		}
		g.Rows = append(g.Rows, cells)
	}
	return g
}

// reportCell is a value of a report as people read it. An amount of an unknown currency says that it is in minor units.
func (v *visit) reportCell(t report.Table, row []any, column int, code string) staff.Cell {
	if minor, ok := row[column].(int64); ok && t.Columns[column].Money() {
		if currency, known := money.Lookup(code); known {
			return staff.Cell{Text: currency.Format(v.Lang, minor)}
		}
	}
	return staff.Cell{Text: dash(named(t.Text(row, column)))}
}

// stamp says where a report comes from.
func (v *visit) stamp(s report.Stamp, a asked) []staff.Fact {
	w := v.w.Reports
	agency, compared := w.AllAndNone, w.NotCompared
	if a.AgencyID != "" {
		agency = v.agency(a.AgencyID)
	}
	if s.Compared {
		compared = w.Compared
	}
	mode := v.w.Health.Test
	if a.Live {
		mode = v.w.Health.Live
	}
	return []staff.Fact{
		{Label: w.Report, Value: said(w.Names, s.Report)},
		{Label: v.w.Agency, Value: agency},
		{Label: w.Month, Value: s.Month},
		{Label: v.w.Health.Mode, Value: mode},
		{Label: w.MadeAt, Value: v.At(s.At)},
		{Label: w.Source, Value: compared},
		{Label: w.Program, Value: s.Program + " " + s.Version, Code: true},
	}
}

// reportFile is GET /ops/reports/file and /agency/reports/file: the report as a file. The audit table has its digest.
func (v *visit) reportFile() {
	a, ok := v.ask()
	if !ok {
		return
	}
	format, ok := v.Format()
	if !ok {
		return
	}
	t, more, ok := v.make(a)
	if !ok {
		return
	}
	if more {
		v.See(v.root(opsRoot)+"reports", a.query()...) // the page says which command makes the file
		return
	}
	name := strings.Trim(strings.Join([]string{"quittance", a.mode, v.slug(a.AgencyID), a.Report.Name, a.month}, "-"), "-")
	v.SendTable(t, format, strings.ReplaceAll(name, "--", "-"), operation.Entry{
		Action: "report.download", Subject: a.Report.Name, AgencyID: a.AgencyID, Detail: map[string]any{byMonth: a.month, byMode: a.mode, "rows": len(t.Rows)},
	})
}
