package e2e_test

import (
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"
)

// TestADogpileIsPagedSurvivesMishapsAndResolvesOnceFixed is the main path, from
// a service without protection to one with it, with a service killed and the
// exporter restarted on the way.
func TestADogpileIsPagedSurvivesMishapsAndResolvesOnceFixed(t *testing.T) {
	r := newRig(t)
	r.startServices(3, "none")
	stop := r.load(300)
	defer func() { stop() }()

	eventually(t, 30*time.Second, "a page is active in Alertmanager", func() bool {
		f := r.firing()
		return len(f) == 1 && f[0].Labels["severity"] == "page"
	})
	checkPage(t, r)
	checkFigures(t, r)

	t.Log("kill -9 one service while it recomputes")
	victim := r.services[0]
	eventually(t, 20*time.Second, "the service recomputes", func() bool {
		return metric("http://"+victim.addr+"/metrics", "stampede_recomputes_in_flight", "key_group=feed:*") > 0
	})
	victim.signal(syscall.SIGKILL)
	r.services[0] = r.startService(victim.addr, "none")

	t.Log("restart the exporter in the middle of a dogpile")
	eventually(t, 20*time.Second, "the services recompute", func() bool {
		return metric("http://"+r.services[1].addr+"/metrics", "stampede_recomputes_in_flight", "key_group=feed:*") > 5
	})
	before := r.incidents()
	r.exporter.signal(syscall.SIGTERM)
	r.startExporter()
	eventually(t, 20*time.Second, "the exporter sees recomputes again", func() bool { return r.counted() > 50 })
	after := r.incidents()
	if len(before) != 1 || len(after) != 1 || before[0].ID != after[0].ID || after[0].Closed != 0 || after[0].Episodes != 1 {
		t.Errorf("incidents before the restart %+v, after it %+v; want one and the same, open, never reopened", before, after)
	}
	if f := r.firing(); len(f) != 1 {
		t.Errorf("%d alerts are active after the restart; want the one", len(f))
	}

	t.Log("deploy single-flight")
	stop()
	r.startServices(3, "singleflight")
	stop = r.load(300)
	defer func() {
		for _, a := range r.firing() {
			t.Logf("still active: %s: %s", a.Name(), a.Annotations["summary"])
		}
	}()
	eventually(t, 60*time.Second, "the alert is resolved", func() bool { return len(r.firing()) == 0 })
	if got := r.incidents(); len(got) != 1 || got[0].Closed == 0 {
		t.Errorf("incidents %+v; want one, closed", got)
	}
}

// checkPage reads the alert as whoever is woken by it would.
func checkPage(t *testing.T, r *rig) {
	t.Helper()
	a := r.firing()[0]
	for label, want := range map[string]string{"alertname": "StampedeHotKeyExpiry", "detector": "hot-key-expiry", "service": "feed", "cache": "feed", "severity": "page"} {
		if a.Labels[label] != want {
			t.Errorf("label %s is %q; want %q", label, a.Labels[label], want)
		}
	}
	if len(a.Labels) != 5 {
		t.Errorf("labels %v; want those five and no other", a.Labels)
	}
	if got := a.Annotations["key_group"]; got != "feed:*" {
		t.Errorf("key group %q; want feed:*", got)
	}
	for _, name := range []string{"summary", "description", "runbook_url", "peak"} {
		if a.Annotations[name] == "" {
			t.Errorf("the alert has no %s: %v", name, a.Annotations)
		}
	}
	// 300 reads/s for 400 ms make 121 at the full height of a burst. The alert
	// may be from the burst's beginning, where the page is due, but no earlier.
	var peak float64
	if _, err := fmt.Sscanf(a.Annotations["peak"], "%f recomputes", &peak); err != nil || peak < 20 || peak > 200 {
		t.Errorf("peak %q (%v); want 20 to 200 recomputes", a.Annotations["peak"], err)
	}
	t.Logf("paged: %s", a.Annotations["summary"])
}

// checkFigures holds the exporter's count against the services' own.
func checkFigures(t *testing.T, r *rig) {
	t.Helper()
	duplicates := func() float64 {
		return metric("http://"+r.web+"/metrics", "stampede_fleet_duplicate_recomputes_total", "cache=feed")
	}
	var truth, bursts float64
	eventually(t, 60*time.Second, "the exporter and the services agree on how many recomputes there were", func() bool {
		truth = r.queries()
		if truth < 300 || r.counted() != truth {
			return false
		}
		time.Sleep(1500 * time.Millisecond) // duplicates are counted at the next tick
		bursts = truth - duplicates()
		return r.queries() == truth && r.counted() == truth
	})
	// The first burst is that of a cold start, and grows with whatever it takes
	// three processes to start.
	if mean := truth / bursts; math.Abs(mean-121) > 40 {
		t.Errorf("%v recomputes in %v bursts, %.0f each; want about 300/s x 0.4 s + 1 = 121", truth, bursts, mean)
	}
	t.Logf("%v recomputes in %v bursts, as the services count them too", truth, bursts)
}
