// Command outdated lists what the project fetches, with the present and the newest version and
// their dates: Go modules, tools, npm packages, jars (Kafka, PostgreSQL), ClickHouse's engine,
// Python and Debian packages. It asks each registry through its own client, and Maven Central
// for the metadata of a jar. What a registry does not tell is "unknown". It changes nothing.
//
//	go run ./dev/outdated
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// unknown stands for what a registry does not tell.
const unknown = "unknown"

// part is something that is fetched in a version. Dates are days, such as 2026-11-29.
type part struct {
	Kind, Name, Present, Date, Newest, NewestDate string
}

// behind reports whether there is a newer version.
func (p part) behind() bool { return p.Newest != unknown && compare(p.Newest, p.Present) > 0 }

// source lists the parts of a kind.
type source struct {
	kind string
	list func(context.Context) ([]part, error)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var all []part
	for _, s := range []source{
		{"go module", goModules}, {"go tool", goTools}, {"npm", npmPackages}, {"jar", jars}, {"python", pythonPackages}, {"debian", debianPackages},
	} {
		list, err := s.list(ctx)
		if err != nil {
			fmt.Fprintf(os.Stderr, "outdated: %s: %v\n", s.kind, err)
		}
		for i := range list {
			list[i].Kind = s.kind
		}
		all = append(all, list...)
	}
	if err := write(os.Stdout, all); err != nil {
		fmt.Fprintf(os.Stderr, "outdated: %v\n", err)
		os.Exit(1)
	}
}

// write writes the parts as a table: those with a newer version first.
func write(w io.Writer, all []part) error {
	slices.SortStableFunc(all, func(a, b part) int {
		if a.behind() != b.behind() {
			if a.behind() {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	behind := 0
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "KIND\tNAME\tPRESENT\tOF\tNEWEST\tOF")
	for _, p := range all {
		if p.behind() {
			behind++
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Kind, p.Name, p.Present, cmp.Or(p.Date, unknown), cmp.Or(p.Newest, unknown), cmp.Or(p.NewestDate, unknown))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	_, err := fmt.Fprintf(w, "%d of %d have a newer version\n", behind, len(all))
	return err
}

// day returns the day of a time, or unknown.
func day(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return t.UTC().Format(time.DateOnly)
}
