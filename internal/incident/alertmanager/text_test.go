package alertmanager_test

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
)

func TestAnnotationName(t *testing.T) {
	for in, want := range map[string]string{
		"peak": "peak", "origin.wasted": "origin_wasted", "p99": "p99", "99th": "_99th", "": "_", "é": "_",
	} {
		if got := alertmanager.AnnotationName(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

func TestFormatValue(t *testing.T) {
	tests := []struct {
		value float64
		unit  string
		want  string
	}{
		{120, "{recompute}", "120 recomputes"},
		{1, "{recompute}", "1 recompute"},
		{2, "{refresh}", "2 refreshes"},
		{2, "{query}", "2 queries"},
		{2, "{key}", "2 keys"},
		{0.5, "{lookup}", "0.5 lookups"},
		{15, "1", "15"},
		{1.23456, "1", "1.23"},
		{1234.56, "", "1235"},
		{0.00012345, "", "0.000123"},
		{87.5, "%", "87.5%"},
		{1e18, "", "1e+18"},
		{0.4123456, "s", "412.35ms"},
		{12.3456, "s", "12.35s"},
		{3725.4, "s", "1h2m5s"},
		{0.0000021, "s", "2.1µs"},
		{0, "s", "0s"},
		{1e12, "s", "1000000000000 s"},
		{3, "By", "3 By"},
		{-4, "{recompute}", "-4 recomputes"},
	}
	for _, tc := range tests {
		if got := alertmanager.FormatValue(tc.value, tc.unit); got != tc.want {
			t.Errorf("%v in %q is %q, want %q", tc.value, tc.unit, got, tc.want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("feed:*", 64)
	f.Add("a\nb\x00\xff\u202e\uFFFD'\"\\", 8)
	f.Fuzz(func(t *testing.T, s string, max int) {
		max = max&0xff + 1
		got := alertmanager.Printable(s, max)
		if !utf8.ValidString(got) || len(got) > max+len("…") {
			t.Errorf("%q cut to %d is %q", s, max, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("%q has %q, which does not print", got, r)
			}
		}
	})
}
