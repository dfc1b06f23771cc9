package redis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// lfuNew is the counter a new key starts with, and lfuFactor the default
	// of lfu-log-factor. A server whose factor is another gets shares that
	// are right among keys of middling use, and off for the hottest.
	lfuNew    = 5
	lfuFactor = 10

	// maxTop is how many keys are looked at in every run, because they were
	// used most when the walk came by.
	maxTop = 2 * 16
	// usesKeep is about how many keys the average use is taken over.
	usesKeep = 100_000
)

// timesUsed estimates how often a key was used lately from its LFU counter. With
// n = counter - lfuNew, the server increments it with probability 1/(n*factor+1),
// so that it takes the sum of n*factor+1 to get there. It falls by one a minute.
func timesUsed(counter int64) float64 {
	n := float64(max(0, counter-lfuNew))
	return lfuFactor*n*(n-1)/2 + n
}

// uses finds the keys whose LFU counters are highest. The zero value is ready.
type uses struct {
	walk walk
	top  map[string]float64 // times used, of those used most
	// Of keys that were looked at and are not in top: how many, and how often
	// they were used, with what is old fading out.
	looked, used float64
}

// look looks at one slice of keys and again at those used most, and returns
// these, the most used first.
func (u *uses) look(ctx context.Context, c *goredis.Client, budget int) ([]use, error) {
	seen := map[string]float64{}
	err := u.walk.slice(ctx, c, budget, func(keys []string) error { return readUse(ctx, c, keys, seen) })
	if err != nil {
		return nil, err
	}
	again := slices.Collect(maps.Keys(u.top))
	clear(u.top)
	size := c.DBSize(ctx)
	if err := cmp.Or(size.Err(), readUse(ctx, c, again, seen)); err != nil {
		return nil, err
	}
	return u.rank(seen, float64(size.Val())), nil
}

// rank takes in how often keys were used, of population there are, and returns
// the shares of those used most.
func (u *uses) rank(seen map[string]float64, population float64) []use {
	keys := slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), strings.Compare(a, b))
	})
	u.top = map[string]float64{}
	sum := 0.0
	for i, k := range keys {
		if n := seen[k]; i < maxTop && n > 0 {
			u.top[k] = n
			sum += n
			continue
		}
		u.looked++
		u.used += seen[k]
	}
	for u.looked > usesKeep {
		u.looked, u.used = u.looked/2, u.used/2
	}
	all := sum
	if u.looked > 0 {
		all += u.used / u.looked * max(0, population-float64(len(u.top)))
	}
	var out []use
	for _, k := range keys[:min(len(keys), maxTop)] {
		if n := seen[k]; n > 0 {
			out = append(out, use{k, n / all})
		}
	}
	return out
}

// readUse asks how often keys were used. What is gone already is left out.
func readUse(ctx context.Context, c *goredis.Client, keys []string, into map[string]float64) error {
	if len(keys) == 0 {
		return nil
	}
	pipe := c.Pipeline()
	counters := make([]*goredis.IntCmd, len(keys))
	for i, key := range keys {
		counters[i] = pipe.ObjectFreq(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil && !isNil(err) {
		return fmt.Errorf("ask for OBJECT FREQ: %w", err)
	}
	for i, key := range keys {
		switch err := counters[i].Err(); {
		case err == nil:
			into[key] = timesUsed(counters[i].Val())
		case !isNil(err):
			return fmt.Errorf("ask for OBJECT FREQ: %w", err)
		}
	}
	return nil
}
