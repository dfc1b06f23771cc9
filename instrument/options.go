package instrument

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Options configure a [Monitor]. The zero value works.
type Options struct {
	// Service names the application. Default: OTEL_SERVICE_NAME, else the
	// executable's name.
	Service string
	// Instance names this process among those of the service. Two live
	// processes must not share it. Default: host name and process id.
	Instance string
	// Build names the version of the application. Default: the version of
	// the main module, or its VCS revision, if the binary carries one.
	Build string

	// Origin declares what recomputes of this cache spend, and how many of
	// them it can run at once. Without a budget, detectors use thresholds
	// that fit any origin.
	Origin signal.Origin
	// Claims says how the application uses the cache, as far as that cannot
	// be seen: what protects it, how long callers wait and how often they
	// try. Detectors that need it say so where it is missing.
	Claims signal.Claims

	// MaxKeys bounds how many keys are tracked at once; at least 64.
	// Default 16384. The table costs 32 bytes per key, taken at once.
	MaxKeys int
	// MaxBytes bounds the memory tracked keys take, the table included; at
	// least 64 KiB. Default 16 MiB.
	MaxBytes int
	// MaxWindows bounds how many keys one flush reports singly, at least 16.
	// Beyond it, keys on which nothing happened twice at once are only
	// counted, as overflow. Keys on which something did are always reported.
	// Default 1024.
	MaxWindows int
	// MaxGroups bounds how many key groups are told apart, 1 to 1000; keys
	// of further groups count in the group "other". Default 64.
	MaxGroups int

	// Group names the family a key belongs to. It is called once per tracked
	// key, must be fast, pure and safe for concurrent use, and its result is
	// escaped and cut to 64 bytes. Default: [Pattern].
	Group func(key string) string
	// Privacy says what of a key may leave the process besides its group and
	// a 64-bit keyed hash. Default: [PrivacyPattern].
	Privacy Privacy
	// Salt is mixed into every hash of a key. All instances of a service must
	// share it. Without one, a short or guessable key can be found from its
	// hash by trying.
	Salt string

	// Interval is how often windows are flushed, 10 ms to 1 s. Default 1 s.
	// Negative: no goroutine is started, and the caller calls
	// [Monitor.Flush], or [Monitor.FlushUrgent], itself.
	Interval time.Duration
	// UrgentInFlight is how many recomputes of one key at once make the
	// monitor report it without waiting for the interval; at least 2.
	// Default 2: the first duplicate.
	UrgentInFlight int
	// MissTimeout is how long an inferred miss waits for the store that
	// would make it a recompute, at least 100 ms. Default 30 s.
	MissTimeout time.Duration

	// Now is the clock. Default: the wall clock at the start of the process,
	// moved on by the monotonic clock, so that it never jumps.
	Now func() time.Time
}

// Privacy says what of a cache key may leave the process.
type Privacy uint8

// Choices of privacy.
const (
	// PrivacyPattern: the key's group, and the 64-bit hash records are
	// joined by.
	PrivacyPattern Privacy = iota
	// PrivacyHash: also the full SHA-256 of salt and key, in evidence, so
	// that somebody who has a key can find it.
	PrivacyHash
	// PrivacyRaw: also the key itself, in evidence, cut to 256 bytes.
	PrivacyRaw
)

const (
	minKeys, defaultKeys     = 64, 1 << 14
	minBytes, defaultBytes   = 64 << 10, 16 << 20
	minWindows, defWindows   = 16, 1024
	maxGroups, defaultGroups = 1000, 64
	minInterval              = 10 * time.Millisecond
	minMissTimeout           = 100 * time.Millisecond
	urgentEvery              = 100 * time.Millisecond
)

// withDefaults fills what is zero.
func (o Options) withDefaults() Options {
	if o.Service == "" {
		o.Service = os.Getenv("OTEL_SERVICE_NAME")
	}
	if o.Service == "" {
		o.Service = filepath.Base(os.Args[0])
	}
	if o.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		o.Instance = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if o.Build == "" {
		o.Build = buildVersion()
	}
	setDefault(&o.MaxKeys, defaultKeys)
	setDefault(&o.MaxBytes, defaultBytes)
	setDefault(&o.MaxWindows, defWindows)
	setDefault(&o.MaxGroups, defaultGroups)
	setDefault(&o.Interval, signal.MaxSpan)
	setDefault(&o.UrgentInFlight, 2)
	setDefault(&o.MissTimeout, 30*time.Second)
	if o.Group == nil {
		o.Group = Pattern
	}
	if o.Now == nil {
		o.Now = steadyClock()
	}
	return o
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (o Options) validate(cache string) error {
	switch {
	case cache == "":
		return fmt.Errorf("cache name is empty: it is the label everything is found by")
	case !isLabel(cache):
		return fmt.Errorf("cache name is no label: want valid, printable text of at most %d bytes", maxName)
	case !isLabel(o.Service) || !isLabel(o.Instance) || (o.Build != "" && !isLabel(o.Build)):
		return fmt.Errorf("Service %q, Instance %q, Build %q: want valid, printable text of at most %d bytes each", o.Service, o.Instance, o.Build, maxName)
	case o.MaxKeys < minKeys:
		return fmt.Errorf("MaxKeys is %d: want at least %d", o.MaxKeys, minKeys)
	case o.MaxBytes < minBytes:
		return fmt.Errorf("MaxBytes is %d: want at least %d", o.MaxBytes, minBytes)
	case o.MaxWindows < minWindows:
		return fmt.Errorf("MaxWindows is %d: want at least %d", o.MaxWindows, minWindows)
	case o.MaxGroups < 1 || o.MaxGroups > maxGroups:
		return fmt.Errorf("MaxGroups is %d: want 1 to %d", o.MaxGroups, maxGroups)
	case o.Privacy > PrivacyRaw:
		return fmt.Errorf("Privacy is %d: want PrivacyPattern, PrivacyHash or PrivacyRaw", o.Privacy)
	case o.Interval > 0 && (o.Interval < minInterval || o.Interval > signal.MaxSpan):
		return fmt.Errorf("Interval is %v: want %v to %v, or negative for none", o.Interval, minInterval, signal.MaxSpan)
	case o.UrgentInFlight < 2:
		return fmt.Errorf("UrgentInFlight is %d: want at least 2", o.UrgentInFlight)
	case o.MissTimeout < minMissTimeout:
		return fmt.Errorf("MissTimeout is %v: want at least %v", o.MissTimeout, minMissTimeout)
	case o.Claims.Timeout < 0 || o.Claims.Attempts < 0 || o.Claims.LockTTL < 0 || o.Claims.Clamp < 0 || o.Claims.StaleFor < 0 || !(o.Claims.Beta >= 0 && o.Claims.Beta < math.MaxFloat64) || !(o.Claims.RefreshAhead >= 0 && o.Claims.RefreshAhead <= 1):
		return fmt.Errorf("Claims are %+v: want no negative value", o.Claims)
	case slices.ContainsFunc(o.Claims.Protection, func(p string) bool { return !isLabel(p) || strings.Contains(p, ",") }):
		return fmt.Errorf("Claims.Protection is %q: want names without commas", o.Claims.Protection)
	case o.Origin.Name != "" && !isLabel(o.Origin.Name):
		return fmt.Errorf("Origin.Name is %q: want valid, printable text of at most %d bytes", o.Origin.Name, maxName)
	case o.Origin.Budget < 0:
		return fmt.Errorf("Origin.Budget is %d: want 0 for unknown, or more", o.Origin.Budget)
	}
	return nil
}

// maxName bounds the names of a cache and of a source.
const maxName = 128

func isLabel(s string) bool {
	return s != "" && len(s) <= maxName && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// steadyClock returns a clock that starts at the wall clock's time and never
// jumps, whatever is done to the wall clock later.
func steadyClock() func() time.Time {
	base := time.Now()
	return func() time.Time { return base.Add(time.Since(base)) }
}

func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
