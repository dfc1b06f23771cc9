package demo

import (
	"fmt"
	"slices"
	"time"
)

// Names of protections, for Options.Protect.
const (
	ProtectNone         = "none"         // every reader that misses recomputes
	ProtectSingleFlight = "singleflight" // one recompute per instance at a time
	ProtectXFetch       = "xfetch"       // readers volunteer to recompute before expiry
)

// Protections lists what Options.Protect may be.
func Protections() []string { return []string{ProtectNone, ProtectSingleFlight, ProtectXFetch} }

// Options configure a [Rig]. Zero fields take the defaults of the hot-key
// scenario.
type Options struct {
	Instances int           // application instances; default 20, at most 200
	Rate      float64       // reads per second of the whole fleet, Poisson; default 300, at most 5000
	Recompute time.Duration // what the origin takes; default 400 ms
	TTL       time.Duration // of a value; default 3 s, more than twice Recompute
	Budget    int           // recomputes the origin can run at once; default 8
	Protect   string        // default ProtectNone
	Seed      uint64        // of arrivals and of XFetch; default 1

	// Redis is the address of a Redis to use. Default: one inside the process.
	Redis string
	// Endpoint is where the instances send: host:port of an OTLP receiver for
	// gRPC without TLS. Required.
	Endpoint string
	// OnCycle is called after each burst of recomputes, from one goroutine at
	// a time, and must not block.
	OnCycle func(Cycle)
}

func (o Options) withDefaults() Options {
	setDefault(&o.Instances, 20)
	setDefault(&o.Rate, 300)
	setDefault(&o.Recompute, 400*time.Millisecond)
	setDefault(&o.TTL, 3*time.Second)
	setDefault(&o.Budget, 8)
	setDefault(&o.Protect, ProtectNone)
	setDefault(&o.Seed, 1)
	if o.OnCycle == nil {
		o.OnCycle = func(Cycle) {}
	}
	return o
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Validate returns what is wrong with o, taking it as it is: without defaults,
// and whatever the Endpoint.
func (o Options) Validate() error {
	switch {
	case o.Instances < 1 || o.Instances > 200:
		return fmt.Errorf("instances is %d: want 1 to 200", o.Instances)
	case o.Rate < 1 || o.Rate > 5000:
		return fmt.Errorf("rate is %v reads per second: want 1 to 5000", o.Rate)
	case o.Recompute < time.Millisecond || o.Recompute > time.Minute:
		return fmt.Errorf("recompute is %v: want 1ms to 1m", o.Recompute)
	case o.TTL < 2*o.Recompute || o.TTL < 100*time.Millisecond:
		return fmt.Errorf("ttl is %v: want at least twice recompute (%v), and 100ms", o.TTL, o.Recompute)
	case o.Budget < 1:
		return fmt.Errorf("budget is %d: want at least 1", o.Budget)
	case !slices.Contains(Protections(), o.Protect):
		return fmt.Errorf("protect is %q: want one of %q", o.Protect, Protections())
	}
	return nil
}
