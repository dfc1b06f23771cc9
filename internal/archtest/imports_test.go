package archtest

import (
	"slices"
	"strings"
	"testing"
)

// room is a package, or with a last "/..." a folder of them, and what it may
// import besides the standard library: packages of this module by their path
// within it, others by a prefix of theirs. Tests may import anything.
type room struct {
	path   string
	may    []string
	reason string
}

// Groups of packages that rooms share.
const (
	clientGolang = "github.com/prometheus/client_golang/prometheus"
	goRedis      = "github.com/redis/go-redis/v9"
	grpc         = "google.golang.org/grpc"
	otlpProto    = "go.opentelemetry.io/proto/otlp"
	protobuf     = "google.golang.org/protobuf"
	yaml         = "go.yaml.in/yaml/v3"
)

// rooms are all there are. The first whose path fits a package counts.
var rooms = []room{
	{"signal", nil,
		"it is the contract everybody shares: who imports it must inherit nothing, and nothing must be able to look behind it"},
	{"internal/semconv", nil,
		"names are data"},
	{"internal/wire", []string{"signal", "internal/semconv", "go.opentelemetry.io/otel/attribute"},
		"every sender encodes alike, whatever it sends with"},
	{"internal/keyname", []string{"signal"},
		"an instrumented service and a probe must name a key alike"},
	{"instrument", []string{"signal", "internal/semconv", "internal/keyname", "go.opentelemetry.io/otel/trace", "go.opentelemetry.io/otel/attribute"},
		"it runs inside other people's services: of OpenTelemetry it may know the API, and no SDK"},
	{"instrument/goredis", []string{"instrument", goRedis},
		"an adapter knows one library"},
	{"instrument/prom", []string{"instrument", "signal", "internal/semconv", "internal/metric", clientGolang},
		"a way out knows one protocol"},
	{"instrument/otlp", []string{"instrument", "signal", "internal/semconv", "internal/wire", "go.opentelemetry.io/otel", grpc},
		"a way out knows one protocol"},

	{"probes", []string{"signal", "internal/semconv"},
		"the runner's accounts are handed out, so that it needs no metrics library"},
	{"probes/keyspace", []string{"signal", "internal/keyname"},
		"what a server says of keys becomes windows, whichever server it is"},
	{"probes/census", []string{"signal"},
		"an estimate is arithmetic, whichever server the keys are of"},
	{"probes/redis", []string{"probes", "probes/keyspace", "probes/census", "signal", "internal/semconv", "internal/keyname", goRedis},
		"a probe knows one client library"},
	{"probes/memcached", []string{"probes", "probes/keyspace", "probes/census", "signal", "internal/keyname"},
		"it speaks the protocol itself: no client library knows the server's log"},
	{"probes/probetest", []string{"probes", "signal", "internal/semconv", "internal/wire", "internal/ingest", "github.com/google/go-cmp/cmp", "go.opentelemetry.io/otel/attribute", otlpProto, "go.uber.org/goleak"},
		"tests of any probe use it, and nothing else"},

	{"detectors", []string{"signal"},
		"detectors are pure: the same ticks give the same findings live, in a replay and in a simulation"},
	{"internal/fleet", []string{"signal"},
		"joining what sources say is arithmetic on the contract; how it came in does not matter"},
	{"internal/ingest", []string{"signal", "internal/semconv", otlpProto, grpc, protobuf},
		"it turns a protocol into windows, and knows nobody who uses them"},
	{"internal/durable", nil,
		"how to replace a file without losing it does not depend on what is in it"},
	{"internal/incident", []string{"signal", "detectors", "internal/durable"},
		"incidents are findings joined over time"},
	{"internal/incident/alertmanager", []string{"signal", "detectors", "internal/incident", "internal/semconv", "github.com/cenkalti/backoff/v5"},
		"a notifier hears of incidents and knows one receiver"},
	{"internal/web", []string{"signal", "detectors", "internal/incident", "internal/fleet", "internal/engine"},
		"pages show what is there, whoever keeps it; nothing imports them but the server"},

	{"internal/metric", []string{"internal/semconv", clientGolang},
		"it makes Prometheus metrics from names, for those who export some"},
	{"internal/engine", []string{"signal", "detectors", "internal/durable", "internal/fleet", "internal/incident", "internal/ingest", "internal/metric", "internal/semconv", clientGolang},
		"it runs windows through fleet, detectors and incidents; live and replay differ only in what feeds it, so it knows no server"},
	{"internal/config", []string{"detectors", "alerts", "internal/strictyaml", "github.com/prometheus/common/config", yaml},
		"it reads and checks a file, and does nothing with it"},
	{"internal/server", []string{"signal", "detectors", "probes/...", "internal/...", "github.com/prometheus", grpc},
		"it wires the exporter"},
	{"internal/demo", []string{"signal", "instrument/...", "detectors", "internal/fleet", "github.com/alicebob/miniredis/v2", goRedis, "golang.org/x/sync"},
		"the demonstration is an application like any other; it meets the exporter over the wire"},
	{"internal/strictyaml", []string{yaml},
		"it knows files, and nothing of what they are about"},
	{"internal/lab/scenario", []string{"signal", "internal/strictyaml", yaml},
		"a format is read and checked by whoever writes such files, without a simulator to link"},
	{"internal/lab/rig", []string{"signal", "internal/lab/scenario"},
		"what counts as trouble must not depend on how time passes, nor on what watches"},
	{"internal/lab/sim", []string{"signal", "instrument", "internal/lab/rig", "internal/lab/scenario"},
		"the truth must not know what watches: a simulator that could see a detector could please it"},
	{"internal/lab/live", []string{"signal", "instrument", "instrument/goredis", "internal/lab/rig", "internal/lab/scenario", "internal/strictyaml", goRedis, "golang.org/x/sync"},
		"the truth must not know what watches; it meets the cache as applications do"},
	{"internal/lab", []string{"signal", "instrument", "detectors", "internal/fleet", "internal/incident", "internal/engine", "internal/ingest", "internal/semconv", "internal/wire", "internal/lab/live", "internal/lab/rig", "internal/lab/scenario", "internal/lab/sim", "go.opentelemetry.io/otel/attribute", otlpProto},
		"it takes what simulated applications say through the code that watches real ones"},
	{"internal/lab/score", []string{"detectors", "internal/lab", "internal/lab/rig", "internal/lab/scenario", "golang.org/x/sync"},
		"it judges what came of runs, and knows nothing of how they are made"},

	{"internal/verify", nil,
		"it is arithmetic on cycles, wherever they come from"},

	{"alerts", []string{"internal/semconv"},
		"what is shipped is made from the names, without a detector to link"},
	{"dashboards", nil,
		"a program that ships dashboards must not link what they were made with"},
	{"dashboards/build", []string{"internal/semconv", "github.com/grafana/grafana-foundation-sdk/go"},
		"what is shipped is made from the names"},
	{"alerts/gen", []string{"alerts", yaml}, "it writes a file"},
	{"dashboards/gen", []string{"dashboards/build"}, "it writes a file"},
	{"internal/docgen", []string{"internal/semconv", "detectors"}, "documents are made from what they document"},
	{"internal/docgen/gen", []string{"internal/docgen"}, "it writes files"},

	{"internal/cachetest", nil, "tests of anything may use it"},
	{"internal/tooltest", nil, "tests of anything may use it"},
	{"internal/incident/alertmanager/alertmanagertest", []string{"internal/tooltest"}, "tests of anything may use it"},
	{"internal/archtest", nil, "it has no code but its tests"},
	{"e2e", nil, "it has no code but its tests"},

	{"examples/...", []string{"signal", "instrument/...", clientGolang, goRedis, "golang.org/x/sync"},
		"an example shows what users can do, and they cannot import what is internal"},
	{"cmd/stampede-exporter", []string{"signal", "instrument/...", "probes/...", "detectors", "internal/...", "alerts", "dashboards", "github.com/alecthomas/kingpin/v2", "github.com/prometheus", "github.com/redis/go-redis/v9/logging"},
		"flags and wiring may know everybody"},
}

// fits reports whether path is the one that pattern names, or below it if it
// ends in "/...".
func fits(pattern, path string) bool {
	if parent, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == parent || strings.HasPrefix(path, parent+"/")
	}
	return path == pattern
}

// allows reports whether a package of r may import path.
func (r room) allows(path string) bool {
	if inside, ok := strings.CutPrefix(path, module+"/"); ok {
		return slices.ContainsFunc(r.may, func(p string) bool { return fits(p, inside) })
	}
	if host, _, _ := strings.Cut(path, "/"); !strings.Contains(host, ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(r.may, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}

func roomOf(path string) (room, bool) {
	i := slices.IndexFunc(rooms, func(r room) bool { return fits(r.path, path) })
	if i < 0 {
		return room{}, false
	}
	return rooms[i], true
}

func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
	used := map[string]bool{}
	for _, p := range list(t, "./...") {
		r, ok := roomOf(p.path())
		if !ok {
			t.Errorf("%s has no room: say in this file what it may import, and why", p.path())
			continue
		}
		used[r.path] = true
		for _, imp := range p.Imports {
			if !r.allows(imp) {
				t.Errorf("%s imports %s, which it may not: %s", p.path(), imp, r.reason)
			}
		}
	}
	for _, r := range rooms {
		if !used[r.path] {
			t.Errorf("the room %s is empty: take it out of this file", r.path)
		}
	}
}

func TestRoomsAllowWhatTheirListsSay(t *testing.T) {
	r := room{path: "a", may: []string{"signal", "probes/...", "example.org/lib"}}
	tests := []struct {
		name, path string
		want       bool
	}{
		{"the standard library", "net/http", true},
		{"a package that is listed", module + "/signal", true},
		{"a package below one that is listed alone", module + "/signal/more", false},
		{"a folder that is listed", module + "/probes", true},
		{"a package in a folder that is listed", module + "/probes/redis", true},
		{"a package that begins like a folder that is listed", module + "/probesque", false},
		{"a package that is not listed", module + "/detectors", false},
		{"a library that is listed", "example.org/lib", true},
		{"a package of a library that is listed", "example.org/lib/part", true},
		{"a library that begins like one that is listed", "example.org/library", false},
		{"a library that is not listed", "example.com/lib", false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := r.allows(tc.path); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
