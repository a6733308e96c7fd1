package operations_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/goccy/go-yaml"

	"quittance/dev/stack/program"
	"quittance/internal/exemplar"
	"quittance/test/harness"
	"quittance/test/servers"
)

// prometheusTool returns the path of a program of Prometheus: the one that `make deps/test`
// has fetched, or the system's.
func prometheusTool(t *testing.T, name string) string {
	t.Helper()
	path := harness.Absolute(t, filepath.Join(".deps/prometheus/usr/bin", name))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing, `make deps/test` fetches it: %v", name, err)
	}
	return path
}

// promtool runs promtool in a folder and returns what it prints.
func promtool(t *testing.T, dir, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), prometheusTool(t, "promtool"), args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	// Its unit tests fill a database each. Collecting garbage less often saves a quarter of the CPU time.
	cmd.Env = append(os.Environ(), "GOGC=800")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// promtool accepts the rules, and each rule has a unit test in which it is quiet and fires.
// The tests notice a changed limit, duration, label and text.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	rules, tests, ofDays := read(t, "alerts.yaml"), read(t, "alerts_test.yaml"), read(t, "alerts_days_test.yaml")
	check := func(rules, tests []byte, args ...string) (string, error) {
		dir := servers.Dir(t)
		for name, text := range map[string][]byte{"alerts.yaml": rules, "alerts_test.yaml": tests, "alerts_days_test.yaml": ofDays} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return promtool(t, dir, "", args...)
	}
	if out, err := check(rules, tests, "check", "rules", "alerts.yaml"); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
	if out, err := unitTests(t, rules, nil, tests, ofDays); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
	untested(t, rules, tests, ofDays)

	changed := func(from, to string) []byte {
		if !strings.Contains(string(rules), from) {
			t.Errorf("alerts.yaml does not contain %q", from)
		}
		return []byte(strings.Replace(string(rules), from, to, 1))
	}
	for from, to := range map[string]string{"max(quittance_erp_confirmations_oldest": "max((quittance_erp_confirmations_oldest", "{{ $labels.kind }}": "{{ $labels.kind | shout }}"} {
		if out, err := check(changed(from, to), tests, "check", "rules", "alerts.yaml"); err == nil {
			t.Errorf("promtool accepts %s:\n%s", to, out)
		}
	}
	// All changes at once, and only the tests of these rules.
	faulty := string(rules)
	changes := map[string]struct{ from, to string }{
		"QuittanceJournalBehind":     {"quittance_journal_lag_seconds) > 900", "quittance_journal_lag_seconds) > 800"},
		"QuittanceRegistryOld":       {"quittance_registry_age_seconds) > 60", "quittance_registry_age_seconds) > 61"},
		"QuittanceLatePayment":       {"for: 1m", "for: 5m"},
		"QuittanceProcessorBehind":   {"max by (processor, partition) (quittance_processor_input_lag_records)", "max(quittance_processor_input_lag_records)"},
		"QuittanceReportFitsNothing": {"severity: critical", "severity: warning"},
		"QuittanceNoProcessor":       {"No processor is active", "No processor works"},
	}
	for _, change := range changes {
		faulty = strings.Replace(faulty, change.from, change.to, 1)
	}
	out, err := unitTests(t, []byte(faulty), slices.Collect(maps.Keys(changes)), tests)
	for alert := range changes {
		if err == nil || !strings.Contains(out, alert) {
			t.Errorf("promtool does not notice that %s has changed: %v\n%s", alert, err, out)
		}
	}
}

// unitTests runs the unit tests of rules: those of some alerts, or all. promtool evaluates every rule of the
// files of a test throughout it, so that a hundred tests of a hundred rules take a minute of CPU time.
// Here each test has the rules of its alert alone.
func unitTests(t *testing.T, rules []byte, alerts []string, tests ...[]byte) (string, error) {
	t.Helper()
	dir := servers.Dir(t)
	write := func(name string, content any) {
		text, err := yaml.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var file struct {
		Groups []struct{ Rules []map[string]any }
	}
	if err := yaml.Unmarshal(rules, &file); err != nil {
		t.Fatal(err)
	}
	of := map[string][]any{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			name, _ := rule["alert"].(string)
			of[name] = append(of[name], rule)
		}
	}
	for name, rules := range of {
		write(name+".yaml", map[string]any{"groups": []any{map[string]any{"name": "one", "rules": rules}}})
	}
	args := []string{"test", "rules"}
	for _, text := range tests {
		var all struct {
			Interval string `yaml:"evaluation_interval"`
			Tests    []map[string]any
		}
		if err := yaml.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		for _, one := range all.Tests {
			full, _ := one["name"].(string)
			words := strings.FieldsFunc(full, func(r rune) bool { return r == ' ' || r == ',' }) // "… of ALERT", "ALERT, …" or "ALERT part"
			i := slices.IndexFunc(words, func(word string) bool { return of[word] != nil })
			if i < 0 {
				t.Errorf("the test %q names no alert of alerts.yaml", full)
				continue
			}
			if alerts != nil && !slices.Contains(alerts, words[i]) {
				continue
			}
			name := fmt.Sprintf("%s_%d_test.yaml", words[i], len(args))
			write(name, map[string]any{"rule_files": []string{words[i] + ".yaml"}, "evaluation_interval": all.Interval, "tests": []any{one}})
			args = append(args, name)
		}
	}
	return promtool(t, dir, "", args...)
}

// untested fails the test for rules without a test of their name. A label part follows the
// name of rules that share one.
func untested(t *testing.T, rules []byte, tests ...[]byte) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert  string            `yaml:"alert"`
				Labels map[string]string `yaml:"labels"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(rules, &file); err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, text := range tests {
		var of struct {
			Tests []struct {
				Name  string `yaml:"name"`
				Exprs []struct {
					Samples []any `yaml:"exp_samples"`
				} `yaml:"promql_expr_test"`
			} `yaml:"tests"`
		}
		if err := yaml.Unmarshal(text, &of); err != nil {
			t.Fatal(err)
		}
		for _, one := range of.Tests {
			// The first expression has no sample and the second has one.
			if len(one.Exprs) == 2 && len(one.Exprs[0].Samples) == 0 && len(one.Exprs[1].Samples) == 1 {
				tested[one.Name] = true
			}
		}
	}
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			if name := r.Alert; !tested[name] && !tested[name+" "+r.Labels["part"]] {
				t.Errorf("alerts_test.yaml does not test that %s %s is quiet and fires", name, r.Labels["part"])
			}
		}
	}
}

// prometheus is a running Prometheus that scrapes one service.
type prometheus struct{ url string }

// startPrometheus starts a Prometheus with the rules of deploy/monitoring. It scrapes and
// evaluates every second.
func startPrometheus(t *testing.T, target string) prometheus {
	t.Helper()
	dir := servers.Dir(t)
	addr := program.Local(harness.Ports(t, 1)[0])
	config := fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: quittance
    static_configs: [{targets: [%q]}]
`, harness.Absolute(t, "deploy/monitoring/alerts.yaml"), target)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(prometheusTool(t, "prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data",
		"--web.listen-address="+addr, "--enable-feature=exemplar-storage", "--log.level=warn")
	cmd.Dir = dir
	harness.Launch(t, "Prometheus", cmd, filepath.Join(dir, "output.log"))
	return prometheus{"http://" + addr}
}

// get asks Prometheus' API and reads the data of its answer.
func (p prometheus) get(t *testing.T, path string, args url.Values, into any) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/api/v1/"+path+"?"+args.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	a, err := httpclient.Default.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(a.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s %v: %s: %w", path, args, a.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s %v: %s", path, args, answer.Error)
	}
	return nil
}

// query returns the values of an expression now.
func (p prometheus) query(t *testing.T, expr string) (values []float64, err error) {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := p.get(t, "query", url.Values{"query": {expr}}, &data); err != nil {
		return nil, err
	}
	for _, one := range data.Result {
		text, _ := one.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expr, err)
		}
		values = append(values, v)
	}
	return values, nil
}

// mayBeNaN are panels about what happens only at a start, before the first scrape: no rate
// is known of them.
var mayBeNaN = []string{"Duration of restores, p95"}

// queryFaults runs every query of the dashboard as Grafana would, and returns those without
// data.
func (p prometheus) queryFaults(t *testing.T, dashboard []byte) (faults []string) {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(dashboard, &d); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$kind", ".*")
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			values, err := p.query(t, fill.Replace(target.Expr))
			switch {
			case err != nil:
				faults = append(faults, fmt.Sprintf("panel %s: %v", panel.Title, err))
			case len(values) == 0:
				faults = append(faults, fmt.Sprintf("panel %s: %s returns nothing", panel.Title, target.Expr))
			case !slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) }) && !slices.Contains(mayBeNaN, panel.Title):
				faults = append(faults, fmt.Sprintf("panel %s: %s returns no number", panel.Title, target.Expr))
			}
		}
	}
	return faults
}

// ruleFaults returns the rules that Prometheus could not evaluate, and those that fire
// although the service is well.
func (p prometheus) ruleFaults(t *testing.T) (faults []string) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	if err := p.get(t, "rules", nil, &data); err != nil {
		return []string{err.Error()}
	}
	n := 0
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			n++
			if r.Health != "ok" {
				faults = append(faults, fmt.Sprintf("rule %s: %s: %s", r.Name, r.Health, r.LastError))
			}
			if r.State == "firing" {
				faults = append(faults, r.Name+" fires")
			}
		}
	}
	if n == 0 {
		faults = append(faults, "Prometheus has no rules")
	}
	return faults
}

// exemplarFaults returns what is wrong with the examples that Prometheus has received. There
// must be some of each label of made, which the scenario makes, and none may have a label that
// is not known or one of the secrets.
func (p prometheus) exemplarFaults(t *testing.T, begun time.Time, made []exemplar.Label, secrets ...string) (faults []string) {
	t.Helper()
	var data []struct {
		SeriesLabels map[string]string
		Exemplars    []struct{ Labels map[string]string }
	}
	if err := p.get(t, "query_exemplars", url.Values{
		"query": {`{__name__=~"quittance_.+"}`}, "start": {begun.UTC().Format(time.RFC3339)}, "end": {time.Now().Add(time.Minute).UTC().Format(time.RFC3339)},
	}, &data); err != nil {
		return []string{err.Error()}
	}
	seen := set{}
	for _, series := range data {
		for _, e := range series.Exemplars {
			for name, value := range e.Labels {
				seen[name] = true
				if !slices.Contains(exemplar.Labels, exemplar.Label(name)) {
					faults = append(faults, fmt.Sprintf("an example of %s has the label %q", series.SeriesLabels[metricName], name))
				}
				for _, secret := range secrets {
					if strings.Contains(value, secret) {
						faults = append(faults, fmt.Sprintf("an example of %s holds %s", series.SeriesLabels[metricName], secret))
					}
				}
			}
		}
	}
	for _, label := range made {
		if !seen[string(label)] {
			faults = append(faults, fmt.Sprintf("no example has a %s, only %v", label, slices.Sorted(maps.Keys(seen))))
		}
	}
	return faults
}
