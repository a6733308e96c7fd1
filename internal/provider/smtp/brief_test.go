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

// terse is a mail server that answers the end of each text with a given line.
func terse(t *testing.T, end string) (address string) {
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
			go serveTersely(c, end)
		}
	}()
	return l.Addr().String()
}

func serveTersely(c net.Conn, end string) {
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
		p, err := smtp.Registration.New(providers.Settings(t, "smtp+plain://"+terse(t, end)+query, ""))
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
