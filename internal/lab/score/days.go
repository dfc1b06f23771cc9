package score

import (
	"context"
	"math"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// MaxDays is how many days [RunDays] can be asked for: more than anybody will
// wait for.
const MaxDays = 3650

// RunDays runs scenarios again and again, each time with another seed and the
// next shift, until they have covered so many simulated days. Each scenario
// covers as much of them as any other, and a last run is not cut short: so it is
// a little more. Apart from that it does what [Run] does.
func RunDays(ctx context.Context, scs []*scenario.Scenario, days float64, o Options) ([]Outcome, error) {
	o = o.withDefaults()
	var jobs []job
	for i, sc := range scs {
		jobs = append(jobs, o.cover(i, sc, days*secondsPerDay/float64(len(scs)))...)
	}
	return o.run(ctx, jobs)
}

// cover returns the runs of the i-th scenario that cover so many seconds.
func (o *Options) cover(i int, sc *scenario.Scenario, seconds float64) []job {
	shifted := make([]*scenario.Scenario, len(o.Shifts))
	round := 0.0 // of all shifts
	for n, shift := range o.Shifts {
		shifted[n] = shift.Apply(sc)
		round += shifted[n].Duration.Seconds()
	}
	runs := int(math.Ceil(seconds / round * float64(len(o.Shifts))))
	jobs := make([]job, runs)
	for n := range jobs {
		at := n % len(o.Shifts)
		jobs[n] = job{shifted[at], o.Shifts[at], o.Seeds[0] + uint64(n), i}
	}
	return jobs
}
