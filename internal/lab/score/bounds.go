package score

import "math"

// confidence is that of the bounds: each is wrong in one case of twenty.
const confidence = 0.95

// PoissonUpper returns the exact one-sided 95 % upper bound on the mean of a
// Poisson count of which n events were seen: the mean at which n or fewer have a
// chance of 5 %. For n = 0 that is -ln(0.05), about 3. A negative n counts as 0.
func PoissonUpper(n int) float64 {
	n = max(n, 0)
	atMost := func(mean float64) float64 {
		sum := 0.0
		for i := range n + 1 {
			k := float64(i)
			lnFactorial, _ := math.Lgamma(k + 1)
			sum += math.Exp(k*math.Log(mean) - mean - lnFactorial)
		}
		return sum
	}
	// The bound is less than four standard deviations and a few events away.
	low, high := float64(n), float64(n)+4*math.Sqrt(float64(n))+5
	return bisect(low, high, func(mean float64) bool { return mean > 0 && atMost(mean) <= 1-confidence })
}

// ShareLower returns the exact one-sided 95 % lower bound (Clopper and Pearson)
// on a share of which hits in n tries were seen: the share at which as many or
// more have a chance of 5 %. It is 0 without any hit.
func ShareLower(hits, n int) float64 {
	if hits <= 0 || n <= 0 {
		return 0
	}
	hits = min(hits, n)
	atLeast := func(p float64) float64 {
		sum := 0.0
		for k := hits; k <= n; k++ {
			sum += binomial(n, k, p)
		}
		return sum
	}
	return bisect(0, 1, func(p float64) bool { return atLeast(p) >= 1-confidence })
}

// binomial returns the chance of exactly k of n, each with chance p, which is
// neither 0 nor 1.
func binomial(n, k int, p float64) float64 {
	all, _ := math.Lgamma(float64(n) + 1)
	in, _ := math.Lgamma(float64(k) + 1)
	out, _ := math.Lgamma(float64(n-k) + 1)
	return math.Exp(all - in - out + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

// bisect returns where reached, which is false below some point between low and
// high and true above it, turns true.
func bisect(low, high float64, reached func(float64) bool) float64 {
	// 100 halvings are more than a float64 has bits.
	for range 100 {
		mid := (low + high) / 2
		if reached(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
