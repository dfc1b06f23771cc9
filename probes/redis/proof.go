package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/probes/keyspace"
)

// errNoEvents is how a subscription fails that hears nothing though it should.
var errNoEvents = errors.New("a key was missed and no event told of it: " + notifyOption + " needs " + needFlags)

// proof is what a probe has that its server publishes misses, if it may not read
// the setting: it misses a key itself, and waits for the event.
type proof struct {
	key     string
	seen    bool
	refused bool
	runs    int
}

// provoke misses a key. A user that may not read it has no proof.
func (p *proof) provoke(ctx context.Context, c *goredis.Client) {
	p.key = fmt.Sprintf("stampede-exporter:probe:%016x", rand.Uint64())
	err := c.Get(ctx, p.key).Err()
	p.refused = err != nil && !errors.Is(err, goredis.Nil)
}

// saw reports whether key is the one that was missed for proof.
func (p *proof) saw(key []byte) bool {
	if string(key) != p.key {
		return false
	}
	p.seen = true
	return true
}

// check is called at the end of each run.
func (p *proof) check() error {
	if p.runs++; p.seen || p.refused || p.runs < 2 {
		return nil
	}
	return errNoEvents
}

// lookupWithin bounds how long a run waits for times to live.
const lookupWithin = 100 * time.Millisecond

// askLives asks for the times to live of keys that a recompute has stored: a
// store's event does not tell them.
func (e *ear) askLives(ctx context.Context) {
	if e.mute || e.k.TTLLookups < 0 {
		return
	}
	keys := e.ledger.Untimed(e.k.TTLLookups)
	if len(keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	pipe := e.node.client.Pipeline()
	lives := make([]*goredis.DurationCmd, len(keys))
	for i, key := range keys {
		lives[i] = pipe.PTTL(ctx, string(key))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		if e.mute = isRefused(err); e.mute {
			e.limits[limit("It may not run PTTL: how long values live is not known")] = true
		}
		return
	}
	at := e.now()
	for i, cmd := range lives {
		switch ttl := cmd.Val(); {
		case ttl == -2: // gone, and that was a miss of ours
			e.own[string(keys[i])] = true
		case ttl == -1:
			e.ledger.Observe(keyspace.Event{At: at, Key: keys[i], Kind: keyspace.Left, TTL: -1})
		case ttl > 0:
			e.ledger.Observe(keyspace.Event{At: at, Key: keys[i], Kind: keyspace.Left, TTL: ttl})
		}
	}
}
