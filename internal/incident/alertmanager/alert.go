package alertmanager

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// alert is one alert as Alertmanager's API v2 takes it.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// ownLabels are the labels every alert has, unless they are empty.
var ownLabels = []string{"alertname", "cache", "detector", "service", "severity"}

const (
	lifetime     = 4  // in resends: how far ahead the end of a firing alert is
	maxEvidence  = 20 // pieces of evidence in an alert
	maxIncidents = 10 // IDs in an alert
	maxChildren  = 8  // of the leading incident's, in an alert

	maxText  = 1024 // bytes of a summary, a description
	maxGroup = 64   // bytes of a key group
	maxNote  = 256  // bytes of a piece of evidence
)

// alert makes the alert of a group at an instant.
func (o *Options) alert(g *group, now time.Time) alert {
	members := g.ordered()
	lead, end := &g.last, g.end.Time()
	if len(members) > 0 {
		lead, end = members[0], now.Add(lifetime*o.Resend)
	} else if end.After(now) {
		end = now // the clock was set back; an end to come would not be one
	}
	start := g.start.Time()
	if latest := minTime(now, end); start.After(latest) {
		start = latest // Alertmanager refuses what ends before it starts
	}
	a := alert{
		Labels:      o.labels(g.identity),
		Annotations: o.annotations(lead, members),
		StartsAt:    start,
		EndsAt:      end,
	}
	if o.ExternalURL != "" {
		a.GeneratorURL = o.ExternalURL + "/incidents/" + lead.ID
	}
	return a
}

// labels returns the labels of an alert. An empty one is left out: to
// Alertmanager the two are the same.
func (o *Options) labels(id identity) map[string]string {
	labels := map[string]string{
		"alertname": semconv.AlertName(id.detector),
		"detector":  id.detector,
		"service":   id.service,
		"cache":     id.cache,
		"severity":  id.severity.String(),
	}
	for name, value := range labels {
		labels[name] = strings.ToValidUTF8(value, "\uFFFD")
	}
	maps.Copy(labels, o.Labels)
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// annotations tell of lead, and that there are others.
func (o *Options) annotations(lead *incident.Incident, members []*incident.Incident) map[string]string {
	f := &lead.Finding
	out := map[string]string{}
	for i, e := range f.Evidence {
		if i == maxEvidence {
			break
		}
		out[annotationName(e.Name)] = printable(formatEvidence(e), maxNote)
	}
	// After the evidence, which must not take these names.
	out["summary"] = printable(f.Summary, maxText) + others(len(members)-1)
	out["description"] = printable(f.Advice, maxText)
	out["runbook_url"] = o.RunbookBase + "/" + lead.Detector + ".md"
	out["incidents"] = incidentIDs(lead, members)
	if text := children(lead); text != "" {
		out["children"] = text
	}
	if lead.Key.Group != "" {
		out["key_group"] = printable(lead.Key.Group, maxGroup)
	}
	if lead.Severity == detectors.Page && lead.Priority > 0 {
		out["priority"] = fmt.Sprintf("P%d", lead.Priority)
	}
	return out
}

// others says that an alert is about n keys more than its summary tells of.
func others(n int) string {
	switch {
	case n <= 0:
		return ""
	case n == 1:
		return " (and 1 more key)"
	}
	return fmt.Sprintf(" (and %d more keys)", n)
}

// children lists what is part of an incident and still holds, such as
// "retry-storm of feed (page P1); hot-key-expiry of feed, feed:* (ticket)".
func children(i *incident.Incident) string {
	var parts []string
	more := i.MoreChildren
	for n := range i.Children {
		switch c := &i.Children[n]; {
		case c.Cleared != 0:
		case len(parts) == maxChildren:
			more++
		default:
			parts = append(parts, childText(c))
		}
	}
	text := strings.Join(parts, "; ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func childText(c *incident.Child) string {
	text := printable(c.Detector, maxGroup) + " of " + printable(c.Cache, maxGroup)
	if c.Key.Group != "" {
		text += ", " + printable(c.Key.Group, maxGroup)
	}
	return text + " (" + urgency(c.Severity, c.Priority) + ")"
}

// urgency returns a severity with its priority, if it has one.
func urgency(severity detectors.Severity, priority int) string {
	if priority <= 0 {
		return severity.String()
	}
	return fmt.Sprintf("%s P%d", severity, priority)
}

// incidentIDs lists the incidents behind an alert, the leading one first.
func incidentIDs(lead *incident.Incident, members []*incident.Incident) string {
	if len(members) == 0 {
		return lead.ID
	}
	var ids []string
	for _, m := range members[:min(len(members), maxIncidents)] {
		ids = append(ids, m.ID)
	}
	text := strings.Join(ids, ", ")
	if n := len(members) - maxIncidents; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
