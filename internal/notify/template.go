package notify

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"text/template"

	"quittance/internal/provider"
)

// Locales are the languages of messages. The first is the default.
var Locales = []string{"fr", "en"}

//go:embed templates
var files embed.FS

// Text is the text of a message.
type Text struct {
	// Subject is empty in an SMS.
	Subject, Body string
	// Segments is the number of SMS that the text takes; 0 in an e-mail.
	Segments int
}

// Templates has the texts of all kinds, in all versions. Safe for concurrent use.
type Templates struct {
	texts *template.Template
	base  string // the service's address, without a slash at the end
	host  string
	staff string // where staff reach their pages, without a slash at the end; empty if not known
}

// NewTemplates reads the texts of a service at an address, to which their links lead. Those to staff lead to their pages at
// staffURL; if it is empty, they have no link. It checks the present version of every kind: that its texts exist in every language, have no
// other link, and, where the kind promises it, that an SMS takes one segment, which a long
// name of the host can prevent.
func NewTemplates(publicURL, staffURL string) (*Templates, error) {
	u, err := url.Parse(strings.TrimRight(publicURL, "/"))
	if err != nil || u.Host == "" {
		return nil, errors.New("the address of the service must be one such as https://pay.example")
	}
	t := &Templates{base: u.String(), host: u.Host}
	if staffURL != "" {
		s, err := url.Parse(strings.TrimRight(staffURL, "/"))
		if err != nil || s.Host == "" {
			return nil, errors.New("the address of the pages of staff must be one such as https://staff.example")
		}
		t.staff = s.String()
	}
	if t.texts, err = template.New("").Option("missingkey=error").ParseFS(files, "templates/*"); err != nil {
		return nil, fmt.Errorf("reading the texts of messages: %w", err)
	}
	var errs []error
	for _, k := range Kinds() {
		errs = append(errs, t.check(k))
	}
	return t, errors.Join(errs...)
}

// check renders all texts of a kind.
func (t *Templates) check(k Kind) error {
	if err := k.validate(); err != nil {
		return err
	}
	for _, channel := range k.Channels {
		for _, locale := range Locales {
			text, err := t.Render(k.Template(), channel, locale, true, k.Samples)
			if err != nil {
				return err
			}
			if channel == provider.ChannelSMS && k.OneSegment && text.Segments > 1 {
				return fmt.Errorf("text %s: it takes %d SMS in place of one; the name of the host, %s, is too long", file(k.Template(), channel, locale), text.Segments, t.host)
			}
		}
	}
	return nil
}

func file(name string, channel provider.Channel, locale string) string {
	return name + "." + locale + "." + string(channel)
}

// link is what phones and mail programs make a link of.
var link = regexp.MustCompile(`(?i)\b(?:[a-z][a-z0-9+.-]*://|www\.)[^\s<>"]*`)

// WithoutLinks returns a text of somebody else, such as the label of a due, in which links are
// replaced by an ellipsis: Send refuses variables with links.
func WithoutLinks(text string) string { return link.ReplaceAllString(text, "…") }

// afterHost is what may follow the service's address in a link: a path, or the end of the
// sentence.
var afterHost = regexp.MustCompile(`^(?:[/?#].*|[.,;:!)]*)$`)

// leads reports whether a link is to an address.
func leads(found, base string) bool {
	rest, ours := strings.CutPrefix(found, base)
	return ours && afterHost.MatchString(rest)
}

// Render returns a text. name has the version. An unknown locale is the default one. live is
// false for a message about a test payment, which has to say so. Variables of an SMS are
// transliterated. The error never has a variable.
func (t *Templates) Render(name string, channel provider.Channel, locale string, live bool, variables map[string]string) (Text, error) {
	which := t.texts.Lookup(file(name, channel, locale))
	if which == nil {
		which = t.texts.Lookup(file(name, channel, Locales[0]))
	}
	if which == nil {
		return Text{}, fmt.Errorf("there is no text %s", file(name, channel, locale))
	}
	data := map[string]string{"base": t.base, "host": t.host, "staff": t.staff, "test": ""}
	if !live {
		data["test"] = "TEST – "
	}
	maps.Copy(data, variables)
	if channel == provider.ChannelSMS {
		for key, value := range data {
			data[key] = Fold(value)
		}
	}
	var b strings.Builder
	if which.Execute(&b, data) != nil { // its error may have a variable
		return Text{}, fmt.Errorf("text %s needs a variable that the message does not have", which.Name())
	}
	out := Text{Body: strings.TrimRight(b.String(), "\n")}
	for _, found := range link.FindAllString(out.Body, -1) {
		if !leads(found, t.base) && (t.staff == "" || !leads(found, t.staff)) {
			return Text{}, fmt.Errorf("text %s has a link that is not the service's own", which.Name())
		}
	}
	if channel == provider.ChannelEmail {
		subject, body, _ := strings.Cut(out.Body, "\n")
		out.Subject, out.Body = strings.TrimSpace(subject), strings.TrimLeft(body, "\n")
		return out, nil
	}
	septets, ok := Septets(out.Body)
	if !ok {
		return Text{}, fmt.Errorf("text %s has a character that is not in GSM-7", which.Name())
	}
	out.Segments = Segments(septets)
	return out, nil
}
