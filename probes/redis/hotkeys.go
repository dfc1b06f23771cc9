package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/keyname"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// HotKeysName is the name of the probe [HotKeys] makes, unless options give
// another.
const HotKeysName = "redis-hotkeys"

// HotKeysOptions say how closely to look. The zero value works.
type HotKeysOptions struct {
	// KeysPerSecond is how many keys of each primary are looked at where the
	// server counts their use (see [HotKeys]), 1 to 100,000. A key costs the
	// server as much as in [ExpiryOptions]. Default 200.
	KeysPerSecond int
	// Track lets the probe start sessions of the server's HOTKEYS command
	// where there is none. A session slows every command down a little; the
	// user needs the right to HOTKEYS, which is an administrator's. Default:
	// only sessions that somebody else has started are read.
	Track bool
	// Group names the group of a key, as [signal.Key.Group] is. Default
	// [keyname.Pattern].
	Group func(key string) string
	// Salt is mixed into the hash that stands for a key, as instrumented
	// services may do. Default: none.
	Salt string
}

func (o HotKeysOptions) withDefaults() HotKeysOptions {
	if o.KeysPerSecond == 0 {
		o.KeysPerSecond = 200
	}
	if o.Group == nil {
		o.Group = keyname.Pattern
	}
	return o
}

func (o HotKeysOptions) validate() error {
	if o.KeysPerSecond < 1 || o.KeysPerSecond > 100_000 {
		return fmt.Errorf("KeysPerSecond is %d: want 1 to 100000", o.KeysPerSecond)
	}
	return nil
}

// HotKeys returns a probe that asks every primary which keys are used most. It
// answers with one [signal.Vitals] a primary for cache, of the source {Service,
// addr#hotkeys}, with the keys whose share of all use is largest, and when they
// expire.
//
// Where maxmemory-policy is one of the LFU policies, the server counts how often
// each key is used, roughly: then the probe walks over the keys, as [Expiry]
// does, and reads the counters (OBJECT FREQ). A key is found once the walk comes
// by it. Else, where the server has the command HOTKEYS (Redis 8.6), it reads
// the results of the session that is running, or was last; see
// [HotKeysOptions.Track]. It never stops, resets or replaces a session that it
// did not start. Where the server has neither, it says so and reports nothing.
//
// It opens one connection to each primary.
func HotKeys(addrs []string, cache string, o Options, h HotKeysOptions) (probes.Probe, error) {
	o, h = o.withDefaults(HotKeysName), h.withDefaults()
	if err := o.validate(addrs, cache); err != nil {
		return probes.Probe{}, err
	}
	if err := h.validate(); err != nil {
		return probes.Probe{}, fmt.Errorf("probe redis %q: hotkeys: %w", target(addrs), err)
	}
	r := newRoster(addrs, o, func(addr string) *hotKeys {
		return &hotKeys{h: h, source: signal.Source{Service: o.Service, Instance: addr + "#hotkeys"}, cache: cache}
	})
	r.budget = perRun(h.KeysPerSecond, o)
	return probes.Probe{
		Name: o.Name, Target: target(addrs), Interval: o.Interval, Timeout: o.Timeout,
		Run: r.run, Close: r.close,
	}, nil
}

// learnEvery is how often a server is asked again what it can do.
const learnEvery = 10 * time.Second

// hotKeys looks for the hot keys of one primary.
type hotKeys struct {
	h      HotKeysOptions
	source signal.Source
	cache  string

	policy  string    // maxmemory-policy
	command bool      // the server has HOTKEYS
	due     time.Time // when to ask again for those

	uses    uses
	session session
}

// use is how much a key is used.
type use struct {
	key   string
	share float64
}

func (k *hotKeys) look(ctx context.Context, c *goredis.Client, budget int) (*signal.Vitals, []string, error) {
	if err := k.learn(ctx, c); err != nil {
		return nil, nil, err
	}
	var found []use
	var limit string
	var err error
	switch {
	case strings.HasSuffix(k.policy, "-lfu"):
		found, err = k.uses.look(ctx, c, budget)
	case k.command:
		found, limit, err = k.session.look(ctx, c, k.h.Track)
	default:
		limit = fmt.Sprintf("Which keys are hot is not known: the server has no HOTKEYS command, and its maxmemory-policy is %q, which does not count their use: want allkeys-lfu or volatile-lfu.", k.policy)
	}
	if err != nil {
		return nil, nil, err
	}
	if limit != "" {
		return nil, []string{limit}, nil
	}
	v := &signal.Vitals{Source: k.source, Cache: k.cache, Probe: true}
	v.Hot, err = k.describe(ctx, c, found)
	v.At = signal.At(time.Now())
	return v, nil, err
}

// learn asks what the server can do, unless it was asked lately.
func (k *hotKeys) learn(ctx context.Context, c *goredis.Client) error {
	if time.Now().Before(k.due) {
		return nil
	}
	pipe := c.Pipeline()
	// Not CONFIG GET: that takes an administrator's rights.
	memory, command := pipe.Info(ctx, "memory"), pipe.Do(ctx, "COMMAND", "INFO", "HOTKEYS")
	// A connection that could not be made may show in the pipeline's error only.
	if _, err := pipe.Exec(ctx); err != nil && memory.Val() == "" {
		return fmt.Errorf("ask for INFO memory: %w", err)
	}
	k.policy = ""
	for name, value := range infoLines(memory.Val()) {
		if name == "maxmemory_policy" {
			k.policy = value[:min(len(value), maxBuild)]
		}
	}
	// A server that does not know the command answers with a list of nil; one
	// that does not let us ask is treated as if it did not.
	list, _ := command.Slice()
	k.command = len(list) == 1 && list[0] != nil
	k.due = time.Now().Add(learnEvery)
	return nil
}

// leastShare is the share of all use that makes a key worth a word.
const leastShare = 0.001

// describe says of the keys used most what is to be told.
func (k *hotKeys) describe(ctx context.Context, c *goredis.Client, found []use) ([]signal.HotKey, error) {
	found = slices.DeleteFunc(found, func(u use) bool { return u.share < leastShare })
	found = found[:min(len(found), signal.MaxHotKeys)]
	if len(found) == 0 {
		return nil, nil
	}
	pipe := c.Pipeline()
	ttls := make([]*goredis.DurationCmd, len(found))
	for i, u := range found {
		ttls[i] = pipe.PTTL(ctx, u.key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("ask for times to live: %w", err)
	}
	now := time.Now()
	hot := make([]signal.HotKey, len(found))
	for i, u := range found {
		hot[i] = signal.HotKey{
			ID:    keyname.ID(keyname.Sum(k.h.Salt, u.key)),
			Group: keyname.Safe(k.h.Group(u.key)),
			Share: min(1, u.share),
		}
		if ttl := ttls[i].Val(); ttl > 0 {
			hot[i].Expiry = signal.At(now.Add(ttl))
		}
	}
	return signal.MergeHotKeys(nil, hot), nil
}

// leave ends what the probe has started on the server.
func (k *hotKeys) leave(ctx context.Context, c *goredis.Client) error {
	return k.session.leave(ctx, c)
}

// isNil reports whether a server answered with nothing.
func isNil(err error) bool { return errors.Is(err, goredis.Nil) }
