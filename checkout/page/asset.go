package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
)

// AssetPrefix is where the page expects its style and script on its own
// origin. No session id collides with it: they begin with chs_.
const AssetPrefix = "/c/assets/"

// AssetCacheControl is the Cache-Control of an [Asset]: its name changes when
// its content does.
const AssetCacheControl = "public, max-age=31536000, immutable"

// ContentSecurityPolicy is the policy of every page under /c/. Nothing inline
// runs, nothing is fetched from elsewhere, and no site may frame the page.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ContentType is the Content-Type of a rendered page.
const ContentType = "text/html; charset=utf-8"

// Header is one field of an HTTP answer.
type Header struct {
	Name, Value string
}

// Headers are the fields that every answer of a page under /c/ carries, errors
// included.
//
// With its Referrer-Policy a browser sends `Origin: null` with the page's own
// forms: whoever checks for cross-site posts must go by Sec-Fetch-Site.
func Headers() []Header {
	return []Header{
		{"Content-Type", ContentType},
		{"Content-Security-Policy", ContentSecurityPolicy},
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

// Asset is the page's style or script. Body is shared and must not be changed.
type Asset struct {
	Path        string // absolute, below AssetPrefix, with a hash of the content
	ContentType string
	Body        []byte
}

//go:embed assets
var assets embed.FS

func loadAsset(name, contentType string) (Asset, error) {
	body, err := assets.ReadFile(path.Join("assets", name))
	if err != nil {
		return Asset{}, fmt.Errorf("reading asset %s: %w", name, err)
	}
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	hashed := name[:len(name)-len(ext)] + "." + hex.EncodeToString(sum[:6]) + ext
	return Asset{Path: AssetPrefix + hashed, ContentType: contentType, Body: body}, nil
}
