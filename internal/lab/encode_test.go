package lab_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/sim"
)

// reports collects what a fleet says in a short run.
func reports(t *testing.T, name string) []rig.Report {
	t.Helper()
	sc := load(t, name)
	var all []rig.Report
	s, err := sim.New(sc, sim.Options{Report: func(r rig.Report) { all = append(all, r) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	// All kinds of windows are among the first.
	return all[:min(len(all), 1000)]
}

func TestARequestIsWhatAnApplicationWouldSendAndArrivesWhole(t *testing.T) {
	for _, name := range []string{"orphaned-lock", "xfetch-excess"} {
		for _, r := range reports(t, name) {
			req := lab.Request(r.Windows, r.Vitals)
			direct, refused := ingest.Decode(req)
			if len(refused) > 0 {
				t.Fatalf("%s: refused: %+v", name, refused)
			}
			if diff := cmp.Diff(r.Windows, direct.Windows); len(r.Windows) > 0 && diff != "" {
				t.Fatalf("%s: windows that were sent (-) and that arrived (+):\n%s", name, diff)
			}
			if diff := cmp.Diff(r.Vitals, direct.Vitals); len(r.Vitals) > 0 && diff != "" {
				t.Fatalf("%s: vitals that were sent (-) and that arrived (+):\n%s", name, diff)
			}
			bytes, err := proto.Marshal(req)
			if err != nil {
				t.Fatal(err)
			}
			var back collogspb.ExportLogsServiceRequest
			if err := proto.Unmarshal(bytes, &back); err != nil {
				t.Fatal(err)
			}
			if viaBytes, _ := ingest.Decode(&back); !cmp.Equal(direct, viaBytes) {
				t.Fatalf("%s: through bytes, something else arrives:\n%s", name, cmp.Diff(direct, viaBytes))
			}
		}
	}
}
