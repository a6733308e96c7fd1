package acl

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/cmd/internal/cli/clitest"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/kafka"
	"quittance/processors/checkout"
	"quittance/schemas"
)

var update = flag.Bool("update", false, "write the tables of deploy/kafka/acls.md anew")

const (
	aclsFile  = "../../../../deploy/kafka/acls.md"
	aclsBegin = "<!-- The rest is made by `go test ./cmd/internal/cli/acl -run TestACLsDocument -update`. -->\n"
)

// deploy/kafka/acls.md has the rights that the roles check at start.
func TestACLsDocument(t *testing.T) {
	t.Parallel()
	clitest.Generated(t, aclsFile, aclsBegin, aclsDocument(), *update, "go test ./cmd/internal/cli/acl -run TestACLsDocument -update")
}

// The lists of roles in documents and runbook have every role that they must have.
func TestRolesInDocuments(t *testing.T) {
	t.Parallel()
	line := func(file, begin string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.Lines(string(b)) {
			if strings.HasPrefix(strings.TrimSpace(text), begin) {
				return text
			}
		}
		t.Fatalf("%s has no line that begins with %q", file, begin)
		return ""
	}
	users := strings.Fields(line("../../../../deploy/monitoring/README.md", "for role in "))
	for _, c := range roles.KafkaClients() {
		if !slices.Contains(users, c.Name) && !slices.Contains(users, c.Name+";") {
			t.Errorf("the runbook makes no user %s at Kafka", c.Name)
		}
	}
	rotated, _, _ := strings.Cut(line("../../../../docs/operating/secrets.md", "2. Derive the keys of every role again and restart them: "), ". From now on")
	for _, r := range roles.Table() {
		if has := strings.Contains(rotated, "`"+r.Name+"`"); has != slices.Contains(r.Needs, roles.NeedMasterKeys) {
			t.Errorf("docs/operating/secrets.md restarts %s after a rotation: %t", r.Name, has)
		}
	}
}

// Only these write commands: whoever writes one says that money arrived.
func TestFewWriteCommands(t *testing.T) {
	t.Parallel()
	var writers []string
	names := map[string]bool{}
	for _, c := range roles.KafkaClients() {
		names[c.Name] = true
		for _, r := range c.Rights {
			if r.Name == schemas.TopicCommands && r.Operation == kmsg.ACLOperationWrite {
				writers = append(writers, c.Name)
			}
			if r.Type == kmsg.ACLResourceTypeCluster || r.Name == "*" || kafka.OperationName(r.Operation) == "" || kafka.ResourceName(r.Type) == "" {
				t.Errorf("%s has the right %+v", c.Name, r)
			}
		}
	}
	slices.Sort(writers)
	senders := slices.Sorted(slices.Values(checkout.Senders()))
	if want := []string{"cases", "collect", "erp", "ingress", "match", "operator"}; !slices.Equal(writers, want) || !slices.Equal(senders, want) {
		t.Errorf("%q write commands, the processor knows %q, want %q", writers, senders, want)
	}
	writers = nil
	for _, c := range roles.KafkaClients() {
		if slices.ContainsFunc(c.Rights, func(r kafka.Right) bool {
			return r.Name == schemas.Disbursement.Commands && r.Operation == kmsg.ACLOperationWrite
		}) {
			writers = append(writers, c.Name)
		}
	}
	if slices.Sort(writers); !slices.Equal(writers, []string{"disburse", "erp", "match", "office", "operator"}) {
		t.Errorf("%q write commands of batches", writers)
	}
	for _, r := range roles.Table() {
		if !names[r.Name] {
			t.Errorf("the role %s has no rights", r.Name)
		}
	}
}

func TestACLs(t *testing.T) {
	t.Parallel()
	code, out, _ := clitest.Run(t, Command(), "acls", "checkout", "--topic-prefix", "cg.", "--principal", "User:CN=quittance-{role},O=Trésor", "--bootstrap-server", "kafka:9093")
	for _, want := range []string{
		"kafka-acls.sh --bootstrap-server kafka:9093 --command-config admin.properties --add --allow-principal 'User:CN=quittance-checkout,O=Trésor' --operation Write --resource-pattern-type prefixed --transactional-id cg.checkout-\n",
		" --operation Read --group cg.processor\n",
		" --operation Describe --topic __consumer_offsets --topic __transaction_state\n",
	} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("acls ends with %d and prints\n%s\nwithout %s", code, out, want)
		}
	}
	code, out, _ = clitest.Run(t, Command(), "acls", "--json")
	var rights []map[string]string
	if err := json.Unmarshal([]byte(out), &rights); err != nil || code != 0 {
		t.Fatal(code, err)
	}
	if !slices.ContainsFunc(rights, func(r map[string]string) bool {
		return r["role"] == "erp" && r["principal"] == "User:quittance-erp" && r["operation"] == "Write" && r["resource_type"] == "topic" && r["resource"] == "checkout.commands" && r["pattern"] == "literal"
	}) {
		t.Errorf("acls --json prints\n%s", out)
	}
	for args, want := range map[string]string{
		"acls erpp":                    `no role is called "erpp"; there are ingress,`,
		"acls --principal User:one":    "must begin with User: and contain {role}",
		"acls erp --principal erp":     "must begin with User:",
		"acls erp --principal User:it": "",
	} {
		if code, _, stderr := clitest.Run(t, Command(), strings.Fields(args)...); (code == 2) != (want != "") || !strings.Contains(stderr, want) {
			t.Errorf("%s ends with %d and says %s", args, code, stderr)
		}
	}
}

// aclsDocument returns the tables of deploy/kafka/acls.md.
func aclsDocument() string {
	var p render.Page
	table := func(name, short string, rights []kafka.Right) {
		p.Say("## %s\n\n%s.\n", name, short)
		p.Say("| Resource | Operations |\n|---|---|")
		for _, g := range grouped(rights) {
			names := render.Mapped(g.resources, func(r kafka.Resource) string {
				if r.Prefixed {
					return "`" + r.Name + "*`"
				}
				return "`" + r.Name + "`"
			})
			p.Say("| %s %s | %s |", kafka.ResourceName(g.resources[0].Type), strings.Join(names, ", "), strings.Join(render.Mapped(g.operations, kafka.OperationName), ", "))
		}
		p.Say("")
	}
	common := roles.CommonRights()
	table("All of them", "what every role and every command looks at when it starts", common)
	for _, c := range roles.KafkaClients() {
		table(c.Name, c.Short+"; in addition to the rights of all", slices.DeleteFunc(c.Rights, func(r kafka.Right) bool { return slices.Contains(common, r) }))
	}
	return strings.TrimRight(p.String(), "\n") + "\n"
}
