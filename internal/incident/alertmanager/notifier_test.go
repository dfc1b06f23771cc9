package alertmanager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

const (
	firingPage   = "alertname=StampedeHotKeyExpiry cache=redis detector=hot-key-expiry service=shop severity=page"
	firingTicket = "alertname=StampedeHotKeyExpiry cache=redis detector=hot-key-expiry service=shop severity=ticket"
)

// bubbled runs a test with a manager, a notifier with options o and an
// Alertmanager in a synctest bubble.
func bubbled(t *testing.T, o alertmanager.Options, test func(t *testing.T, m *incident.Manager, am *fake)) {
	synctest.Test(t, func(t *testing.T) {
		var am fake
		o.Client = am.client()
		test(t, newManager(t, newNotifier(t, o)), &am)
	})
}

func TestWhatFires(t *testing.T) {
	type tick []detectors.Finding
	tests := []struct {
		name  string
		min   detectors.Severity
		ticks func() []tick
		want  []string
	}{
		{"a page", 0, func() []tick { return []tick{{page()}} }, []string{firingPage}},
		{"a ticket", 0, func() []tick { return []tick{{page(ticket)}} }, []string{firingTicket}},
		{"nothing for information only", 0, func() []tick { return []tick{{page(info)}} }, nil},
		{"no ticket if only pages are asked for", detectors.Page, func() []tick { return []tick{{page(ticket)}} }, nil},
		{"nothing after a page cleared", 0, func() []tick { return []tick{{page()}, {page(cleared)}} }, nil},
		{"a page again after it reopened", 0, func() []tick { return []tick{{page()}, {page(cleared)}, {page()}} }, []string{firingPage}},
		{"the page and no longer the ticket it was", 0, func() []tick { return []tick{{page(ticket)}, {page()}} }, []string{firingPage}},
		{"the ticket and no longer the page it was", 0, func() []tick { return []tick{{page()}, {page(ticket)}} }, []string{firingTicket}},
		{"nothing once a page is for information only", 0, func() []tick { return []tick{{page()}, {page(info)}} }, nil},
		{"a page until its last key cleared", 0, func() []tick { return []tick{{page(), page(key(8))}, {page(cleared)}} }, []string{firingPage}},
		{"nothing after its last key cleared", 0, func() []tick { return []tick{{page(), page(key(8))}, {page(cleared)}, {page(key(8), cleared)}} }, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			bubbled(t, alertmanager.Options{MinSeverity: tc.min}, func(t *testing.T, m *incident.Manager, am *fake) {
				for _, fs := range tc.ticks() {
					apply(m, fs...)
					wait(time.Second)
				}
				if diff := cmp.Diff(tc.want, am.firing()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAnAlertIsSentAtOnceAndAgainWithFreshFigures(t *testing.T) {
	bubbled(t, alertmanager.Options{}, func(t *testing.T, m *incident.Manager, am *fake) {
		start := time.Now()
		for i := range 61 {
			apply(m, page(func(f *detectors.Finding) { f.Evidence[0].Value = float64(i) }))
			wait(time.Second)
		}
		var got []string
		times := am.requests()
		for i, batch := range am.got() {
			a := batch[0]
			got = append(got, fmt.Sprint(times[i].Sub(start), " ", a.Annotations["peak"], ", ends in ", a.EndsAt.Sub(times[i])))
		}
		want := []string{
			"100ms 0 recomputes (budget 8), ends in 2m0s",
			"30s 29 recomputes (budget 8), ends in 2m0s",
			"1m0s 59 recomputes (budget 8), ends in 2m0s",
		}
		for i := range got { // which of two things at one instant comes first is open
			got[i] = strings.Replace(strings.Replace(got[i], " 30 ", " 29 ", 1), " 60 ", " 59 ", 1)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestAnEndIsRepeatedForFiveMinutesAndThenForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var am fake
		n := newNotifier(t, alertmanager.Options{Client: am.client()})
		m := newManager(t, n)
		apply(m, page())
		wait(10 * time.Second)
		closed := time.Now()
		apply(m, page(cleared))
		am.got()
		wait(time.Hour)
		batches := am.got()
		if len(batches) != 11 { // at once, and each 30 s up to 5 min
			t.Errorf("the end was sent %d times, want 11", len(batches))
		}
		for _, b := range batches {
			if a := b[0]; !a.EndsAt.Equal(closed) || len(b) != 1 {
				t.Errorf("sent %v, want one alert that ends at %v", b, closed)
			}
		}
		if got := n.Ended(); got != 0 {
			t.Errorf("%d ended alerts are still remembered", got)
		}
	})
}

func TestAKeyThatJoinsIsToldAtOnceAndFreshFiguresAreNot(t *testing.T) {
	bubbled(t, alertmanager.Options{}, func(t *testing.T, m *incident.Manager, am *fake) {
		apply(m, page())
		wait(time.Second)
		apply(m, page())
		wait(time.Second)
		if got := len(am.got()); got != 1 {
			t.Errorf("%d requests for an opening and an update, want 1", got)
		}
		apply(m, page(), page(key(8)))
		wait(time.Second)
		batches := am.got()
		if len(batches) != 1 || !strings.Contains(batches[0][0].Annotations["summary"], "1 more key") {
			t.Errorf("for a second key: %v", batches)
		}
	})
}

func TestOnlyWhatChangedIsSentAtOnce(t *testing.T) {
	bubbled(t, alertmanager.Options{}, func(t *testing.T, m *incident.Manager, am *fake) {
		apply(m, page(), page(cache("other")))
		wait(time.Second)
		am.got()
		apply(m, page(cleared))
		wait(time.Second)
		batches := am.got()
		if len(batches) != 1 || len(batches[0]) != 1 || batches[0][0].name() != firingPage {
			t.Errorf("sent %v, want the one that changed", batches)
		}
		wait(30 * time.Second)
		if batches := am.got(); len(batches) != 1 || len(batches[0]) != 2 {
			t.Errorf("sent again %v, want both", batches)
		}
	})
}

func TestManyAlertsGoInBatchesPagesFirst(t *testing.T) {
	bubbled(t, alertmanager.Options{}, func(t *testing.T, m *incident.Manager, am *fake) {
		var fs []detectors.Finding
		const n = alertmanager.MaxBatch + 10
		for i := range n {
			f := page(ticket, cache(fmt.Sprint("c", i)))
			if i >= n-10 {
				f = page(cache(fmt.Sprint("c", i)))
			}
			fs = append(fs, f)
		}
		apply(m, fs...)
		wait(time.Second)
		batches := am.got()
		if len(batches) != 2 || len(batches[0]) != alertmanager.MaxBatch || len(batches[1]) != 10 {
			t.Fatalf("%d batches, want one full and one of the rest", len(batches))
		}
		for i, a := range batches[0][:10] {
			if a.Labels["severity"] != "page" {
				t.Errorf("alert %d is a %s, want the pages first", i, a.Labels["severity"])
			}
		}
	})
}

func TestTheNumberOfEndsRepeatedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var am fake
		n := newNotifier(t, alertmanager.Options{Client: am.client()})
		for i := range alertmanager.MaxResolved + 100 {
			inc := incident.Incident{ID: fmt.Sprint(i), Detector: "d", Cache: fmt.Sprint(i), Severity: detectors.Page, Onset: 1, Opened: 1}
			n.IncidentChanged(inc, incident.Change{Kind: incident.Opened})
			inc.Closed = 2e18
			n.IncidentChanged(inc, incident.Change{Kind: incident.Closed})
		}
		if got := n.Ended(); got != alertmanager.MaxResolved {
			t.Errorf("%d ends are remembered, want %d", got, alertmanager.MaxResolved)
		}
	})
}

// outcomes counts what Sent is told.
type outcomes struct {
	mu sync.Mutex
	n  map[string]int
}

func (o *outcomes) sent(outcome string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == nil {
		o.n = map[string]int{}
	}
	o.n[outcome]++
}

func (o *outcomes) count(outcome string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n[outcome]
}

func TestAnAlertmanagerThatFailsIsTriedAgainWithGrowingPausesAndToldEverythingThen(t *testing.T) {
	var log bytes.Buffer
	var count outcomes
	o := alertmanager.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Sent: count.sent}
	bubbled(t, o, func(t *testing.T, m *incident.Manager, am *fake) {
		am.answer(503, 0)
		apply(m, page())
		wait(5 * time.Minute)
		apply(m, page(cleared), page(ticket, key(8)))
		wait(time.Minute)
		times := am.requests()
		if len(times) < 6 || len(times) > 40 {
			t.Errorf("%d tries in six minutes, want a few", len(times))
		}
		var longest time.Duration
		for i := 1; i < len(times); i++ {
			longest = max(longest, times[i].Sub(times[i-1]))
		}
		if first := times[1].Sub(times[0]); first > time.Second || longest > 30*time.Second {
			t.Errorf("the first pause is %v, the longest %v: want up to 1s and 30s", first, longest)
		}
		am.answer(200, 0)
		wait(31 * time.Second)
		if diff := cmp.Diff([]string{firingTicket}, am.firing()); diff != "" {
			t.Errorf("once it works (-want +got):\n%s", diff)
		}
		failed, ok := count.count(alertmanager.OutcomeFailed), count.count(alertmanager.OutcomeOK)
		if failed != len(times) || ok == 0 {
			t.Errorf("counted %d failed and %d ok, want %d and some", failed, ok, len(times))
		}
	})
	if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "says\\\\nno") || !strings.Contains(text, "works again") {
		t.Errorf("want one line for the first failure and one for its end, got:\n%s", text)
	}
}

func TestAnAlertThatIsRefusedIsNotSentAgainBeforeItsTime(t *testing.T) {
	bubbled(t, alertmanager.Options{}, func(t *testing.T, m *incident.Manager, am *fake) {
		am.answer(400, 0)
		apply(m, page())
		wait(29 * time.Second)
		if got := len(am.requests()); got != 1 {
			t.Errorf("%d requests, want 1", got)
		}
		am.answer(200, 0)
		wait(2 * time.Second)
		if diff := cmp.Diff([]string{firingPage}, am.firing()); diff != "" {
			t.Errorf("after the next resending (-want +got):\n%s", diff)
		}
	})
}

func TestAnAlertmanagerThatHangsDelaysNeitherTheManagerNorTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs, works fake
		hangs.answer(200, time.Hour)
		m, err := incident.New(incident.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// Two notifiers, because the fakes are told apart by their clients.
		m.Subscribe(newNotifier(t, alertmanager.Options{Client: hangs.client()}))
		m.Subscribe(newNotifier(t, alertmanager.Options{Client: works.client(), URLs: []string{"http://a.example", "http://b.example/prefix"}}))
		start := time.Now()
		for i := range 100 {
			apply(m, page(key(uint64(i))))
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("applying waited %v for an Alertmanager", took)
		}
		wait(time.Second)
		if got := len(works.got()); got != 2 {
			t.Errorf("%d requests to the two that work, want one each", got)
		}
		if hangs.firing() != nil {
			t.Error("the one that hangs has alerts")
		}
		hangs.answer(200, 0)
		wait(time.Minute)
		if diff := cmp.Diff([]string{firingPage}, hangs.firing()); diff != "" {
			t.Errorf("once it hangs no more (-want +got):\n%s", diff)
		}
	})
}

func TestCloseSendsWhatIsUnsentAndResolvesNothing(t *testing.T) {
	bubbleEnd := func(t *testing.T, am *fake, n *alertmanager.Notifier) {
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{firingPage}, am.firing()); diff != "" {
			t.Errorf("after close (-want +got):\n%s", diff)
		}
		wait(time.Hour)
		am.got()
	}
	t.Run("an alert opened just before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var am fake
			n := newNotifier(t, alertmanager.Options{Client: am.client()})
			apply(newManager(t, n), page())
			bubbleEnd(t, &am, n)
		})
	})
	t.Run("an end just before, of another alert", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var am fake
			n := newNotifier(t, alertmanager.Options{Client: am.client()})
			m := newManager(t, n)
			apply(m, page(), page(ticket, key(8)))
			wait(time.Second)
			apply(m, page(ticket, key(8), cleared))
			bubbleEnd(t, &am, n)
		})
	})
	t.Run("an Alertmanager that failed until then", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var am fake
			am.answer(500, 0)
			n := newNotifier(t, alertmanager.Options{Client: am.client()})
			apply(newManager(t, n), page())
			wait(time.Minute)
			am.answer(200, 0)
			bubbleEnd(t, &am, n)
		})
	})
	t.Run("nothing if there is nothing to tell", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var am fake
			n := newNotifier(t, alertmanager.Options{Client: am.client()})
			m := newManager(t, n)
			apply(m, page())
			wait(time.Second)
			am.got()
			if err := n.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := am.got(); got != nil {
				t.Errorf("sent %v", got)
			}
		})
	})
}

func TestCloseWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var am fake
		am.answer(200, time.Hour)
		n := newNotifier(t, alertmanager.Options{Client: am.client()})
		apply(newManager(t, n), page())
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if err := n.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v, want 3s", took)
		}
	})
}

func TestAnIncidentThatChangesItsClassEndsOneAlertAndBeginsTheOtherAtOnce(t *testing.T) {
	bubbled(t, alertmanager.Options{}, func(t *testing.T, m *incident.Manager, am *fake) {
		apply(m, page(), page(key(8)))
		wait(10 * time.Second)
		am.got()
		flush := func() detectors.Finding {
			return page(detector("mass-invalidation"), func(f *detectors.Finding) { f.Summary = "The cache was emptied." })
		}
		apply(m, page(), page(key(8)), flush())
		wait(time.Second)
		batches := am.got()
		if len(batches) != 1 || len(batches[0]) != 2 {
			t.Fatalf("sent %v, want both alerts in one request", batches)
		}
		for _, a := range batches[0] {
			firing := a.EndsAt.After(time.Now())
			flush := a.Labels["detector"] == "mass-invalidation"
			if firing != flush || strings.Contains(a.Annotations["summary"], "emptied") != flush {
				t.Errorf("firing %t: %v", firing, a)
			}
			if !strings.HasSuffix(a.Annotations["runbook_url"], a.Labels["detector"]+".md") {
				t.Errorf("the runbook of %s is %s", a.Labels["detector"], a.Annotations["runbook_url"])
			}
		}
		wait(10 * time.Second)
		apply(m, page(), page(key(8)), page(detector("mass-invalidation"), cleared))
		wait(time.Second)
		if diff := cmp.Diff([]string{firingTicket}, am.firing()); diff != "" {
			t.Errorf("after the cause is gone, what is left is a ticket (-want +got):\n%s", diff)
		}
	})
}

// Whatever happens to incidents, what fires is what is open.
func TestWhatFiresIsWhatIsOpen(t *testing.T) {
	for seed := range uint64(20) {
		bubbled(t, alertmanager.Options{}, func(t *testing.T, m *incident.Manager, am *fake) {
			r := rand.New(rand.NewPCG(seed, 0))
			for range 200 {
				var fs []detectors.Finding
				for range r.IntN(4) {
					f := page(key(r.Uint64N(3)), cache([]string{"a", "b"}[r.IntN(2)]))
					f.Detector = []string{"hot-key-expiry", "hot-key-expiry", "synchronized-expiry", "mass-invalidation"}[r.IntN(4)]
					f.Severity = detectors.Severity(r.IntN(3))
					f.Cleared = r.IntN(3) == 0
					fs = append(fs, f)
				}
				am.answer([]int{200, 200, 500}[r.IntN(3)], 0)
				apply(m, fs...)
				wait(time.Duration(r.IntN(5000)) * time.Millisecond)
			}
			am.answer(200, 0)
			wait(31 * time.Second)
			if diff := cmp.Diff(open(m), am.firing()); diff != "" {
				t.Errorf("seed %d (-open +firing):\n%s", seed, diff)
			}
		})
	}
}

// open returns the labels of the alerts there should be for m, sorted.
func open(m *incident.Manager) []string {
	var names []string
	for _, inc := range m.Open() {
		if inc.Severity >= detectors.Ticket {
			names = append(names, fmt.Sprintf("alertname=%s cache=%s detector=%s service=shop severity=%s",
				semconv.AlertName(inc.Detector), inc.Cache, inc.Detector, inc.Severity))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
