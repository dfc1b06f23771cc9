package detectors

import "math"

// binomialTail returns the chance that at least x of n tries succeed, if each
// does with chance p.
func binomialTail(n, x int, p float64) float64 {
	switch {
	case x <= 0:
		return 1
	case x > n || p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	sum := 0.0
	for k := x; k <= n; k++ {
		sum += math.Exp(logChoose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	return min(1, sum)
}

// logChoose returns the logarithm of n over k.
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// normalTail returns the chance that a standard normal exceeds z.
func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// studentTail returns the chance that Student's t of df degrees of freedom
// exceeds t >= 0, by Wallace's approximation (Bounds on normal approximations to
// Student's and the chi-square distributions, Annals of Mathematical Statistics
// 30, 1959), which is good to a few per cent where it is small, and too high at
// very few degrees of freedom: the side to err on.
func studentTail(t, df float64) float64 {
	z := math.Sqrt(df*math.Log1p(t*t/df)) * (8*df + 1) / (8*df + 3)
	return normalTail(z)
}

// cluster is one instance's share of a ratio: part of whole.
type cluster struct{ part, whole float64 }

// estimate is a ratio with its variance.
type estimate struct {
	ratio, variance float64
	clusters        int
}

// ratioOf estimates the sum of parts over the sum of wholes. What one instance
// answers is not independent, so the variance is that between instances, by the
// linearised estimator of a ratio (Cochran, Sampling Techniques, 3rd ed., 1977,
// section 6.3), and never less than that of as many independent tries with one
// success and one failure more (so that it is not zero if all of them agree).
func ratioOf(cs []cluster) estimate {
	var part, whole float64
	for _, c := range cs {
		part, whole = part+c.part, whole+c.whole
	}
	if whole <= 0 {
		return estimate{}
	}
	e := estimate{ratio: part / whole, clusters: len(cs)}
	for _, c := range cs {
		d := c.part - e.ratio*c.whole
		e.variance += d * d
	}
	if m := float64(len(cs)); m > 1 {
		e.variance *= m / (m - 1) / (whole * whole)
	}
	p := (part + 1) / (whole + 2)
	e.variance = max(e.variance, p*(1-p)/(whole+2))
	return e
}

// below returns the chance to see b as far below a as it is, if they were the
// same: Welch's test (Biometrika 34, 1947), one-sided. It is 1 if b is not below
// a, or if either comes from fewer than two clusters.
func (b estimate) below(a estimate) float64 {
	if a.clusters < 2 || b.clusters < 2 || b.ratio >= a.ratio {
		return 1
	}
	v := a.variance + b.variance
	df := v * v / (a.variance*a.variance/float64(a.clusters-1) + b.variance*b.variance/float64(b.clusters-1))
	return studentTail((a.ratio-b.ratio)/math.Sqrt(v), df)
}
