package signal

// Versions bound the versions of values that were written with one: a number
// that grows whenever the data behind a key changes, such as a row's version, a
// position in a log of commits, or the fencing token of a lock. Whoever writes a
// lower version over a higher one undoes what somebody else has done. Zero is no
// version.
type Versions struct {
	// Oldest is the lowest version written, and OldestAt when it was last.
	Oldest   uint64 `json:"oldest,omitempty"`
	OldestAt Nanos  `json:"oldest_at,omitempty"`
	// Newest is the highest version written, and NewestAt when it was first.
	Newest   uint64 `json:"newest,omitempty"`
	NewestAt Nanos  `json:"newest_at,omitempty"`
}

// IsZero reports whether no version was told.
func (v Versions) IsZero() bool { return v == Versions{} }

// Note takes in that a value of a version was written at at. A version of zero
// is passed over.
func (v *Versions) Note(version uint64, at Nanos) {
	v.merge(Versions{version, at, version, at})
}

func (v *Versions) merge(o Versions) {
	if o.Oldest != 0 && (v.Oldest == 0 || o.Oldest < v.Oldest || o.Oldest == v.Oldest && o.OldestAt > v.OldestAt) {
		v.Oldest, v.OldestAt = o.Oldest, o.OldestAt
	}
	if o.Newest != 0 && (o.Newest > v.Newest || o.Newest == v.Newest && o.NewestAt < v.NewestAt) {
		v.Newest, v.NewestAt = o.Newest, o.NewestAt
	}
}
