package detectors

// Remembered returns how many keys d remembers.
func Remembered(d Detector) int { return len(d.(*hotKeyExpiry).keys) }

// Noted returns how many keys d has notes of.
func Noted(d Detector) int {
	switch d := d.(type) {
	case *staleOverwrite:
		return d.notes.len()
	case *orphanedLock:
		return d.notes.len()
	case *lockConvoy:
		return d.notes.len()
	case *deltaPoisoning:
		return d.notes.len()
	case *earlyRefreshExcess:
		return d.book.notes.len()
	case *earlyRefreshIneffective:
		return d.book.notes.len()
	}
	return 0
}

// BuildsOf returns how many instances of builds of a cache d, a coalescing-bypass
// detector, remembers.
func BuildsOf(d Detector, cache string) (n int) {
	for _, a := range d.(*coalescingBypass).caches[cache].builds.arms {
		n += len(a.parts)
	}
	return n
}

// BinomialTail, StudentTail and the like are arithmetic worth its own tests.
var (
	BinomialTail = binomialTail
	StudentTail  = studentTail
)

// Below is the chance that two ratios, given as pairs of part and whole by
// cluster, are the same, and b is so far below a only by chance.
func Below(b, a [][2]float64) float64 {
	of := func(ps [][2]float64) (cs []cluster) {
		for _, p := range ps {
			cs = append(cs, cluster{p[0], p[1]})
		}
		return cs
	}
	return ratioOf(of(b)).below(ratioOf(of(a)))
}
