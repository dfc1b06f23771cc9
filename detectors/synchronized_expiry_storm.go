package detectors

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// storm is what is known of one origin that may be in one.
type storm struct {
	recent rolling[stormSample]
	now    stormView
	// full is when the origin became saturated, worse when all that makes a
	// storm came together; zero if they have not, or no longer.
	full, worse signal.Nanos
	seen        signal.Nanos
	cohort
}

// stormSample is one tick's part of what is judged.
type stormSample struct {
	misses, top uint64
	ended       uint64
	busy        time.Duration // of those
	running     uint64        // at the tick
}

// stormView is an origin over the latest window.
type stormView struct {
	known   bool // the window is whole, and the origin's speed is known
	window  time.Duration
	gone    fates // keys
	demand  float64
	misses  float64
	spread  bool    // over many keys
	top     float64 // share of the most missed key, at most
	queued  bool
	running uint64
	took    time.Duration // recomputes that ended, on average; 0 if none did
	// backlog is how many seconds the origin needs for what runs, or for the
	// keys that have not been served.
	backlog float64
}

func newStorm() *storm { return &storm{recent: rolling[stormSample]{span: maxStormWindow + maxGap}} }

// look takes in a tick that is about the time took.
func (s *storm) look(t *signal.Tick, o *originDemand, took time.Duration, c *SynchronizedExpiryConfig) {
	s.seen = t.At
	if took > 0 {
		s.recent.add(t.At, took, sampleOf(o))
	} else {
		s.recent.samples = nil
	}
	switch {
	case !o.saturated() || took == 0:
		s.full = 0
	case s.full == 0:
		s.full = t.At.Add(-took)
	}
	s.now = s.view(t.At, o, c)
	switch {
	case !s.now.stormy(c) || !s.together(o):
		s.worse = 0
	case s.worse == 0:
		s.worse = t.At
	}
}

func sampleOf(o *originDemand) stormSample {
	x := stormSample{running: o.running()}
	for _, c := range o.caches {
		x.misses += c.Misses
		x.top = max(x.top, c.MissTop)
		for outcome := range signal.NumOutcomes {
			x.ended += c.Work.Recomputes.Ends(outcome)
		}
		x.busy += max(0, c.Work.Busy)
	}
	return x
}

// view looks at the latest window.
func (s *storm) view(at signal.Nanos, o *originDemand, c *SynchronizedExpiryConfig) stormView {
	v := stormView{window: c.window(o.speed), running: o.running()}
	from := at.Add(-v.window)
	v.gone = o.gone(from)
	samples, span := s.recent.since(from)
	if !o.speed.known() || len(samples) == 0 {
		return v
	}
	v.known = span >= v.window
	v.demand = v.gone.total() / (o.speed.perSecond(o.budget) * v.window.Seconds())

	all := sumUp(samples)
	v.misses = float64(all.misses)
	v.top = ratio(float64(all.top), v.misses, 0)
	v.spread = v.gone.total() >= c.DistinctShare*v.misses || v.top <= c.TopShare
	if all.ended > 0 {
		v.took = time.Duration(float64(all.busy) / float64(all.ended))
	}
	v.queued = queued(&v, o, samples, all.ended)
	v.backlog = max(float64(v.running), v.gone.total()-float64(all.ended)) / o.speed.perSecond(o.budget)
	return v
}

func sumUp(samples []sample[stormSample]) (all stormSample) {
	for i := range samples {
		x := &samples[i].v
		all.misses += x.misses
		all.top += x.top
		all.ended += x.ended
		all.busy += x.busy
		all.running += x.running
	}
	return all
}

// queued reports whether the origin was saturated throughout, and more waited
// for it than it served. Where readers queue within a recompute, it shows in how
// many run and in how long they take; where they queue before one, in keys that
// are gone and have not been served.
func queued(v *stormView, o *originDemand, samples []sample[stormSample], ended uint64) bool {
	for i := range samples {
		if x := samples[i].v.running; x < o.allBut()/2 || x == 0 {
			return false
		}
	}
	all := sumUp(samples)
	grew := samples[len(samples)-1].v.running > 2*uint64(o.budget) && samples[len(samples)-1].v.running > samples[0].v.running
	slow := ended == 0 || v.took >= 2*o.speed.mean
	unserved := v.gone.total()-float64(ended) > 2*float64(o.budget)
	return all.running >= o.allBut()*uint64(len(samples)) && (grew || slow || unserved)
}

// stormy reports whether the window shows what makes a storm.
func (v *stormView) stormy(c *SynchronizedExpiryConfig) bool {
	return v.known && v.demand >= c.Demand && v.gone.share(fateExpired) >= c.ExpiredShare && v.spread &&
		v.queued && v.backlog >= c.Backlog.Seconds()
}

// together reports whether the keys that are gone fell due together: at least
// half of them did in one wave of late, half as dense again as deadlines were in
// the last minute. Else there is just more of everything, or readers came back
// to what expired long ago. Where deadlines are not reported it is not known,
// and taken for so: the cause has to do.
func (s *storm) together(o *originDemand) bool {
	fell, told := o.fell()
	if !told {
		return true
	}
	w := highest(fell, 1)
	if w.keys < s.now.gone.total()/2 {
		return false
	}
	all := 0.0
	for _, l := range fell {
		all += l.keys
	}
	width, _ := spread(w.loads)
	return w.keys/max(1, width.Seconds()) >= denser*all/dueFor.Seconds()
}

// calm reports whether it shows that a storm is over: little is asked for, and
// nobody queues for longer than a recompute takes, for which there are as many
// in the queue as at work.
func (v *stormView) calm(o *originDemand, c *SynchronizedExpiryConfig) bool {
	return v.demand <= c.ClearDemand && v.running <= 2*uint64(max(0, o.budget))
}

// lasted reports whether two windows on end did: the present one does, and one
// that was over when it began did.
func (s *storm) lasted(c *SynchronizedExpiryConfig) bool {
	return s.worse != 0 && s.seen.Sub(s.worse) >= s.now.window
}
