package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"
)

func TestProbeFlags(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string // targets, or what the error says
		fail bool
	}{
		{"none is none", nil, "", false},
		{"one", []string{"--probe.redis=redis://a:1"}, "a:1", false},
		{"a host will do", []string{"--probe.redis=a", "--probe.memcached=b"}, "a:6379 b:11211", false},
		{"several", []string{"--probe.redis=rediss://u:hunter2@a:1", "--probe.redis=redis://b:2?cache=feed"}, "a:1 b:2", false},
		{"another type", []string{"--probe.redis=memcached://u:hunter2@a:1"}, "another flag", true},
		{"nonsense", []string{"--probe.redis=redis://u:hunter2@a:1?mode=ring"}, "out of range", true},
		{"one twice", []string{"--probe.redis=u:hunter2@a:1", "--probe.redis=a:1"}, "same name and target", true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			app := kingpin.New("test", "")
			var f probeFlags
			f.add(app.Command("serve", "").Default())
			_, err := app.Parse(tc.args)
			var targets []string
			if err == nil {
				c, loadErr := f.load(nil)()
				if err = loadErr; err == nil {
					for _, p := range c.Probes {
						targets = append(targets, p.Target)
					}
				}
			}
			switch got := strings.Join(targets, " "); {
			case !tc.fail && (err != nil || got != tc.want):
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			case tc.fail && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2")):
				t.Errorf("got %v, want an error with %q and without the password", err, tc.want)
			}
		})
	}
}
