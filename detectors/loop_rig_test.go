package detectors_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// system is a look-aside cache before an origin with a first-in-first-out queue,
// simulated event by event. Its ticks are what an exporter would be shown.
type system struct {
	rate     float64 // reads of users per second, Poisson
	keys     int     // 0: nothing is ever cached
	zipf     float64
	ttl      [2]time.Duration // uniform between
	servers  int
	service  time.Duration
	timeout  time.Duration
	attempts int
	fillLate bool // what comes after its caller's timeout fills the cache all the same
	cancel   bool // the origin stops work whose caller has left
	budget   int  // as declared; servers if zero, none if negative
	events   []event
}

// event changes a system that runs.
type event struct {
	at time.Duration
	do func(*run)
}

func when(t time.Duration, do func(*run)) event { return event{t, do} }

func rate(perSecond float64) func(*run)         { return func(r *run) { r.rate = perSecond } }
func slowness(service time.Duration) func(*run) { return func(r *run) { r.service = service } }
func flush(r *run)                              { clear(r.expiry) }

// run is a system at work.
type run struct {
	system
	rng      *rand.Rand
	now      time.Duration
	due      moments
	seq      int
	weights  []float64 // cumulative, by key
	expiry   []time.Duration
	ledger   []time.Duration // when each key's last value was to expire
	queue    []*attempt
	busy     int
	running  int
	state    signal.CacheState // counts of the current second
	goodput  [2]float64        // answered and asked, of the current second
	goodputs []float64         // by second
}

type attempt struct {
	key, n        int
	started       time.Duration
	cause         signal.Cause
	working, gone bool
	done          bool
}

type moment struct {
	at  time.Duration
	seq int
	do  func()
}

type moments []moment

func (m moments) Len() int { return len(m) }
func (m moments) Less(i, j int) bool {
	return m[i].at < m[j].at || m[i].at == m[j].at && m[i].seq < m[j].seq
}
func (m moments) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *moments) Push(x any)   { *m = append(*m, x.(moment)) }
func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

func (s system) start(seed uint64) *run {
	r := &run{system: s, rng: rand.New(rand.NewPCG(seed, 1))}
	r.expiry, r.ledger = make([]time.Duration, s.keys), make([]time.Duration, s.keys)
	sum := 0.0
	for k := range s.keys {
		sum += math.Pow(float64(k+1), -s.zipf)
		r.weights = append(r.weights, sum)
		r.expiry[k] = time.Duration(r.rng.Float64() * float64(s.ttl[0])) // warm
		r.ledger[k] = r.expiry[k]
	}
	for _, e := range s.events {
		r.after(e.at, func() { e.do(r) })
	}
	r.arrive()
	return r
}

func (r *run) after(d time.Duration, do func()) {
	r.seq++
	heap.Push(&r.due, moment{r.now + d, r.seq, do})
}

// arrive has the next reader come.
func (r *run) arrive() {
	r.after(time.Duration(r.rng.ExpFloat64()/r.rate*float64(time.Second)), func() {
		r.arrive()
		r.read()
	})
}

func (r *run) read() {
	r.goodput[1]++
	if r.keys == 0 {
		r.state.Lookups.Misses++
		r.try(&attempt{key: -1, n: 1, cause: signal.CauseCold})
		return
	}
	x := r.rng.Float64() * r.weights[len(r.weights)-1]
	key, _ := slices.BinarySearch(r.weights, x)
	if r.expiry[key] > r.now {
		r.state.Lookups.Hits++
		r.goodput[0]++
		return
	}
	r.state.Lookups.Misses++
	cause := signal.CauseExpired
	if r.ledger[key] > r.now {
		cause = signal.CauseEvicted
	}
	r.try(&attempt{key: key, n: 1, cause: cause})
}

// try starts a recompute.
func (r *run) try(a *attempt) {
	a.started = r.now
	r.running++
	r.state.Work.Recomputes.Started[a.cause]++
	r.state.Work.Retries.Attempts++
	if a.n == 1 {
		r.state.Work.Retries.Requests++
	}
	r.queue = append(r.queue, a)
	r.serve()
	r.after(r.timeout, func() { r.giveUp(a) })
}

func (r *run) serve() {
	for r.busy < r.servers && len(r.queue) > 0 {
		a := r.queue[0]
		r.queue = r.queue[1:]
		if a.gone {
			continue // nobody waits for a connection on behalf of who has left
		}
		a.working = true
		r.busy++
		r.after(r.service, func() { r.finish(a) })
	}
}

func (r *run) finish(a *attempt) {
	if a.done {
		return
	}
	a.done = true
	r.busy--
	if !a.gone {
		r.goodput[0]++
		r.end(a, signal.OutcomeOK)
	}
	if a.key >= 0 && (!a.gone || r.fillLate) {
		r.expiry[a.key] = r.now + r.ttl[0] + time.Duration(r.rng.Float64()*float64(r.ttl[1]-r.ttl[0]))
		r.ledger[a.key] = r.expiry[a.key]
		r.state.Work.Stores++
	}
	r.serve()
}

// giveUp is a caller's timeout.
func (r *run) giveUp(a *attempt) {
	if a.done || a.gone {
		return
	}
	a.gone = true
	r.end(a, signal.OutcomeTimedOut)
	if a.working && r.cancel {
		a.done = true
		r.busy--
		r.serve()
	}
	if a.n < r.attempts {
		r.try(&attempt{key: a.key, n: a.n + 1, cause: a.cause})
	}
}

func (r *run) end(a *attempt, o signal.Outcome) {
	r.running--
	w := &r.state.Work
	w.Recomputes.Ended[a.cause][o]++
	w.Busy += r.now - a.started
	if o == signal.OutcomeOK {
		w.Durations.Observe(r.now - a.started)
	}
}

// second runs on for a second, and returns the tick at its end.
func (r *run) second() *signal.Tick {
	r.state = feed(uptime(time.Hour + r.now))
	r.state.Origin.Budget = r.budget
	if r.budget == 0 {
		r.state.Origin.Budget = r.servers
	}
	if r.budget < 0 {
		r.state.Origin.Budget = 0
	}
	r.state.Claims = signal.Claims{Timeout: r.timeout, Attempts: r.attempts}
	r.goodput = [2]float64{}
	end := r.now + time.Second
	for r.due[0].at <= end {
		m := heap.Pop(&r.due).(moment)
		r.now = m.at
		m.do()
	}
	r.now = end
	r.state.Running = uint32(r.running)
	r.goodputs = append(r.goodputs, r.goodput[0]/max(1, r.goodput[1]))
	return with(&signal.Tick{At: after(end)}, r.state)
}

// change is a finding that opened, became worse or cleared.
type change struct {
	at      time.Duration
	state   string
	finding detectors.Finding
}

// watchSystem shows d a system for so long, and returns what changed, by
// detector, and the share of reads answered in each second.
func watchSystem(ds []detectors.Detector, s system, seed uint64, d time.Duration) (map[string][]change, []float64) {
	r, out := s.start(seed), map[string][]change{}
	for r.now < d {
		t := r.second()
		for _, d := range ds {
			for _, f := range d.Observe(t) {
				c := change{t.At.Sub(epoch), stateOf(&f), f}
				if l := out[f.Detector]; len(l) == 0 || l[len(l)-1].state != c.state {
					out[f.Detector] = append(l, c)
				}
			}
		}
	}
	return out, r.goodputs
}
