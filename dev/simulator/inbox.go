package simulator

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"quittance/internal/secret"
)

// signatureTolerance is the largest difference between the time of a webhook and now
// (Standard Webhooks).
const signatureTolerance = 5 * time.Minute

// inboxes holds the webhook receivers. The first request to an inbox creates it.
type inboxes struct {
	mu     sync.Mutex
	byName map[string]*inbox
}

// inbox keeps the messages of one address.
type inbox struct {
	behaviour behaviour

	mu       sync.Mutex
	messages history[*message]
	bytes    int // total size of the kept bodies
}

// message is one delivery with its answer. It never changes.
type message struct {
	ID         int64     `json:"id"`
	ReceivedAt time.Time `json:"received_at"`
	// Headers by name in lower case; several values are joined by ", ".
	Headers map[string]string `json:"headers"`
	// Body holds the received bytes as text.
	Body string `json:"body"`
	// SignatureValid is null when no secret of the inbox is known.
	SignatureValid *bool `json:"signature_valid"`
	// SignatureError is the reason why a signature is not valid.
	SignatureError string `json:"signature_error,omitempty"`
	// Answered is the status of the answer; 0 without an answer.
	Answered int `json:"answered"`
}

func (s *Simulator) inbox(name string) *inbox {
	s.inboxes.mu.Lock()
	defer s.inboxes.mu.Unlock()
	box := s.inboxes.byName[name]
	if box == nil {
		box = &inbox{messages: newHistory[*message](s.cfg.MaxInboxMessages)}
		s.inboxes.byName[name] = box
	}
	return box
}

func (s *Simulator) inboxRoutes(r chi.Router) {
	r.Use(nameChecked("name"))
	r.Post("/", s.inboxReceive)
	r.Get("/", s.inboxList)
	r.Delete("/", s.inboxClear)
}

// inboxReceive is POST /inbox/{name}. It keeps the delivery and answers as set by /control,
// by default with 200.
func (s *Simulator) inboxReceive(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r, maxInboxBody)
	if !ok {
		return
	}
	name := chi.URLParam(r, "name")
	box := s.inbox(name)
	now := box.behaviour.next()
	status := now.status
	switch {
	case now.hang:
		status = 0
	case status != 0:
	case now.redirect != "":
		status = http.StatusFound
	default:
		status = http.StatusOK
	}
	m := &message{ReceivedAt: s.cfg.Now(), Headers: map[string]string{}, Body: string(body), Answered: status}
	for header, values := range r.Header {
		m.Headers[strings.ToLower(header)] = strings.Join(values, ", ")
	}
	m.SignatureValid, m.SignatureError = s.judgeSignature(name, body, r.Header, s.cfg.Timestamp())
	box.add(m, s.cfg.MaxInboxBytes)

	switch {
	case now.hang:
		select {
		case <-r.Context().Done():
		case <-s.stopping:
		}
		w.WriteHeader(http.StatusServiceUnavailable) // as in pause
		return
	case !s.pause(w, r, now.delay):
		return
	}
	if now.redirect != "" {
		w.Header().Set("Location", now.redirect)
	}
	if now.retryAfter != "" {
		w.Header().Set("Retry-After", now.retryAfter)
	}
	w.WriteHeader(status)
	if now.drip {
		s.drip(w, r)
	}
}

// drip sends a byte a second until the caller gives up.
func (s *Simulator) drip(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	for {
		if _, err := w.Write([]byte(".")); err != nil {
			return
		}
		if err := out.Flush(); err != nil || !s.wait(r.Context(), time.Second) {
			return
		}
	}
}

// judgeSignature verifies with the Standard Webhooks library and each secret of the inbox.
// Like a receiver on another machine, it compares the timestamp with the machine's clock
// (Config.Timestamp), which a developer's advance does not move.
func (s *Simulator) judgeSignature(name string, body []byte, header http.Header, now time.Time) (valid *bool, why string) {
	if s.cfg.Secrets == nil {
		return nil, ""
	}
	secrets := s.cfg.Secrets(name)
	if len(secrets) == 0 {
		return nil, ""
	}
	verdict := func(ok bool, why string) (*bool, string) { return &ok, why }
	why = "no secret of this inbox is usable"
	for _, text := range secrets {
		hook, err := standardwebhooks.NewWebhookRaw(secret.WebhookKey(secret.NewText(text)))
		if err != nil {
			continue
		}
		if err := hook.VerifyIgnoringTimestamp(body, header); err != nil {
			why = err.Error()
			continue
		}
		seconds, err := strconv.ParseInt(header.Get(standardwebhooks.HeaderWebhookTimestamp), 10, 64)
		if err != nil {
			return verdict(false, "the timestamp is not a number")
		}
		if age := now.Sub(time.Unix(seconds, 0)); age > signatureTolerance || age < -signatureTolerance {
			return verdict(false, "the timestamp is more than five minutes away from now")
		}
		return verdict(true, "")
	}
	return verdict(false, why)
}

func (b *inbox) add(m *message, maxBytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.ID = b.messages.next()
	for _, old := range b.messages.add(m) {
		b.bytes -= len(old.Body)
	}
	b.bytes += len(m.Body)
	for b.bytes > maxBytes && len(b.messages.entries) > 1 {
		b.bytes -= len(b.messages.drop().Body)
	}
}

// inboxList is GET /inbox/{name}: an array, newest last. ?after=ID returns the messages
// after that one, ?limit=N at most N.
func (s *Simulator) inboxList(w http.ResponseWriter, r *http.Request) {
	p, ok := readPage(w, r)
	if !ok {
		return
	}
	box := s.inbox(chi.URLParam(r, "name"))
	box.mu.Lock()
	kept := box.messages.window(p)
	box.mu.Unlock()
	writeJSON(w, http.StatusOK, kept)
}

// inboxClear is DELETE /inbox/{name}. The numbering continues.
func (s *Simulator) inboxClear(w http.ResponseWriter, r *http.Request) {
	box := s.inbox(chi.URLParam(r, "name"))
	box.mu.Lock()
	box.messages.clear()
	box.bytes = 0
	box.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}
