package lab

import (
	"fmt"
	"math"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// restartAfter is how long after it first speaks of what a scenario is
	// about the exporter is stopped, and restartTakes how long it is away.
	// What is reported in between is lost.
	restartAfter = 5 * time.Second
	restartTakes = 3 * time.Second
	// restartSlack is how much longer than the first time it may take to find
	// an incident again.
	restartSlack = 10 * time.Second
)

// Restart is what an exporter that was stopped in the middle of a run made of the
// incidents that were open then. Instants are seconds since the start of the run.
type Restart struct {
	Stopped float64 `json:"stopped"`
	Up      float64 `json:"up"`
	// Open is how many tickets and pages were open. Of those, Due is how many
	// were there to be found again, and Found how many were, under their ID.
	Open  int `json:"open"`
	Due   int `json:"due"`
	Found int `json:"found"`
	// Missing names the others that were due, by class and cache.
	Missing []string `json:"missing,omitempty"`
	// Delays are the times from when they were there to be found again, and the
	// exporter with them, until they were.
	Delays []float64 `json:"delays,omitempty"`
	// Anew counts incidents that were opened for what one of those is about,
	// and which was not over.
	Anew int `json:"anew"`
	// DoublePages counts pages for what somebody had been paged for before, and
	// which was not over.
	DoublePages int `json:"double_pages"`
}

// restart stops the exporter of a pipe once, and starts another in its place.
type restart struct {
	waitsFor    detectors.Severity
	planned     bool
	stopped, up time.Duration // since the start; 0 before
	open        []*interrupted
	double      int
	anew        int
}

// interrupted is an incident that was open when the exporter was stopped.
type interrupted struct {
	*Incident
	subjects []subject
	texts    map[subject]string // of keys, for the truth knows no others
	paged    bool
	closed   bool          // since, and not as part of another
	found    time.Duration // when it was heard of again; 0 if it was not
}

// Restarts reports whether there is anything in sc to interrupt by a restart of
// the exporter: a ticket or page that it expects.
func Restarts(sc *scenario.Scenario) bool { return worst(sc) >= detectors.Ticket }

// worst returns the worst that sc expects.
func worst(sc *scenario.Scenario) detectors.Severity {
	worst := detectors.Info
	for i := range sc.Expect {
		worst = max(worst, severityOf(sc.Expect[i].Severity))
	}
	return worst
}

// stop ends the exporter as an operator would: what it knows is saved.
func (p *pipe) stop() {
	x := p.restart
	now := p.now()
	x.stopped = now.Sub(p.findings.start)
	for _, i := range p.incidents.all {
		if i.last.Open() && i.severity >= detectors.Ticket {
			x.open = append(x.open, interrupt(i))
		}
	}
	if err := p.close(); err != nil {
		p.err = fmt.Errorf("stop the exporter: %w", err)
	}
	p.findings.interrupt(now)
	p.incidents.opened, p.incidents.woken = x.opened, x.woken
	p.clock.After(restartTakes, func() {
		if err := p.boot(); err != nil {
			p.err = fmt.Errorf("start the exporter again: %w", err)
		}
		x.up = p.now().Sub(p.findings.start)
	})
}

func interrupt(i *Incident) *interrupted {
	in := &interrupted{Incident: i, paged: i.Paged > 0, texts: map[subject]string{}}
	add := func(s subject, k signal.Key) {
		in.subjects = append(in.subjects, s)
		in.texts[s] = keyText(k)
	}
	l := &i.last
	add(subject{l.Detector, l.Service, l.Cache, l.Key.ID}, l.Key)
	for n := range l.Children {
		if c := &l.Children[n]; c.Cleared == 0 {
			add(subject{c.Detector, c.Service, c.Cache, c.Key.ID}, c.Key)
		}
	}
	return in
}

// look sees how interrupted incidents fare.
func (x *restart) look(now time.Duration, fs *findings) {
	if x.up == 0 {
		return
	}
	for _, in := range x.open {
		if in.last.Closed != 0 && in.last.PartOf == "" {
			in.closed = true
		}
		if in.found != 0 {
			continue
		}
		for _, f := range fs.open {
			if f.Incident == in.ID {
				in.found = now
			}
		}
	}
}

// opened counts an incident if it is about something that another is open for.
func (x *restart) opened(i *Incident) {
	for _, in := range x.open {
		if !in.closed && in.ID != i.ID && in.concerns(i) {
			x.anew++
			return
		}
	}
}

// woken counts a page if it is about something that somebody was paged for, and
// that was not over.
func (x *restart) woken(i *Incident) {
	for _, in := range x.open {
		if in.paged && !in.closed && (in.ID == i.ID || in.concerns(i)) {
			x.double++
			return
		}
	}
}

// concerns reports whether in was about what i is about.
func (in *interrupted) concerns(i *Incident) bool {
	l := &i.last
	for _, s := range in.subjects {
		if s == (subject{l.Detector, l.Service, l.Cache, l.Key.ID}) {
			return true
		}
	}
	return false
}

// result holds what was found again against what was there to be found.
func (x *restart) result(sc *scenario.Scenario, onsets []rig.Onset) *Restart {
	if x == nil || x.up == 0 {
		return nil
	}
	r := &Restart{Stopped: x.stopped.Seconds(), Up: x.up.Seconds(), Open: len(x.open), Anew: x.anew, DoublePages: x.double}
	for _, in := range x.open {
		there, ok := in.there(sc, x.up, onsets)
		if !ok {
			continue
		}
		r.Due++
		if in.found != 0 {
			r.Found++
			r.Delays = append(r.Delays, max(0, in.found-there).Seconds())
		} else {
			r.Missing = append(r.Missing, in.subjects[0].detector+" on "+in.subjects[0].cache)
		}
	}
	return r
}

// there returns since when what in is about was there to be found again. Trouble
// that goes on must do so for as long as it took to find it the first time, and a
// little more. Trouble that comes again must do so that long before the run ends,
// and be no trifle against what was found.
func (in *interrupted) there(sc *scenario.Scenario, up time.Duration, onsets []rig.Onset) (time.Duration, bool) {
	first := time.Duration(math.MaxInt64)
	for _, s := range in.subjects {
		took, lasted := in.before(sc, s, onsets)
		took += restartSlack
		for i := range onsets {
			o := &onsets[i]
			if !Concerns(sc, o, s.detector, s.cache, in.texts[s]) {
				continue
			}
			goesOn := o.At < up && o.End-up >= took
			again := o.At >= up && o.End-o.At >= lasted/2 && sc.Duration-o.At >= took
			if goesOn || again {
				first = min(first, max(o.At, up))
			}
		}
	}
	return first, first != math.MaxInt64
}

// before returns how long it was from the first onset of what one of the findings
// in in is about to the opening of the incident (it may take some bursts to tell),
// and how long the last of that trouble lasted.
func (in *interrupted) before(sc *scenario.Scenario, s subject, onsets []rig.Onset) (took, lasted time.Duration) {
	opened := time.Duration(in.Opened * float64(time.Second))
	for i := range onsets {
		if o := &onsets[i]; o.At <= opened && Concerns(sc, o, s.detector, s.cache, in.texts[s]) {
			took, lasted = max(took, opened-o.At), o.End-o.At
		}
	}
	return took, lasted
}

// Concerns reports whether o is the trouble that a finding of a detector about
// that cache, and key if it is not empty, speaks of. Trouble of an origin is
// trouble of all its caches.
func Concerns(sc *scenario.Scenario, o *rig.Onset, detector, cache, key string) bool {
	if o.Detector != detector || !sc.SameOrigin(o.Cache, cache) {
		return false
	}
	return o.Key == "" || key == "" || o.Key == key && o.Cache == cache
}
