package staff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Browser is a browser in which a demo person works on the pages of staff, over HTTP, as the script of the pages does. It is
// not safe for concurrent use.
type Browser struct {
	people  *People
	person  string
	client  *http.Client
	cookies map[string]string
}

// NewBrowser returns a browser of a person. client follows no redirection, and says how the address of the pages is reached.
func NewBrowser(people *People, person string, client *http.Client) *Browser {
	return &Browser{people: people, person: person, client: client, cookies: map[string]string{}}
}

// Answer is the answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// SignedOut reports whether the answer asks the person to sign in.
func (a Answer) SignedOut() bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusSeeOther && strings.HasPrefix(a.Header.Get("Location"), "/sign-in")
}

// maxPage is the longest answer that is read.
const maxPage = 4 << 20

// Send sends a request. Headers come in pairs of name and value. An incomplete answer is an error.
func (b *Browser) Send(ctx context.Context, method, path, body string, headers ...string) (Answer, error) {
	const doing = "asking the pages of staff"
	req, err := http.NewRequestWithContext(ctx, method, b.people.cfg.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf(doing+": %w", err)
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	for name, value := range b.cookies {
		req.AddCookie(&http.Cookie{Name: name, Value: value}) //nolint:gosec // a request has no attributes
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf(doing+": %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err != nil {
		return Answer{}, fmt.Errorf(doing+": %w", err)
	}
	for _, c := range resp.Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return Answer{resp.StatusCode, resp.Header, string(text)}, nil
}

// Get asks for a page.
func (b *Browser) Get(ctx context.Context, path string, headers ...string) (Answer, error) {
	return b.Send(ctx, http.MethodGet, path, "", headers...)
}

// Post sends a form.
func (b *Browser) Post(ctx context.Context, path string, fields url.Values) (Answer, error) {
	return b.Send(ctx, http.MethodPost, path, fields.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// ErrRefused says that the pages have refused a sign-in.
var ErrRefused = errors.New("the pages of staff refuse the sign-in")

// SignIn signs the person in with a passkey.
func (b *Browser) SignIn(ctx context.Context) error {
	options, err := b.Post(ctx, "/sign-in/begin", nil)
	if err != nil {
		return err
	}
	a, err := b.finish(ctx, options, "/sign-in/finish", nil)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%w: %d %s", ErrRefused, a.Status, a.Body)
	}
	return err
}

// Press does what the script of a page does with a form: the passkey answers the options of begin, and finish gets the answer,
// with the fields unless they are nil. An answer of begin that has no options is returned: a refusal, or where to go when the
// step was taken before.
func (b *Browser) Press(ctx context.Context, begin string, chosen url.Values, finish string, fields url.Values) (Answer, error) {
	options, err := b.Post(ctx, begin, chosen)
	if err != nil || options.Status != http.StatusOK || strings.HasPrefix(options.Body, `{"next"`) {
		return options, err
	}
	return b.finish(ctx, options, finish, fields)
}

func (b *Browser) finish(ctx context.Context, options Answer, path string, fields url.Values) (Answer, error) {
	if options.Status != http.StatusOK {
		return options, nil
	}
	answer, err := b.people.Answer(ctx, b.person, json.RawMessage(options.Body))
	if err == nil && fields != nil {
		answer, err = json.Marshal(map[string]string{"form": fields.Encode(), "answer": string(answer)})
	}
	if err != nil {
		return Answer{}, err
	}
	return b.Send(ctx, http.MethodPost, path, string(answer), "Content-Type", "application/json")
}
