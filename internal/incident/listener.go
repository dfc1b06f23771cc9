package incident

import "context"

// Listener hears of every change of every incident. Changes come one at a time
// and in order, on the goroutine that calls [Manager.Apply] or
// [Manager.Subscribe]: IncidentChanged must not block, fail or call either of
// the two. It may read from the manager, which by then may be further ahead.
//
// i.Changes ends with c, unless c is [Updated] or [Resumed].
type Listener interface {
	IncidentChanged(i Incident, c Change)
}

// Notifier is a Listener that tells somebody outside, on goroutines of its own.
type Notifier interface {
	Listener
	// Close sends what is still to be sent, until ctx is done, and releases
	// everything. It does not resolve what is open: an exporter that stops is
	// no reason to believe that the trouble did. Call it once, after the
	// manager was told to forget the notifier.
	Close(ctx context.Context) error
}
