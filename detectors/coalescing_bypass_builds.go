package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	maxBuilds    = 4    // compared in one cache
	maxInstances = 2000 // of one build; more would tell no more
	// buildFor is how long a build is remembered that no longer runs, and
	// halfLife how long it takes for what it did to count half.
	buildFor = time.Hour
	halfLife = 10 * time.Minute
	// minSpared is the share of readers an old build must spare before a new
	// one can be said to have lost something.
	minSpared = 0.2
	// minStarts is how many recomputes a process and episode a build must
	// start to be said not to coalesce: one that does starts one, however few
	// readers it has.
	minStarts = 1.5
)

// builds is what the builds of an application did about one cache's misses.
type builds struct {
	arms   []*buildArm // in order of their first episode, then name
	halved signal.Nanos
}

// buildArm is one build.
type buildArm struct {
	build       string
	first, last signal.Nanos
	parts       map[signal.Source]*buildPart // by instance
	readers     float64                      // that needed a value, ever
	lookAt      float64                      // of readers, for the next comparison
	bypasses    bool                         // by the latest
}

// buildPart is one instance of a build. Counts fade.
type buildPart struct{ starts, spared, episodes float64 }

// add counts an episode that is over.
func (b *builds) add(at signal.Nanos, e *signal.Episode) {
	b.fade(at)
	for _, s := range sharesOf(e.Window) {
		if s.Build == "" || s.Recomputes+s.Coalesced == 0 {
			continue
		}
		a := b.arm(at, s.Build)
		p := a.parts[s.Source]
		if p == nil {
			if len(a.parts) >= maxInstances {
				continue
			}
			p = &buildPart{}
			a.parts[s.Source] = p
		}
		p.starts += float64(s.Recomputes)
		p.spared += float64(s.Coalesced)
		p.episodes++
		a.readers += float64(s.Recomputes) + float64(s.Coalesced)
		a.last = at
	}
}

// fade lets what happened count less with time.
func (b *builds) fade(at signal.Nanos) {
	if at.Sub(b.halved).Abs() < halfLife {
		return
	}
	b.halved = at
	b.arms = slices.DeleteFunc(b.arms, func(a *buildArm) bool { return at.Sub(a.last) > buildFor })
	for _, a := range b.arms {
		for source, p := range a.parts {
			p.starts, p.spared, p.episodes = p.starts/2, p.spared/2, p.episodes/2
			if p.episodes < 0.01 {
				delete(a.parts, source)
			}
		}
	}
}

// arm returns the build of that name, in the place of the one that has been gone
// for longest if there are too many.
func (b *builds) arm(at signal.Nanos, build string) *buildArm {
	for _, a := range b.arms {
		if a.build == build {
			return a
		}
	}
	if len(b.arms) >= maxBuilds {
		oldest := slices.MinFunc(b.arms, func(x, y *buildArm) int {
			return cmp.Or(cmp.Compare(x.last, y.last), strings.Compare(x.build, y.build))
		})
		b.arms = slices.DeleteFunc(b.arms, func(a *buildArm) bool { return a == oldest })
	}
	a := &buildArm{build: build, first: at, last: at, parts: map[signal.Source]*buildPart{}}
	b.arms = append(b.arms, a)
	slices.SortFunc(b.arms, func(x, y *buildArm) int {
		return cmp.Or(cmp.Compare(x.first, y.first), strings.Compare(x.build, y.build))
	})
	return a
}

// spared estimates the share of readers the build spares a recompute. The order
// of instances is fixed, because sums of fractions depend on it.
func (a *buildArm) spared() (e estimate, readers, starts float64) {
	sources := make([]signal.Source, 0, len(a.parts))
	for s := range a.parts {
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(x, y signal.Source) int {
		return cmp.Or(strings.Compare(x.Service, y.Service), strings.Compare(x.Instance, y.Instance))
	})
	cs := make([]cluster, 0, len(sources))
	var episodes float64
	for _, s := range sources {
		p := a.parts[s]
		cs = append(cs, cluster{p.spared, p.starts + p.spared})
		readers += p.starts + p.spared
		starts += p.starts
		episodes += p.episodes
	}
	if episodes > 0 {
		starts /= episodes
	}
	return ratioOf(cs), readers, starts
}

// compare holds the newest build against the oldest one. It looks when the
// newest has had twice as many readers as at the last look, because every look is
// a chance to be wrong; once it has found something, at every tick.
func (d *coalescingBypass) compare(at signal.Nanos, k *coalescingCache, c *signal.CacheState) {
	arms := k.builds.arms
	if len(arms) < 2 {
		return
	}
	before, after := arms[0], arms[len(arms)-1]
	after.lookAt = max(after.lookAt, float64(d.c.MinReaders))
	if after.last != at || after.readers < after.lookAt && !after.bypasses {
		return
	}
	was, wasReaders, _ := before.spared()
	now, readers, starts := after.spared()
	if min(wasReaders, readers) < float64(d.c.MinReaders) {
		return
	}
	if after.readers >= after.lookAt {
		after.lookAt = 2 * after.readers
	}
	chance := now.below(was)
	after.bypasses = was.ratio >= minSpared && now.ratio < d.c.Share*was.ratio && starts >= minStarts && chance < d.c.Chance
	if after.bypasses {
		d.alarms.raise(at, d.comparison(c, before, after, was, now, readers, starts, chance))
	}
}

func (d *coalescingBypass) comparison(c *signal.CacheState, before, after *buildArm, was, now estimate, readers, starts, chance float64) symptom {
	var l evidenceList
	l.add("spared.after", now.ratio, "1", fmt.Sprintf("of readers that needed a value, by %d instances of build %s", now.clusters, after.build))
	l.add("spared.before", was.ratio, "1", fmt.Sprintf("by %d instances of build %s", was.clusters, before.build))
	l.add("chance", chance, "1", fmt.Sprintf("of such a difference between instances of one build; pages below %v", d.c.Chance))
	l.add("starts", starts, "{recompute}", "a process and episode; one that coalesces starts one")
	l.add("readers", readers, "{reader}", "of the new build, that needed a value")
	return symptom{
		subject: subject{cache: c.Cache}, service: c.Service, severity: Page, priority: 2, onset: after.first, evidence: l,
		summary: fmt.Sprintf("Cache %s: build %s spares %.0f %% of readers a recompute, build %s spared %.0f %%.",
			c.Cache, after.build, 100*now.ratio, before.build, 100*was.ratio),
	}
}
