package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"quittance/dev/bench/client"
	"quittance/dev/stack/program"
	"quittance/test/harness"
	"quittance/test/servers"
)

// front is a proxy before an ingress of its own.
type front struct {
	*client.Client
	dir string // everything that the proxy writes, and its configuration
	// Addresses, host:port.
	listen, https, plain string
	roots                *x509.CertPool
	ingress              *program.Process
	// secrets must be in no log.
	secrets []string
}

// newFront starts an ingress that shares the parts of the common installation, and the proxy.
func newFront(t *testing.T, start func(*front, *testing.T) *exec.Cmd) *front {
	t.Helper()
	up := harness.Shared(t)
	path := servers.QuittanceDev(t)
	ports := harness.Ports(t, 4)
	f := &front{dir: servers.Dir(t), listen: program.Local(ports[0]), https: program.Local(ports[2]), plain: program.Local(ports[3])}
	f.ingress = program.New(path, servers.Dir(t)).Process("ingress", program.Local(ports[1]), "ingress", "--port", strconv.Itoa(up.Port), "--listen", f.listen,
		"--checkout-url", "https://"+f.https, "--trusted-proxies", "127.0.0.1/32", "--keyless-per-client", "5")
	t.Cleanup(f.ingress.Quit)
	if err := f.ingress.Start(); err != nil {
		t.Fatal(err)
	}
	f.certificate(t)
	f.Client = &client.Client{Service: "https://" + f.https, Simulators: up.URL(harness.AtSimulators, ""), HTTP: f.from("127.0.0.1")}
	if err := program.AwaitReady(t.Context(), f.ingress); err != nil {
		t.Fatalf("%v\n%s", err, program.Tail(f.ingress.LogFile(), 4<<10))
	}

	cmd := start(f, t)
	ended := harness.Launch(t, "the proxy", cmd, f.path("output.log"))
	harness.Eventually(t, "reaching the proxy", func() error {
		select {
		case <-ended:
			t.Fatal("the proxy has ended")
		default:
		}
		_, err := f.Send(t.Context(), http.MethodGet, f.Service+"/docs", "")
		return err
	})
	return f
}

func (f *front) path(name string) string { return filepath.Join(f.dir, name) }

// certificate writes a certificate of 127.0.0.1 for the proxy.
func (f *front) certificate(t *testing.T) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler()) // it has a certificate for tests
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(f.path(name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.roots = x509.NewCertPool()
	f.roots.AddCert(server.Certificate())
}

// from returns a client at an address of this machine. It follows no redirection.
func (f *front) from(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: f.roots, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// configure writes an example with the addresses and paths of this test in place of its own.
func (f *front) configure(t *testing.T, example string, replace map[string]string) string {
	t.Helper()
	text, err := os.ReadFile(harness.Absolute(t, filepath.Join("deploy/proxy", example)))
	if err != nil {
		t.Fatal(err)
	}
	out := string(text)
	for old, to := range replace {
		if strings.Count(out, old) != 1 {
			t.Fatalf("%s has %q %d times, want once", example, old, strings.Count(out, old))
		}
		out = strings.Replace(out, old, to, 1)
	}
	path := f.path(example)
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// command returns a command that runs a program of Debian's package.
func (f *front) command(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	path := harness.Absolute(t, filepath.Join(".deps/proxy/usr", program))
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath(filepath.Base(program)); err != nil {
			t.Fatalf("%v: run make deps/test", err)
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "HOME="+f.dir, "XDG_DATA_HOME="+f.dir, "XDG_CONFIG_HOME="+f.dir)
	return cmd
}

// nginx returns the command that runs nginx with the example.
func nginx(f *front, t *testing.T) *exec.Cmd { return nginxWith(f, t, "", nil) }

// nginxWith returns the same with other values in the example, and directives before it.
func nginxWith(f *front, t *testing.T, directives string, values map[string]string) *exec.Cmd {
	t.Helper()
	replace := map[string]string{
		"server 127.0.0.1:8080;": "server " + f.listen + ";", "listen 80;": "listen " + f.plain + ";", "listen 443 ssl http2;": "listen " + f.https + " ssl http2;",
		"/etc/ssl/pay.example/fullchain.pem": f.path("cert.pem"), "/etc/ssl/pay.example/privkey.pem": f.path("key.pem"),
		"/var/log/nginx/quittance.log": f.path("access.log"),
	}
	maps.Copy(replace, values)
	site := f.configure(t, "nginx.conf", replace)
	temporary := directives
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary += fmt.Sprintf("\t%s_temp_path %s;\n", kind, f.path("temp_"+kind))
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	main := f.path("main.conf")
	text := fmt.Sprintf("%sdaemon off;\npid %s;\nerror_log %s;\nevents {}\nhttp {\n%s\tinclude %s;\n}\n", user, f.path("pid"), f.path("error.log"), temporary, site)
	if err := os.WriteFile(main, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f.command(t, "sbin/nginx", "-p", f.dir, "-e", f.path("error.log"), "-c", main)
}

// caddy returns the command that runs Caddy with the example.
func caddy(f *front, t *testing.T) *exec.Cmd { return caddyWith(f, t, nil) }

// caddyWith returns the same with other values in the example.
func caddyWith(f *front, t *testing.T, values map[string]string) *exec.Cmd {
	t.Helper()
	port := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
	replace := map[string]string{
		"\n{\n":                "\n{\n\tadmin off\n\thttp_port " + port(f.plain) + "\n\thttps_port " + port(f.https) + "\n",
		"http://pay.example {": "http://:" + port(f.plain) + " {", "redir https://{host}{uri}": "redir https://" + f.https + "{uri}",
		"\npay.example {\n":              "\nhttps://" + f.https + " {\n\ttls " + f.path("cert.pem") + " " + f.path("key.pem") + "\n",
		"reverse_proxy 127.0.0.1:8080 {": "reverse_proxy " + f.listen + " {", "/var/log/caddy/quittance.log": f.path("access.log"),
	}
	maps.Copy(replace, values)
	file := f.configure(t, "Caddyfile", replace)
	return f.command(t, "bin/caddy", "run", "--adapter", "caddyfile", "--config", file)
}
