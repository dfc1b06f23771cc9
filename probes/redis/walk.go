package redis

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// walkChunk is how many keys a walk asks for at once. The server does nothing
// else while it collects them, and while it answers what is asked of them: about
// a tenth of a millisecond each.
const walkChunk = 100

// walkLeast is how many keys a chunk counts as at least: a table that has shrunk
// is sparse, and gives few for the same work.
const walkLeast = walkChunk / 4

// walkShare is the part of the time that a run has left that a walk spreads its
// chunks over, in percent. The rest is for a server that is slow to answer.
const walkShare = 75

// walk goes over the keys of one server's database, again and again, slice by
// slice. Keys come in the order of a hash, so that any stretch of a walk is a
// fair sample of them. The zero value begins a new round.
//
// A key that is there throughout a round comes at least once in it. Servers let
// a walk go on at any cursor, even one of another process that had the same
// address: at worst a round then leaves some keys out, and others come twice.
type walk struct{ cursor uint64 }

// slice calls visit with keys, some at a time, until there were budget keys or a
// round is over. It spreads that over the time ctx has left, and ends early where
// a slow server leaves it none.
func (w *walk) slice(ctx context.Context, c *goredis.Client, budget int, visit func([]string) error) error {
	began := time.Now()
	span := allotted(ctx, began)
	looked := 0
	for {
		keys, next, err := c.Scan(ctx, w.cursor, "", int64(min(walkChunk, budget-looked))).Result()
		if err != nil {
			return fmt.Errorf("scan keys: %w", err)
		}
		if len(keys) > 0 {
			if err := visit(keys); err != nil {
				return err
			}
		}
		// Only what was visited is behind us.
		w.cursor = next
		looked += max(len(keys), walkLeast)
		if looked >= budget || next == 0 {
			return nil
		}
		due := began.Add(time.Duration(float64(span) * float64(looked) / float64(budget)))
		if !pause(ctx, time.Until(due)) || time.Since(began) > span {
			return nil
		}
	}
}

// allotted returns how long a walk that begins now may take.
func allotted(ctx context.Context, now time.Time) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Second
	}
	return end.Sub(now) * walkShare / 100
}

// pause waits for d, and reports whether ctx lasted that long.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
