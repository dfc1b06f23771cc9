package verify

import (
	"math"
	"math/rand/v2"
	"slices"
)

// normal975 is the 97.5th percentile of the normal distribution.
const normal975 = 1.959964

// nobodySeen is the 95 % upper bound on a Poisson mean of which no event was
// seen: -ln(0.05).
const nobodySeen = 2.995732

// unbounded says that nothing is known.
var unbounded = Interval{0, Number(math.Inf(1))}

// dispersion returns the Pearson estimate of variance over mean of the excess
// of clusters, given their exposure; at least 1.
func dispersion(cs []cluster) float64 {
	s := sums(cs)
	if s.excess == 0 || len(cs) < 2 {
		return 1
	}
	var chi float64
	for _, c := range cs {
		mean := s.coefficient() * c.exposure
		chi += (c.excess - mean) * (c.excess - mean) / mean
	}
	return max(1, chi/float64(len(cs)-1))
}

// quasiPoisson returns the interval of a log-linear model whose variance is
// dispersion times the mean, with a dispersion for each arm.
func quasiPoisson(sides []side) Interval {
	if i, ok := degenerate(sides); ok {
		return i
	}
	var variance float64
	for _, s := range sides {
		variance += dispersion(s.clusters) / sums(s.clusters).excess
	}
	return around(logRatio(sides), math.Sqrt(variance), -normal975, normal975)
}

// bootstrap returns the interval by resampling clusters: the bootstrap-t of
// Efron and Tibshirani (1993, chapter 12) on the logarithm of the ratio, which
// allows for estimates that are skewed and whose error depends on them. Each
// resample is measured by its own standard error.
func bootstrap(sides []side, rng *rand.Rand, resamples int) Interval {
	if i, ok := degenerate(sides); ok {
		return i
	}
	centre, se := logRatio(sides), stderr(sides)
	drawn := make([]side, len(sides))
	for i, s := range sides {
		drawn[i] = side{clusters: make([]cluster, len(s.clusters)), sign: s.sign}
	}
	ts := make([]float64, 0, resamples)
	for range resamples {
		for i, s := range sides {
			for j := range drawn[i].clusters {
				drawn[i].clusters[j] = s.clusters[rng.IntN(len(s.clusters))]
			}
		}
		// A draw of clusters without excess has no logarithm. It is one of
		// the least of all ratios, and counts as such.
		t := (logRatio(drawn) - centre) / stderr(drawn)
		if math.IsNaN(t) {
			continue
		}
		ts = append(ts, t)
	}
	slices.Sort(ts)
	if len(ts) < resamples/2 {
		return unbounded
	}
	low, high := quantile(ts, 0.975), quantile(ts, 0.025)
	return around(centre, se, -low, -high)
}

// stderr returns the standard error of the logarithm of the ratio.
func stderr(sides []side) float64 {
	var variance float64
	for _, s := range sides {
		e := spread(s.clusters)
		variance += e * e
	}
	return math.Sqrt(variance)
}

// around returns the interval from low to high standard errors around the
// logarithm of a ratio.
func around(centre, se, low, high float64) Interval {
	return Interval{Number(math.Exp(centre + low*se)), Number(math.Exp(centre + high*se))}
}

// degenerate returns the interval of arms that no standard error can be had of:
// one has no excess, or a single cluster.
func degenerate(sides []side) (Interval, bool) {
	after, before := sums(sides[0].clusters), sums(sides[1].clusters)
	for _, s := range sides[1:] {
		if sums(s.clusters).excess == 0 || len(s.clusters) < 2 {
			return unbounded, true
		}
	}
	switch {
	case after.excess > 0 && len(sides[0].clusters) >= 2:
		return Interval{}, false
	case after.excess > 0:
		return unbounded, true
	}
	// Nothing was seen after: that is no proof of nothing. At most three
	// bursts' worth may have been missed, a burst being as large as before,
	// and S before may have been less than it seemed.
	phi := dispersion(sides[1].clusters)
	high := nobodySeen * phi / after.exposure / before.coefficient()
	others := slices.Clone(sides[1:])
	return Interval{0, Number(high * math.Exp(normal975*stderr(others)))}, true
}

// quantile returns the q-quantile of sorted values, of which there is one at
// least.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	w := at - float64(i)
	if w == 0 {
		return sorted[i]
	}
	return sorted[i]*(1-w) + sorted[i+1]*w
}
