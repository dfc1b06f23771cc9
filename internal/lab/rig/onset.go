package rig

import "time"

// Onset is one stretch of one kind of trouble: when it began, and when it was
// over.
type Onset struct {
	Detector string        `json:"detector"`
	Cache    string        `json:"cache"`
	Key      string        `json:"key,omitempty"` // empty if it is not about one key
	At       time.Duration `json:"at"`            // since the start
	// End is when it was over, which may be the instant it began. If Lasting is
	// set, that cannot be told because the run ended, and End is the end of
	// the run.
	End     time.Duration `json:"end"`
	Lasting bool          `json:"lasting,omitempty"`
}

type onsetName struct{ detector, cache, key string }

const (
	// maxOnsets bounds what is kept of trouble that comes again and again. The
	// first of each kind is kept in any case.
	maxOnsets = 100_000
	// lull is how long trouble that shows itself again has not been over.
	lull = 10 * time.Second
)

// Onset notes that trouble of that kind shows itself. What showed itself a
// moment ago is still the same. An empty key stands for the whole cache.
func (a *Account) Onset(now int64, detector, cache, key string) {
	a.stretch(time.Duration(now), onsetName{detector, cache, key})
}

// WentOn notes that what last showed itself has gone on until now, however long
// ago that was.
func (a *Account) WentOn(now int64, detector, cache, key string) {
	if i, ok := a.latest[onsetName{detector, cache, key}]; ok {
		a.onsets[i].End = max(a.onsets[i].End, time.Duration(now))
	}
}

// stretch returns the stretch of trouble that now belongs to, which may be a new
// one; nil if there are too many.
func (a *Account) stretch(now time.Duration, n onsetName) *Onset {
	i, known := a.latest[n]
	if known {
		if o := &a.onsets[i]; o.Lasting || now-o.End <= lull {
			o.End = max(o.End, now)
			return o
		}
		if len(a.onsets) >= maxOnsets {
			return nil
		}
	}
	return a.note(now, n)
}

func (a *Account) note(now time.Duration, n onsetName) *Onset {
	a.latest[n] = len(a.onsets)
	a.onsets = append(a.onsets, Onset{Detector: n.detector, Cache: n.cache, Key: n.key, At: now, End: now})
	return &a.onsets[len(a.onsets)-1]
}

// lasts notes that trouble of that kind is there, until it is said to be over.
func (a *Account) lasts(now int64, detector, cache, key string) {
	n := onsetName{detector, cache, key}
	if a.lasting[n] {
		return
	}
	if o := a.stretch(time.Duration(now), n); o != nil {
		o.Lasting = true
		a.lasting[n] = true
	}
}

// stays notes that trouble of that kind is there, and will be until the end.
func (a *Account) stays(now int64, detector, cache string) {
	if o := a.stretch(time.Duration(now), onsetName{detector, cache, ""}); o != nil {
		o.Lasting = true
	}
}

// over ends what lasts. In most runs nothing does.
func (a *Account) over(now int64, detector, cache, key string) {
	if len(a.lasting) == 0 {
		return
	}
	n := onsetName{detector, cache, key}
	if a.lasting[n] {
		delete(a.lasting, n)
		o := &a.onsets[a.latest[n]]
		o.Lasting, o.End = false, time.Duration(now)
	}
}

// doubledKinds are what it is called if recomputes of one key overlap.
var doubledKinds = [...]string{"hot-key-expiry", "process-local-coalescing"}

// doubles notes that recomputes of a key overlap: one stretch a burst, which
// first begins.
func (a *Account) doubles(now int64, cache, key string, b *burst, first bool) {
	if first && len(a.onsets) < maxOnsets {
		b.noted, b.onsets = true, len(a.onsets)
		for _, d := range doubledKinds {
			a.note(time.Duration(now), onsetName{d, cache, key})
		}
	}
	a.double(now, b, true)
}

// double notes whether recomputes of b still overlap.
func (a *Account) double(now int64, b *burst, still bool) {
	if !b.noted {
		return
	}
	for i := range doubledKinds {
		o := &a.onsets[b.onsets+i]
		o.Lasting, o.End = still, time.Duration(now)
	}
}

// Onsets returns all stretches of trouble in a run that ended at that instant,
// in the order they began. Whether it was trouble enough for anybody is not
// said.
func (a *Account) Onsets(end int64) []Onset {
	for i := range a.onsets {
		if o := &a.onsets[i]; o.Lasting || time.Duration(end)-o.End <= lull && endsByLull[o.Detector] {
			o.Lasting, o.End = true, time.Duration(end)
		}
	}
	return a.onsets
}

// endsByLull are the kinds of which nothing but silence tells that they are over.
var endsByLull = map[string]bool{"retry-storm": true, "early-refresh-excess": true, "penetration": true}
