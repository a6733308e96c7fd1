package reporting

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/build"
	"quittance/internal/clickhouse"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/report"
	"quittance/reconciliation"
)

// formatXLSX is a further format of a report.
const formatXLSX = "xlsx"

// reportRequest is what the command line asks for.
type reportRequest struct {
	month, agency, mode, format, out string

	report report.Report
	at     time.Time // in the month
}

// Command returns the command `report`.
func Command() cli.Command {
	var r reportRequest
	all := report.All()
	names := render.Mapped(all, func(r report.Report) string { return r.Name })
	return cli.Command{
		Use: "report NAME", Short: "Print a report of a month: " + strings.Join(names, ", "),
		Missing: "say which report: " + strings.Join(names, ", "),
		Valid:   render.Mapped(all, func(r report.Report) cobra.Completion { return cobra.CompletionWithDesc(r.Name, r.Short) }),
		Examples: []string{
			"report takings --month 2026-11 --agency impots", "report channels --month 2026-11 --format csv > channels.csv",
			"report open-cases --month 2026-11 --format xlsx --out cases.xlsx",
		},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			f.StringVar(&r.month, "month", "", "the month, such as 2026-11, in Brazzaville")
			f.StringVar(&r.agency, "agency", "", "slug or id of an agency; all agencies and money of none when empty")
			r.mode = registry.Mode(true)
			cli.TakesMode(f, &r.mode)
			f.Lookup("mode").Usage = "test or live payments"
			r.format = render.FormatTable
			cli.TakesChoice(f, &r.format, "format", []string{render.FormatTable, render.FormatCSV, render.FormatJSON, formatXLSX}, "")
			f.StringVar(&r.out, "out", "", "file to write, which is replaced; the output of the command when empty")
		},
		Check: func(m *cli.Meta) error { return r.check(m, all) },
		Run:   func(ctx context.Context, m *cli.Meta) error { return r.run(ctx, m) },
	}
}

// check refuses a wrong command line.
func (r *reportRequest) check(m *cli.Meta, all []report.Report) (err error) {
	i := slices.IndexFunc(all, func(one report.Report) bool { return one.Name == m.Args[0] })
	if i < 0 {
		return cli.Usage("no report is called %q; there are %s", m.Args[0], strings.Join(render.Mapped(all, func(r report.Report) string { return r.Name }), ", "))
	}
	r.report = all[i]
	if r.at, err = time.Parse("2006-01", r.month); err != nil {
		return cli.Usage("--month %q: must be a month, such as --month 2026-11", r.month)
	}
	if r.format == formatXLSX && r.out == "" && isTerminal(m.Out) {
		return cli.Usage("--format xlsx: a workbook cannot be shown here; name a file, such as --out %s-%s.xlsx", r.report.Name, r.month)
	}
	return nil
}

// isTerminal reports whether a person reads the output.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (r *reportRequest) run(ctx context.Context, m *cli.Meta) error {
	if err := m.Need("clickhouse"); err != nil {
		return err
	}
	conn, err := clickhouse.Open(ctx, m.ClickHouse)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := reconciliation.Check(ctx, conn); err != nil {
		return err
	}
	positions, compared, err := access.Whole(ctx, m, conn)
	if err != nil {
		return err
	}
	p := report.Params{Month: r.at, Live: r.mode == registry.Mode(true)}
	if p.Agency, err = agencySlug(ctx, conn, r.agency); err != nil {
		return err
	}
	table, err := r.report.Run(ctx, conn, p)
	if err != nil {
		return err
	}
	table.Stamp = report.Stamp{
		Report: r.report.Name, Agency: p.Agency, Month: r.month, Mode: r.mode, At: time.Now(), Program: m.Program, Version: build.Read().Version(), Positions: positions, Compared: compared,
	}
	var b bytes.Buffer
	if err := r.write(&b, table); err != nil {
		return err
	}
	if r.out != "" {
		// Payments of citizens are nobody else's business.
		if err := os.WriteFile(r.out, b.Bytes(), 0o600); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		return nil
	}
	_, err = m.Out.Write(b.Bytes())
	return err
}

// agencySlug returns the slug of an agency that is named by slug or id; empty for none.
func agencySlug(ctx context.Context, conn clickhouse.Conn, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	agencies, err := report.Agencies(ctx, conn)
	if err != nil {
		return "", err
	}
	if len(agencies) == 0 {
		return "", errors.New("--agency: ClickHouse knows no agencies yet; check that `quittance sink journal` runs, which copies their names")
	}
	i := slices.IndexFunc(agencies, func(a report.Agency) bool { return a.Slug == name || a.ID == name })
	if i < 0 || agencies[i].Slug == "" {
		slugs := render.Mapped(agencies, func(a report.Agency) string { return cmp.Or(a.Slug, a.ID) })
		return "", operation.Refuse("agency.unknown", "agency", operation.Args{"agency": name, "agencies": slugs})
	}
	return agencies[i].Slug, nil
}

// write writes the table in the format.
func (r *reportRequest) write(out io.Writer, t report.Table) error {
	switch r.format {
	case render.FormatCSV:
		return t.CSV(out)
	case formatXLSX:
		return t.XLSX(out)
	case render.FormatJSON:
		return render.Encode(out, tableJSON(t), "  ")
	}
	var p render.Page
	titles := render.Mapped(t.Columns, func(c report.Column) string {
		return strings.ToUpper(strings.ReplaceAll(strings.TrimSuffix(c.Name, "_minor"), "_", " "))
	})
	nothing := fmt.Sprintf("there is nothing to report for %s of %s payments", r.month, r.mode)
	if r.mode == registry.Mode(true) {
		nothing += "; --mode test is for those of test keys"
	}
	rows := t.Rows
	for _, sum := range t.Totals() {
		rows = append(rows[:len(rows):len(rows)], t.TotalRow(sum))
	}
	p.Table(nothing, strings.Join(titles, ","), render.Mapped(rows, func(row []any) []any {
		cells := make([]any, len(row))
		for i := range row {
			cells[i] = render.OrDash(t.Text(row, i))
		}
		return cells
	}))
	p.Say("")
	for _, f := range t.Stamp.Facts() {
		p.Say("%s: %s", f.Name, f.Text)
	}
	_, err := out.Write(p.Bytes())
	return err
}

// tableJSON returns a report with its stamp. Amounts are minor units.
func tableJSON(t report.Table) render.Object {
	s := t.Stamp
	return render.Object{
		"stamp",
		render.Object{
			"report", s.Report, "agency", render.OrNone(s.Agency), "month", s.Month, "mode", s.Mode, "generated_at", s.At.UTC(), "offsets", s.Offsets(),
			"compared_with_kafka", s.Compared, "program", s.Program, "version", s.Version,
		},
		"columns", render.Mapped(t.Columns, func(c report.Column) string { return c.Name }),
		"rows", render.Mapped(t.Rows, func(row []any) render.Object {
			var o render.Object
			for i, c := range t.Columns {
				o = append(o, c.Name, row[i])
			}
			return o
		}),
		"totals", render.Mapped(t.Totals(), func(sum report.Total) render.Object {
			o := render.Object{"currency", sum.Currency}
			if t.Apart != "" {
				o = append(o, t.Apart, sum.Of)
			}
			for _, c := range t.Columns {
				if c.Money() {
					o = append(o, c.Name, sum.Amounts[c.Name])
				}
			}
			return o
		}),
	}
}
