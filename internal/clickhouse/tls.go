package clickhouse

import (
	"crypto/tls"
	"net/url"

	"quittance/internal/transport"
)

// Parameters of a URL that name files of TLS.
const (
	paramCA   = "ca_file"
	paramCert = "cert_file"
	paramKey  = "key_file"
)

// WithTLS adds files of TLS to a URL. What the URL has already wins.
func WithTLS(address string, files transport.Files) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // Open says what is wrong
	}
	query := u.Query()
	for name, value := range map[string]string{paramCA: files.CA, paramCert: files.Cert, paramKey: files.Key} {
		if value != "" && !query.Has(name) {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Protection describes the connections to the server of a URL. A URL that cannot be read is not
// exposed: Open refuses it.
func Protection(address string) transport.Protection {
	opts, _, err := parse(address)
	if err != nil {
		return transport.Protection{How: "not readable"}
	}
	return transport.Of(opts.TLS, opts.Addr...)
}

// takeFiles removes the names of files from the parameters of a URL. With files the
// connection has TLS.
func takeFiles(query url.Values) (files transport.Files) {
	for name, to := range map[string]*string{paramCA: &files.CA, paramCert: &files.Cert, paramKey: &files.Key} {
		*to = query.Get(name)
		query.Del(name)
	}
	if files.Given() {
		query.Set("secure", "true")
	}
	return files
}

// withFiles returns the configuration of TLS of a URL with files.
func withFiles(cfg *tls.Config, files transport.Files) (*tls.Config, error) {
	if !files.Given() {
		return cfg, nil
	}
	out, err := files.Config("clickhouse")
	if err == nil {
		out.InsecureSkipVerify, out.ServerName = cfg.InsecureSkipVerify, cfg.ServerName // Protection reports skip_verify
	}
	return out, err
}
