package detectors_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newExpiryForecast(t testing.TB, c detectors.ExpiryForecastConfig) detectors.Detector {
	t.Helper()
	d, err := detectors.NewExpiryForecast(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// due is a second at which so many values are to expire in seconds from now, at
// an origin that is known to take 400 ms and to run 8 at once.
type due struct{ in, keys int }

// forecast is n ticks, a second each from second from on, as of which deadlines
// lie ahead of the first of them; recomputes tell how long they take.
func forecast(from, n int, ds ...due) (out ticks) {
	for i := range n {
		at := time.Duration(from+i) * second
		c := feed()
		for range 20 {
			c.Work.Durations.Observe(400 * ms)
		}
		for _, d := range ds {
			if bin, ok := signal.BinExpiry(after(at), after(time.Duration(from+d.in)*second+500*ms)); ok {
				bin.Keys = uint32(d.keys)
				c.Expiries = append(c.Expiries, bin)
			}
		}
		c.Expiries = signal.MergeExpiries(c.Expiries, nil)
		out = append(out, with(tick(at), c))
	}
	return out
}

// read makes ts say of how many reads there are each second.
func read(ts ticks, n uint64) ticks {
	for _, t := range ts {
		t.Caches[0].Lookups.Hits = n
	}
	return ts
}

// evenly spreads so many keys a second over n seconds.
func evenly(in, n, keys int) (ds []due) {
	for i := range n {
		ds = append(ds, due{in + i, keys})
	}
	return ds
}

// Histograms say of 400 ms that they are 394, so that the origin does 20.3 a
// second.
func TestExpiryForecast(t *testing.T) {
	tests := []struct {
		name  string
		ticks ticks
		want  []string
	}{
		{"61 keys at once are 2 s of work after the second that serves 20", forecast(1, 5, due{50, 61}), []string{"2s ticket"}},
		{"60 are not", forecast(1, 5, due{50, 60}), nil},
		{"what one second leaves is added to the next", forecast(1, 5, due{50, 40}, due{51, 42}), []string{"2s ticket"}},
		{"what lies between them is served", forecast(1, 5, due{50, 40}, due{52, 42}), nil},
		{"20 a second are served, however many they are", forecast(1, 5, evenly(10, 280, 20)...), nil},
		{"22 a second pile up", forecast(1, 5, evenly(10, 280, 22)...), []string{"2s ticket"}},
		{"an hour ahead too", forecast(1, 5, due{3000, 1000}), []string{"2s ticket"}},
		{"where ten seconds' keys are taken to be spread over them", forecast(1, 5, due{3000, 240}), nil},
		{"at an edge, all at once of keys that are not known to be read", forecast(1, 20, evenly(30, 15, 23)...), []string{"2s ticket"}},
		{"what is read every other second is asked for later, and piles up less", read(forecast(1, 20, evenly(30, 15, 23)...), 345/2), nil},
		{"what is read ten times a second is asked for at once", read(forecast(1, 20, evenly(30, 15, 23)...), 3450), []string{"2s ticket"}},
		{"a wave stays one, however seldom its keys are read", read(forecast(1, 20, due{50, 500}), 50), []string{"2s ticket"}},
		{"a minute after it has come it clears", append(forecast(1, 60, due{50, 500}), forecast(61, 120)...), []string{"2s ticket", "1m51s cleared"}},
		{"half of it ahead keeps it open", append(forecast(1, 10, due{50, 500}), forecast(11, 200, due{400, 460})...), []string{"2s ticket"}},
		{"silence keeps it open", append(forecast(1, 60, due{50, 500}), secondsOf(61, 300, silent)...), []string{"2s ticket"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, watchCache(newExpiryForecast(t, detectors.ExpiryForecastConfig{}), tc.ticks)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpiryForecastComesBeforeTheWave(t *testing.T) {
	ts := append(forecast(-30, 30), waveShop().warm().run(80*second)...)
	var said []string
	ahead := newExpiryForecast(t, detectors.ExpiryForecastConfig{})
	now := newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{})
	for _, tk := range ts {
		for _, d := range []detectors.Detector{ahead, now} {
			for _, s := range watchCache(d, ticks{tk}) {
				if s = d.Doc().ID + " at " + s; len(said) < 2 && (len(said) == 0 || !strings.HasPrefix(said[0], d.Doc().ID)) {
					said = append(said, s)
				}
			}
		}
	}
	want := []string{"expiry-forecast at 1s ticket", "synchronized-expiry at 1m9s page/2"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestExpiryForecastSaysWhatItKnows(t *testing.T) {
	f, _ := found(newExpiryForecast(t, detectors.ExpiryForecastConfig{}), forecast(1, 2, due{40, 400}, due{41, 600}))
	for name, want := range map[string][2]float64{
		"keys": {1000, 1000}, "backlog": {46.5, 48}, "ahead": {39, 39}, "refill": {49, 50}, "spread.required": {61, 63},
		"spread.observed": {1.9, 2.1}, "deadlines.peak": {600, 600}, "recompute.mean": {0.39, 0.4}, "budget": {8, 8},
	} {
		if got := evidence(&f, name); got < want[0] || got > want[1] {
			t.Errorf("%s is %v, want %v to %v", name, got, want[0], want[1])
		}
	}
	if note := f.Evidence[0].Note; !strings.HasSuffix(note, "that all are still read is not known yet, and assumed") {
		t.Errorf("note of the keys: %s", note)
	}
	if want := "Cache feed: 1000 keys expire within 2 s, in 39 s from now; origin db refills 20.3 a second and will be 47 s behind."; f.Summary != want {
		t.Errorf("summary %q, want %q", f.Summary, want)
	}
}

func TestExpiryForecastLearnsWhatADeadlineMeans(t *testing.T) {
	d := newExpiryForecast(t, detectors.ExpiryForecastConfig{})
	watch(d, forecast(1, 100, evenly(1, 60, 20)...)) // 1,200 values expire, and nobody reads them
	if got := watchCache(d, forecast(101, 20, due{60, 1000})); got != nil {
		t.Errorf("values that nobody reads are forecast: %v", got)
	}
}

func TestExpiryForecastDoesNotJudgeWhatIsRefreshedEarly(t *testing.T) {
	early := func(ts ticks) ticks {
		for _, tk := range ts {
			tk.Caches[0].Claims.Protection = []string{signal.ProtectXFetch}
		}
		return ts
	}
	d := newExpiryForecast(t, detectors.ExpiryForecastConfig{})
	if got := watchCache(d, early(forecast(1, 5, due{50, 1000}))); got != nil {
		t.Errorf("it says %v", got)
	}
	want := []string{"Not enough data: it claims to refresh values early, and whether any reach their deadlines is not known yet."}
	if diff := cmp.Diff(want, limitsOf(d)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}
