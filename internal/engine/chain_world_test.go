package engine_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// world is a made-up fleet whose instances do all that a monitor can tell of, at
// random. What each says is in itself as it should be: what ended had begun, and
// counts add up.
type world struct {
	*rand.Rand
	now   signal.Nanos // the true time
	keys  int
	procs []*proc
	birth uint64 // of processes
}

// proc is one process: an instance that uses one cache.
type proc struct {
	source  signal.Source
	cache   string
	origin  signal.Origin
	claims  signal.Claims
	skew    time.Duration
	began   signal.Nanos
	totals  signal.Vitals
	running map[signal.KeyID][]signal.Interval
	next    uint64 // recompute
}

// worldCaches are the caches there are, and what they spend.
var worldCaches = []struct {
	name   string
	origin signal.Origin
	claims signal.Claims
}{
	{"feed", signal.Origin{Name: "db", Budget: 4}, signal.Claims{Protection: []string{signal.ProtectSingleFlight}, Timeout: time.Second, Attempts: 2}},
	{"cart", signal.Origin{Name: "db", Budget: 4}, signal.Claims{Protection: []string{signal.ProtectXFetch, signal.ProtectLock}, Beta: 1, LockTTL: 2 * time.Second}},
	{"page", signal.Origin{}, signal.Claims{}},
}

const worldStart = signal.Nanos(1_700_000_000 * time.Second)

// newWorld makes a fleet of so many instances of each cache. Instances' clocks
// are off by up to skew.
func newWorld(seed uint64, instances, keys int, skew time.Duration) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), now: worldStart, keys: keys}
	for i := range instances {
		off := time.Duration(0)
		if skew > 0 {
			off = time.Duration(w.Int64N(int64(2*skew))) - skew
		}
		for _, c := range worldCaches {
			w.procs = append(w.procs, &proc{
				source: signal.Source{Service: "shop", Instance: fmt.Sprint("i", i), Build: []string{"v1", "v2"}[i%2]},
				cache:  c.name, origin: c.origin, claims: c.claims, skew: off,
			})
		}
	}
	for _, p := range w.procs {
		w.start(p)
	}
	return w
}

// start gives p a new life.
func (w *world) start(p *proc) {
	w.birth++
	p.began, p.totals, p.running, p.next = w.now, signal.Vitals{}, map[signal.KeyID][]signal.Interval{}, w.birth<<32
}

// report is what one process says of one second.
type report struct {
	windows []*signal.Window
	vitals  *signal.Vitals
}

// second lets a second pass, in which trouble is as likely as that, and returns
// what every process says of it.
func (w *world) second(trouble float64) []report {
	from := w.now
	w.now = w.now.Add(time.Second)
	var out []report
	for _, p := range w.procs {
		var r report
		hot := w.Float64() < trouble // readers meet in this process
		for id := range w.keys {
			if w.Float64() < 0.5 || len(p.running[signal.KeyID(id+1)]) > 0 {
				r.windows = append(r.windows, w.window(p, signal.KeyID(id+1), from, hot, trouble))
			}
		}
		r.vitals = w.vitals(p)
		out = append(out, r)
	}
	return out
}

// window is what p sees of one key in the second that begins at from.
func (w *world) window(p *proc, id signal.KeyID, from signal.Nanos, hot bool, trouble float64) *signal.Window {
	x := &signal.Window{Source: p.source, Cache: p.cache, Key: signal.Key{ID: id, Group: "k:*", Text: "secret"}, Start: from, End: w.now}
	x.Lookups.Hits = uint64(w.IntN(50))
	n := w.IntN(2)
	if hot {
		n = w.IntN(40)
	}
	x.Lookups.Misses = uint64(n + w.IntN(3))
	x.MissPeak = uint32(min(uint64(n), x.Lookups.Misses))
	w.recompute(p, x, n, trouble)
	if hot {
		x.Coalesced = x.Lookups.Misses / 2
	}
	if w.Float64() < trouble/2 {
		w.extras(x)
	}
	x.Shift(p.skew)
	p.count(x)
	return x
}

// recompute starts n recomputes, and ends some of those that run.
func (w *world) recompute(p *proc, x *signal.Window, n int, trouble float64) {
	causes := []signal.Cause{signal.CauseExpired, signal.CauseExpired, signal.CauseCold, signal.CauseEvicted, signal.CauseInvalidated, signal.CauseEarly, signal.CauseNegative}
	for range n {
		p.next++
		iv := signal.Interval{ID: p.next, Start: x.Start + signal.Nanos(w.Int64N(int64(time.Second))), Cause: causes[w.IntN(len(causes))]}
		x.Recomputes.Started[iv.Cause]++
		x.Retries.Requests++
		x.Retries.Attempts += 1 + uint64(w.IntN(3))*uint64(w.IntN(2))
		if iv.Cause == signal.CauseEarly {
			x.Early.Count++
			x.Early.LeadSum += time.Duration(w.Int64N(int64(time.Minute)))
			x.Early.LeadMax = max(x.Early.LeadMax, x.Early.LeadSum)
			x.Early.DeltaMax = time.Duration(w.Int64N(int64(5 * time.Second)))
		}
		p.running[x.Key.ID] = append(p.running[x.Key.ID], iv)
	}
	var still []signal.Interval
	for _, iv := range p.running[x.Key.ID] {
		if iv.Cause.Provoked() {
			x.InFlightPeak++
		}
		if w.Float64() < trouble {
			still = append(still, iv)
			x.Intervals = append(x.Intervals, iv)
			continue
		}
		iv.End = max(iv.Start, x.Start) + signal.Nanos(w.Int64N(int64(x.End-max(iv.Start, x.Start)+1)))
		iv.Outcome = signal.OutcomeOK
		if w.Float64() < trouble {
			iv.Outcome = signal.Outcome(w.IntN(int(signal.NumOutcomes)))
		}
		w.ended(x, iv)
	}
	p.running[x.Key.ID] = still
	slices.SortFunc(x.Intervals, func(a, b signal.Interval) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
	if len(x.Intervals) > signal.MaxIntervals {
		x.Intervals, x.Sampled = signal.SampleIntervals(x.Intervals, signal.MaxIntervals), true
	}
}

// ended counts a recompute that ended, and perhaps stored what it made.
func (w *world) ended(x *signal.Window, iv signal.Interval) {
	x.Intervals = append(x.Intervals, iv)
	x.Recomputes.Ended[iv.Cause][iv.Outcome]++
	x.Busy += iv.End.Sub(iv.Start)
	x.BusyMax = max(x.BusyMax, iv.End.Sub(iv.Start))
	if iv.Outcome != signal.OutcomeOK || w.IntN(4) == 0 {
		return
	}
	ttl := time.Duration(1+w.IntN(30)) * time.Second
	s := &x.Stores
	s.Count++
	if s.ExpiryMin == 0 || iv.End.Add(ttl) < s.ExpiryMin {
		s.ExpiryMin, s.TTLMin = iv.End.Add(ttl), ttl
	}
	s.ExpiryMax, s.TTLMax = max(s.ExpiryMax, iv.End.Add(ttl)), max(s.TTLMax, ttl)
	s.Versions.Note(uint64(iv.Start), iv.End)
}

// extras are what happens seldom: locks, invalidations, duplicates.
func (w *world) extras(x *signal.Window) {
	x.Duplicates, x.WhileFresh = uint64(w.IntN(5)), uint64(w.IntN(2))
	x.Locks = signal.Locks{
		Attempts: uint64(w.IntN(20)), Waits: uint64(w.IntN(20)), WaitMax: time.Duration(w.Int64N(int64(5 * time.Second))), WaitPeak: uint32(w.IntN(80)),
		Lost: uint64(w.IntN(2)), Waiting: uint32(w.IntN(10)), Held: uint32(w.IntN(2)),
	}
	x.Locks.WaitSum = x.Locks.WaitMax
	if x.Locks.Held > 0 {
		x.Locks.HeldSince = x.Start - signal.Nanos(w.Int64N(int64(10*time.Second)))
	}
	if w.IntN(2) == 0 {
		x.Invalidations, x.InvalidatedAt = 1, x.Start+signal.Nanos(w.Int64N(int64(time.Second)))
	}
	x.Stores.Stale = min(x.Stores.Count, uint64(w.IntN(2)))
}

// count adds what p saw to what it says of itself.
func (p *proc) count(x *signal.Window) {
	v := &p.totals
	v.Lookups.Add(x.Lookups)
	v.Work.Add(&signal.Work{Recomputes: x.Recomputes, Busy: x.Busy, Duplicates: x.Duplicates, WhileFresh: x.WhileFresh,
		Coalesced: x.Coalesced, Stores: x.Stores.Count, Early: x.Early.Count, Retries: x.Retries})
	for _, iv := range x.Intervals {
		if iv.Outcome == signal.OutcomeOK && !iv.Running() {
			v.Durations.Observe(iv.End.Sub(iv.Start))
		}
	}
}

func (w *world) vitals(p *proc) *signal.Vitals {
	v := p.totals
	v.Source, v.Cache, v.Origin, v.Claims = p.source, p.cache, p.origin, p.claims
	v.At, v.Uptime = w.now.Add(p.skew), w.now.Sub(p.began)
	v.Running, v.Waiting = 0, uint32(w.IntN(5))
	for _, ivs := range p.running {
		v.Running += uint32(len(ivs))
	}
	for range w.IntN(20) {
		if bin, ok := signal.BinExpiry(v.At, v.At.Add(time.Duration(w.Int64N(int64(time.Minute))))); ok {
			bin.Keys = uint32(w.IntN(50))
			v.Expiries = signal.MergeExpiries(v.Expiries, []signal.ExpiryBin{bin})
		}
	}
	return &v
}
