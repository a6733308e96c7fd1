package bank

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pkg/sftp" // SFTP over x/crypto/ssh, which has none
	"golang.org/x/crypto/ssh"

	"quittance/internal/secret"
)

// Errors of a Mailbox. Any other error is one of the connection, or of a folder, and says nothing about a file.
var (
	// ErrNotSent says that nothing of a file reached the bank's server. Who has the permit may deliver again.
	ErrNotSent = errors.New("the file was not sent")
	// ErrUndecided says that the bank may have the file or not. Look says more, or people do.
	ErrUndecided = errors.New("the bank may have the file")
	// ErrConflict says that another file lies on the server under the name. People look at it.
	ErrConflict = errors.New("another file has the name")
	// ErrHostKey says that the server has another key than was agreed. Nothing was sent, not even a name.
	ErrHostKey = errors.New("the bank's server has another host key than the profile")
)

// Access is how an agency reaches its bank's server.
type Access struct {
	// Address is host and port, and User the agency's name there.
	Address, User string
	// HostKey is the server's public key as in an authorized_keys file.
	HostKey string
	// Key is the agency's private key in OpenSSH's form, without a passphrase.
	Key secret.Text
}

// handshake is how long a server may take to greet.
const handshake = 20 * time.Second

// Dial connects to a bank's server. The connection ends with the context, and its calls with it. The error is ErrProfile,
// ErrHostKey, or one of the connection.
func Dial(ctx context.Context, a Access, p Profile) (*Mailbox, error) {
	signer, err := ssh.ParsePrivateKey([]byte(a.Key.Reveal()))
	if err != nil {
		return nil, faulty("ssh_key", "give the agency's private key in OpenSSH's form, without a passphrase")
	}
	host, _, _, _, err := ssh.ParseAuthorizedKey([]byte(a.HostKey))
	if err != nil {
		return nil, faulty("host_key", "give the server's public key, such as ssh-ed25519 AAAA…")
	}
	conn, err := (&net.Dialer{Timeout: handshake}).DialContext(ctx, "tcp", a.Address)
	if err != nil {
		return nil, fmt.Errorf("connecting to the bank's server: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	client, err := greet(conn, a, signer, host)
	if err != nil {
		stop()
		return nil, errors.Join(err, conn.Close())
	}
	m := NewMailbox(client, p)
	m.close = func() error {
		stop()
		return errors.Join(client.Close(), conn.Close())
	}
	return m, nil
}

func greet(conn net.Conn, a Access, signer ssh.Signer, host ssh.PublicKey) (*sftp.Client, error) {
	if err := conn.SetDeadline(time.Now().Add(handshake)); err != nil {
		return nil, fmt.Errorf("connecting to the bank's server: %w", err)
	}
	config := &ssh.ClientConfig{
		User: a.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyAlgorithms: algorithms(host),
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if !bytes.Equal(key.Marshal(), host.Marshal()) {
				return ErrHostKey
			}
			return nil
		},
	}
	c, channels, requests, err := ssh.NewClientConn(conn, a.Address, config)
	if err != nil {
		return nil, fmt.Errorf("greeting the bank's server: %w", err)
	}
	client, err := sftp.NewClient(ssh.NewClient(c, channels, requests))
	if err != nil {
		return nil, fmt.Errorf("starting SFTP at the bank's server: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to the bank's server: %w", err), client.Close())
	}
	return client, nil
}

// algorithms are those of a host key: the server would choose another of its keys otherwise. SHA-1 is not among them.
func algorithms(host ssh.PublicKey) []string {
	if host.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{host.Type()}
}

// Mailbox is the agency's folders on its bank's server. Not safe for concurrent use.
type Mailbox struct {
	client *sftp.Client
	p      Profile
	close  func() error
}

// NewMailbox makes a Mailbox of a client. Close closes the client.
func NewMailbox(client *sftp.Client, p Profile) *Mailbox { return &Mailbox{client, p, client.Close} }

// Close ends the connection.
func (m *Mailbox) Close() error { return m.close() }

// unfinished ends the name of a file that is not there as a whole.
const unfinished = ".tmp"

// Deliver uploads a file under a name of its own, reads it back, compares it, and gives it its name. The caller has the
// permit of the file, and each call before it with this permit ended with ErrNotSent or was followed by FoundPart.
//
// Nil says that the bank has the file. Otherwise the error is ErrNotSent, ErrUndecided or ErrConflict. From the moment when
// the upload begins, an error is never ErrNotSent: all bytes may have arrived though the answer did not, and a bank may take
// files away that have no name yet.
func (m *Mailbox) Deliver(name string, data []byte) error {
	digest := sha256.Sum256(data)
	switch held, err := m.digest(m.out(name)); {
	case err == nil && held == digest:
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s", ErrConflict, name)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	// Not truncated: a server may carry out a request of a broken connection late, and would empty the file after it was
	// compared. What an earlier upload left has the same bytes.
	file, err := m.client.OpenFile(m.out(name)+unfinished, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("%w: creating it: %w", ErrNotSent, err)
	}
	_, err = file.ReadFrom(bytes.NewReader(data))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%w: uploading it: %w", ErrUndecided, err)
	}
	return m.Finish(name, digest)
}

// Finish gives an uploaded file its name, if it is the file of the digest. It needs no permit, because the file is there:
// nothing is sent twice. Nil says that the bank has the file, otherwise the error is ErrUndecided or ErrConflict.
func (m *Mailbox) Finish(name string, digest [sha256.Size]byte) error {
	found, err := m.Look(name, digest)
	switch {
	case errors.Is(err, ErrConflict):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUndecided, err)
	case found == FoundDelivered:
		return nil
	case found != FoundUploaded:
		return fmt.Errorf("%w: %s is not there as it was uploaded", ErrUndecided, name)
	}
	// Never PosixRename, which overwrites. That Rename does not is no guard: some servers overwrite all the same.
	asked := m.client.Rename(m.out(name)+unfinished, m.out(name))
	if asked == nil {
		return nil
	}
	if found, err := m.Look(name, digest); err == nil && found == FoundDelivered {
		return nil
	}
	return fmt.Errorf("%w: naming it: %w", ErrUndecided, asked)
}

// Found is what lies on the server of a file.
type Found string

// What is found.
const (
	// FoundDelivered: the file has its name, or is in the bank's archive, byte by byte.
	FoundDelivered Found = "delivered"
	// FoundUploaded: the whole file is there, without its name. Finish may be called, also without a permit.
	FoundUploaded Found = "uploaded"
	// FoundPart: a part of the file is there, without its name. It was never delivered, so who has the permit may deliver it.
	// An empty file is no part: a late request of a broken connection makes one, also after the delivery.
	FoundPart Found = "part"
	// FoundNothing: the file was never there, or the bank took it away. Nobody can tell.
	FoundNothing Found = "nothing"
)

// Look says what lies on the server of a file. It changes nothing and needs no permit. The error is ErrConflict, or one of the
// connection.
func (m *Mailbox) Look(name string, digest [sha256.Size]byte) (Found, error) {
	held, err := m.digest(m.out(name))
	switch {
	case err == nil && held == digest:
		return FoundDelivered, nil
	case err == nil:
		return "", fmt.Errorf("%w: %s", ErrConflict, name)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("looking for a file at the bank: %w", err)
	}
	switch archived, err := m.archived(name, digest); {
	case err != nil:
		return "", err
	case archived:
		return FoundDelivered, nil
	}
	held, err = m.digest(m.out(name) + unfinished)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return FoundNothing, nil
	case err != nil:
		return "", fmt.Errorf("looking for a file at the bank: %w", err)
	case held == digest:
		return FoundUploaded, nil
	case held == sha256.Sum256(nil):
		return FoundNothing, nil
	}
	return FoundPart, nil
}

// archived reports whether the archive has the file, with the same bytes. Banks add a time to the name, so that the name
// without its endings counts: it has the MsgId, which is of one file.
func (m *Mailbox) archived(name string, digest [sha256.Size]byte) (bool, error) {
	if m.p.Archive == "" {
		return false, nil
	}
	entries, err := m.client.ReadDir(m.p.Archive)
	if err != nil {
		return false, fmt.Errorf("listing the bank's archive: %w", err)
	}
	stem, _, _ := strings.Cut(name, ".")
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), stem) || !e.Mode().IsRegular() {
			continue
		}
		held, err := m.digest(path.Join(m.p.Archive, e.Name()))
		if err != nil {
			return false, fmt.Errorf("looking into the bank's archive: %w", err)
		}
		if held == digest {
			return true, nil
		}
	}
	return false, nil
}

// Entry is a file of the bank.
type Entry struct {
	Name string
	Size int64
	At   time.Time // by the clock of the bank's server
}

// Inbox lists the bank's files that are there as a whole, by name. The error is one of the connection.
func (m *Mailbox) Inbox() (out []Entry, err error) {
	entries, err := m.client.ReadDir(m.p.In)
	if err != nil {
		return nil, fmt.Errorf("listing the bank's files: %w", err)
	}
	for _, e := range entries {
		ending := path.Ext(e.Name())
		if e.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") && ending != unfinished && ending != ".part" && ending != ".filepart" {
			out = append(out, Entry{e.Name(), e.Size(), e.ModTime().UTC()})
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// maxInbox is the most bytes of a file of the bank as it lies there.
const maxInbox = 96 << 20

// Fetch reads a file that Inbox listed. The file stays. The error is ErrReport if it is too large, else one of the connection.
func (m *Mailbox) Fetch(name string) ([]byte, error) {
	file, err := m.client.Open(path.Join(m.p.In, path.Base(name)))
	if err != nil {
		return nil, fmt.Errorf("opening a file of the bank: %w", err)
	}
	var data bytes.Buffer
	n, err := io.Copy(&data, io.LimitReader(file, maxInbox+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("reading a file of the bank: %w", err)
	}
	if n > maxInbox {
		return nil, unfit("it is larger than 96 MiB")
	}
	return data.Bytes(), nil
}

func (m *Mailbox) out(name string) string { return path.Join(m.p.Out, name) }

// digest returns the SHA-256 of a file on the server.
func (m *Mailbox) digest(at string) (sum [sha256.Size]byte, err error) {
	file, err := m.client.Open(at)
	if err != nil {
		return sum, fmt.Errorf("opening: %w", err)
	}
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return sum, fmt.Errorf("reading: %w", err)
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}
