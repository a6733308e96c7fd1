package operations_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"quittance/dev/stack/program"
	"quittance/internal/exemplar"
	"quittance/test/harness"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/goccy/go-yaml"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	monitoringDir = harness.Root + "/deploy/monitoring"
	metricName    = "__name__" // the label of a metric's name
)

// A dashboard or an alert that queries a missing metric shows nothing, as if all were
// well. The test compares every expression of both with the metrics that the service
// exposes after one payment, before any failure. Then a real Prometheus, which scrapes the
// service, evaluates all of them.
func TestMonitoring(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	rules, dashboard, manual := read(t, "alerts.yaml"), read(t, "dashboard.json"), read(t, "README.md")
	u := harness.NewUp(t)
	begun := time.Now()
	p := startPrometheus(t, program.Local(u.Port+harness.AtHealth))
	u.Start(t)
	pay := func(order string) harness.Session {
		s := u.Create(t, order)
		u.Citizen(s.ID).Pay(t, "06 600 00 01")
		u.Delivered(t, s.ID, "checkout.completed")
		u.Confirmed(t, s)
		u.Journalled(t, s.ID, "checkout.completed")
		return s
	}
	s := pay("monitored")
	harness.Eventually(t, "Prometheus has seen the payment", func() error {
		values, err := p.query(t, `quittance_checkout_events_total{event="checkout.completed", mode="test"} == 1`)
		if err == nil && len(values) == 0 {
			err = errors.New("no sample")
		}
		return err
	})

	counted := []string{
		`quittance_checkout_events_total{event="checkout.created", mode="test"}`, `quittance_checkout_events_total{event="checkout.completed", mode="test"}`,
		`quittance_readmodel_events_total{outcome="applied"}`, `quittance_journal_entries_total{type="event"}`,
		`quittance_delivery_attempts_total{kind="webhook", outcome="delivered"}`, `quittance_delivery_attempts_total{kind="erp", outcome="delivered"}`,
	}
	var m monitored
	// The schedule updates its gauges every few seconds, and each sink counts in its own time.
	harness.Eventually(t, "every metric of dashboard and rules is exposed", func() error {
		m = scrape(t, u)
		faults := append(m.rulesFaults(rules, manual), m.dashboardFaults(dashboard)...)
		for _, metric := range counted {
			if m.value(t, metric) == 0 {
				faults = append(faults, metric+" is 0 after a payment")
			}
		}
		if len(faults) == 0 {
			return nil
		}
		return errors.New("\n" + strings.Join(faults, "\n"))
	})
	if v := m.value(t, `quittance_checkout_events_total{event="checkout.late_payment", mode="test"}`); v != 0 {
		t.Errorf("the metric counts %v late payments, want 0", v)
	}

	// A payout account that nobody knows has no operator, and the first request about one raises an alert.
	if v := m.value(t, `quittance_disburse_unknown_accounts_total{kind="pay", operator="unknown"}`); v != 0 {
		t.Errorf("the metric counts %v requests without an account, want 0", v)
	}

	if missing := groupsWithoutLag(t, u, m); len(missing) > 0 {
		t.Errorf("quittance_consumer_lag_records lacks the groups %v", missing)
	}

	// Prometheus itself answers every query of the dashboard. A rate needs series that have
	// risen between two scrapes.
	second := pay("monitored again")
	examples := []exemplar.Label{exemplar.RequestID, exemplar.DeliveryID, exemplar.CollectionID} // of payments; a payout would make payout_ref
	harness.Eventually(t, "every query of the dashboard has data", func() error {
		faults := append(p.queryFaults(t, dashboard), p.ruleFaults(t)...)
		faults = append(faults, p.exemplarFaults(t, begun, examples, s.ID, second.ID, "6600000", s.PaymentRef)...)
		if len(faults) == 0 {
			return nil
		}
		return errors.New("\n" + strings.Join(faults, "\n"))
	})
	broken := strings.Replace(string(dashboard), "quittance_journal_lag_seconds", "quittance_journal_lag_second", 1)
	if faults := strings.Join(p.queryFaults(t, []byte(broken)), "\n"); !strings.Contains(faults, "quittance_journal_lag_second{") || strings.Contains(faults, "\n") {
		t.Errorf("of a misspelt metric Prometheus says %q", faults)
	}
	metrics := u.Call(t, http.MethodGet, u.URL(harness.AtHealth, "/metrics"), "").Body
	out, _ := promtool(t, ".", string(metrics), "check", "metrics")
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "quittance_counter_") { // "counter" is a cash desk here
			t.Errorf("promtool check metrics: %s", line)
		}
	}

	// The check must find each of these faults.
	for name, change := range map[string]struct{ from, to, want string }{
		"misspelt metric":      {"quittance_erp_confirmations_owed", "quittance_erp_confirmation_owed", "no metric is called quittance_erp_confirmation_owed"},
		"label value unknown":  {`outcome="unavailable"`, `outcome="timeout"`, "has no series"},
		"label unknown":        {"sum by (operator) (rate", "sum by (provider) (rate", `no label "provider"`},
		"label in a text":      {"{{ $labels.agency }}", "{{ $labels.tenant }}", `no label "tenant"`},
		"no template":          {"{{ $labels.kind }}", "{{ $labels.kind | shout }}", `"shout" not defined`},
		"no PromQL":            {"max(quittance_erp_confirmations_oldest", "max((quittance_erp_confirmations_oldest", "parse error"},
		"no duration":          {"for: 10m", "for: 0s", "has no duration"},
		"without for":          {"for: 10m", "keep_firing_for: 10m", "has no duration"},
		"without severity":     {"severity: warning", "level: warning", "severity"},
		"other severity":       {"severity: critical", "severity: urgent", "severity"},
		"without summary":      {"summary:", "title:", "has no summary"},
		"without runbook":      {"runbook:", "link:", "has no runbook"},
		"step that is missing": {"README.md#poison", "README.md#poisons", "no step"},
		"field unknown":        {"expr: up", "exp: up", "unknown field"},
		"poison without alert": {"quittance_journal_poison_total", "quittance_journal_insert_errors_total", "quittance_journal_poison_total"},
	} {
		changed := strings.Replace(string(rules), change.from, change.to, 1)
		if changed == string(rules) {
			t.Errorf("%s: alerts.yaml does not contain %q", name, change.from)
		}
		if found := strings.Join(m.rulesFaults([]byte(changed), manual), "\n"); !strings.Contains(found, change.want) {
			t.Errorf("%s: the check finds %q, want %q", name, found, change.want)
		}
	}
	for name, change := range map[string]struct{ from, to, want string }{
		"misspelt metric":  {"quittance_journal_lag_seconds", "quittance_journal_lag_second", "no metric is called quittance_journal_lag_second"},
		"no cases":         {"quittance_cases_open", "quittance_cases_lag_seconds", "no panel shows quittance_cases_open"},
		"misspelt legend":  {"{{kind}} {{lane}} lane", "{{kind}} {{lanes}} lane", `no label "lanes"`},
		"no unit":          {`"unit": "reqps"`, `"unit": ""`, "has no unit"},
		"variable's label": {"label_values(quittance_delivery_planned_total, kind)", "label_values(quittance_delivery_planned_total, sort)", `no label "sort"`},
		"variable unknown": {"$instance", "$server", "variable"},
	} {
		if found := strings.Join(m.dashboardFaults([]byte(strings.ReplaceAll(string(dashboard), change.from, change.to))), "\n"); !strings.Contains(found, change.want) {
			t.Errorf("%s: the check finds %q, want %q", name, found, change.want)
		}
	}
}

// groupsWithoutLag returns the consumer groups at the broker whose lag no role reports.
func groupsWithoutLag(t *testing.T, u *harness.Up, m monitored) (missing []string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(program.Local(u.Port + harness.AtBroker)))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	groups, err := kadm.NewClient(cl).ListGroups(t.Context())
	if err != nil || len(groups) == 0 {
		t.Fatalf("the broker has the groups %v: %v", groups, err)
	}
	for _, name := range groups.Groups() {
		if !slices.ContainsFunc(m.series["quittance_consumer_lag_records"], func(l labels) bool { return l["group"] == name }) {
			missing = append(missing, name)
		}
	}
	return missing
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoringDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// labels are the labels of a series, by name. metricName is its metric.
type labels map[string]string

// String returns the labels in order, so that equal ones are the same text.
func (l labels) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(&b, "%s=%q,", name, l[name])
	}
	return b.String()
}

// parseSeries reads the name of a series, such as up{job="x"}.
func parseSeries(text string) (labels, error) {
	expr, err := metricsql.Parse(text)
	if err != nil {
		return nil, err
	}
	m, ok := expr.(*metricsql.MetricExpr)
	if !ok || len(m.LabelFilterss) != 1 {
		return nil, fmt.Errorf("%s is no series", text)
	}
	out := labels{}
	for _, f := range m.LabelFilterss[0] {
		out[f.Label] = f.Value
	}
	return out, nil
}

// monitored holds the series of the service by metric, with the labels that a scrape adds.
type monitored struct {
	series map[string][]labels
	values map[string]string
}

// scrape reads the metrics of the service.
func scrape(t *testing.T, u *harness.Up) monitored {
	t.Helper()
	m := monitored{
		series: map[string][]labels{"up": {{metricName: "up", "job": "quittance", "instance": "i"}}}, // Prometheus' own
		values: map[string]string{},
	}
	a := u.Call(t, http.MethodGet, u.URL(harness.AtHealth, "/metrics"), "")
	for line := range strings.Lines(string(a.Body)) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		one, err := parseSeries(line[:at])
		if err != nil {
			t.Fatalf("the service exposes %q: %v", line, err)
		}
		m.values[one.String()] = line[at+1:]
		one["job"], one["instance"] = "quittance", "i"
		m.series[one[metricName]] = append(m.series[one[metricName]], one)
	}
	return m
}

// value returns the exposed value of one series.
func (m monitored) value(t *testing.T, series string) (v float64) {
	t.Helper()
	of, err := parseSeries(series)
	if err != nil {
		t.Fatal(err)
	}
	text, ok := m.values[of.String()]
	if !ok {
		t.Errorf("%s is not exposed", series)
		return 0
	}
	if _, err := fmt.Sscan(text, &v); err != nil {
		t.Errorf("%s is %q: %v", series, text, err)
	}
	return v
}

type set map[string]bool

func (s set) add(others ...set) set {
	for _, o := range others {
		maps.Copy(s, o)
	}
	return s
}

// check evaluates an expression against the series. It returns the labels of the result,
// the metrics that the expression names, and its faults. Prometheus itself, by promtool and by
// its server, says whether the expression is PromQL: the parser here takes a little more.
func (m monitored) check(text string) (result, named set, faults []string) {
	expr, err := metricsql.Parse(text)
	if err != nil {
		return nil, nil, []string{"parse error: " + err.Error()}
	}
	named = set{}
	result = m.labels(expr, named, &faults)
	return result, named, faults
}

// shown returns an expression as text.
func shown(e metricsql.Expr) string { return string(e.AppendString(nil)) }

// scalar reports whether the expression has one value without labels.
func scalar(e metricsql.Expr) bool {
	switch e := e.(type) {
	case *metricsql.NumberExpr, *metricsql.DurationExpr, *metricsql.StringExpr:
		return true
	case *metricsql.FuncExpr:
		return slices.Contains([]string{"time", "scalar", "pi"}, strings.ToLower(e.Name))
	case *metricsql.BinaryOpExpr:
		return scalar(e.Left) && scalar(e.Right)
	}
	return false
}

// labels returns the labels of an expression's result.
func (m monitored) labels(expr metricsql.Expr, named set, faults *[]string) set {
	fault := func(format string, args ...any) { *faults = append(*faults, fmt.Sprintf(format, args...)) }
	need := func(of set, names []string, where metricsql.Expr) {
		for _, n := range names {
			if !of[n] {
				fault("no label %q in %s", n, shown(where))
			}
		}
	}
	all := func(args []metricsql.Expr) set {
		out := set{}
		for _, arg := range args {
			out.add(m.labels(arg, named, faults))
		}
		return out
	}
	switch e := expr.(type) {
	case *metricsql.MetricExpr:
		return m.selected(e, named, fault)
	case *metricsql.RollupExpr:
		return m.labels(e.Expr, named, faults)
	case *metricsql.AggrFuncExpr:
		of := all(e.Args)
		need(of, e.Modifier.Args, e)
		if name := strings.ToLower(e.Name); name == "topk" || name == "bottomk" {
			return of
		}
		out := set{}
		for n := range of {
			if slices.Contains(e.Modifier.Args, n) != (strings.ToLower(e.Modifier.Op) == "without") {
				out[n] = true
			}
		}
		return out
	case *metricsql.BinaryOpExpr:
		return m.joined(e, m.labels(e.Left, named, faults), m.labels(e.Right, named, faults), need, fault)
	case *metricsql.FuncExpr:
		out := all(e.Args)
		switch strings.ToLower(e.Name) {
		case "histogram_quantile":
			need(out, []string{"le"}, e)
			delete(out, "le")
		case "absent", "absent_over_time":
			return set{}
		case "label_replace", "label_join":
			fault("%s: this check does not know %s", shown(e), e.Name)
		}
		return out
	case *metricsql.NumberExpr, *metricsql.StringExpr, *metricsql.DurationExpr:
		return set{}
	default:
		fault("%s: this check does not know %T", shown(e), e)
		return set{}
	}
}

// joined returns the labels of what an operator makes of both sides.
func (m monitored) joined(e *metricsql.BinaryOpExpr, left, right set, need func(set, []string, metricsql.Expr), fault func(string, ...any)) set {
	switch {
	case scalar(e.Left):
		return right
	case scalar(e.Right):
		return left
	}
	or, on := strings.EqualFold(e.Op, "or"), strings.EqualFold(e.GroupModifier.Op, "on")
	if len(e.GroupModifier.Args) > 0 {
		need(left, e.GroupModifier.Args, e)
		need(right, e.GroupModifier.Args, e)
	} else if !or && !on && !maps.Equal(left, right) {
		fault("the sides of %s have the labels %v and %v, which never match", shown(e), slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(right)))
	}
	if or {
		return set{}.add(left, right)
	}
	return left
}

// matches reports whether a label has a value that the filter takes. A label that is missing has
// the empty one.
func matches(f metricsql.LabelFilter, value string) bool {
	is := f.Value == value
	if f.IsRegexp {
		is = regexp.MustCompile("^(?:" + f.Value + ")$").MatchString(value)
	}
	return is != f.IsNegative
}

// selected returns the labels of the series that a selector matches.
func (m monitored) selected(e *metricsql.MetricExpr, named set, fault func(string, ...any)) set {
	out, known := set{}, false
	for _, filters := range e.LabelFilterss {
		for name, all := range m.series {
			if slices.ContainsFunc(filters, func(f metricsql.LabelFilter) bool { return f.Label == metricName && !matches(f, name) }) {
				continue
			}
			known = known || len(all) > 0
			for _, one := range all {
				if slices.ContainsFunc(filters, func(f metricsql.LabelFilter) bool { return !matches(f, one[f.Label]) }) {
					continue
				}
				named[name] = true
				for label := range one {
					if label != metricName {
						out[label] = true
					}
				}
			}
		}
		for _, f := range filters {
			// A filter that matches the empty value also matches a missing label.
			if len(out) > 0 && !out[f.Label] && f.Label != metricName {
				fault("no label %q in %s", f.Label, shown(e))
			}
		}
	}
	switch {
	case !known:
		fault("no metric is called %s", shown(e))
	case len(out) == 0:
		fault("%s has no series; the service must expose it as 0 before the first event", shown(e))
	}
	return out
}

var (
	inTemplate = regexp.MustCompile(`\$labels\.(\w+)`)
	inLegend   = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
	// Prometheus' template functions that the rules use.
	templateFuncs = template.FuncMap{"humanize": fmt.Sprint, "humanizeDuration": fmt.Sprint, "humanizePercentage": fmt.Sprint}
	notAnchor     = regexp.MustCompile(`[^a-z0-9 -]`)
)

// steps returns the anchors of a page's headings.
func steps(page []byte) set {
	out := set{}
	for line := range strings.Lines(string(page)) {
		if text, ok := strings.CutPrefix(line, "### "); ok {
			out[strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-")] = true
		}
	}
	return out
}

// rulesFaults returns the faults of a file of alert rules.
func (m monitored) rulesFaults(text, manual []byte) (faults []string) {
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []struct {
				Alert         string            `yaml:"alert"`
				Expr          string            `yaml:"expr"`
				For           string            `yaml:"for"`
				KeepFiringFor string            `yaml:"keep_firing_for"`
				Labels        map[string]string `yaml:"labels"`
				Annotations   map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		return []string{err.Error()}
	}
	anchors, named, led := steps(manual), set{}, set{}
	for _, g := range file.Groups {
		if g.Name == "" || len(g.Rules) == 0 {
			faults = append(faults, fmt.Sprintf("group %q has no name or no rules", g.Name))
		}
		for _, r := range g.Rules {
			fault := func(format string, args ...any) { faults = append(faults, r.Alert+": "+fmt.Sprintf(format, args...)) }
			result, names, wrong := m.check(r.Expr)
			named.add(names)
			for _, w := range wrong {
				fault("%s", w)
			}
			if wait, err := time.ParseDuration(r.For); err != nil || wait <= 0 {
				fault("for: %q has no duration", r.For)
			}
			if s := r.Labels["severity"]; s != "critical" && s != "warning" {
				fault("severity is %q, want critical or warning", s)
			}
			if r.Annotations["summary"] == "" {
				fault("has no summary")
			}
			if r.Annotations["runbook"] == "" {
				fault("has no runbook")
			} else if anchor, ok := strings.CutPrefix(r.Annotations["runbook"], "deploy/monitoring/README.md#"); !ok || !anchors[anchor] {
				fault("there is no step %s", r.Annotations["runbook"])
			} else {
				led[anchor] = true
			}
			if !strings.Contains(string(manual), "`"+r.Alert+"`") {
				fault("README.md does not name it")
			}
			for _, text := range r.Annotations {
				if _, err := template.New("").Funcs(templateFuncs).Parse("{{$labels := .}}{{$value := .}}" + text); err != nil {
					fault("%v", err)
				}
				for _, label := range inTemplate.FindAllStringSubmatch(text, -1) {
					if wrong == nil && !result[label[1]] {
						fault("no label %q for %q", label[1], text)
					}
				}
			}
		}
	}
	for step := range anchors {
		if !led[step] {
			faults = append(faults, "no alert links to the step "+step)
		}
	}
	for name := range m.series {
		if strings.HasPrefix(name, "quittance_") && strings.HasSuffix(name, "_poison_total") && !named[name] {
			faults = append(faults, "no alert uses "+name)
		}
	}
	return faults
}

// dashboardFaults returns the faults of a dashboard.
func (m monitored) dashboardFaults(text []byte) (faults []string) {
	var d struct {
		Templating struct {
			List []struct {
				Name, Type string
				Query      json.RawMessage
			} `json:"list"`
		} `json:"templating"`
		Panels []struct {
			Type, Title, Description string
			FieldConfig              struct {
				Defaults struct{ Unit string } `json:"defaults"`
			} `json:"fieldConfig"`
			Targets []struct{ Expr, LegendFormat string } `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return []string{err.Error()}
	}
	fill := []string{"$__rate_interval", "5m"}
	rows := set{}
	for _, v := range d.Templating.List {
		fill = append(fill, "$"+v.Name, ".*")
		if v.Type != "query" {
			continue
		}
		var query struct{ Query string }
		if err := json.Unmarshal(v.Query, &query); err != nil {
			faults = append(faults, fmt.Sprintf("variable %s: %v", v.Name, err))
		}
		selector, label, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(query.Query, "label_values("), ")"), ", ")
		result, _, wrong := m.check(selector)
		if faults = append(faults, wrong...); !ok || wrong == nil && !result[label] {
			faults = append(faults, fmt.Sprintf("variable %s: no label %q", v.Name, label))
		}
	}
	for _, p := range d.Panels {
		fault := func(format string, args ...any) {
			faults = append(faults, "panel "+p.Title+": "+fmt.Sprintf(format, args...))
		}
		if p.Type == "row" {
			rows[p.Title] = true
			continue
		}
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			fault("has no title, no description or no target")
		}
		if p.FieldConfig.Defaults.Unit == "" {
			fault("has no unit")
		}
		for _, target := range p.Targets {
			expr := strings.NewReplacer(fill...).Replace(target.Expr)
			if strings.Contains(expr, "$") {
				fault("%s has an unknown variable", target.Expr)
				continue
			}
			result, _, wrong := m.check(expr)
			for _, w := range wrong {
				fault("%s", w)
			}
			for _, label := range inLegend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if wrong == nil && !result[label[1]] {
					fault("no label %q for %q", label[1], target.LegendFormat)
				}
			}
		}
	}
	for _, metric := range []string{"quittance_cases_open{", "quittance_cases_oldest_open_seconds{"} {
		if !strings.Contains(string(text), metric) {
			faults = append(faults, "no panel shows "+strings.TrimSuffix(metric, "{"))
		}
	}
	for _, row := range []string{"Money", "Deliveries", "ERP", "Processor", "Lag of sinks", "Ingress"} {
		if !rows[row] {
			faults = append(faults, "there is no row "+row)
		}
	}
	return faults
}
