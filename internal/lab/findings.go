package lab

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// findings joins what detectors repeat at each tick.
type findings struct {
	start signal.Nanos // of the run
	all   []*Finding
	open  map[subject]*Finding
}

// subject is what a finding is about.
type subject struct {
	detector, service, cache string
	key                      signal.KeyID
}

// add takes in what was found at one tick.
func (fs *findings) add(at signal.Nanos, found []detectors.Finding) {
	now := at.Sub(fs.start)
	for i := range found {
		d := &found[i]
		id := subject{d.Detector, d.Service, d.Cache, d.Key.ID}
		f := fs.open[id]
		if f == nil {
			if d.Cleared {
				continue
			}
			f = &Finding{Detector: d.Detector, Cache: d.Cache, Detected: now.Seconds()}
			for s := range f.raised {
				f.raised[s] = -1
			}
			fs.open[id] = f
			fs.all = append(fs.all, f)
		}
		if d.Cleared { // its text says that all is well again
			f.Cleared = now.Seconds()
			delete(fs.open, id)
			continue
		}
		f.take(fs.start, now, d)
	}
}

// assign notes that what is said of a subject is part of an incident.
func (fs *findings) assign(s subject, incident string) {
	if f := fs.open[s]; f != nil {
		f.Incident = incident
	}
}

// interrupt ends all that holds, because nobody is left to say it.
func (fs *findings) interrupt(at signal.Nanos) {
	for _, f := range fs.open {
		f.Cleared = at.Sub(fs.start).Seconds()
	}
	clear(fs.open)
}

// take brings f up to date. The worst it came to stays.
func (f *Finding) take(start signal.Nanos, now time.Duration, d *detectors.Finding) {
	for s := range f.raised {
		if int(d.Severity) >= s && f.raised[s] < 0 {
			f.raised[s] = now
			f.Severity = detectors.Severity(s).String()
		}
	}
	if ticketed := f.raised[detectors.Ticket]; ticketed >= 0 {
		f.Ticketed = ticketed.Seconds()
	}
	if d.Priority == 1 && f.Urged == 0 {
		f.Urged = now.Seconds()
	}
	if paged := f.raised[detectors.Page]; paged >= 0 {
		f.Paged = paged.Seconds()
	}
	f.Key = keyText(d.Key)
	f.Priority, f.Onset, f.Summary = d.Priority, d.Onset.Sub(start).Seconds(), d.Summary
	f.Evidence = make(map[string]float64, len(d.Evidence))
	for _, e := range d.Evidence {
		f.Evidence[e.Name] = e.Value
	}
}
