// Package server is the exporter as a whole: it listens, wires what comes in to
// the engine and what the engine finds to whoever should know, serves pages and
// metrics, reloads its configuration and stops in order.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/exporter-toolkit/web"
	"google.golang.org/grpc"

	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
)

// Options configure a [Server]. Web and Logger are required.
type Options struct {
	// Config is what to start with. Default: [config.Default].
	Config *config.Config
	// Load reads the configuration again. Default: none, and a reload is
	// refused.
	Load func() (*config.Config, error)
	// Web says where pages and metrics are served, and with which TLS and
	// authentication.
	Web *web.FlagConfig
	// GRPC and HTTP are where OTLP is received, host:port; port 0 is any free
	// one. Default: 127.0.0.1 and the standard ports 4317 and 4318.
	GRPC, HTTP string
	// StateFile is where incidents are kept across restarts, and with
	// ".baselines" at its end what detectors have learnt. Default: none.
	StateFile string
	// Logger gets what an operator should read.
	Logger *slog.Logger
	// Version is shown on the pages.
	Version string
}

const (
	defaultGRPC = "127.0.0.1:4317"
	defaultHTTP = "127.0.0.1:4318"
	// stopWithin bounds each step of stopping in order.
	stopWithin = 5 * time.Second
)

// Server is an exporter that listens. [Server.Run] makes it serve.
type Server struct {
	o            Options
	log          *slog.Logger
	registry     *prometheus.Registry
	metrics      *metrics
	probeMetrics *probeMetrics

	sockets   sockets
	engine    *engine.Engine
	incidents *incident.Manager
	grpc      *grpc.Server
	otlp      *http.Server
	web       *http.Server
	ready     atomic.Bool

	config    atomic.Pointer[config.Config] // in force
	reloading sync.Mutex                    // guards live
	live      live
}

// New binds every address and builds the exporter, but serves nothing yet. It
// fails with a message for the operator. Call [Server.Run] next, once.
func New(o Options) (*Server, error) {
	if o.Config == nil {
		o.Config = config.Default()
	}
	if o.GRPC == "" {
		o.GRPC = defaultGRPC
	}
	if o.HTTP == "" {
		o.HTTP = defaultHTTP
	}
	s := &Server{o: o, log: o.Logger, registry: prometheus.NewRegistry()}
	// Addresses come first: a second exporter must notice the first one
	// before it touches the state file they would share.
	var err error
	if s.sockets, err = bindAll(&o); err != nil {
		return nil, err
	}
	if err := s.build(); err != nil {
		return nil, errors.Join(err, s.sockets.Close())
	}
	return s, nil
}

// Addresses are where a server listens.
type Addresses struct{ Web, GRPC, HTTP net.Addr }

// Addresses returns where s listens. Web is nil for a socket from systemd.
func (s *Server) Addresses() Addresses {
	a := Addresses{GRPC: s.sockets.grpc.Addr(), HTTP: s.sockets.http.Addr()}
	if len(s.sockets.web) > 0 {
		a.Web = s.sockets.web[0].Addr()
	}
	return a
}

// Incidents returns the incidents remembered, in the order of
// [incident.Compare].
func (s *Server) Incidents() []incident.Incident { return s.incidents.All() }

// Totals returns what the fleet has done so far, by cache.
func (s *Server) Totals() []fleet.CacheTotals { return s.engine.Totals() }

// Run serves until ctx is done, then stops in order: it takes no more records,
// looks at those it has, tells notifiers, saves its state, and only then stops
// to show its pages. It returns early, with an error, if serving fails.
func (s *Server) Run(ctx context.Context) error {
	serving, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var servers sync.WaitGroup
	serve := func(what string, f func() error) {
		servers.Go(func() {
			if err := f(); err != nil && !errors.Is(err, http.ErrServerClosed) {
				fail(fmt.Errorf("serve %s: %w", what, err))
			}
		})
	}
	serve("OTLP over gRPC", func() error { return s.grpc.Serve(s.sockets.grpc) })
	serve("OTLP over HTTP", func() error { return s.otlp.Serve(s.sockets.http) })
	serve("pages and metrics", s.serveWeb)

	engineContext, stopEngine := context.WithCancel(context.WithoutCancel(ctx))
	var engine sync.WaitGroup
	engine.Go(func() { s.engine.Run(engineContext) })

	s.ready.Store(true)
	a := s.Addresses()
	s.log.Info("Ready", "web", a.Web, "otlp_grpc", a.GRPC, "otlp_http", a.HTTP)
	<-serving.Done()
	s.ready.Store(false)
	s.log.Info("Stopping")

	err := s.stopReceiving()
	stopEngine()
	engine.Wait()
	err = errors.Join(err, s.stopTelling(), s.stopShowing())
	servers.Wait()
	if ctx.Err() == nil {
		err = errors.Join(context.Cause(serving), err)
	}
	return err
}

// serveWeb serves pages and metrics until the server is shut down.
func (s *Server) serveWeb() error {
	if s.sockets.web == nil {
		return web.ListenAndServe(s.web, s.o.Web, s.log)
	}
	return web.ServeMultiple(s.sockets.web, s.web, s.o.Web, s.log)
}

// stopReceiving stops whatever brings records in.
func (s *Server) stopReceiving() error {
	s.reloading.Lock()
	s.live.stopped = true
	s.live.probes.stop()
	s.reloading.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	force := context.AfterFunc(ctx, s.grpc.Stop)
	defer force()
	s.grpc.GracefulStop()
	return shutdown(ctx, s.otlp)
}

// stopTelling stops whatever tells of incidents, and saves them.
func (s *Server) stopTelling() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	return errors.Join(s.live.notifier.stop(), s.incidents.Close())
}

// stopShowing stops the pages.
func (s *Server) stopShowing() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	return shutdown(ctx, s.web)
}

// shutdown lets requests in progress end, but not for ever.
func shutdown(ctx context.Context, s *http.Server) error {
	if err := s.Shutdown(ctx); err != nil {
		return s.Close()
	}
	return nil
}
