package smtp_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"quittance/internal/provider"
	"quittance/internal/provider/smtp"
	"quittance/test/providers"
)

// terse is a mail server that answers each recipient, and the end of each text, with a given line.
func terse(t *testing.T, recipient, end string) (address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveTersely(c, recipient, end)
		}
	}()
	return l.Addr().String()
}

func serveTersely(c net.Conn, recipient, end string) {
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, "220 terse\r\n")
	text := false
	for lines := bufio.NewScanner(c); lines.Scan(); {
		line, answer := lines.Text(), "250 ok"
		switch {
		case text && line != ".":
			continue
		case text:
			text, answer = false, end
		case strings.HasPrefix(line, "EHLO"):
			answer = "250-terse\r\n250 ENHANCEDSTATUSCODES"
		case strings.HasPrefix(line, "RCPT"):
			answer = recipient
		case strings.HasPrefix(line, "DATA"):
			text, answer = true, "354 go"
		}
		if _, err := io.WriteString(c, answer+"\r\n"); err != nil {
			return
		}
	}
}

// A server answered 250 without a text to a message that it had taken. The answer counted as none,
// so the message could be sent again.
func TestAnswerWithoutText(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]provider.Fault{"250": "", "250 ": "", "451": provider.FaultBusy, "554": provider.FaultRefused, "2": provider.FaultUnknown, "2500": provider.FaultUnknown} {
		p, err := smtp.Registration.New(providers.Settings(t, "smtp+plain://"+terse(t, "250 ok", end)+query, ""))
		if err != nil {
			t.Fatal(err)
		}
		err = p.Send(t.Context(), provider.Message{ID: "msg_1", To: "citoyen@example.org", Subject: "s", Text: "x", At: time.Now()})
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", end, err)
		case want != "" && (err == nil || provider.Of(err).Fault != want):
			t.Errorf("%q: %v instead of %s", end, err, want)
		}
	}
}

// For an hour a relay answered a bare 550 to everybody, and the addresses of all these people were suppressed. Only a
// server that says by its code that the mailbox does not exist says something about the address.
func TestAddressesOfRefusedMessages(t *testing.T) {
	t.Parallel()
	for recipient, unknown := range map[string]bool{
		"550": false, "550 no": false, "550 no such user here": false, "550 5.7.1 relaying denied": false, "552 5.2.2 full": false, "550 5.1.1 no such user": true,
	} {
		p, err := smtp.Registration.New(providers.Settings(t, "smtp+plain://"+terse(t, recipient, "250 ok")+query, ""))
		if err != nil {
			t.Fatal(err)
		}
		err = p.Send(t.Context(), provider.Message{ID: "msg_1", To: "citoyen@example.org", Subject: "s", Text: "x", At: time.Now()})
		if got := provider.Of(err); err == nil || got.Fault != provider.FaultRefused || got.Unknown != unknown {
			t.Errorf("%q: %+v, want an address that is unknown: %v", recipient, err, unknown)
		}
	}
}
