package detectors_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// shop is a service with one cache, feed, in front of one origin, db, in steps
// of 10 ms. It says what a fleet would say of it, from knowledge of all.
type shop struct {
	keys, reads int           // how many, and reads of them per second
	budget      int           // what the origin runs at once, first come first served
	delta       time.Duration // for each
	ttl, jitter time.Duration // of what is stored: ttl and, evenly, up to jitter more
	naive       bool          // each reader recomputes for itself
	missing     bool          // the origin has nothing for any key, and nobody asks for one twice
	batch       int           // all keys are recomputed by one call, which takes one slot
	undeclared  bool          // the budget
	timeout     time.Duration // of clients, as declared

	rng     *rand.Rand
	now     time.Duration
	values  []value
	queue   []*recompute
	state   signal.CacheState
	episode []*signal.Episode
	missed  map[int]uint64
}

const step = 10 * time.Millisecond

// value is what the cache holds of one key.
type value struct {
	due    time.Duration // zero if there never was one
	lost   bool
	flight *recompute
	cause  signal.Cause // why it is gone, if not expired or cold
}

// recompute is one of them, at the origin or in the queue.
type recompute struct {
	key     int
	cause   signal.Cause
	began   time.Duration
	from    time.Duration // when its turn came; -1 before
	takes   time.Duration
	episode *signal.Episode
}

func (s *shop) open() *shop {
	s.rng = rand.New(rand.NewPCG(1, 2))
	s.values = make([]value, s.keys)
	s.missed = map[int]uint64{}
	return s
}

// warm stores all keys now, of which the fleet hears.
func (s *shop) warm() *shop {
	for i := range s.values {
		s.values[i] = value{due: s.life()}
	}
	return s
}

func (s *shop) life() time.Duration {
	life := s.now + s.ttl
	if s.jitter > 0 {
		life += time.Duration(s.rng.Int64N(int64(s.jitter)))
	}
	return life
}

// lose drops a share of the values before their time, for that cause.
func (s *shop) lose(share float64, cause signal.Cause) *shop {
	for i := range s.values {
		if v := &s.values[i]; v.due > s.now && s.rng.Float64() < share {
			v.lost, v.cause = true, cause
		}
	}
	return s
}

// run plays to the end of the given time, a tick a second, and returns the
// ticks.
func (s *shop) run(long time.Duration) ticks {
	var out ticks
	for end := s.now + long; s.now < end; {
		for range second / step {
			s.advance()
		}
		out = append(out, s.tick())
	}
	return out
}

func (s *shop) advance() {
	s.now += step
	s.serve()
	n := s.reads * int(s.now/step) / int(second/step)
	for range n - s.reads*int(s.now/step-1)/int(second/step) {
		if s.missing {
			s.values = append(s.values, value{})
			s.read(len(s.values) - 1)
			continue
		}
		s.read(s.rng.IntN(s.keys))
	}
}

func (s *shop) read(i int) {
	v := &s.values[i]
	if v.due > s.now && !v.lost {
		s.state.Lookups.Hits++
		return
	}
	s.state.Lookups.Misses++
	s.state.Misses++
	s.missed[i]++
	if v.flight != nil && !s.naive {
		s.state.Work.Coalesced++
		return
	}
	s.start(i)
}

func (s *shop) start(i int) {
	v := &s.values[i]
	r := &recompute{key: i, cause: signal.CauseExpired, began: s.now, from: -1, takes: s.delta}
	switch {
	case v.due == 0:
		r.cause = signal.CauseCold
	case v.lost:
		r.cause = v.cause
	}
	if v.flight != nil {
		r.episode = v.flight.episode
	} else {
		r.episode = s.begin(i, v)
		v.flight = r
	}
	r.episode.Window.Recomputes.Started[r.cause]++
	s.state.Work.Recomputes.Started[r.cause]++
	s.queue = append(s.queue, r)
}

func (s *shop) begin(i int, v *value) *signal.Episode {
	e := &signal.Episode{
		Started: after(s.now), KnownBefore: v.due > 0, TTL: s.ttl,
		Window: &signal.Window{
			Source: signal.Source{Service: "shop"}, Cache: "feed",
			Key: signal.Key{ID: signal.KeyID(i), Group: "feed:*"}, Start: after(s.now), End: after(s.now),
		},
	}
	if v.due > 0 {
		e.Due = after(v.due)
	}
	s.episode = append(s.episode, e)
	return e
}

// serve lets the origin work for one step.
func (s *shop) serve() {
	free := s.budget
	rest := s.queue[:0]
	for _, r := range s.queue {
		if free > 0 || r.from >= 0 || s.batch > 0 {
			free--
			if r.from < 0 {
				r.from = s.now
			}
		}
		if r.from >= 0 && s.now-r.from >= r.takes {
			s.end(r)
			continue
		}
		rest = append(rest, r)
	}
	s.queue = rest
}

func (s *shop) end(r *recompute) {
	w, v := &s.state.Work, &s.values[r.key]
	cause := r.cause
	if s.missing {
		cause = signal.CauseNegative
	}
	for _, x := range []*signal.Recomputes{&w.Recomputes, &r.episode.Window.Recomputes} {
		x.Ended[cause][signal.OutcomeOK]++
	}
	w.Busy += s.now - r.began
	w.Durations.Observe(s.now - r.began)
	r.episode.Window.End = after(s.now)
	if !s.missing {
		w.Stores++
		*v = value{due: s.life(), flight: v.flight}
	}
	if v.flight == r {
		v.flight = nil
	}
}

// tick is what the fleet says of the last second.
func (s *shop) tick() *signal.Tick {
	c := s.state
	s.state = signal.CacheState{}
	c.Cache, c.Service, c.Origin = "feed", "shop", signal.Origin{Name: "db", Budget: s.budget}
	c.Instances, c.UptimeMin, c.UptimeMax = 2, time.Hour+s.now, time.Hour+s.now
	c.Running = uint32(len(s.queue))
	c.Claims.Timeout = s.timeout
	if s.undeclared {
		c.Origin = signal.Origin{}
	}
	c.MissedKeys = len(s.missed)
	for _, n := range s.missed {
		c.MissTop = max(c.MissTop, n)
	}
	clear(s.missed)
	for i := range s.values {
		if v := &s.values[i]; v.due > s.now && !v.lost {
			if bin, ok := signal.BinExpiry(after(s.now), after(v.due)); ok {
				bin.Keys = 1
				c.Expiries = append(c.Expiries, bin)
			}
		}
	}
	c.Expiries = signal.MergeExpiries(c.Expiries, nil)
	return &signal.Tick{At: after(s.now), Episodes: s.episodes(), Caches: []signal.CacheState{c}}
}

// episodes are those that are not over for two seconds yet, and once more.
func (s *shop) episodes() []signal.Episode {
	flying := map[*signal.Episode]bool{}
	for _, r := range s.queue {
		flying[r.episode] = true
	}
	var out []signal.Episode
	s.episode = slices.DeleteFunc(s.episode, func(e *signal.Episode) bool {
		copied, w := *e, *e.Window
		if flying[e] {
			w.End = after(s.now)
		}
		copied.Window, copied.Final = &w, !flying[e] && after(s.now).Sub(w.End) >= 2*second
		out = append(out, copied)
		return copied.Final
	})
	return out
}

// watch shows ticks to a detector and returns what it said that was new.
func watch(d detectors.Detector, all ...ticks) []string { return play(d, slices.Concat(all...)) }

// found returns the first finding that ticks make d say, and the last.
func found(d detectors.Detector, ts ticks) (first, latest detectors.Finding) {
	for _, t := range ts {
		for _, f := range d.Observe(t) {
			if first.Detector == "" {
				first = f
			}
			latest = f
		}
	}
	return first, latest
}

// evidence returns a figure of a finding, -1 if it has none of that name.
func evidence(f *detectors.Finding, name string) float64 {
	v, ok := f.Get(name)
	if !ok {
		return -1
	}
	return v
}

// waveShop is the usual example: 1,000 keys that take 0.4 s each at an
// origin that runs 8 at once, read 500 times a second.
func waveShop() *shop {
	return (&shop{keys: 1000, reads: 500, budget: 8, delta: 400 * ms, ttl: time.Minute}).open()
}
