package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/engine"
)

// How many incidents the landing page shows. A reader who has more than a
// hundred open has other worries than the last of them.
const (
	maxOpen   = 100
	maxClosed = 25
	maxLimits = 25
	maxHot    = 5 // of each cache
)

// indexPage is the landing page.
type indexPage struct {
	page
	Headline     string
	Open, Closed []card
	MoreOpen     int // open, but not shown
	Caches       []row
	Hot          []hotRow
	Limits       []engine.Limit
	MoreLimits   int    // not shown
	GRPC, HTTP   string // URLs to send to
}

func (p *pages) index(w http.ResponseWriter, r *http.Request) {
	now := p.o.Source.Now()
	i := indexPage{GRPC: p.endpoint(p.o.GRPC, r), HTTP: p.endpoint(p.o.HTTP, r)}
	for _, inc := range p.o.Source.Incidents() {
		switch {
		case inc.Open() && len(i.Open) < maxOpen:
			i.Open = append(i.Open, p.cardOf(&inc, now))
		case inc.Open():
			i.MoreOpen++
		case len(i.Closed) < maxClosed:
			i.Closed = append(i.Closed, p.cardOf(&inc, now))
		}
	}
	limits := p.o.Source.Limits()
	for _, l := range limits[:min(len(limits), maxLimits)] {
		l.Cache, l.Reason = shown(l.Cache), cut(l.Reason, maxSentence)
		i.Limits = append(i.Limits, l)
	}
	i.MoreLimits = len(limits) - len(i.Limits)
	instances := 0
	for _, c := range p.o.Source.Caches() {
		i.Caches = append(i.Caches, rowOf(&c))
		i.Hot = append(i.Hot, hotRows(&c, now)...)
		instances += c.Instances
	}
	i.Headline = headline(len(i.Open) + i.MoreOpen)
	i.page = p.newPage("./", i.Headline, now)
	i.Status = fmt.Sprintf("%s, %s", count(len(i.Caches), "cache"), count(instances, "instance"))
	// Whoever reads slowly, or by ear, must be able to stop the page from
	// loading itself again (WCAG 2.2.1).
	if r.URL.Query().Get("refresh") == "off" {
		i.RefreshLink, i.RefreshText = "?", "load again by itself"
	} else {
		i.Refresh = refreshSeconds
		i.RefreshLink, i.RefreshText = "?refresh=off", fmt.Sprintf("loads again every %d s: stop that", refreshSeconds)
	}
	p.write(w, http.StatusOK, "index.html", i)
}

// endpoint returns the URL under which whoever made the request reaches a
// receiver. One that listens everywhere is taken to be where this page is.
func (p *pages) endpoint(address string, r *http.Request) string {
	host, port, err := net.SplitHostPort(address)
	if ip, ipErr := netip.ParseAddr(host); err == nil && ipErr == nil && ip.IsUnspecified() {
		if h, _, err := net.SplitHostPort(r.Host); err == nil {
			host = h
		} else if r.Host != "" {
			host = r.Host
		}
		address = net.JoinHostPort(strings.Trim(host, "[]"), port)
	}
	if p.o.Secure {
		return "https://" + address
	}
	return "http://" + address
}

func headline(open int) string {
	if open == 0 {
		return "No incident is open"
	}
	return count(open, "incident") + " open"
}

func count(n int, noun string) string { return fmt.Sprintf("%d %s", n, plural(noun, float64(n))) }

// incidentPage is the page of one incident.
type incidentPage struct {
	page
	Incident card
}

func (p *pages) incident(w http.ResponseWriter, r *http.Request) {
	inc, ok := p.o.Source.Incident(r.PathValue("id"))
	if !ok {
		p.missing(w, r)
		return
	}
	now := p.o.Source.Now()
	i := incidentPage{Incident: p.cardOf(&inc, now)}
	i.page = p.newPage("../", i.Incident.Title+" in "+i.Incident.Cache, now)
	i.Status = "over"
	if inc.Open() {
		i.Status = "open for " + span(max(0, now.Sub(inc.Onset.Time()).Round(time.Second)))
	}
	p.write(w, http.StatusOK, "incident.html", i)
}
