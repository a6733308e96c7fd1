package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
)

// AssetPrefix is the path of the page's scripts on its own origin. No session id
// collides with it, because ids begin with chs_.
const AssetPrefix = "/c/assets/"

// ContentSecurityPolicy is the policy of every page. Only our own scripts run, nothing
// is fetched from elsewhere, and only these origins may frame the page. Without
// origins, as on the hosted page, nobody may.
func ContentSecurityPolicy(origins ...string) string {
	if len(origins) == 0 {
		origins = []string{"'none'"}
	}
	return policy() + strings.Join(origins, " ")
}

var policy = sync.OnceValue(func() string { return policyOf(style()) })

// policyOf names the style by its hash. The style is in the page itself, because a
// separate file would cost another round trip on a slow line.
func policyOf(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; script-src 'self'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src 'self' data:; " +
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors "
}

// style is page.css without its indentation.
var style = sync.OnceValue(func() string {
	body, err := assets.ReadFile("assets/page.css")
	if err != nil {
		panic("page: page.css is embedded: " + err.Error())
	}
	return strings.ReplaceAll(string(body), "\n  ", "\n")
})

// ContentType is the Content-Type of a rendered page.
const ContentType = "text/html; charset=utf-8"

// Header is one field of an HTTP answer.
type Header struct {
	Name, Value string
}

// EmbedHeaders are the header fields of a page under /embed/ that these origins may
// frame; see ContentSecurityPolicy.
func EmbedHeaders(origins []string) []Header {
	var out []Header
	for _, h := range Headers() {
		switch h.Name {
		case "Content-Security-Policy":
			h.Value = ContentSecurityPolicy(origins...)
		case "Cross-Origin-Resource-Policy":
			h.Value = "cross-origin"
		case "X-Frame-Options": // it cannot name a list of origins
			if len(origins) > 0 {
				continue
			}
		case "Cross-Origin-Opener-Policy": // it has no effect in a frame
			continue
		}
		out = append(out, h)
	}
	return out
}

// Headers are the header fields of every answer under /c/, errors included.
//
// Their Referrer-Policy makes browsers send `Origin: null` with the page's own forms.
// A check for cross-site posts must therefore rely on Sec-Fetch-Site.
func Headers() []Header {
	return []Header{
		{"Content-Type", ContentType},
		{"Content-Security-Policy", ContentSecurityPolicy()},
		{"Cache-Control", "no-store"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Permissions-Policy", "payment=(), camera=(), microphone=(), geolocation=()"},
		{"Referrer-Policy", "no-referrer"},
		{"Vary", "Accept-Language"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"X-Robots-Tag", "noindex, nofollow"},
	}
}

// StyledHeaders are Headers of a page that has another style in it, such as that of a paper.
func StyledHeaders(style string) []Header {
	out := Headers()
	for i := range out {
		if out[i].Name == "Content-Security-Policy" {
			out[i].Value = policyOf(style) + "'none'"
		}
	}
	return out
}

// Asset is a script of the page. Body is shared and must not be changed.
type Asset struct {
	Path        string // absolute, below AssetPrefix, with a hash of the content
	ContentType string
	Body        []byte
}

//go:embed assets
var assets embed.FS

// comments are the lines of a script that are comments alone. Phones on slow networks do not
// need them.
var comments = regexp.MustCompile(`(?m)^\s*//.*\n`)

func loadAsset(name, contentType string) (Asset, error) {
	body, err := assets.ReadFile(path.Join("assets", name))
	if err != nil {
		return Asset{}, fmt.Errorf("reading asset %s: %w", name, err)
	}
	return NewAsset(name, contentType, comments.ReplaceAll(body, nil)), nil
}

// NewAsset returns an asset whose path has the name and a hash of the body.
func NewAsset(name, contentType string, body []byte) Asset {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	hashed := name[:len(name)-len(ext)] + "." + hex.EncodeToString(sum[:6]) + ext
	return Asset{Path: AssetPrefix + hashed, ContentType: contentType, Body: body}
}

// ContentTypeScript is the Content-Type of an Asset that is a script.
const ContentTypeScript = "text/javascript; charset=utf-8"
