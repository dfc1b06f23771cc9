package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
)

// handshakeWithin bounds how long a connection may take to say what it wants.
const handshakeWithin = 10 * time.Second

// build makes everything between the sockets, and puts the configuration in
// force. What it starts is stopped by Run, or by itself if it fails.
func (s *Server) build() (err error) {
	s.metrics = newMetrics(s.registry)
	s.probeMetrics = newProbeMetrics(s.registry)
	watch, err := s.buildEngine(s.o.Config)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.incidents.Close())
		}
	}()
	if err := s.buildReceivers(&s.o.Config.OTLP); err != nil {
		return err
	}
	s.config.Store(s.o.Config)
	docs := make([]detectors.Doc, len(watch))
	for i, d := range watch {
		docs[i] = d.Doc()
	}
	pages, err := s.handler(docs)
	if err != nil {
		return err
	}
	s.web = newHTTPServer(pages)
	if err := s.apply(s.o.Config); err != nil {
		return err
	}
	s.metrics.loaded(s.engine.Now(), nil)
	return nil
}

// buildEngine makes the engine and what it works with, and returns the
// detectors. If it fails, it has left nothing to close.
func (s *Server) buildEngine(c *config.Config) ([]detectors.Detector, error) {
	f, err := fleet.New(fleet.Options{
		Lateness:   c.Fleet.Lateness,
		MaxKeys:    int(c.Fleet.MaxKeys),
		MaxSources: int(c.Fleet.MaxSources),
	})
	if err != nil {
		return nil, err
	}
	watch, err := detectors.All(c.Detectors)
	if err != nil {
		return nil, fmt.Errorf("configure detectors: %w", err)
	}
	s.incidents, err = incident.New(incident.Options{
		StateFile: s.o.StateFile,
		Listeners: []incident.Listener{incident.NewLog(s.log)},
		Logger:    s.log,
	})
	if err != nil {
		return nil, err
	}
	s.engine = engine.New(engine.Options{
		Fleet:     f,
		Detectors: watch,
		Incidents: s.incidents,
		Logger:    s.log,
		Metrics:   engine.NewMetrics(s.registry),
		StateFile: baselinesFile(s.o.StateFile),
	})
	s.registry.MustRegister(engine.NewCollector(s.engine))
	return watch, nil
}

// baselinesFile returns where detectors keep what they have learnt, beside the
// incidents: it is another file because it is written at other times, and what
// is wrong with one must not cost the other.
func baselinesFile(stateFile string) string {
	if stateFile == "" {
		return ""
	}
	return stateFile + ".baselines"
}

// buildReceivers makes the servers OTLP is received with.
func (s *Server) buildReceivers(c *config.OTLP) error {
	secure, err := serverTLS(c.TLS)
	if err != nil {
		return err
	}
	receiver := ingest.NewReceiver(s.engine, ingest.Options{
		MaxBody:  int(c.MaxRequestBytes),
		Now:      s.engine.Now,
		Rejected: s.metrics.refused,
	})
	o := append(receiver.ServerOptions(), grpc.ConnectionTimeout(handshakeWithin))
	if secure != nil {
		o = append(o, grpc.Creds(credentials.NewTLS(secure.Clone())))
		web := secure.Clone()
		web.NextProtos = []string{"h2", "http/1.1"}
		s.sockets.http = tls.NewListener(s.sockets.http, web)
	}
	s.grpc = grpc.NewServer(o...)
	receiver.Register(s.grpc)
	mux := http.NewServeMux()
	mux.Handle("/v1/logs", receiver)
	s.otlp = newHTTPServer(mux)
	return nil
}
