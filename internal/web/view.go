package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// maxFacts is how many pieces of evidence a card shows; the rest is on the
// incident's own page. Evidence comes in order of weight.
const maxFacts = 5

// card is an incident as the pages show it. Every text in it is fit to be read.
type card struct {
	ID, Title, Detector         string
	Service, Cache, Group       string
	KeyID, KeyText              string
	Class, SeverityClass, Badge string
	Summary, Advice, Runbook    string
	Onset, Closed               moment
	Lasted                      string
	Budget                      *bar
	Facts, Evidence             []fact
	Timeline                    []event
	Doc                         *detectors.Doc
	Origin                      string
	Children                    []child
	MoreChildren                int
	With                        string // what holds beside it, in a few words
	PartOf, Continues           string // IDs
}

// fact is one piece of evidence.
type fact struct{ Name, Value, Unit, Note string }

// event is one entry of a timeline.
type event struct {
	At           moment
	What, Detail string
}

// bar is a peak drawn against a budget, in percent of its width.
type bar struct {
	Peak, Within, Budget float64
	Text                 string
}

// cardOf describes i by its latest finding. The last one of an incident that is
// over says only that it is, so then the worst one speaks.
func (p *pages) cardOf(i *incident.Incident, now time.Time) card {
	said := &i.Finding
	if !i.Open() {
		said = &i.Worst
	}
	c := card{
		ID: i.ID, Title: p.titleOf(i.Detector), Detector: shown(i.Detector),
		Service: shown(i.Service), Cache: shown(i.Cache),
		Group: shown(i.Key.Group), KeyText: shown(i.Key.Text),
		SeverityClass: i.Severity.String(), Badge: badge(i.Severity, i.Priority),
		Summary: cut(said.Summary, maxSentence), Advice: cut(said.Advice, maxSentence),
		Onset: momentOf(i.Onset, now), Closed: momentOf(i.Closed, now),
		Budget: barOf(&i.Finding),
	}
	c.Class = c.SeverityClass
	if !i.Open() {
		c.Class = "closed"
		c.Lasted = span(i.Closed.Sub(i.Onset))
	}
	if i.Key != (signal.Key{}) {
		c.KeyID = i.Key.ID.String()
	}
	if d, ok := p.docs[i.Detector]; ok {
		c.Doc, c.Runbook = &d, p.o.Runbook(d.ID)
	}
	c.Evidence = facts(i.Finding.Evidence)
	c.Facts = c.Evidence[:min(len(c.Evidence), maxFacts)]
	c.Timeline = p.timeline(i, now)
	c.Origin = shown(i.Origin)
	c.PartOf, c.Continues = shown(i.PartOf), shown(i.Continues)
	c.Children, c.MoreChildren = p.childrenOf(i, now), i.MoreChildren
	c.With = with(c.Children, c.MoreChildren)
	return c
}

// titleOf returns what a detector calls its trouble.
func (p *pages) titleOf(detector string) string {
	if d, ok := p.docs[detector]; ok {
		return d.Title
	}
	return shown(detector)
}

func facts(evidence []detectors.Evidence) []fact {
	var out []fact
	for _, e := range evidence {
		value, unit := quantity(e.Value, e.Unit)
		out = append(out, fact{shown(e.Name), value, shown(unit), cut(e.Note, maxSentence)})
	}
	return out
}

func badge(s detectors.Severity, priority int) string {
	if priority > 0 {
		return fmt.Sprintf("%s P%d", s, priority)
	}
	return s.String()
}

// barOf draws a finding's peak against its budget, if it has both.
func barOf(f *detectors.Finding) *bar {
	peak, hasPeak := f.Get("peak")
	budget, hasBudget := f.Get("budget")
	if !hasPeak || !hasBudget || peak <= 0 || budget <= 0 {
		return nil
	}
	scale := 100 / max(peak, budget)
	return &bar{
		Peak: peak * scale, Within: min(peak, budget) * scale,
		// The mark is half a percent wide and must not leave the picture.
		Budget: min(budget*scale, 99.4),
		Text:   fmt.Sprintf("At its worst %s at once, of the %s the origin can run: %s×.", digits(peak, 3), digits(budget, 3), digits(peak/budget, 2)),
	}
}

// timeline tells the story of i, oldest first.
func (p *pages) timeline(i *incident.Incident, now time.Time) []event {
	out := []event{{At: momentOf(i.Onset, now), What: "Began"}}
	for n, c := range i.Changes {
		if n == 1 && i.ChangesDropped > 0 {
			out = append(out, event{What: fmt.Sprintf("%d changes are not kept", i.ChangesDropped)})
		}
		out = append(out, p.eventOf(c, i, now))
	}
	return out
}

func (p *pages) eventOf(c incident.Change, i *incident.Incident, now time.Time) event {
	e := event{At: momentOf(c.At, now)}
	switch c.Kind {
	case incident.Opened:
		e.What = "Opened as a " + badge(c.Severity, c.Priority)
		e.Detail = "found " + span(max(0, c.At.Sub(i.Onset))) + " after it began"
	case incident.Reopened:
		e.What = "Came back as a " + badge(c.Severity, c.Priority)
	case incident.ClassChanged:
		e.What = fmt.Sprintf("Now %s, a %s", p.titleOf(c.Detector), badge(c.Severity, c.Priority))
		e.Detail = "was " + p.titleOf(c.Was)
	case incident.SeverityChanged:
		e.What = "Now a " + badge(c.Severity, c.Priority)
	case incident.Closed:
		e.What = "Over"
		e.Detail = cut(c.Reason, maxSentence)
		if c.Reason == "" && c.At == i.Closed {
			e.Detail = cut(i.Finding.Summary, maxSentence)
		}
	default:
		e.What = strings.ReplaceAll(string(c.Kind), "_", " ")
	}
	return e
}

// row is one cache as the landing page shows it.
type row struct {
	Cache, Service, Origin string
	Instances, Silent      int
	Probes                 int
	Reads, HitRatio        string
}

func rowOf(c *signal.CacheState) row {
	r := row{
		Cache: shown(c.Cache), Service: shown(c.Service), Origin: shown(c.Origin.Name),
		Instances: c.Instances, Silent: c.Silent, Probes: c.Probes,
		// Ticks are a second apart, so what a tick counted is a rate.
		Reads: digits(float64(c.Lookups.Total()), 3), HitRatio: "no reads",
	}
	if c.Service == "" {
		r.Service = "several"
	}
	if c.Origin.Budget > 0 {
		r.Origin = strings.TrimSpace(fmt.Sprintf("%s (%d at once)", r.Origin, c.Origin.Budget))
	}
	switch n := c.Lookups.Total(); {
	case c.Unknown.Has(signal.UnknownHits):
		r.Reads, r.HitRatio = "not seen", "not seen"
	case n > 0:
		r.HitRatio = percent(c.Lookups.Hits, n)
	}
	return r
}
