package incident_test

import (
	"testing"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
)

// BenchmarkApply is one tick at which the most incidents there may be are open
// and all get fresh evidence.
func BenchmarkApply(b *testing.B) {
	m := newManager(b, incident.Options{})
	var fs []detectors.Finding
	for i := range 10_000 {
		fs = append(fs, page(key(uint64(i))))
	}
	b.ReportAllocs()
	at := 0.0
	for b.Loop() {
		at++
		m.Apply(after(at), fs)
	}
}

// BenchmarkApplyChildren is the same with one incident, of which all others are
// part.
func BenchmarkApplyChildren(b *testing.B) {
	m := newManager(b, incident.Options{})
	fs := []detectors.Finding{of("mass-invalidation")}
	for i := range 9_999 {
		fs = append(fs, hot(key(uint64(i))))
	}
	b.ReportAllocs()
	at := 0.0
	for b.Loop() {
		at++
		m.Apply(after(at), fs)
	}
}

// BenchmarkOpen lists them.
func BenchmarkOpen(b *testing.B) {
	m := newManager(b, incident.Options{})
	var fs []detectors.Finding
	for i := range 10_000 {
		fs = append(fs, page(key(uint64(i))))
	}
	m.Apply(after(1), fs)
	b.ReportAllocs()
	for b.Loop() {
		m.Open()
	}
}
