package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// chain is all that is between records and incidents, in the order in which an
// [engine.Engine] uses it, at instants that a test says.
type chain struct {
	t         *rapid.T
	fleet     *fleet.Fleet
	detectors []detectors.Detector
	incidents *incident.Manager
	open      map[about]detectors.Finding // by the findings told so far
	woken     map[about]waking            // what somebody was woken for since it began
}

// about is what a finding is about.
type about struct {
	detector, service, cache string
	key                      signal.KeyID
}

// waking is when somebody was last woken, and how urgent it was then.
type waking struct {
	at      signal.Nanos
	urgency int
}

// regroup is the manager's own: so long nobody is woken for the same.
const regroup = 30 * time.Minute

func newChain(t *rapid.T) *chain {
	c := &chain{t: t, open: map[about]detectors.Finding{}, woken: map[about]waking{}}
	var err error
	if c.fleet, err = fleet.New(fleet.Options{}); err != nil {
		t.Fatal(err)
	}
	if c.detectors, err = detectors.All(detectors.Config{}); err != nil {
		t.Fatal(err)
	}
	if c.incidents, err = incident.New(incident.Options{Listeners: []incident.Listener{c}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// add takes copies of what was reported, in that order.
func (c *chain) add(now signal.Nanos, rs ...report) []detectors.Finding {
	urgent := false
	for _, r := range rs {
		ws := make([]*signal.Window, len(r.windows))
		for i, w := range r.windows {
			x := *w
			x.Intervals = slices.Clone(w.Intervals)
			ws[i] = &x
		}
		var vs []*signal.Vitals
		if r.vitals != nil {
			v := *r.vitals
			vs = append(vs, &v)
		}
		urgent = c.fleet.Add(now, ws, vs) || urgent
	}
	if !urgent {
		return nil
	}
	return c.look(c.fleet.UrgentTick(now))
}

// tick is a regular one.
func (c *chain) tick(now signal.Nanos) []detectors.Finding { return c.look(c.fleet.Tick(now)) }

// look shows a tick, and holds what is found to what detectors promise.
func (c *chain) look(t *signal.Tick) []detectors.Finding {
	if t == nil {
		return nil
	}
	var all []detectors.Finding
	for _, d := range c.detectors {
		fs := d.Observe(t)
		c.hold(d, t, fs)
		all = append(all, fs...)
	}
	c.incidents.Apply(t.At, all)
	return all
}

func (c *chain) hold(d detectors.Detector, t *signal.Tick, fs []detectors.Finding) {
	told := map[about]bool{}
	for i := range fs {
		f := &fs[i]
		a := about{f.Detector, f.Service, f.Cache, f.Key.ID}
		was, open := c.open[a]
		switch {
		case told[a]:
			c.t.Fatalf("%v is told twice at one tick", a)
		case f.Cleared && !open:
			c.t.Fatalf("%v clears and was not open", a)
		case open && f.Severity < was.Severity:
			c.t.Fatalf("%v becomes less severe: %v, was %v", a, f.Severity, was.Severity)
		case f.Detector != d.Doc().ID || f.Onset > t.At || f.Detected > t.At || f.Summary == "" || strings.Contains(fmt.Sprint(f.Summary, f.Advice), "secret"):
			c.t.Fatalf("%v at %d: %+v", a, t.At, f)
		}
		for _, e := range f.Evidence {
			if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) || e.Value < 0 {
				c.t.Fatalf("%v: evidence %+v", a, e)
			}
		}
		told[a] = true
		if c.open[a] = *f; f.Cleared {
			delete(c.open, a)
			delete(c.woken, a) // should it come back, that is news
		}
	}
	for a := range c.open {
		if a.detector == d.Doc().ID && !t.Urgent && !told[a] {
			c.t.Fatalf("%v is open and not told", a)
		}
	}
}

// IncidentChanged implements [incident.Listener]: nobody is woken for what they
// were woken for not long before, unless it is worse.
func (c *chain) IncidentChanged(i incident.Incident, ch incident.Change) {
	wakes := ch.Kind == incident.Opened || ch.Kind == incident.Reopened || ch.Kind == incident.SeverityChanged
	if !wakes || i.Severity != detectors.Page {
		return
	}
	news := i.MoreChildren > 0
	wake := func(a about, severity detectors.Severity, priority int) {
		urgency := 10*int(severity) - priority
		if was, ok := c.woken[a]; !ok || urgency > was.urgency || ch.At.Sub(was.at) >= regroup {
			news = true
		}
		c.woken[a] = waking{ch.At, urgency}
	}
	wake(about{i.Detector, i.Service, i.Cache, i.Key.ID}, i.Finding.Severity, i.Finding.Priority)
	for _, child := range i.Children {
		if child.Cleared == 0 {
			wake(about{child.Detector, child.Service, child.Cache, child.Key.ID}, child.Severity, child.Priority)
		}
	}
	if !news {
		c.t.Fatalf("%s of %s wakes somebody again at %v for what they know", ch.Kind, i.Detector, ch.At.Sub(worldStart))
	}
}

// fleetOf draws a fleet, and how likely trouble is in each second.
func fleetOf(t *rapid.T, skew time.Duration) (w *world, trouble func() float64) {
	w = newWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 6).Draw(t, "instances"), rapid.IntRange(1, 5).Draw(t, "keys"), skew)
	bad := rapid.Float64Range(0.05, 0.6).Draw(t, "trouble")
	return w, func() float64 {
		if w.now.Sub(worldStart) < 10*time.Second || w.IntN(3) > 0 {
			return 0.01
		}
		return bad
	}
}

// sameWhatever fails unless two chains were told the same and found the same.
func sameWhatever(t *rapid.T, why string, one, other []detectors.Finding) {
	if diff := cmp.Diff(one, other); diff != "" {
		t.Fatalf("%s makes a difference (-without +with):\n%s", why, diff)
	}
}

func TestTheOrderInWhichWindowsComeWithinATickMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, trouble := fleetOf(t, 0)
		one, other := newChain(t), newChain(t)
		for range rapid.IntRange(10, 40).Draw(t, "seconds") {
			rs := w.second(trouble())
			shuffled := slices.Clone(rs)
			w.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			for i := range shuffled {
				ws := slices.Clone(shuffled[i].windows)
				w.Shuffle(len(ws), func(i, j int) { ws[i], ws[j] = ws[j], ws[i] })
				shuffled[i].windows = ws
			}
			sameWhatever(t, "the order", one.add(w.now, rs...), other.add(w.now, shuffled...))
			sameWhatever(t, "the order", one.tick(w.now), other.tick(w.now))
		}
		if diff := cmp.Diff(one.incidents.All(), other.incidents.All()); diff != "" {
			t.Fatalf("incidents (-in order +shuffled):\n%s", diff)
		}
	})
}

func TestRecordsThatComeTwiceMakeNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, trouble := fleetOf(t, 0)
		one, other := newChain(t), newChain(t)
		var last []report
		for range rapid.IntRange(10, 40).Draw(t, "seconds") {
			rs := w.second(trouble())
			again := slices.Clone(last)
			for i := range again {
				again[i].vitals = nil // a heartbeat of a second ago is another matter
			}
			sameWhatever(t, "sending twice", one.add(w.now, rs...), other.add(w.now, append(slices.Concat(rs, rs), again...)...))
			sameWhatever(t, "sending twice", one.tick(w.now), other.tick(w.now))
			last = rs
		}
		if diff := cmp.Diff(one.incidents.All(), other.incidents.All()); diff != "" {
			t.Fatalf("incidents (-once +twice):\n%s", diff)
		}
	})
}

// whateverArrives lets records be lost, late, sent twice and out of order, lets
// clocks be off, processes be started anew, and time stand still or leap.
func whateverArrives(t *rapid.T) {
	w, trouble := fleetOf(t, rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Minute}).Draw(t, "skew"))
	loss := rapid.Float64Range(0, 0.5).Draw(t, "loss")
	late := rapid.Float64Range(0, 0.5).Draw(t, "late")
	c := newChain(t)
	type held struct {
		at signal.Nanos
		report
	}
	var queue []held
	for range rapid.IntRange(10, 60).Draw(t, "seconds") {
		switch w.IntN(40) {
		case 0:
			w.start(w.procs[w.IntN(len(w.procs))])
		case 1:
			w.now = w.now.Add(time.Duration(w.IntN(1200)) * time.Second)
		}
		for _, r := range w.second(trouble()) {
			for copies := 1 + w.IntN(2)*w.IntN(2); copies > 0 && w.Float64() >= loss; copies-- {
				at := w.now
				if w.Float64() < late {
					at = at.Add(time.Duration(w.IntN(20_000)) * time.Millisecond)
				}
				queue = append(queue, held{at, r})
			}
		}
		w.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
		var kept []held
		for _, h := range queue {
			if h.at > w.now {
				kept = append(kept, h)
				continue
			}
			c.add(w.now, h.report)
		}
		queue = kept
		if w.IntN(20) > 0 { // now and then a tick is missed
			c.tick(w.now)
		}
	}
}

func TestWhateverArrivesAndWhenEveryPromiseIsKept(t *testing.T) { rapid.Check(t, whateverArrives) }

func FuzzWhateverArrives(f *testing.F) {
	for seed := range uint64(8) { // as many bytes as what is drawn takes
		b := make([]byte, 512)
		rng := rand.New(rand.NewPCG(seed, 0))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(rapid.MakeFuzz(whateverArrives))
}
