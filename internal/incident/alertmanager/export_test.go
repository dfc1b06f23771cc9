package alertmanager

// Exported for tests.
var (
	AnnotationName = annotationName
	FormatValue    = formatValue
	Printable      = printable
)

// MaxBatch and MaxResolved are the bounds of the same names.
const (
	MaxBatch    = maxBatch
	MaxResolved = maxResolved
)

// Ended returns how many ended alerts n still repeats.
func (n *Notifier) Ended() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.alerts.resolved
}
