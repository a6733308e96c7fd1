// Package systemd makes the systemd units of the roles, and samples of their settings, from the table of roles. They are
// the files of deploy/systemd: `go test ./cmd/internal/systemd -update` writes them anew.
package systemd

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"quittance/cmd/internal/roles"
)

// Folders on a machine.
const (
	program  = "/usr/local/bin/quittance"
	settings = "/etc/quittance"
	secrets  = settings + "/secrets"
)

// firstHealth is the port of the health address of the first role; each further role has the next one, so that all fit
// on one machine.
const firstHealth = 9081

// Files returns all files by their names: a unit and a sample of settings of each role, the target and the settings that
// all roles have.
func Files() map[string]string {
	out := map[string]string{"quittance.target": target, "env/common.env": common}
	for n, r := range roles.Table() {
		u := unitOf(r, firstHealth+n)
		out[u.File()] = render(unitText, u)
		out["env/"+r.Name+".env"] = render(envText, u)
	}
	return out
}

// unit is what the unit of a role says.
type unit struct {
	Name, Short, Command string
	// Instances is true for a role of which each process has a name of its own. Its unit is a template.
	Instances bool
	Health    int
	// Secrets are the settings whose values are in files that the service manager hands over, without the prefix
	// QUITTANCE_, such as master-keys.
	Secrets []string
	// Settings are further lines of the sample.
	Settings []setting
	// Cache is true for a role that writes large temporary files. It gets a folder on disk for them.
	Cache bool
	// MemoryMiB is the most memory of the process.
	MemoryMiB int64
}

// setting is a line of a sample, with why.
type setting struct{ Comment, Line string }

// File is the name of the unit's file.
func (u unit) File() string {
	if u.Instances {
		return "quittance-" + u.Name + "@.service"
	}
	return "quittance-" + u.Name + ".service"
}

// Variable is the variable that names the file of a secret.
func (unit) Variable(secret string) string {
	return "QUITTANCE_" + strings.ToUpper(strings.ReplaceAll(secret, "-", "_")) + "_FILE"
}

// Program, Folder and SecretsFolder are where the files of a machine are.
func (unit) Program() string       { return program }
func (unit) Folder() string        { return settings }
func (unit) SecretsFolder() string { return secrets }

// The most memory of a process in MiB, where the role does not bound its heap itself.
const (
	ingressMemory   = 512
	processorMemory = 1024
	sinkMemory      = 256
	matchMemory     = 2048
	officeMemory    = 768 // two files of 100,000 lines at the same time
)

func unitOf(r roles.Role, health int) unit {
	u := unit{Name: r.Name, Short: r.Short, Health: health, Instances: r.Kind == roles.KindProcessor, MemoryMiB: sinkMemory}
	u.Command = string(r.Kind)
	if r.Kind == roles.KindProcessor || r.Kind == roles.KindSink {
		u.Command += " " + r.Name
	}
	needs := func(n roles.Need) bool { return slices.Contains(r.Needs, n) }
	u.Secrets = []string{"kafka-password", "schema-registry"}
	if needs(roles.NeedPostgres) {
		u.Secrets = append(u.Secrets, "postgres")
	}
	if needs(roles.NeedClickHouse) || len(r.Journal) > 0 {
		u.Secrets = append(u.Secrets, "clickhouse")
	}
	if needs(roles.NeedMasterKeys) {
		u.Secrets = append(u.Secrets, "master-keys")
	}
	if needs(roles.NeedReferenceKey) {
		u.Secrets = append(u.Secrets, "reference-key")
	}
	pages := setting{"Where citizens reach the pages. A proxy with TLS is in front.", "QUITTANCE_CHECKOUT_URL=https://pay.example"}
	proxies := setting{"The networks of the proxies in front. Without them all clients count as one.", "QUITTANCE_TRUSTED_PROXIES=127.0.0.0/8"}
	switch {
	case r.Kind == roles.KindIngress:
		u.MemoryMiB = ingressMemory
		u.Settings = []setting{{"Where the proxy reaches the role.", "QUITTANCE_LISTEN=127.0.0.1:8080"}, pages, proxies}
	case r.Kind == roles.KindOffice:
		u.MemoryMiB = officeMemory
		u.Settings = []setting{
			{"Where the proxy reaches the role.", "QUITTANCE_LISTEN=127.0.0.1:8091"},
			{"Where staff reach the pages. Passkeys are bound to this name: choose one that stays.", "QUITTANCE_STAFF_URL=https://staff.example"},
			{"Where citizens reach the pages: the codes of certificates and payment advices lead there.", "QUITTANCE_CHECKOUT_URL=https://pay.example"},
			proxies,
		}
	case r.Kind == roles.KindProcessor:
		u.MemoryMiB = processorMemory
	case r.MemoryLimit > 0:
		u.MemoryMiB, u.Cache = matchMemory, true
	case needs(roles.NeedProviders):
		u.Secrets = append(u.Secrets, "sms-secret", "mail-secret")
		u.Settings = []setting{
			pages,
			{"Where staff reach their pages: letters to them lead there.", "QUITTANCE_STAFF_URL=https://staff.example"},
			{"The providers of messages to people (docs/operating/messages.md). Without SMS, or with a mail server that asks for no\n# user, the unit needs a drop-in without the secret: docs/operating/install.md, \"Messages without a secret\".", "QUITTANCE_SMS=https://sms.example/messages"},
			{"", "QUITTANCE_MAIL=smtp://quittance@mail.example:587?from=no-reply@pay.example"},
		}
	case needs(roles.NeedOperators):
		u.Settings = []setting{pages}
	}
	return u
}

func render(t *template.Template, u unit) string {
	var b bytes.Buffer
	if err := t.Execute(&b, u); err != nil {
		panic(fmt.Sprintf("systemd: a template that does not fit its data: %v", err))
	}
	return b.String()
}

const made = "# Made from the table of roles by `go test ./cmd/internal/systemd -update`.\n"

const target = made + `[Unit]
Description=Quittance: the roles of this machine
After=network-online.target
Wants=network-online.target

[Install]
WantedBy=multi-user.target
`

const common = made + `# Settings of all roles of the machine, below /etc/quittance. Secrets are no settings: they are files below
# /etc/quittance/secrets, which only root reads.
QUITTANCE_KAFKA=kafka-a.example:9093,kafka-b.example:9093,kafka-c.example:9093
QUITTANCE_KAFKA_TLS=true
# The authorities of your own certificates, if the system does not know them.
#SSL_CERT_FILE=/etc/quittance/authorities.pem
`

// unitText is a unit. A role waits for its servers and ends only by a refusal, so it is always started again.
// It proves by the watchdog that its loops turn. It needs no right of the machine but the network.
var unitText = template.Must(template.New("unit").Parse(made + `[Unit]
Description=Quittance {{.Name}}{{if .Instances}} %i{{end}}: {{.Short}}
PartOf=quittance.target
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={{.Program}} {{.Command}}
EnvironmentFile={{.Folder}}/common.env
EnvironmentFile={{.Folder}}/{{.Name}}.env
{{- range .Secrets}}
LoadCredential={{.}}:{{$.SecretsFolder}}/{{$.Name}}/{{.}}
Environment={{$.Variable .}}=%d/{{.}}
{{- end}}
{{- if .Instances}}
Environment=QUITTANCE_INSTANCE=%i
StateDirectory=quittance/{{.Name}}-%i
StateDirectoryMode=0700
Environment=QUITTANCE_STORE=%S/quittance/{{.Name}}-%i
{{- end}}
{{- if .Cache}}
# Its temporary files are large. Where /tmp is a tmpfs they would count as its memory.
CacheDirectory=quittance/{{.Name}}
CacheDirectoryMode=0700
Environment=TMPDIR=%C/quittance/{{.Name}}
{{- end}}
Restart=always
RestartSec=1
# A role that waits for a server turns its loops and barks.
WatchdogSec=3min
# It ends by itself within 25 s: it drains, answers what is in flight and leaves its groups.
TimeoutStopSec=30
TimeoutStartSec=infinity
MemoryMax={{.MemoryMiB}}M
LimitNOFILE=65536
LimitCORE=0
DynamicUser=yes
UMask=0077
CapabilityBoundingSet=
AmbientCapabilities=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateUsers=yes
DevicePolicy=closed
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
ProcSubset=pid
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged

[Install]
WantedBy=quittance.target
`))

var envText = template.Must(template.New("env").Parse(made + `# Settings of {{.Name}}: {{.Short}}. Copy it to {{.Folder}}/{{.Name}}.env and make its secrets in {{.SecretsFolder}}/{{.Name}}:
#{{range .Secrets}} {{.}}{{end}}
QUITTANCE_KAFKA_USER=quittance-{{.Name}}
QUITTANCE_HEALTH=127.0.0.1:{{.Health}}
{{- range .Settings}}
{{- with .Comment}}
# {{.}}{{end}}
{{.Line}}
{{- end}}
`))
