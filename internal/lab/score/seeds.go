package score

// Thresholds are chosen with the seeds of the scenario files and those from 1 to
// MaxTuningSeeds. Seeds above are held out: nobody may change a threshold because
// of what a run with one of them shows.
const (
	firstHeldOut = 1001
	// MaxTuningSeeds is how many seeds there are to tune with.
	MaxTuningSeeds = firstHeldOut - 1
)

// HeldOut returns the first n seeds that are not for tuning: 1001 and on.
func HeldOut(n int) []uint64 { return seeds(firstHeldOut, n) }

// Tuning returns the first n seeds to tune with: 1 and on, at most
// [MaxTuningSeeds].
func Tuning(n int) []uint64 { return seeds(1, min(n, MaxTuningSeeds)) }

func seeds(first uint64, n int) []uint64 {
	out := make([]uint64, max(n, 0))
	for i := range out {
		out[i] = first + uint64(i)
	}
	return out
}
