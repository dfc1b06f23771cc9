package ingest

import "time"

// Options configure a [Receiver]. The zero value works; a field that is zero or
// negative takes its default.
type Options struct {
	// MaxBody bounds one request, in bytes, before and after it is
	// decompressed, and to one protobuf message for each 16 of them. Default
	// 16 MiB. While it is decoded, a request takes some six times its size in
	// memory, and fifteen times MaxBody if it was made to.
	MaxBody int
	// MaxConcurrent bounds how many requests are worked on at once. Further
	// ones wait up to [MaxWait] and are then turned away as busy. Default 8.
	MaxConcurrent int
	// ReadTimeout bounds how long the body of one HTTP request may take to
	// arrive. Default 10 s.
	ReadTimeout time.Duration
	// Now is the clock that says when a request arrived. Default [time.Now].
	Now func() time.Time
	// Rejected is told of records that were refused, and of whole requests
	// (as one), by transport and reason. It is called concurrently and must be
	// fast. Default: nobody is told.
	Rejected func(transport, reason string, n int)
}

// MaxWait is how long a request waits for its turn.
const MaxWait = time.Second

const (
	defaultMaxBody       = 16 << 20
	defaultMaxConcurrent = 8
	defaultReadTimeout   = 10 * time.Second
)

func (o Options) withDefaults() Options {
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = defaultMaxConcurrent
	}
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = defaultReadTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rejected == nil {
		o.Rejected = func(string, string, int) {}
	}
	return o
}
