package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/stampede-exporter/stampede-exporter/internal/config"
)

// sockets are the listeners of a server.
type sockets struct {
	grpc, http net.Listener
	web        []net.Listener // nil: the exporter-toolkit opens them itself
}

// Close closes all of them.
func (l sockets) Close() error {
	errs := []error{l.grpc.Close(), l.http.Close()}
	for _, w := range l.web {
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}

// bindAll binds every address of o, or none.
func bindAll(o *Options) (l sockets, err error) {
	var bound []net.Listener
	defer func() {
		if err != nil {
			for _, b := range bound {
				err = errors.Join(err, b.Close())
			}
		}
	}()
	bind := func(address, purpose, flag string) net.Listener {
		if err != nil {
			return nil
		}
		var b net.Listener
		if b, err = listen(address, purpose, flag); err == nil {
			bound = append(bound, b)
		}
		return b
	}
	if !toolkitListens(o.Web) {
		for _, address := range *o.Web.WebListenAddresses {
			l.web = append(l.web, bind(address, "pages and metrics", "web.listen-address"))
		}
	}
	l.grpc = bind(o.GRPC, "OTLP over gRPC", "otlp.grpc.listen-address")
	l.http = bind(o.HTTP, "OTLP over HTTP", "otlp.http.listen-address")
	return l, err
}

// toolkitListens reports whether the sockets for pages and metrics are of a
// kind that only the exporter-toolkit knows how to open.
func toolkitListens(f *web.FlagConfig) bool {
	if f.WebSystemdSocket != nil && *f.WebSystemdSocket {
		return true
	}
	for _, address := range *f.WebListenAddresses {
		if strings.HasPrefix(address, "vsock://") {
			return true
		}
	}
	return false
}

// listen binds one address. Purpose and flag say, if it fails, what it was for
// and how to choose another.
func listen(address, purpose, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s for %s: address already in use: is another exporter running? --%s chooses another address", address, purpose, flag)
	case err != nil:
		return nil, fmt.Errorf("listen on %s for %s (--%s): %w", address, purpose, flag, err)
	}
	return l, nil
}

// serverTLS returns the TLS configuration of a receiver; nil is plain text.
func serverTLS(c *config.ServerTLS) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	t := web.TLSConfig{
		TLSCertPath: c.CertFile,
		TLSKeyPath:  c.KeyFile,
		ClientCAs:   c.ClientCAFile,
		MinVersion:  tls.VersionTLS12,
		MaxVersion:  tls.VersionTLS13,
	}
	if c.ClientCAFile != "" {
		t.ClientAuth = "RequireAndVerifyClientCert"
	}
	out, err := web.ConfigToTLSConfig(&t)
	if err != nil {
		return nil, fmt.Errorf("configure otlp.tls: %w", err)
	}
	return out, nil
}
