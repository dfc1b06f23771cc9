package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/web"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// newHTTPServer returns a server with limits that keep a slow or greedy client
// from holding on to it.
func newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// handler returns everything served on the address for pages and metrics.
func (s *Server) handler(docs []detectors.Doc) (http.Handler, error) {
	pages, err := web.Handler(web.Options{
		Source:  source{s},
		Docs:    docs,
		Runbook: s.runbook,
		Version: s.o.Version,
		GRPC:    s.sockets.grpc.Addr().String(),
		HTTP:    s.sockets.http.Addr().String(),
		Secure:  s.o.Config.OTLP.TLS != nil,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{s.log},
		// One bad series must not hide the rest.
		ErrorHandling:     promhttp.ContinueOnError,
		EnableOpenMetrics: true,
	}))
	mux.HandleFunc("GET /-/healthy", plain(s.serveHealth))
	mux.HandleFunc("GET /-/ready", plain(s.serveReady))
	mux.HandleFunc("POST /-/reload", plain(s.serveReload))
	mux.HandleFunc("PUT /-/reload", plain(s.serveReload))
	mux.HandleFunc("GET /config", plain(func() (int, string) { return http.StatusOK, s.config.Load().String() }))
	mux.Handle("/", pages)
	// A page from elsewhere, open in an operator's browser, must not be able
	// to reload the exporter.
	return http.NewCrossOriginProtection().Handler(mux), nil
}

// plain serves the text f returns.
func plain(f func() (status int, text string)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status, text := f()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // the client went away
	}
}

// stuckAfter is how long the engine may be without a look at the fleet, which it
// takes once a second, before somebody should restart the exporter.
const stuckAfter = 30 * time.Second

func (s *Server) serveHealth() (int, string) {
	if idle := s.engine.Idle(); idle > stuckAfter {
		return http.StatusServiceUnavailable, fmt.Sprintf("Not healthy: the fleet was last looked at %v ago.\n", idle.Round(time.Second))
	}
	return http.StatusOK, "Healthy.\n"
}

func (s *Server) serveReady() (int, string) {
	if !s.ready.Load() {
		return http.StatusServiceUnavailable, "Not ready.\n"
	}
	return http.StatusOK, "Ready.\n"
}

func (s *Server) serveReload() (int, string) {
	needRestart, err := s.Reload()
	switch {
	case errors.Is(err, errNoConfig):
		return http.StatusConflict, err.Error() + "\n"
	case err != nil:
		s.log.Error("The configuration was not reloaded; the old one stays in force", "err", err)
		return http.StatusInternalServerError, fmt.Sprintf("Not reloaded; the old configuration stays in force.\n%v\n", err)
	}
	return http.StatusOK, reloadText(needRestart)
}

// runbook returns the address of a detector's runbook.
func (s *Server) runbook(detector string) string {
	return strings.TrimRight(s.config.Load().RunbookURL, "/") + "/" + detector + ".md"
}

// source is what the pages show.
type source struct{ s *Server }

func (x source) Incidents() []incident.Incident               { return x.s.incidents.All() }
func (x source) Incident(id string) (incident.Incident, bool) { return x.s.incidents.Get(id) }
func (x source) Limits() []engine.Limit {
	return slices.Concat(x.s.probeMetrics.states.all(), x.s.engine.Limits())
}
func (x source) Caches() []signal.CacheState { return x.s.engine.Caches() }
func (x source) Now() time.Time              { return x.s.engine.Now() }
