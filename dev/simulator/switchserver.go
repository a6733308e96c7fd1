package simulator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
)

// switchKeys are the certificate and the key of the simulated switch, and its authority, which has
// issued the certificate of the demo agency in deploy/dev/registry.yaml, too. Everybody can read
// them.
//
//go:embed switchkeys
var switchKeys embed.FS

// switchTLS returns what the switch needs to know its clients by their certificates.
func switchTLS() (*tls.Config, error) {
	authority, err := switchKeys.ReadFile("switchkeys/authority.pem")
	if err != nil {
		return nil, err
	}
	own, err := switchKeys.ReadFile("switchkeys/server.pem")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(own, own)
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}, nil
}

// ServeSwitch serves the regional switch alone, over TLS with client certificates, until ctx ends.
func (s *Simulator) ServeSwitch(ctx context.Context, l net.Listener) error {
	cfg, err := switchTLS()
	if err != nil {
		return fmt.Errorf("reading the keys of the simulated switch: %w", err)
	}
	r := chi.NewRouter()
	r.Use(s.count)
	s.switchRoutes(r)
	server := &http.Server{Handler: r, TLSConfig: cfg, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the simulated switch: %w", err)
	}
	return nil
}
