package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/config"
)

// TestThePageSaysWhatProbesCannotSee has a probe without a server, and one whose
// server publishes no events.
func TestThePageSaysWhatProbesCannotSee(t *testing.T) {
	o := options(t)
	o.Config = config.Default()
	o.Config.Probes = []config.Probe{
		{Type: "redis", Target: "127.0.0.1:1", Cache: "gone", Password: "open-sesame", Interval: time.Second, Watch: []string{"info"}},
		{Type: "redis", Target: cachetest.Redis(t), Cache: "mute", Interval: time.Second, Watch: []string{"keyspace"}},
	}
	s := start(t, o)
	var page string
	eventually(t, "the page says that both fail", func() bool {
		_, page = get(t, s.url+"/")
		return strings.Contains(page, "127.0.0.1:1</bdi>, redis-info") && strings.Contains(page, "redis-keyspace") ||
			t.Context().Err() != nil
	})
	for _, want := range []string{"blind.", "The probe fails: ", "the keyspace probe needs"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if strings.Contains(page, "open-sesame") {
		t.Error("the page gives the password away")
	}
	checkMetric(t, s, `stampede_probe_success{probe="redis-keyspace",target="`+o.Config.Probes[1].Target+`"} 0`)
}
