// Package web serves the exporter's own pages and the same in JSON. It only
// reads.
//
// Pages need no JavaScript, follow the reader's choice of light or dark, and
// can be read by a screen reader. What they show comes partly from outside, so
// every text is cut, spelled out where it does not print, and escaped; a strict
// Content-Security-Policy stands behind that.
package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// refreshSeconds is how often the landing page loads itself again.
const refreshSeconds = 5

// Source is what there is to show. It is used concurrently.
type Source interface {
	// Incidents returns all incidents remembered, in the order they are to
	// be shown: see [incident.Compare].
	Incidents() []incident.Incident
	// Incident returns the incident with the given ID.
	Incident(id string) (incident.Incident, bool)
	// Caches returns the caches that report, by name.
	Caches() []signal.CacheState
	// Limits returns what detectors could not judge.
	Limits() []engine.Limit
	// Now is the time on the clock incidents are written in.
	Now() time.Time
}

// Options configure a [Handler]. Source is required.
type Options struct {
	Source Source
	// Docs explains the detectors. Default: nothing.
	Docs []detectors.Doc
	// Runbook returns the address of a detector's runbook, or "". Default:
	// no runbooks.
	Runbook func(detector string) string
	// Version is shown at the foot of each page.
	Version string
	// GRPC and HTTP are where the OTLP receivers listen, host:port. Secure is
	// set if they speak TLS.
	GRPC, HTTP string
	Secure     bool
}

//go:embed assets
var assets embed.FS

// pages serves the pages.
type pages struct {
	o         Options
	docs      map[string]detectors.Doc
	templates *template.Template
}

// Handler returns a handler for /, /incidents/{id}, /api/v1/incidents,
// /api/v1/incidents/{id} and /style.css.
func Handler(o Options) (http.Handler, error) {
	if o.Source == nil {
		return nil, errors.New("Source is nil: want what there is to show")
	}
	if o.Runbook == nil {
		o.Runbook = func(string) string { return "" }
	}
	t, err := template.ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse templates: %w", err)
	}
	p := &pages{o: o, docs: map[string]detectors.Doc{}, templates: t}
	for _, d := range o.Docs {
		p.docs[d.ID] = d
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.index)
	mux.HandleFunc("GET /incidents/{id}", p.incident)
	mux.HandleFunc("GET /api/v1/incidents", p.listJSON)
	mux.HandleFunc("GET /api/v1/incidents/{id}", p.incidentJSON)
	mux.HandleFunc("GET /style.css", style)
	mux.HandleFunc("/", p.missing)
	return guard(mux), nil
}

// guard sets headers that keep what is shown from becoming active, and from
// being shown inside somebody else's page.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func style(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=300")
	http.ServeFileFS(w, r, assets, "assets/style.css")
}

// page is what every page has.
type page struct {
	Root                     string // the way back to /, for use behind a proxy's path
	Title, Status, Version   string
	Refresh                  int // seconds; 0: never
	RefreshLink, RefreshText string
	Now                      moment
}

func (p *pages) newPage(root, title string, now time.Time) page {
	return page{Root: root, Title: title + " · stampede-exporter", Version: p.o.Version, Now: momentOf(signal.At(now), now)}
}

// write renders a page in full before it sends any of it, so that an error is
// an error and not half a page.
func (p *pages) write(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "cannot show this page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the reader went away
}

func (p *pages) missing(w http.ResponseWriter, r *http.Request) {
	p.write(w, http.StatusNotFound, "missing.html", p.newPage("/", "No such page", p.o.Source.Now()))
}

// listJSON serves every incident remembered, open ones first.
func (p *pages) listJSON(w http.ResponseWriter, _ *http.Request) {
	incidents := p.o.Source.Incidents()
	if incidents == nil {
		incidents = []incident.Incident{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"incidents": incidents})
}

func (p *pages) incidentJSON(w http.ResponseWriter, r *http.Request) {
	i, ok := p.o.Source.Incident(r.PathValue("id"))
	if !ok {
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "no such incident"})
		return
	}
	writeJSON(w, http.StatusOK, i)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, `{"error":"cannot encode the answer"}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the reader went away
}
