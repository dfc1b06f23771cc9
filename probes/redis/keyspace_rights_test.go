package redis_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
)

func TestKeyspaceNamesTheFlagsThatAreMissing(t *testing.T) {
	tests := []struct{ name, have, want string }{
		{"none is there", "", `notify-keyspace-events is "": the keyspace probe needs "Eg$xem", and "Eg$xem" is missing (m is not part of A): run CONFIG SET notify-keyspace-events Eg$xemhlsz, or set keyspace.configure: true`},
		{"all but misses, which A does not stand for", "AE", `"m" is missing (m is not part of A): run CONFIG SET notify-keyspace-events AEm`},
		{"events by key instead of by event", "AKm", `"E" is missing: run CONFIG SET notify-keyspace-events AKmE`},
		{"all", "AEm", ""},
		{"as many as it needs", "gxe$Emhlsz", ""},
	}
	addr := cachetest.Redis(t)
	c := dial(t, addr)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			must(t, c.ConfigSet(t.Context(), "notify-keyspace-events", tc.have))
			l := listen(t, []string{addr}, redis.Options{}, redis.KeyspaceOptions{})
			err := l.run(200 * time.Millisecond)
			if tc.want == "" && err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v\nwant it to say %s", err, tc.want)
			}
			if got := setting(t, c); missing(got, tc.have) || missing(tc.have, got) {
				t.Errorf("the setting is %q, and was %q", got, tc.have)
			}
		})
	}
}

func setting(t *testing.T, c *goredis.Client) string {
	t.Helper()
	got, err := c.ConfigGet(t.Context(), "notify-keyspace-events").Result()
	if err != nil {
		t.Fatal(err)
	}
	return got["notify-keyspace-events"]
}

// missing reports whether a flag of want is not in have.
func missing(have, want string) bool {
	return strings.ContainsFunc(want, func(r rune) bool { return !strings.ContainsRune(have, r) })
}

func TestKeyspaceConfiguresTheServerIfToldAndPutsItBack(t *testing.T) {
	addr := cachetest.RedisWith(t, "--notify-keyspace-events", "Kx")
	c := dial(t, addr)
	start := func() probes.Probe {
		p, err := redis.Keyspace([]string{addr}, "feed", redis.Options{}, redis.KeyspaceOptions{Configure: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got := setting(t, c); missing(got, "KxEg$em") {
			t.Errorf("while it runs the setting is %q, want what was there and what it needs", got)
		}
		return p
	}
	if err := start().Close(); err != nil {
		t.Error(err)
	}
	if got := setting(t, c); missing("Kx", got) || missing(got, "Kx") {
		t.Errorf("afterwards the setting is %q, want Kx again", got)
	}
	p := start()
	must(t, c.ConfigSet(t.Context(), "notify-keyspace-events", "AKE"))
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := setting(t, c); !missing(got, "m") || missing(got, "AKE") {
		t.Errorf("the setting is %q, want what somebody else has set meanwhile", got)
	}
}

// rights is the user docs/probes.md asks for.
var rights = []string{"on", ">sesame", "resetkeys", "resetchannels", "-@all",
	"%R~*", "&__keyevent@0__:*", "+subscribe", "+ping", "+config|get", "+pttl"}

func TestKeyspaceNeedsFewRights(t *testing.T) {
	addr := published(t)
	c, ctx := dial(t, addr), t.Context()
	with := func(less string, more ...string) redis.Options {
		t.Helper()
		args := []any{"ACL", "SETUSER", "probe", "reset"}
		for _, r := range append(slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return r == less }), more...) {
			args = append(args, r)
		}
		must(t, c.Do(ctx, args...))
		return redis.Options{Username: "probe", Password: "sesame"}
	}
	tests := []struct {
		name, less string
		more       []string
		err, limit string
	}{
		{"those documented are enough", "", nil, "", ""},
		{"without CONFIG GET it says that it cannot check, and proves what it can", "+config|get", []string{"+get"}, "", "may not run CONFIG GET"},
		{"without GET either, it has no proof", "+config|get", nil, "", "may not run CONFIG GET"},
		{"without PTTL it does not know how long values live", "+pttl", nil, "", "may not run PTTL"},
		{"without SUBSCRIBE it is blind, and says so", "+subscribe", nil, "NOPERM", ""},
		{"without the channels too", "&__keyevent@0__:*", nil, "NOPERM", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			must(t, c.FlushAll(ctx))
			l := listen(t, []string{addr}, with(tc.less, tc.more...), redis.KeyspaceOptions{})
			err := l.run(200 * time.Millisecond)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "sesame") {
					t.Errorf("got %v, want an error that mentions %q and not the password", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			must(t, c.Get(ctx, "feed:1"))
			must(t, c.Set(ctx, "feed:1", "x", 0))
			for range 3 {
				if err := l.run(200 * time.Millisecond); err != nil {
					t.Fatal(err)
				}
			}
			if l.window("feed:1").Recomputes.Starts() != 1 || len(l.windows) != 1 {
				t.Errorf("it saw %d keys: %+v", len(l.windows), l.windows)
			}
			if got := strings.Join(l.limits, " "); (tc.limit == "") != (got == "") || !strings.Contains(got, tc.limit) {
				t.Errorf("it says %q of its limits, want %q", got, tc.limit)
			}
		})
	}
}

func TestKeyspaceDoesNotTakeSilenceForHealthWhereItMayNotCheck(t *testing.T) {
	addr := cachetest.Redis(t) // publishes nothing
	c := dial(t, addr)
	must(t, c.Do(t.Context(), "ACL", "SETUSER", "probe", "on", ">sesame", "~*", "allchannels", "+subscribe", "+ping", "+get"))
	l := listen(t, []string{addr}, redis.Options{Username: "probe", Password: "sesame"}, redis.KeyspaceOptions{})
	var errs []error
	for range 3 {
		errs = append(errs, l.run(100*time.Millisecond))
	}
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "no event told of it") {
		t.Errorf("got %v, want an error: a key was missed, and no event came", err)
	}
}
