package redis_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	miniserver "github.com/alicebob/miniredis/v2/server"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/keyname"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func hotKeysProbe(t *testing.T, addr string, h redis.HotKeysOptions) probes.Probe {
	t.Helper()
	p, err := redis.HotKeys([]string{addr}, "feed", redis.Options{}, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func keyID(key string) signal.KeyID { return keyname.ID(keyname.Sum("", key)) }

func TestTheHottestKeyOfAnLFUServerIsFound(t *testing.T) {
	addr := cachetest.RedisWith(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lfu")
	c, ctx := dial(t, addr), t.Context()
	fill(t, c, "feed:", 300, time.Minute)
	fill(t, c, "user:", 300, time.Minute)
	before := time.Now()
	must(t, c.Set(ctx, "feed:home", "v", 30*time.Second))
	for range 20 {
		pipe := c.Pipeline()
		for range 1000 {
			pipe.Get(ctx, "feed:home")
		}
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
	}
	p := hotKeysProbe(t, addr, redis.HotKeysOptions{KeysPerSecond: 500})
	ask(t, p)
	v := ask(t, p) // the second slice ends the round
	if len(v.Hot) == 0 || v.Hot[0].ID != keyID("feed:home") || v.Hot[0].Group != "feed:*" || v.Hot[0].Share < 0.9 || v.Hot[0].Share > 1 {
		t.Fatalf("hot keys are %+v; want feed:home with nearly all use", v.Hot)
	}
	if at := v.Hot[0].Expiry.Time(); at.Before(before.Add(29*time.Second)) || at.After(time.Now().Add(31*time.Second)) {
		t.Errorf("it expires at %v, stored for 30 s after %v", at, before)
	}
	if v.Instance != addr+"#hotkeys" || !v.Probe {
		t.Errorf("got %+v", v)
	}
	must(t, c.Del(ctx, "feed:home"))
	for _, h := range ask(t, p).Hot {
		if h.ID == keyID("feed:home") {
			t.Errorf("a key that is gone is still hot: %+v", h)
		}
	}
}

func TestAServerThatCountsNoUseIsSaidTo(t *testing.T) {
	addr := cachetest.Redis(t)
	res, err := hotKeysProbe(t, addr, redis.HotKeysOptions{Track: true}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Vitals) != 0 || len(res.Limits) != 1 || !strings.Contains(res.Limits[0], `"noeviction"`) {
		t.Errorf("got %+v, want no vitals and a limit that names the policy", res)
	}
}

// hotServer speaks as a Redis that has HOTKEYS does, for what the probe sends.
type hotServer struct {
	mu      sync.Mutex
	began   int64 // when its session began, in ms; 0: it has none
	active  bool
	starts  int
	resets  int
	entries []string // keys and their microseconds
}

func newHotServer(t *testing.T) (*hotServer, string) {
	t.Helper()
	srv, err := miniserver.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	h := &hotServer{entries: []string{"feed:home", "600", "user:7", "200"}}
	for name, answer := range map[string]miniserver.Cmd{
		"INFO":    func(c *miniserver.Peer, _ string, _ []string) { c.WriteBulk("maxmemory_policy:noeviction\r\n") },
		"COMMAND": func(c *miniserver.Peer, _ string, _ []string) { c.WriteLen(1); c.WriteLen(1); c.WriteBulk("hotkeys") },
		"PTTL":    func(c *miniserver.Peer, _ string, _ []string) { c.WriteInt(5000) },
		"HOTKEYS": h.answer,
	} {
		if err := srv.Register(name, answer); err != nil {
			t.Fatal(err)
		}
	}
	return h, srv.Addr().String()
}

func (h *hotServer) answer(c *miniserver.Peer, _ string, args []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch strings.ToUpper(args[0]) {
	case "START":
		if h.active {
			c.WriteError("ERR hotkeys tracking is already in progress")
			return
		}
		h.active, h.began = true, time.Now().UnixMilli()+int64(h.starts)
		h.starts++
		c.WriteOK()
	case "STOP":
		h.active = false
		c.WriteOK()
	case "RESET":
		if h.active {
			c.WriteError("ERR stop it first")
			return
		}
		h.began = 0
		h.resets++
		c.WriteOK()
	case "GET":
		h.get(c)
	}
}

func (h *hotServer) get(c *miniserver.Peer) {
	if h.began == 0 {
		c.WriteNull()
		return
	}
	active := 0
	if h.active {
		active = 1
	}
	c.WriteLen(1)
	c.WriteMapLen(6)
	for name, n := range map[string]int{"tracking-active": active, "sample-ratio": 1, "all-commands-all-slots-us": 1000, "collection-start-time-unix-ms": int(h.began), "collection-duration-ms": 1000} {
		c.WriteBulk(name)
		c.WriteInt(n)
	}
	c.WriteBulk("by-cpu-time-us")
	c.WriteLen(len(h.entries))
	for i := 0; i < len(h.entries); i += 2 {
		c.WriteBulk(h.entries[i])
		var us int
		_, _ = fmt.Sscan(h.entries[i+1], &us)
		c.WriteInt(us)
	}
}

func (h *hotServer) set(began time.Time, active bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began, h.active = began.UnixMilli(), active
}

func (h *hotServer) state() (active bool, starts, resets int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.active, h.starts, h.resets
}

func TestSomebodyElsesSessionIsReadAndLeftAlone(t *testing.T) {
	tests := []struct {
		name   string
		began  time.Time
		active bool
		hot    int
		limit  string
	}{
		{"while it runs", time.Now(), true, 2, ""},
		{"when it is over", time.Now(), false, 2, ""},
		{"unless it is long over", time.Now().Add(-time.Hour), false, 0, "not ours to remove"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h, addr := newHotServer(t)
			h.set(tc.began, tc.active)
			p, err := redis.HotKeys([]string{addr}, "feed", redis.Options{}, redis.HotKeysOptions{Track: true})
			if err != nil {
				t.Fatal(err)
			}
			res, err := p.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			var hot []signal.HotKey
			for _, v := range res.Vitals {
				hot = v.Hot
			}
			if len(hot) != tc.hot || !strings.Contains(strings.Join(res.Limits, ""), tc.limit) {
				t.Errorf("got %+v, limits %q", hot, res.Limits)
			}
			if tc.hot > 0 && (hot[0].ID != keyID("feed:home") || hot[0].Share != 0.6) {
				t.Errorf("got %+v; want feed:home with 60 %% of the time", hot)
			}
			if active, starts, resets := h.state(); active != tc.active || starts+resets > 0 {
				t.Errorf("active %v, %d starts, %d resets; want it as it was", active, starts, resets)
			}
		})
	}
}

func TestASessionIsStartedOnlyIfAllowedAndEndedWithTheProbe(t *testing.T) {
	h, addr := newHotServer(t)
	res, err := hotKeysProbe(t, addr, redis.HotKeysOptions{}).Run(t.Context())
	if _, starts, _ := h.state(); err != nil || starts > 0 || len(res.Limits) != 1 || !strings.Contains(res.Limits[0], "hotkeys.track") {
		t.Fatalf("%d starts, limits %q, %v; want none, and to be told how to allow it", starts, res.Limits, err)
	}

	p, err := redis.HotKeys([]string{addr}, "feed", redis.Options{}, redis.HotKeysOptions{Track: true})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, p)
	if v := ask(t, p); len(v.Hot) != 2 {
		t.Errorf("hot keys are %+v, want two", v.Hot)
	}
	h.mu.Lock()
	h.active = false // its time is over
	h.mu.Unlock()
	if v := ask(t, p); len(v.Hot) != 2 {
		t.Errorf("after the session the hot keys are %+v, want those it found", v.Hot)
	}
	if active, starts, resets := h.state(); !active || starts != 2 || resets != 1 {
		t.Errorf("active %v, %d starts, %d resets; want a second session in place of the first", active, starts, resets)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if active, _, resets := h.state(); active || resets != 2 {
		t.Errorf("active %v, %d resets after closing; want nothing left behind", active, resets)
	}
}
