package detectors

// Remembered returns how many keys d remembers.
func Remembered(d Detector) int { return len(d.(*hotKeyExpiry).keys) }
