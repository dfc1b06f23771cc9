package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const expiryForecastID = "expiry-forecast"

var expiryForecastDoc = Doc{
	ID:    expiryForecastID,
	Title: "Synchronized expiry ahead",
	Meaning: "So many values are to expire within a short time that the origin will not keep up with recomputing them, and readers will queue. " +
		"It has not happened yet: there is up to one time to live left to prevent it.",
	Signal: "The deadlines of the values that instances have stored, or that probes find on the servers, by the second for the next five minutes and by ten seconds for the next hour, and how fast the origin recomputes. " +
		"How many recomputes a deadline means (values expire that nobody reads, and several instances may report one value) is learned from deadlines that have passed; until 100 have, each counts as one.",
	Condition: "Opens a ticket when the backlog, worked out second by second (what is left, and what readers ask for, less what the origin serves), is to reach more than 2 s of the origin's work and more than five recompute times. " +
		"A key is asked for when it is first read after its deadline, which takes as many seconds as the cache has keys to expire for each of its reads a second. " +
		"Clears when for 60 s no backlog of half of that has been ahead.",
	Why: "The backlog is Lindley's recursion for a queue, and needs no model of arrivals: the arrivals are known. " +
		"Only how long it takes until a key is read is not: all are taken to be read alike, and where some are read less, theirs come later and the wave is lower than forecast. " +
		"That delay matters at the edge: 1,000 deadlines evenly over 50 s at an origin that serves 20 a second pile up to 2 s by chance, and if each key is read every other second most of that never comes. Two seconds is where users notice, and five recompute times what a small burst costs any origin. " +
		"Half of both, to clear, keeps a forecast at the edge from coming and going.",
	Traps: "What a probe estimates from a sample counts with the lower end of its 95 % interval. Deadlines of values that are refreshed early (XFetch, refresh-ahead) pass without a recompute: until that is learned, caches that claim such a protection are not judged. " +
		"Values written by something that does not report are not known. A forecast counts each key once; without deduplication the wave costs more. A new value for a key moves its deadline, and the forecast with it.",
	Advice: "Spread the expiries before they come: store some of the values anew with other times to live, a few at a time, or lengthen those of a part of them. " +
		"Then find what wrote them together (a deploy, a warm-up, a nightly job) and give its times to live a random part of at least spread.required.",
}

// ExpiryForecastConfig holds the thresholds of the expiry-forecast detector. A
// zero field takes its default.
type ExpiryForecastConfig struct {
	// Backlog is how long the origin must be going to need for what has piled
	// up at the worst moment, 100ms to 1h. Default 2s.
	Backlog time.Duration `yaml:"backlog,omitempty"`
	// Recomputes is the same in recompute times; both must be exceeded. 1 to
	// 1,000; default 5.
	Recomputes float64 `yaml:"recomputes,omitempty"`
	// ClearAfter is how long less than half of that must have been ahead
	// before a finding clears, 1s to 24h. Default 60s.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c ExpiryForecastConfig) withDefaults() ExpiryForecastConfig {
	c.Backlog = cmp.Or(c.Backlog, 2*time.Second)
	c.Recomputes = cmp.Or(c.Recomputes, 5)
	c.ClearAfter = cmp.Or(c.ClearAfter, time.Minute)
	return c
}

// validate checks a configuration that has its defaults.
func (c ExpiryForecastConfig) validate() error {
	return cmp.Or(
		within("backlog", c.Backlog, 100*time.Millisecond, time.Hour),
		within("recomputes", c.Recomputes, 1, 1000),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

// least returns the backlog in seconds that must be exceeded.
func (c *ExpiryForecastConfig) least(s speed) float64 {
	return max(c.Backlog.Seconds(), c.Recomputes*s.mean.Seconds())
}

// expiryForecast finds origins that are going to fall behind.
type expiryForecast struct {
	c      ExpiryForecastConfig
	demand demand
	alarms *alarms
	limits []Limit

	measures []Measure
}

// NewExpiryForecast returns the expiry-forecast detector. It is a [Limited] and a
// [Measured].
func NewExpiryForecast(c ExpiryForecastConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &expiryForecast{
		c:      c,
		alarms: newAlarms(&expiryForecastDoc, c.ClearAfter, "no more expires together than the origin can serve"),
	}, nil
}

// Doc implements [Detector].
func (*expiryForecast) Doc() Doc { return expiryForecastDoc }

// Limits implements [Limited].
func (d *expiryForecast) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. An urgent tick has no new deadlines.
func (d *expiryForecast) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	origins := d.demand.observe(t)
	d.measures = nil
	for i := range origins {
		if o := &origins[i]; o.speed.known() {
			d.judge(t.At, o)
		}
	}
	out := d.alarms.tell(t, cachesOf(t))
	of := originLimits(origins)
	d.limits = d.alarms.limits(t, cachesOf(t), func(c *signal.CacheState) []Limit {
		if ls := of(c); len(ls) > 0 {
			return ls
		}
		if d.demand.caches[c.Cache].refreshes(c) {
			return []Limit{refreshLimit(c)}
		}
		return nil
	})
	return out
}

// judge raises a finding on an origin, or keeps one open.
func (d *expiryForecast) judge(at signal.Nanos, o *originDemand) {
	w := highest(o.coming(), 1)
	w.peak = min(w.peak, highest(o.wanted(), 1).peak)
	d.measures = append(d.measures, Measure{MeasureBacklogAhead, o.name.label(), w.peak})
	i := o.heaviest(func(c *cacheDemand) float64 {
		n := 0.0
		for _, l := range c.dues.loads(1) {
			if l.at >= w.from && l.at <= w.at {
				n += l.keys
			}
		}
		return n
	})
	for j, c := range o.caches {
		if d.alarms.open[subject{cache: c.Cache}] != nil {
			i = j
		}
	}
	c := o.caches[i]
	// Deadlines that were estimated from a sample pile up by chance too.
	sure := w.peak - o.margin(w.keys)/o.speed.perSecond(o.budget)
	switch least := d.c.least(o.speed); {
	case sure > least:
		d.alarms.raise(at, d.symptom(at, o, i, &w))
	case w.peak > least/2:
		d.alarms.keep(at, subject{cache: c.Cache})
	}
}

// symptom says what is known of a wave, of which cache i has most.
func (d *expiryForecast) symptom(at signal.Nanos, o *originDemand, i int, w *wave) symptom {
	c, k := o.caches[i], o.demand[i]
	width, fullest := spread(w.loads)
	var l evidenceList
	l.add("keys", w.keys, "{key}", "to be recomputed, from the first that queues to the worst moment"+o.yieldNote())
	l.add("backlog", w.peak, "s", fmt.Sprintf("of %s's work left at the worst moment; warns above %.1f", o.name, d.c.least(o.speed)))
	l.add("ahead", max(0, w.from.Sub(at).Seconds()), "s", "until the first of them expires, at "+w.from.Time().Format("15:04:05 MST"))
	o.tellWave(&l, at, c, k, w)
	l.add("refill", o.speed.cost(w.keys, o.budget).Seconds(), "s", "for all of them, if each is computed once")
	l.add("budget", float64(o.budget), "{recompute}", "as declared for "+o.name.String())
	o.speed.tell(&l)
	l.add("spread.required", o.spreadFor(w.keys).Seconds(), "s", "to keep the origin 80 % busy")
	l.add("spread.observed", width.Seconds(), "s", "of their deadlines, from the 1st to the 99th percentile, scaled to all")
	l.add("deadlines.peak", fullest.keys, "{key}", "in the fullest second")
	l.addPositive("ttl", o.ttl().Seconds(), "s", "the longest lately")
	return symptom{
		subject: subject{cache: c.Cache}, service: c.Service, severity: Ticket, onset: at, evidence: l,
		summary: fmt.Sprintf("Cache %s: %.0f keys%s expire within %.0f s, in %.0f s from now; %s refills %.1f a second and will be %.0f s behind.",
			c.Cache, w.keys, k.mostly(w), max(1, width.Seconds()), max(0, w.from.Sub(at).Seconds()), o.name, o.speed.perSecond(o.budget), w.peak),
	}
}
