package alertmanager_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func Example() {
	am := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL.Path)
	}))
	defer am.Close()

	n, err := alertmanager.New(alertmanager.Options{URLs: []string{am.URL}})
	if err != nil {
		panic(err)
	}
	m, err := incident.New(incident.Options{Listeners: []incident.Listener{n}})
	if err != nil {
		panic(err)
	}
	defer m.Close()

	m.Apply(signal.At(time.Now()), []detectors.Finding{{Detector: "hot-key-expiry", Cache: "sessions", Severity: detectors.Page}})
	if err := n.Close(context.Background()); err != nil { // sends what is unsent
		panic(err)
	}
	// Output:
	// POST /api/v2/alerts
}
