package live

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// cache is what the rig knows of a cache on the server.
type cache struct {
	r       *Rig
	index   int
	name    string
	cfg     scenario.Cache
	origin  *origin
	effort  rig.Effort
	entries []*entry // by number of the key; nil until it is first read
	loads   []*workload
	missing int   // entries a reader found gone and nobody has filled since
	since   int64 // when missing last became positive

	lost, lostMost float64 // reads per second of what an event took and nobody has made again; and at first
}

// entry is one key. Its facts are guarded by Rig.mu.
type entry struct {
	c    *cache
	n    int
	text string // as the scenario calls it
	key  string // on the server
	lock string // on the server

	known    bool  // it has had a value
	born     int64 // when the recompute of the latest value began
	storedAt int64 // when that was about to be written
	gone     int64 // when it was last invalidated
	missed   bool  // counted in missing
	lost     bool  // counted in lost
	active   map[*attempt]struct{}
	story    rig.Story
	holds    holds
}

func newCache(r *Rig, index int, name string, cfg scenario.Cache, o *origin) *cache {
	if r.o.Calm {
		cfg.Client.Attempts, cfg.Client.FillLate, cfg.Client.DeleteOnError = 1, true, false
	}
	return &cache{r: r, index: index, name: name, cfg: cfg, origin: o, effort: rig.NewEffort(cfg.Recompute)}
}

// soft reports whether values outlive their expiry on the server, and readers
// tell what they found.
func (c *cache) soft() bool { return c.cfg.StaleGrace > 0 }

// rate returns how many reads per second key n gets, undisturbed.
func (c *cache) rate(n int) float64 {
	r := 0.0
	for _, w := range c.loads {
		r += w.w.Rate * w.pick.Weight(n-w.w.First)
	}
	return r
}

// entry returns key n. Rig.mu is held.
func (c *cache) entry(n int) *entry {
	e := c.entries[n]
	if e == nil {
		text := fmt.Sprintf("%s:%d", c.name, n)
		e = &entry{c: c, n: n, text: text, key: c.r.prefix + valuePart + text, lock: c.r.prefix + lockPart + text, active: map[*attempt]struct{}{}}
		c.entries[n] = e
	}
	return e
}

// Parts of keys on the server, after the prefix of the run.
const (
	valuePart = "value:"
	lockPart  = "lock:"
)

// absent reports whether the origin has no such thing as e.
func (e *entry) absent() bool { return rig.Absent(&e.c.cfg, e.n, e.c.r.o.Seed) }

// envelope is all that is stored: when the value expires and was stored, and how
// long it took to make. Nobody reads the value itself.
type envelope struct {
	expiry, storedAt int64 // since the start of the run
	delta            time.Duration
}

func (v envelope) String() string { return fmt.Sprintf("%d %d %d", v.expiry, v.storedAt, v.delta) }

func parseEnvelope(s string) (envelope, error) {
	var n [3]int64
	fields := strings.Fields(s)
	if len(fields) != len(n) {
		return envelope{}, fmt.Errorf("value %.40q is none of the lab's", s)
	}
	for i, f := range fields {
		var err error
		if n[i], err = strconv.ParseInt(f, 10, 64); err != nil {
			return envelope{}, fmt.Errorf("value %.40q is none of the lab's: %w", s, err)
		}
	}
	return envelope{n[0], n[1], time.Duration(n[2])}, nil
}

// get looks e up, through whichever client. ok is false if there is nothing.
func get(ctx context.Context, rdb *redis.Client, e *entry) (v envelope, ok bool, err error) {
	raw, err := rdb.Get(ctx, e.key).Result()
	if errors.Is(err, redis.Nil) {
		return envelope{}, false, nil
	}
	if err == nil {
		v, err = parseEnvelope(raw)
	}
	return v, err == nil, err
}

// value returns the envelope of a value stored now, and how long the server is
// to keep it.
func (c *cache) value(life, delta time.Duration) (v envelope, keep time.Duration) {
	now := c.r.now()
	return envelope{now + int64(life), now, delta}, life + c.cfg.StaleGrace
}

// batch is how many keys one command or pipeline is about.
const batch = 500

// unlink deletes keys, and tells no process.
func (r *Rig) unlink(ctx context.Context, keys []string) error {
	for len(keys) > 0 {
		n := min(batch, len(keys))
		if err := r.admin.Unlink(ctx, keys[:n]...).Err(); err != nil {
			return fmt.Errorf("delete keys of the lab: %w", err)
		}
		keys = keys[n:]
	}
	return nil
}

// cleanTimeout is how long the last deletions may take.
const cleanTimeout = 10 * time.Second

// clean deletes all that the run may have left.
func (r *Rig) clean() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), cleanTimeout)
	defer cancel()
	return r.unlink(ctx, r.keys(func(*entry) bool { return true }, true))
}

// keys lists those of entries that have been used, of all caches.
func (r *Rig) keys(which func(*entry) bool, locks bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for _, c := range r.caches {
		for _, e := range c.entries {
			if e == nil || !which(e) {
				continue
			}
			keys = append(keys, e.key)
			if locks && c.cfg.Protect&(scenario.ProtectLock|scenario.ProtectLease) != 0 {
				keys = append(keys, e.lock)
			}
		}
	}
	return keys
}
