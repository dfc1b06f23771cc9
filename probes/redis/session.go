package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// sessionLength is how long a session that the probe starts runs: the server
// ends it by itself, should the probe be gone by then.
const sessionLength = 15 * time.Second

// sessionOld is how long the results of somebody else's session say something
// of what is used now.
const sessionOld = 5 * time.Minute

// session reads the results of the HOTKEYS command of one server, which has one
// session for all its clients. The zero value has started none.
type session struct {
	ours time.Time // when the session began that was started here; zero if none was
	last []use     // of the latest session with results
}

// look returns the keys used most, the most used first, or why they are not
// known.
func (s *session) look(ctx context.Context, c *goredis.Client, track bool) ([]use, string, error) {
	res, err := c.HotKeysGet(ctx).Result()
	if err != nil && !isNil(err) {
		return nil, "", fmt.Errorf("ask for HOTKEYS: %w", err)
	}
	if res != nil {
		s.last = usesOf(res)
	}
	switch {
	case res != nil && res.TrackingActive:
		return s.last, "", nil
	case res != nil && !s.isOurs(res):
		// Whoever started it may not have read it yet. A new session would
		// throw it away.
		if time.Since(res.CollectionStartTime.Add(res.CollectionDuration)) > sessionOld {
			return nil, "Which keys are hot is not known: somebody has left an old HOTKEYS session behind, which is not ours to remove (HOTKEYS RESET).", nil
		}
		return s.last, "", nil
	case !track:
		return nil, "Which keys are hot is not known: no HOTKEYS session was started, and the probe is not allowed to (hotkeys.track).", nil
	}
	return s.last, "", s.start(ctx, c, res != nil)
}

// start begins a session, in place of an old one of ours if there is one.
func (s *session) start(ctx context.Context, c *goredis.Client, replace bool) error {
	s.ours = time.Time{}
	if replace {
		if err := c.HotKeysReset(ctx).Err(); err != nil {
			return fmt.Errorf("make room for a HOTKEYS session: %w", err)
		}
	}
	args := &goredis.HotKeysStartArgs{
		Metrics:  []goredis.HotKeysMetric{goredis.HotKeysMetricCPU},
		Count:    maxTop,
		Duration: int64(sessionLength / time.Second),
	}
	// It fails if somebody else was faster, and theirs is read from then on.
	if err := c.HotKeysStart(ctx, args).Err(); err != nil {
		return fmt.Errorf("start a HOTKEYS session: %w", err)
	}
	res, err := c.HotKeysGet(ctx).Result()
	if err != nil {
		return fmt.Errorf("ask for HOTKEYS: %w", err)
	}
	if res != nil {
		s.ours = res.CollectionStartTime
	}
	return nil
}

func (s *session) isOurs(res *goredis.HotKeysResult) bool {
	return !s.ours.IsZero() && res.CollectionStartTime.Equal(s.ours)
}

// leave ends the session that was started here, if it is still there.
func (s *session) leave(ctx context.Context, c *goredis.Client) error {
	if s.ours.IsZero() {
		return nil
	}
	res, err := c.HotKeysGet(ctx).Result()
	if err != nil || res == nil || !s.isOurs(res) {
		return nil // it is gone, with the server perhaps
	}
	s.ours = time.Time{}
	if res.TrackingActive {
		if err := c.HotKeysStop(ctx).Err(); err != nil {
			return fmt.Errorf("stop our HOTKEYS session: %w", err)
		}
	}
	if err := c.HotKeysReset(ctx).Err(); err != nil {
		return fmt.Errorf("clear our HOTKEYS session: %w", err)
	}
	return nil
}

// usesOf returns the shares of keys in a session's results: of the server's
// time, or else of the bytes it sent and received.
func usesOf(res *goredis.HotKeysResult) []use {
	entries, all := res.ByCPUTime, float64(res.AllCommandsAllSlots.Microseconds())
	if len(entries) == 0 {
		entries, all = res.ByNetBytes, float64(res.NetBytesAllCommandsAllSlots)
	}
	if all <= 0 {
		return nil
	}
	// Of a sample, each command stands for so many.
	scale := float64(max(1, res.SampleRatio)) / all
	var out []use
	for _, e := range entries {
		if n, ok := e.Value.(int64); ok && n > 0 {
			out = append(out, use{e.Key, float64(n) * scale})
		}
	}
	slices.SortFunc(out, func(a, b use) int {
		return cmp.Or(cmp.Compare(b.share, a.share), strings.Compare(a.key, b.key))
	})
	return out
}
