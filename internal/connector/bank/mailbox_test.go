package bank_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"pgregory.net/rapid"

	"quittance/internal/connector/bank"
	"quittance/internal/secret"
)

const name = "TRESOR_QF1.xml.pgp"

var (
	content = strings.Repeat("salaries ", 20_000) // several packets
	digest  = sha256.Sum256([]byte(content))
)

// onRename is somebody in the middle who acts on the request that names the file.
func onRename(do func(l *line) func()) func(*line, byte) func() {
	return func(l *line, packet byte) func() {
		if packet == packetRename {
			return do(l)
		}
		return nil
	}
}

// deliveries are what can happen to the first delivery, and what is found after it by another connection.
var deliveries = map[string]struct {
	forgets bool // the bank has no archive
	prepare func(b *theBank)
	middle  func(b *theBank) func(*line, byte) func()
	want    error
	found   bank.Found // empty: ErrConflict
}{
	"all is well": {found: bank.FoundDelivered},
	"the answer to the rename is lost": {
		middle: func(b *theBank) func(*line, byte) func() {
			return onRename(func(l *line) func() { l.cut(); return func() { b.await("out/"+name, true) } })
		},
		want: bank.ErrUndecided, found: bank.FoundDelivered,
	},
	"the rename is lost": {
		middle: func(*theBank) func(*line, byte) func() {
			return onRename(func(l *line) func() { l.cut(); return nil })
		},
		want: bank.ErrUndecided, found: bank.FoundUploaded,
	},
	"the archive has a part under the name": {
		prepare: func(b *theBank) { b.put("archive/"+name+".20261224", content[:1000]) },
		middle: func(*theBank) func(*line, byte) func() {
			return onRename(func(l *line) func() { l.cut(); return nil })
		},
		want: bank.ErrUndecided, found: bank.FoundUploaded,
	},
	"the file is taken before the rename answers": {
		middle: func(b *theBank) func(*line, byte) func() {
			return onRename(func(l *line) func() {
				l.cut()
				return func() { b.await("out/"+name, true); b.take(false) }
			})
		},
		want: bank.ErrUndecided, found: bank.FoundDelivered,
	},
	"the same, at a bank without an archive": {
		forgets: true,
		middle: func(b *theBank) func(*line, byte) func() {
			return onRename(func(l *line) func() {
				l.cut()
				return func() { b.await("out/"+name, true); b.take(false) }
			})
		},
		want: bank.ErrUndecided, found: bank.FoundNothing,
	},
	"the file is taken before it has its name": {
		forgets: true,
		middle: func(b *theBank) func(*line, byte) func() {
			return onRename(func(*line) func() { b.take(true); return nil })
		},
		want: bank.ErrUndecided, found: bank.FoundNothing,
	},
	"the upload is cut": {
		middle: func(*theBank) func(*line, byte) func() {
			n := 0
			return func(l *line, packet byte) func() {
				if packet != packetWrite {
					return nil
				}
				if n++; n == 3 {
					l.cut()
				}
				return nil
			}
		},
		want: bank.ErrUndecided, found: bank.FoundPart,
	},
	"the server keeps a part only": {
		middle: func(b *theBank) func(*line, byte) func() {
			wrote := false
			return func(_ *line, packet byte) func() {
				wrote = wrote || packet == packetWrite
				if wrote && packet == packetClose {
					return func() { b.put("out/"+name+".tmp", content[:1000]) }
				}
				return nil
			}
		},
		want: bank.ErrUndecided, found: bank.FoundPart,
	},
	"another file has the name": {
		prepare: func(b *theBank) { b.put("out/"+name, "other") },
		want:    bank.ErrConflict,
	},
	"it was delivered before": {
		prepare: func(b *theBank) { b.put("out/"+name, content) },
		found:   bank.FoundDelivered,
	},
	"an earlier upload was cut": {
		prepare: func(b *theBank) { b.put("out/"+name+".tmp", strings.Repeat("\x00", 1000)+content[1000:50_000]) },
		found:   bank.FoundDelivered,
	},
}

// Whatever happens to a delivery, the answer is never more certain than the truth.
func TestDeliver(t *testing.T) {
	t.Parallel()
	for server := range servers {
		for story, c := range deliveries {
			t.Run(server+": "+story, func(t *testing.T) {
				t.Parallel()
				b := newBank(t)
				b.keeps = !c.forgets
				if c.prepare != nil {
					c.prepare(b)
				}
				var middle func(*line, byte) func()
				if c.middle != nil {
					middle = c.middle(b)
				}
				if err := b.mailbox(profile(t), server, middle).Deliver(name, []byte(content)); !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Fatalf("%v, want %v", err, c.want)
				}
				m := b.mailbox(profile(t), server, nil)
				found, err := m.Look(name, digest)
				if found != c.found || (c.found == "") != errors.Is(err, bank.ErrConflict) {
					t.Fatalf("found %s, %v; want %s", found, err, c.found)
				}
				switch found {
				case bank.FoundUploaded:
					err = m.Finish(name, digest)
				case bank.FoundPart: // the permit is still the caller's
					if err := m.Finish(name, digest); !errors.Is(err, bank.ErrUndecided) {
						t.Errorf("a part is finished: %v", err)
					}
					err = m.Deliver(name, []byte(content))
				case bank.FoundDelivered, bank.FoundNothing:
				default:
					if b.holds("out/"+name) != "other" {
						t.Error("the other file is changed")
					}
					return
				}
				b.take(false)
				if err != nil || len(b.took) != 1 || b.took[0] != content || b.holds("out/"+name+".tmp") != "" {
					t.Errorf("%v; the bank took %d files, %d bytes of a part are left", err, len(b.took), len(b.holds("out/"+name+".tmp")))
				}
			})
		}
	}
}

// OpenSSH's server refuses to give a file a name that is there. Then nothing is known, and nothing is overwritten.
func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	err := b.mailbox(profile(t), "openssh", onRename(func(*line) func() { b.put("out/"+name, "other"); return nil })).Deliver(name, []byte(content))
	if !errors.Is(err, bank.ErrUndecided) || b.holds("out/"+name) != "other" {
		t.Errorf("%v, %d bytes", err, len(b.holds("out/"+name)))
	}
}

// A server carries out a request of a broken line when the sender works on another one already: while the file waits for its
// name, which then would be of an empty file, and after the bank took it away, where the empty file is no proof that it
// was never delivered.
func TestLateRequests(t *testing.T) {
	t.Parallel()
	for server := range servers {
		b, p := newBank(t), profile(t)
		b.keeps = false
		var late []byte
		opens := 0
		capture := func(l *line, packet byte) func() {
			if packet == packetOpen {
				if opens++; opens == 2 { // the first one looks for the file
					late = bytes.Clone(l.request)
					l.cut()
				}
			}
			return nil
		}
		if err := b.mailbox(p, server, capture).Deliver(name, []byte(content)); !errors.Is(err, bank.ErrNotSent) {
			t.Fatalf("%s: %v", server, err)
		}
		if err := b.mailbox(p, server, onRename(func(*line) func() { b.replay(server, late); return nil })).Deliver(name, []byte(content)); err != nil {
			t.Fatalf("%s: %v", server, err)
		}
		b.take(false)
		b.replay(server, late)
		b.await("out/"+name+".tmp", true)
		found, err := b.mailbox(p, server, nil).Look(name, digest)
		if err != nil || found != bank.FoundNothing || len(b.took) != 1 || b.took[0] != content {
			t.Errorf("%s: found %s, %v; the bank took %d files", server, found, err, len(b.took))
		}
	}
}

// Without the folder nothing is sent, and the same permit serves again.
func TestNotSent(t *testing.T) {
	t.Parallel()
	for server := range servers {
		b := newBank(t)
		p := profile(t)
		p.Out = "elsewhere"
		if err := b.mailbox(p, server, nil).Deliver(name, []byte(content)); !errors.Is(err, bank.ErrNotSent) {
			t.Errorf("%s: %v", server, err)
		}
	}
}

// A sender with one permit works against a bank that takes files at any time, with or without their names, and lines that
// break at any request. The bank never gets the file twice, and what the sender calls delivered the bank has.
func TestNoFileArrivesTwice(t *testing.T) {
	t.Parallel()
	p := profile(t)
	rapid.Check(t, func(r *rapid.T) {
		b := newBank(t)
		b.keeps = rapid.Bool().Draw(r, "archive")
		greedy := rapid.Bool().Draw(r, "takes without name")
		cuts, lost, takes := rapid.IntRange(0, 30).Draw(r, "cut"), rapid.Bool().Draw(r, "lost before"), rapid.IntRange(0, 30).Draw(r, "take")
		requests, broken := 0, false
		middle := func(l *line, packet byte) func() {
			if packet == packetInit {
				return nil
			}
			requests++
			if requests == takes && packet != packetWrite { // no bank takes what grows
				b.take(greedy)
			}
			if requests != cuts || broken {
				return nil
			}
			l.cut()
			broken = true
			if lost {
				return nil
			}
			return func() {}
		}
		state, deliver := "", true
		for range 6 {
			m := b.mailbox(p, "pkg/sftp", middle)
			var err error
			if deliver {
				err = m.Deliver(name, []byte(content))
			} else {
				err = m.Finish(name, digest)
			}
			_ = m.Close()
			if err == nil {
				state = "delivered"
				break
			}
			if deliver = errors.Is(err, bank.ErrNotSent); deliver {
				continue
			}
			m = b.mailbox(p, "pkg/sftp", nil)
			found, err := m.Look(name, digest)
			_ = m.Close()
			if err == nil && found == bank.FoundNothing {
				break // people decide
			}
			deliver = err == nil && found == bank.FoundPart
		}
		b.take(false)
		whole := 0
		for _, data := range b.took {
			if data == content {
				whole++
			}
		}
		if whole > 1 || state == "delivered" && whole != 1 {
			r.Fatalf("%q, and the bank has the file %d times", state, whole)
		}
	})
}

// The bank's files are listed when they are whole, and stay.
func TestInbox(t *testing.T) {
	t.Parallel()
	for server := range servers {
		b := newBank(t)
		for _, file := range []string{"b.xml", "a.xml.pgp", "c.xml.tmp", "d.part", "e.filepart", ".hidden"} {
			b.put("in/"+file, "text of "+file)
		}
		m := b.mailbox(profile(t), server, nil)
		for range 2 {
			entries, err := m.Inbox()
			if err != nil || len(entries) != 2 {
				t.Fatalf("%s: %v, %v", server, entries, err)
			}
			for i, want := range []string{"a.xml.pgp", "b.xml"} {
				data, err := m.Fetch(entries[i].Name)
				if err != nil || entries[i].Name != want || string(data) != "text of "+want || entries[i].Size != int64(len(data)) {
					t.Errorf("%s: %v, %q, %v", server, entries[i], data, err)
				}
			}
		}
		b.put("secret", "outside")
		if data, err := m.Fetch("../secret"); err == nil {
			t.Errorf("%s: %q is read outside of the folder", server, data)
		}
	}
}

// sshKey makes a key: what signs, its private and its public form.
func sshKey(t *testing.T) (ssh.Signer, secret.Text, string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, secret.NewText(string(pem.EncodeToMemory(block))), string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

// listen starts a server of SSH that knows one user's key, and counts whom it was shown.
func listen(t *testing.T, dir string, host ssh.Signer, user ssh.PublicKey, shown chan<- string) string {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		shown <- c.User()
		if string(key.Marshal()) != string(user.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil //nolint:nilnil // no permissions
	}}
	config.AddHostKey(host)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn, config, dir)
		}
	}()
	return l.Addr().String()
}

func serve(conn net.Conn, config *ssh.ServerConfig, dir string) {
	defer func() { _ = conn.Close() }()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range requests {
				_ = r.Reply(r.Type == "subsystem", nil)
			}
		}()
		if server, err := sftp.NewServer(channel, sftp.WithServerWorkingDirectory(dir)); err == nil {
			_ = server.Serve()
		}
		_ = channel.Close()
	}
}

// A server with another host key than the profile's is told nothing: neither the user's name nor a file.
func TestDial(t *testing.T) {
	t.Parallel()
	host, _, hostKey := sshKey(t)
	_, _, otherHost := sshKey(t)
	user, key, _ := sshKey(t)
	_, otherKey, _ := sshKey(t)
	b, shown := newBank(t), make(chan string, 10)
	a := bank.Access{Address: listen(t, b.dir, host, user.PublicKey(), shown), User: "tresor", HostKey: hostKey, Key: key}

	m, err := bank.Dial(t.Context(), a, profile(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Deliver(name, []byte(content)), m.Close()); err != nil || b.holds(filepath.Join("out", name)) != content || <-shown != "tresor" {
		t.Errorf("%v, %d bytes", err, len(b.holds("out/"+name)))
	}
	for len(shown) > 0 {
		<-shown
	}
	wrong := a
	wrong.HostKey = otherHost
	if _, err := bank.Dial(t.Context(), wrong, profile(t)); !errors.Is(err, bank.ErrHostKey) || len(shown) > 0 {
		t.Errorf("another host key: %v; the server was shown %d keys", err, len(shown))
	}
	wrong = a
	wrong.Key = otherKey
	if _, err := bank.Dial(t.Context(), wrong, profile(t)); err == nil || strings.Contains(err.Error(), otherKey.Reveal()) {
		t.Errorf("another user's key: %v", err)
	}
	for field, damage := range map[string]func(*bank.Access){
		"host_key": func(a *bank.Access) { a.HostKey = "ssh-ed25519" }, "ssh_key": func(a *bank.Access) { a.Key = secret.NewText("x") },
	} {
		wrong := a
		damage(&wrong)
		if _, err := bank.Dial(t.Context(), wrong, profile(t)); !errors.Is(err, bank.ErrProfile) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
