package verify

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Cycle is one expiry cycle of one key.
type Cycle struct {
	Key uint64    // tells keys apart
	At  time.Time // when it began
	// Starts is how many recomputes of it readers set off; a cycle in which
	// nobody had to recompute has none.
	Starts uint64
	// Rate is the reads of the key per second, around that time.
	Rate float64
}

// Arm is the cycles of one period.
type Arm []Cycle

// ErrNoExposure is returned if an arm has nothing to measure by: no cycle whose
// key was read.
var ErrNoExposure = errors.New("no cycle of a key that was read")

// cluster is cycles that may depend on each other, summed.
type cluster struct {
	excess   float64 // recomputes beyond the first of each cycle
	exposure float64 // those that a naive cache would have had; above 0
	cycles   int
}

// excess returns the recomputes beyond the first.
func (c *Cycle) excess() float64 { return float64(max(c.Starts, 1) - 1) }

// minClusters is how many (key, day) clusters an arm must have for them to be
// what is resampled. With fewer an interval says little, and cycles are.
const minClusters = 20

// day returns the (key, day) a cycle belongs to.
type day struct {
	key  uint64
	unix int64
}

// clusters sums the cycles of an arm by key and day or, if byCycle is set, not
// at all. Delta is the seconds of a recompute of a key.
func (a Arm) clusters(delta func(key uint64) float64, byCycle bool) ([]cluster, error) {
	index := map[day]int{}
	var out []cluster
	for i := range a {
		c := &a[i]
		x := c.Rate * delta(c.Key)
		if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
			return nil, fmt.Errorf("cycle %d of key %016x has %g reads of %g s each: want numbers, at least 0", i, c.Key, c.Rate, delta(c.Key))
		}
		if x == 0 {
			continue
		}
		at := len(out)
		if d := (day{c.Key, c.At.Unix() / int64(24*time.Hour/time.Second)}); !byCycle {
			if j, ok := index[d]; ok {
				at = j
			} else {
				index[d] = at
			}
		}
		if at == len(out) {
			out = append(out, cluster{})
		}
		out[at].excess += c.excess()
		out[at].exposure += x
		out[at].cycles++
	}
	if len(out) == 0 {
		return nil, ErrNoExposure
	}
	// The order cycles come in must not change what resampling finds.
	slices.SortFunc(out, func(p, q cluster) int {
		return cmp.Or(cmp.Compare(p.excess, q.excess), cmp.Compare(p.exposure, q.exposure), cmp.Compare(p.cycles, q.cycles))
	})
	return out, nil
}

// days counts the (key, day) clusters of an arm.
func (a Arm) days() int {
	seen := map[day]bool{}
	for i := range a {
		seen[day{a[i].Key, a[i].At.Unix() / int64(24*time.Hour/time.Second)}] = true
	}
	return len(seen)
}

// sums adds clusters up.
func sums(cs []cluster) (s cluster) {
	for _, c := range cs {
		s.excess += c.excess
		s.exposure += c.exposure
		s.cycles += c.cycles
	}
	return s
}

// coefficient returns S.
func (c cluster) coefficient() float64 { return c.excess / c.exposure }

// effective returns how many clusters of equal exposure are worth as much as cs
// (Kish, 1965): one key with most of the reads is little more than one cluster.
func effective(cs []cluster) float64 {
	var sum, sq float64
	for _, c := range cs {
		sum += c.exposure
		sq += c.exposure * c.exposure
	}
	return sum * sum / sq
}

// spread returns the relative standard error of the coefficient of cs: the
// jackknife of a ratio of sums, linearised, which allows for clusters that weigh
// much. It is 0 if there is no excess or no second cluster.
func spread(cs []cluster) float64 {
	s := sums(cs)
	n := float64(len(cs))
	if s.excess == 0 || n < 2 {
		return 0
	}
	var sq float64
	for _, c := range cs {
		d := (c.excess - s.coefficient()*c.exposure) / (1 - c.exposure/s.exposure)
		sq += d * d
	}
	return math.Sqrt(sq*(n-1)/n) / s.excess
}
