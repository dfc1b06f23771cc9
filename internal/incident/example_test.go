package incident_test

import (
	"fmt"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// printer is a listener.
type printer struct{}

func (printer) IncidentChanged(i incident.Incident, c incident.Change) {
	fmt.Println(c.At.Time().Format("15:04:05"), c.Kind, c.Severity, i.Cache, i.Key.Group)
}

func Example() {
	m, err := incident.New(incident.Options{Listeners: []incident.Listener{printer{}}})
	if err != nil {
		panic(err)
	}
	defer m.Close()

	f := detectors.Finding{
		Detector: "hot-key-expiry",
		Cache:    "sessions",
		Key:      signal.Key{ID: 1, Group: "feed:*"},
		Severity: detectors.Ticket,
		Onset:    after(0),
	}
	m.Apply(after(1), []detectors.Finding{f})
	f.Severity = detectors.Page
	m.Apply(after(2), []detectors.Finding{f})
	f.Cleared = true
	m.Apply(after(60), []detectors.Finding{f})
	// Output:
	// 12:00:01 opened ticket sessions feed:*
	// 12:00:02 severity_changed page sessions feed:*
	// 12:01:00 closed page sessions feed:*
}
