package detectors

import (
	"math"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// coalescing is what one episode says of whether readers of one process let one
// recompute serve them all.
type coalescing struct {
	// alone: no process ran two at once.
	alone bool
	// sure: and that is no chance, for the application says that it coalesces,
	// or readers were seen to wait for another's recompute.
	sure bool
	// chance is the logarithm of how likely it is otherwise: that of so many
	// recomputes, each in an instance of its own accord, no two fell to one. It
	// is zero, which proves nothing, if readers of no process met.
	chance float64
}

// coalescedChance is the logarithm of how likely it may be that readers do not
// coalesce, and yet nobody has seen it.
const coalescedChance = -6.9 // 0.1 %

// coalescingOf returns what e says; c may be nil. If nobody says what ran at once
// in their own process, it is not known whether any was alone, and taken for no.
func coalescingOf(e *signal.Episode, c *signal.CacheState) coalescing {
	w := e.Window
	running, waiting := w.InFlightPeak, w.MissPeak
	for i := range w.Shares {
		running, waiting = max(running, w.Shares[i].InFlightPeak), max(waiting, w.Shares[i].MissPeak)
	}
	if running != 1 {
		return coalescing{}
	}
	x := coalescing{alone: true, sure: w.Coalesced > 0}
	fleet := e.PeakLow
	if c != nil {
		x.sure = x.sure || c.Claims.Says(signal.ProtectSingleFlight)
		fleet = max(fleet, c.Instances)
	}
	if waiting >= 2 {
		x.chance = apartChance(e.PeakLow, fleet)
	}
	return x
}

// apartChance returns the logarithm of the chance that n recomputes, each in one
// of so many instances at random, are in n of them. Instances that get more
// readers than others make it less likely still.
func apartChance(n, instances int) float64 {
	sum := 0.0
	for i := range min(n, instances) {
		if sum < 2*coalescedChance {
			break
		}
		sum += math.Log1p(-float64(i) / float64(instances))
	}
	return sum
}

// proven reports whether readers coalesced in episode i of a key's latest, which
// are in order: those around it that nothing contradicts are together no chance.
func proven(latest []coalescing, i int) bool {
	if !latest[i].alone || latest[i].sure {
		return latest[i].alone
	}
	chance := latest[i].chance
	for j := i - 1; j >= 0 && latest[j].alone; j-- {
		chance += latest[j].chance
	}
	for j := i + 1; j < len(latest) && latest[j].alone; j++ {
		chance += latest[j].chance
	}
	return chance <= coalescedChance
}

// maxFlights is how many episodes of one key are remembered.
const maxFlights = 5

// flights remembers how readers of one key met in its latest episodes, in the
// order they began.
type flights struct {
	started []signal.Nanos
	was     []coalescing
}

// look takes in what an episode says, in place of what it said before, and
// reports whether its readers coalesced.
func (f *flights) look(e *signal.Episode, x coalescing) bool {
	i, known := slices.BinarySearch(f.started, e.Started)
	if !known {
		f.started, f.was = slices.Insert(f.started, i, e.Started), slices.Insert(f.was, i, x)
	}
	f.was[i] = x
	is := proven(f.was, i)
	if len(f.was) > maxFlights {
		f.started, f.was = slices.Delete(f.started, 0, 1), slices.Delete(f.was, 0, 1)
	}
	return is
}
