package score_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

const hot = "expect: [{detector: hot-key-expiry, cache: a, severity: page, within: 10s}]\n"

var hotOnset = []rig.Onset{onset("hot-key-expiry", 60*time.Second)}

func missed(as, why string) score.Episode {
	return score.Episode{Detector: "hot-key-expiry", Cache: "a", Severity: "page", FoundAs: as, Delay: -1, Open: -1, Clear: -1, Why: why}
}

func found(delay float64) score.Episode {
	e := missed("hot-key-expiry", "")
	e.Found, e.Delay = true, delay
	return e
}

func TestAnEpisodeIsFoundOrNot(t *testing.T) {
	for _, c := range []struct {
		name     string
		expect   string
		onsets   []rig.Onset
		findings []lab.Finding
		want     score.Episode
	}{
		{"in time", hot, hotOnset, []lab.Finding{finding("hot-key-expiry", "page", 62)}, found(2)},
		{"at the last moment", hot, hotOnset, []lab.Finding{finding("hot-key-expiry", "page", 70)}, found(10)},
		{"too late", hot, hotOnset, []lab.Finding{finding("hot-key-expiry", "page", 71)}, func() score.Episode {
			e := missed("hot-key-expiry", "it came at 71.000 s, 11.000 s after the trouble began")
			e.Noise = 1
			return e
		}()},
		{"too mild", hot, hotOnset, []lab.Finding{finding("hot-key-expiry", "info", 61)},
			missed("hot-key-expiry", "it came as info only")},
		{"a page after a ticket counts from the page on", hot, hotOnset,
			[]lab.Finding{with(finding("hot-key-expiry", "ticket", 61), func(f *lab.Finding) { f.Severity, f.Paged = "page", 65 })}, found(5)},
		{"of another cache", hot, hotOnset,
			[]lab.Finding{with(finding("hot-key-expiry", "page", 62), func(f *lab.Finding) { f.Cache = "b" })}, missed("", "it never came")},
		{"that never was is void", hot, nil, nil, func() score.Episode {
			e := missed("", "it never came")
			e.Void = true
			return e
		}()},
		{"once, and what comes after is noise", hot, hotOnset,
			[]lab.Finding{finding("hot-key-expiry", "page", 62), finding("hot-key-expiry", "page", 120)}, func() score.Episode {
				e := found(2)
				e.Noise = 1
				return e
			}()},
		{"with the time until it cleared", hot, hotOnset,
			[]lab.Finding{with(finding("hot-key-expiry", "page", 62), func(f *lab.Finding) { f.Cleared = 92 })}, func() score.Episode {
				e := found(2)
				e.Open, e.Clear = 30, 32
				return e
			}()},
		{"with the time from the end of the trouble until it cleared", hot,
			[]rig.Onset{stretch("hot-key-expiry", 60*time.Second, 70*time.Second), stretch("hot-key-expiry", 80*time.Second, 90*time.Second)},
			[]lab.Finding{with(finding("hot-key-expiry", "page", 62), func(f *lab.Finding) { f.Cleared = 92 })}, func() score.Episode {
				e := found(2)
				e.Open, e.Clear = 30, 2
				return e
			}()},
		{"even if it cleared while the trouble lasted", hot, []rig.Onset{stretch("hot-key-expiry", 60*time.Second, 100*time.Second)},
			[]lab.Finding{with(finding("hot-key-expiry", "page", 62), func(f *lab.Finding) { f.Cleared = 92 })}, func() score.Episode {
				e := found(2)
				e.Open, e.Early = 30, true
				return e
			}()},
		{"as something else", hot, hotOnset, []lab.Finding{finding("delta-poisoning", "ticket", 61), finding("stale-overwrite", "page", 62)},
			missed("stale-overwrite", "it never came")},
		{"only about the key that is asked for", "expect: [{detector: hot-key-expiry, cache: a, key: \"a:0\", severity: page, within: 10s}]\n", hotOnset,
			[]lab.Finding{with(finding("hot-key-expiry", "page", 61), func(f *lab.Finding) { f.Key = "a:1" }), with(finding("hot-key-expiry", "page", 63), func(f *lab.Finding) { f.Key = "a:0" })},
			found(3)},
		{"even if it is part of an incident of another class", hot, append([]rig.Onset{onset("mass-invalidation", 60*time.Second)}, hotOnset...),
			[]lab.Finding{finding("mass-invalidation", "page", 61), with(finding("hot-key-expiry", "page", 62), partOf(0))}, found(2)},
		{"as a forecast, which has no delay", "expect: [{detector: expiry-forecast, cache: a, severity: ticket}]\n",
			[]rig.Onset{onset("synchronized-expiry", 90*time.Second)}, []lab.Finding{finding("expiry-forecast", "ticket", 30)},
			score.Episode{Detector: "expiry-forecast", Cache: "a", Severity: "ticket", Found: true, FoundAs: "expiry-forecast", Delay: -1, Open: -1, Clear: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := score.Judge(parse(t, base+c.expect), result(c.onsets, c.findings))
			if diff := cmp.Diff([]score.Episode{c.want}, got.Episodes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAlarmIsFalse(t *testing.T) {
	for _, c := range []struct {
		name     string
		sc       string
		onsets   []rig.Onset
		findings []lab.Finding
		want     []string // why
		unasked  int
	}{
		{"if pages are forbidden", "forbid: pages\n", hotOnset, []lab.Finding{finding("hot-key-expiry", "page", 62)}, []string{"pages are forbidden"}, 0},
		{"if its detector is forbidden, even as a ticket", "forbid: [overload]\n",
			[]rig.Onset{onset("overload", 0)}, []lab.Finding{finding("overload", "ticket", 62)}, []string{"it is forbidden"}, 0},
		{"not as information only", "forbid: [overload]\n", nil, []lab.Finding{finding("overload", "info", 62)}, nil, 0},
		{"if there was no such trouble", "forbid: pages\n", nil, []lab.Finding{finding("lock-lost", "ticket", 62)}, []string{"no such trouble had begun"}, 0},
		{"if the trouble began later", hot, hotOnset, []lab.Finding{finding("hot-key-expiry", "page", 30)}, []string{"no such trouble had begun"}, 0},
		{"not if the trouble was there and nobody asked", "forbid: [overload]\n", hotOnset, []lab.Finding{finding("hot-key-expiry", "page", 62)}, nil, 1},
		{"not if the trouble was with another cache of the origin", "forbid: [hot-key-expiry]\n",
			[]rig.Onset{onset("overload", time.Second)}, []lab.Finding{with(finding("overload", "page", 62), func(f *lab.Finding) { f.Cache = "b" })}, nil, 1},
		{"if the trouble was with another origin", "forbid: [hot-key-expiry]\n",
			[]rig.Onset{onset("overload", time.Second)}, []lab.Finding{with(finding("overload", "page", 62), func(f *lab.Finding) { f.Cache = "c" })},
			[]string{"no such trouble had begun"}, 0},
		{"if the trouble was with another key", "forbid: [overload]\n",
			[]rig.Onset{{Detector: "hot-key-expiry", Cache: "a", Key: "a:0"}},
			[]lab.Finding{with(finding("hot-key-expiry", "page", 62), func(f *lab.Finding) { f.Key = "a:1" })}, []string{"no such trouble had begun"}, 0},
		{"not if it is part of another incident", "forbid: [hot-key-expiry]\n", []rig.Onset{onset("mass-invalidation", time.Second)},
			[]lab.Finding{finding("mass-invalidation", "page", 61), with(finding("hot-key-expiry", "page", 62), partOf(0))}, nil, 1},
		{"if only what is part of it was expected", hot, hotOnset,
			[]lab.Finding{finding("overload", "page", 61), with(finding("hot-key-expiry", "page", 62), partOf(0))}, []string{"no such trouble had begun"}, 0},
		{"not if a state is found", "forbid: [overload]\n", nil, []lab.Finding{finding("vulnerable", "ticket", 5)}, nil, 1},
		{"if it warns of what has been", "forbid: [overload]\n", []rig.Onset{onset("synchronized-expiry", time.Second)},
			[]lab.Finding{finding("expiry-forecast", "ticket", 62)}, []string{"no such trouble had begun"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := score.Judge(parse(t, base+c.sc), result(c.onsets, c.findings))
			var why []string
			for _, a := range got.False {
				why = append(why, a.Why)
			}
			if diff := cmp.Diff(c.want, why); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(got.Unasked) != c.unasked {
				t.Errorf("%d unasked, want %d", len(got.Unasked), c.unasked)
			}
		})
	}
}

func TestAnIncidentIsJudgedByTheClassItHasInTheEnd(t *testing.T) {
	onsets := []rig.Onset{onset("hot-key-expiry", 60*time.Second), onset("overload", 90*time.Second)}
	r := result(onsets, []lab.Finding{finding("hot-key-expiry", "page", 61), finding("overload", "ticket", 95), finding("overload", "ticket", 200)})
	// The first turns out to be overload, of which the third is another word
	// that is found out to be part of it.
	r.Incidents[0].Detector, r.Incidents[0].Was, r.Incidents[0].Classed = "overload", []string{"hot-key-expiry"}, 95
	r.Incidents[1].PartOf, r.Incidents[2].PartOf = r.Incidents[0].ID, r.Incidents[0].ID
	r.Incidents[2].Pages = 1
	got := score.Judge(parse(t, base+"forbid: [hot-key-expiry]\n"), r)
	want := []score.Alarm{{Detector: "overload", Cache: "a", Page: true, At: 95}}
	if diff := cmp.Diff(want, got.Unasked); diff != "" || len(got.False) > 0 {
		t.Errorf("false: %+v; unasked (-want +got):\n%s", got.False, diff)
	}
	if got.Repeated != 1 {
		t.Errorf("%d repeated pages, want that of the incident that was part of another", got.Repeated)
	}
}

func TestFiguresThatARunDidNotComeToAreKept(t *testing.T) {
	r := result(hotOnset, nil)
	r.Checks = []lab.Check{
		{What: "truth reads in [1, 2]", Figure: "reads", Why: "it is 3"},
		{What: "truth misses in [1, 2]", Figure: "misses", OK: true},
		{What: "no page", Why: "another's business"},
	}
	got := score.Judge(parse(t, base+"forbid: pages\n"), r)
	if diff := cmp.Diff([]string{"truth reads in [1, 2]: it is 3"}, got.Figures); diff != "" || !got.Quiet {
		t.Errorf("quiet %v, (-want +got):\n%s", got.Quiet, diff)
	}
}
