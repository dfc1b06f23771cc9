package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

const (
	notifyOption = "notify-keyspace-events"
	// needFlags are what the server must publish: key events (E) of removals and
	// times to live (g), strings ($), expiries (x), evictions (e) and misses (m),
	// which "A", for all, does not stand for.
	needFlags = "Eg$xem"
	// wantFlags are those of values kept as hashes, lists, sets and sorted sets.
	wantFlags = "hlsz"
	// allFlags are what "A" stands for. Streams, modules and what servers may
	// add are left as they are.
	allFlags = "g$lshzxetd"
)

// missingFlags returns those of want that are not in the server's setting.
func missingFlags(setting, want string) string {
	if strings.Contains(setting, "A") {
		setting += allFlags
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(setting, r) {
			return -1
		}
		return r
	}, want)
}

// withFlags returns the setting with those flags added.
func withFlags(setting, want string) string { return setting + missingFlags(setting, want) }

// readFlags returns the server's setting.
func readFlags(ctx context.Context, c *goredis.Client) (string, error) {
	got, err := c.ConfigGet(ctx, notifyOption).Result()
	if err != nil {
		return "", err
	}
	setting, ok := got[notifyOption]
	if !ok {
		return "", fmt.Errorf("the server has no setting %s", notifyOption)
	}
	return setting, nil
}

// isRefused reports whether the server does not let this user run a command, or
// lets nobody.
func isRefused(err error) bool {
	var reply goredis.Error
	if !errors.As(err, &reply) {
		return false
	}
	text := reply.Error()
	return strings.HasPrefix(text, "NOPERM") || strings.HasPrefix(text, "ERR unknown command") || strings.HasPrefix(text, "ERR unknown subcommand")
}

// flagsError says what is missing, and what to do.
func flagsError(setting string) error {
	missing := missingFlags(setting, needFlags)
	note := ""
	if strings.Contains(missing, "m") {
		note = " (m is not part of A)"
	}
	return fmt.Errorf("%s is %q: the keyspace probe needs %q, and %q is missing%s: run CONFIG SET %s %s, or set keyspace.configure: true",
		notifyOption, setting, needFlags, missing, note, notifyOption, withFlags(setting, needFlags+wantFlags))
}

// putBack is a setting that the probe changed.
type putBack struct{ was, is string }

// restore puts the setting back, unless somebody else has changed it since.
func (p putBack) restore(ctx context.Context, c *goredis.Client) error {
	now, err := readFlags(ctx, c)
	if err != nil {
		return err
	}
	if missingFlags(now, p.is) != "" || missingFlags(p.is, now) != "" {
		return nil
	}
	return c.ConfigSet(ctx, notifyOption, p.was).Err()
}
