package bank_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"quittance/internal/connector/bank"
)

// servers are OpenSSH's own, which refuses to overwrite on rename, and that of pkg/sftp, which overwrites.
var servers = map[string]func(t testing.TB, dir string) (io.Reader, io.WriteCloser){
	"openssh": func(t testing.TB, dir string) (io.Reader, io.WriteCloser) {
		t.Helper()
		if testing.Short() {
			t.Skip("starts OpenSSH's server")
		}
		program, err := filepath.Abs(filepath.Join(root, ".deps/sftp/usr/lib/openssh/sftp-server"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, "-e", "-l", "ERROR", "-d", dir)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatalf("OpenSSH's server is missing, `make deps/test` fetches it: %v", err)
		}
		t.Cleanup(func() {
			_ = in.Close()
			_ = cmd.Wait()
		})
		return out, in
	},
	"pkg/sftp": func(t testing.TB, dir string) (io.Reader, io.WriteCloser) {
		t.Helper()
		near, far := net.Pipe()
		server, err := sftp.NewServer(far, sftp.WithServerWorkingDirectory(dir))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.Serve()
			_ = far.Close()
		}()
		t.Cleanup(func() {
			_ = near.Close()
			<-done
		})
		return near, near
	},
}

// Packets of SFTP 3.
const (
	packetInit   = 1
	packetOpen   = 3
	packetClose  = 4
	packetWrite  = 6
	packetRename = 18
)

// line is a connection to a server with somebody in the middle, who is told of each request.
type line struct {
	r       io.Reader
	w       io.WriteCloser
	held    []byte
	broken  atomic.Bool
	request []byte // the present one
	// on is called before the request passes on. It returns what to do after that.
	on func(l *line, packet byte) func()
}

// cut loses all answers from now on.
func (l *line) cut() { l.broken.Store(true) }

func (l *line) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.broken.Load() {
		return 0, io.EOF
	}
	return n, err
}

func (l *line) Close() error { return l.w.Close() }

func (l *line) Write(p []byte) (int, error) {
	l.held = append(l.held, p...)
	for len(l.held) > 4 {
		size := 4 + int(binary.BigEndian.Uint32(l.held))
		if len(l.held) < size {
			break
		}
		packet := l.held[:size]
		l.held, l.request = l.held[size:], packet
		var then func()
		if l.on != nil {
			then = l.on(l, packet[4])
		}
		if l.broken.Load() && then == nil {
			return 0, io.ErrClosedPipe // lost before the server
		}
		if _, err := l.w.Write(packet); err != nil {
			return 0, err
		}
		if then != nil {
			then()
		}
		if l.broken.Load() {
			_ = l.w.Close()
			return len(p), nil
		}
	}
	return len(p), nil
}

// theBank is a bank's folder, and what it took from there.
type theBank struct {
	t   testing.TB
	dir string
	// keeps says that the bank has an archive.
	keeps bool
	took  []string // contents
}

func newBank(t testing.TB) *theBank {
	t.Helper()
	b := &theBank{t: t, dir: t.TempDir(), keeps: true}
	for _, folder := range []string{"out", "in", "archive"} {
		if err := os.Mkdir(filepath.Join(b.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// take takes the files away that have their names, or those that have none yet as well.
func (b *theBank) take(unnamed bool) {
	b.t.Helper()
	files, err := os.ReadDir(filepath.Join(b.dir, "out"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".tmp") && !unnamed {
			continue
		}
		from := filepath.Join(b.dir, "out", f.Name())
		data, err := os.ReadFile(from)
		if err != nil {
			b.t.Fatal(err)
		}
		b.took = append(b.took, string(data))
		if b.keeps {
			err = os.Rename(from, filepath.Join(b.dir, "archive", strings.TrimSuffix(f.Name(), ".tmp")+".20261224"))
		} else {
			err = os.Remove(from)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *theBank) put(name, content string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// holds returns a file of the bank's folders; empty if it is not there.
func (b *theBank) holds(name string) string {
	data, _ := os.ReadFile(filepath.Join(b.dir, name))
	return string(data)
}

// await waits until a file is there, or is away.
func (b *theBank) await(name string, there bool) {
	b.t.Helper()
	for range 500 {
		if _, err := os.Stat(filepath.Join(b.dir, name)); (err == nil) == there {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Errorf("%s: there=%v is awaited in vain", name, there)
}

// mailbox connects with somebody in the middle, or nobody.
func (b *theBank) mailbox(p bank.Profile, server string, on func(*line, byte) func()) *bank.Mailbox {
	b.t.Helper()
	r, w := servers[server](b.t, b.dir)
	l := &line{r: r, w: w, on: on}
	client, err := sftp.NewClientPipe(l, l)
	if err != nil {
		b.t.Fatal(err)
	}
	if !b.keeps {
		p.Archive = ""
	}
	m := bank.NewMailbox(client, p)
	b.t.Cleanup(func() { _ = m.Close() })
	return m
}

// replay sends a request on a connection of its own and waits for the answer.
func (b *theBank) replay(server string, request []byte) {
	b.t.Helper()
	r, w := servers[server](b.t, b.dir)
	for _, packet := range [][]byte{{0, 0, 0, 5, packetInit, 0, 0, 0, 3}, request} {
		if _, err := w.Write(packet); err != nil {
			b.t.Fatal(err)
		}
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			b.t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
			b.t.Fatal(err)
		}
	}
}
