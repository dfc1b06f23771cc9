package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/strictyaml"
)

// checker collects what is wrong.
type checker struct{ errs []error }

// Bounds that keep a typing error from asking for a run without end.
const (
	maxDuration  = 32 * 24 * time.Hour
	maxKeys      = 5_000_000
	maxInstances = 10_000
	maxRate      = 1_000_000
	maxTTL       = 366 * 24 * time.Hour
	maxSkew      = time.Hour
)

// check returns everything that is wrong with the values of s.
func (s *Scenario) check() []error {
	var k checker
	k.name(s.Name, "name")
	if strings.ContainsAny(s.About, "\r\n") {
		k.add("has more than one line: want one", "about")
	}
	inRange(&k, s.Duration, time.Second, maxDuration, "duration")
	inRange(&k, s.Fleet.Instances, 1, maxInstances, "fleet", "instances")
	k.name(s.Fleet.Build, "fleet", "build")
	inRange(&k, s.Fleet.ClockSkew, 0, maxSkew, "fleet", "clock_skew")
	k.section(len(s.Origins), "origins")
	for _, n := range slices.Sorted(maps.Keys(s.Origins)) {
		k.origin(n, s.Origins[n])
	}
	k.section(len(s.Caches), "caches")
	for _, n := range slices.Sorted(maps.Keys(s.Caches)) {
		k.cache(s, n)
	}
	k.section(len(s.Workloads), "workloads")
	for i := range s.Workloads {
		k.workload(s, &s.Workloads[i], "workloads", strconv.Itoa(i))
	}
	for i := range s.Events {
		k.event(s, &s.Events[i], "events", strconv.Itoa(i))
	}
	k.outcome(s)
	return k.errs
}

func (k *checker) add(text string, path ...string) {
	k.errs = append(k.errs, strictyaml.Field(text, path...))
}

// section complains of a section that is missing or empty.
func (k *checker) section(n int, name string) {
	if n == 0 {
		k.add("is missing or empty: want at least one", name)
	}
}

// inRange complains of a value outside of low to high, or that is no number.
func inRange[T cmp.Ordered](k *checker, v, low, high T, path ...string) {
	if !(v >= low && v <= high) {
		k.add(fmt.Sprintf("%v is out of range: want %v to %v", v, low, high), path...)
	}
}

func (k *checker) choice(v string, choices []string, path ...string) {
	if err := strictyaml.Choice(v, choices, path...); err != nil {
		k.errs = append(k.errs, err)
	}
}

var nameText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// name complains of what could not be a file name and a label.
func (k *checker) name(s string, path ...string) {
	if !nameText.MatchString(s) {
		k.add(fmt.Sprintf("%q is not a name: want 1 to 64 letters, digits, dots, dashes and underscores", s), path...)
	}
}

func (k *checker) origin(name string, o Origin) {
	k.name(name, "origins", name)
	inRange(k, o.Concurrency, 0, 1_000_000, "origins", name, "concurrency")
	k.choice(o.Queue, []string{QueueFIFO, QueueLIFO, QueueShed}, "origins", name, "queue")
	inRange(k, o.QueueLimit, 0, 10_000_000, "origins", name, "queue_limit")
}

func (k *checker) workload(s *Scenario, w *Workload, path ...string) {
	at := func(f string) []string { return append(path[:len(path):len(path)], f) }
	k.cacheName(s, w.Cache, at("cache")...)
	inRange(k, w.Keys, 1, maxKeys, at("keys")...)
	inRange(k, w.First, 0, maxKeys, at("first")...)
	inRange(k, w.Zipf, 0, 10, at("zipf")...)
	inRange(k, w.Rate, 0.0001, maxRate, at("rate")...)
	k.choice(w.Arrivals, []string{ArrivalsPoisson, ArrivalsEven, ArrivalsBurst}, at("arrivals")...)
	inRange(k, w.Size, 1, 1_000_000, at("size")...)
}

func (k *checker) cacheName(s *Scenario, name string, path ...string) {
	if _, ok := s.Caches[name]; !ok {
		k.add(fmt.Sprintf("%q is not one of caches", name), path...)
	}
}

func (k *checker) event(s *Scenario, e *Event, path ...string) {
	at := func(f string) []string { return append(path[:len(path):len(path)], f) }
	inRange(k, e.At, 0, max(s.Duration, 0), at("at")...)
	verb, ok := verbs[e.Do]
	if !ok {
		k.choice(e.Do, slices.Sorted(maps.Keys(verbs)), at("do")...)
		return
	}
	has := e.present()
	for _, f := range verb.needs {
		if !slices.Contains(has, f) {
			k.add(fmt.Sprintf("is missing: %s needs it", e.Do), at(string(f))...)
		}
	}
	for _, f := range has {
		if !slices.Contains(verb.needs, f) && !slices.Contains(verb.may, f) {
			k.add(fmt.Sprintf("means nothing to %s", e.Do), at(string(f))...)
			continue
		}
		k.eventField(s, e, f, at(string(f))...)
	}
}

// eventField checks a field that is set.
func (k *checker) eventField(s *Scenario, e *Event, f field, path ...string) {
	switch f {
	case fieldCache:
		k.cacheName(s, e.Cache, path...)
	case fieldOrigin:
		if _, ok := s.Origins[e.Origin]; !ok {
			k.add(fmt.Sprintf("%q is not one of origins", e.Origin), path...)
		}
	case fieldKey:
		k.key(s, e.Cache, e.Key, path...)
	case fieldShare:
		inRange(k, e.Share, 0, 1, path...)
	case fieldFactor:
		inRange(k, e.Factor, 0.0001, 10_000, path...)
	case fieldFor:
		inRange(k, e.For, time.Millisecond, maxDuration, path...)
	case fieldOver:
		inRange(k, e.Over, time.Millisecond, maxDuration, path...)
	case fieldDown:
		inRange(k, e.Down, time.Millisecond, maxDuration, path...)
	case fieldTTL:
		inRange(k, e.TTL, 10*time.Millisecond, maxTTL, path...)
	case fieldKeys:
		inRange(k, e.Keys, 1, maxKeys, path...)
	case fieldInstances:
		inRange(k, e.Instances, 1, s.Fleet.Instances, path...)
	case fieldBuild:
		k.name(e.Build, path...)
	}
}

// key complains of a key that no workload reads.
func (k *checker) key(s *Scenario, cache, key string, path ...string) {
	if _, ok := s.KeyNumber(cache, key); !ok {
		k.add(fmt.Sprintf("%q is not read: want the name of a cache, a colon and the number of a key that a workload reads, such as %q", key, cache+":0"), path...)
	}
}

// KeyNumber returns the number of the key called key of the named cache, and
// whether a workload reads it.
func (s *Scenario) KeyNumber(cache, key string) (int, bool) {
	digits, ok := strings.CutPrefix(key, cache+":")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, slices.ContainsFunc(s.Workloads, func(w Workload) bool {
		return w.Cache == cache && n >= w.First && n-w.First < w.Keys
	})
}

// outcome checks what must come out.
func (k *checker) outcome(s *Scenario) {
	for i := range s.Expect {
		x := &s.Expect[i]
		at := func(f string) []string { return []string{"expect", strconv.Itoa(i), f} }
		k.choice(x.Detector, DetectorNames(), at("detector")...)
		k.choice(x.Severity, SeverityNames(), at("severity")...)
		k.cacheName(s, x.Cache, at("cache")...)
		if x.Key != "" {
			k.key(s, x.Cache, x.Key, at("key")...)
		}
		inRange(k, x.Priority, 0, 2, at("priority")...)
		inRange(k, x.Within, 0, maxDuration, at("within")...)
		inRange(k, x.After, 0, max(s.Duration, 0), at("after")...)
	}
	for i, d := range s.Forbid.Detectors {
		k.choice(d, DetectorNames(), "forbid", strconv.Itoa(i))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Truth)) {
		k.choice(name, TruthNames(), "truth", name)
		k.figure(s.Truth[name], "truth", name)
	}
}

func (k *checker) figure(f Figure, path ...string) {
	finite := func(v *float64) bool { return v == nil || !math.IsNaN(*v) && !math.IsInf(*v, 0) }
	switch {
	case !finite(f.Mean) || !finite(f.Min) || !finite(f.Max) || math.IsNaN(f.Tolerance):
		k.add("is not a number", path...)
	case (f.Mean != nil) == (f.Min != nil || f.Max != nil):
		k.add("want mean and tolerance, or min, max or both", path...)
	case f.Tolerance < 0 || f.Tolerance > 1:
		k.add(fmt.Sprintf("tolerance %v is out of range: want 0 to 1, as a share of mean", f.Tolerance), path...)
	case f.Min != nil && f.Max != nil && *f.Min > *f.Max:
		k.add(fmt.Sprintf("min %v is above max %v", *f.Min, *f.Max), path...)
	}
}
