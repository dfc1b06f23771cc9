package web

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestCutSpellsOutWhatDoesNotPrint(t *testing.T) {
	for in, want := range map[string]string{
		"feed:*":                   "feed:*",
		"":                         "",
		"Füße 日本 של":               "Füße 日本 של",
		"a\nb\tc\x00":              `a\nb\tc\x00`,
		"a\u202eb\u2066c\u200fd":   `a\u202eb\u2066c\u200fd`,
		"a\xffb\xc3":               `a\xffb\xc3`,
		"\ufffd":                   "\ufffd",
		"it's":                     "it's",
		strings.Repeat("é", 11):    strings.Repeat("é", 11),
		strings.Repeat("é", 12):    strings.Repeat("é", 12),
		strings.Repeat("é", 13):    strings.Repeat("é", 12) + "…",
		strings.Repeat("\x01", 13): strings.Repeat(`\x01`, 12) + "…",
	} {
		if got := cut(in, 12); got != want {
			t.Errorf("%q: got %q: want %q", in, got, want)
		}
	}
}

func TestSpanUsesTheUnitThatFits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                       "0 µs",
		950 * time.Microsecond:  "950 µs",
		400 * time.Millisecond:  "400 ms",
		1234 * time.Millisecond: "1.23 s",
		3 * time.Second:         "3 s",
		48 * time.Second:        "48 s",
		119 * time.Second:       "119 s",
		10 * time.Minute:        "10 min",
		25 * time.Hour:          "25 h",
		72 * time.Hour:          "3 d",
		-5 * time.Second:        "-5 s",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: got %q: want %q", d, got, want)
		}
	}
}

func TestQuantityReadsAsAPersonWouldWriteIt(t *testing.T) {
	for _, c := range []struct {
		v            float64
		unit         string
		value, unit2 string
	}{
		{121, "{recompute}", "121", "recomputes"},
		{1, "{instance}", "1", "instance"},
		{0, "{query}", "0", "queries"},
		{0.4, "s", "400", "ms"},
		{48.013, "s", "48", "s"},
		{285.3, "s", "285", "s"},
		{0.12345, "1", "0.123", ""},
		{123456.7, "1", "123457", ""},
		{1e20, "By", "1e+20", "By"},
		{math.NaN(), "s", "unknown", "s"},
		{math.Inf(1), "{recompute}", "unknown", "recomputes"},
	} {
		if value, unit := quantity(c.v, c.unit); value != c.value || unit != c.unit2 {
			t.Errorf("%v %s: got %q %q: want %q %q", c.v, c.unit, value, unit, c.value, c.unit2)
		}
	}
}

func TestAllButAFewIsNotAll(t *testing.T) {
	for _, c := range []struct {
		part, whole uint64
		want        string
	}{{97, 100, "97 %"}, {100, 100, "100 %"}, {999_999, 1_000_000, "> 99.9 %"}, {0, 5, "0 %"}, {1, 3, "33.3 %"}} {
		if got := percent(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d: got %q: want %q", c.part, c.whole, got, c.want)
		}
	}
}

func TestMomentsOfAnotherDayHaveTheirDate(t *testing.T) {
	now := time.Date(2026, 11, 30, 0, 0, 10, 0, time.UTC)
	for _, c := range []struct {
		at   time.Time
		want moment
	}{
		{time.Time{}, moment{}},
		{now.Add(-5 * time.Second), moment{"2026-11-30T00:00:05Z", "00:00:05", "5 s ago"}},
		{now.Add(-20 * time.Second), moment{"2026-11-29T23:59:50Z", "2026-11-29 23:59:50", "20 s ago"}},
		{now.Add(time.Hour), moment{"2026-11-30T01:00:10Z", "01:00:10", "just now"}},
	} {
		if got := momentOf(signal.At(c.at), now); got != c.want {
			t.Errorf("%v: got %+v: want %+v", c.at, got, c.want)
		}
	}
}
