package scenario

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"

	"github.com/stampede-exporter/stampede-exporter/internal/strictyaml"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// maxFileBytes bounds a scenario file: a wrong path must not fill the memory.
const maxFileBytes = 1 << 20

// Load reads and checks the file at path. An error about its contents is a
// [*strictyaml.Error].
func Load(path string) (*Scenario, error) { return LoadFor(path, nil) }

// LoadFor is [Load] for somebody who cannot run everything: more returns what
// else is wrong with a scenario that is right by itself, as errors of
// [strictyaml.Field].
func LoadFor(path string, more func(*Scenario) []error) (*Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read scenario %q: %w", path, err)
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("read scenario %q: more than %d bytes", path, maxFileBytes)
	}
	s, err := parse(text, more)
	var wrong *strictyaml.Error
	if errors.As(err, &wrong) {
		wrong.File = path
	}
	return s, err
}

// Parse reads and checks text. An error is a [*strictyaml.Error].
func Parse(text []byte) (*Scenario, error) { return parse(text, nil) }

func parse(text []byte, more func(*Scenario) []error) (*Scenario, error) {
	s := &Scenario{Seed: 1, Fleet: Fleet{Instances: 1, Build: "v1"}}
	err := strictyaml.Decode(text, s, func() []error {
		errs := s.check()
		if len(errs) == 0 && more != nil {
			errs = more(s)
		}
		return errs
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// The methods below fill in defaults. They have the form with a function
// because the form with a node would decode without the check for unknown fields.

// UnmarshalYAML fills in defaults for what the file leaves out.
func (o *Origin) UnmarshalYAML(unmarshal func(any) error) error {
	*o = Origin{Queue: QueueFIFO, Declared: true}
	type plain Origin
	err := unmarshal((*plain)(o))
	if o.QueueLimit == 0 {
		o.QueueLimit = 2 * o.Concurrency
	}
	return err
}

// UnmarshalYAML fills in defaults for what the file leaves out.
func (c *Cache) UnmarshalYAML(unmarshal func(any) error) error {
	*c = Cache{
		Declared:     true,
		Jitter:       Jitter{Shape: JitterAdditive},
		XFetch:       XFetch{Beta: 1},
		RefreshAhead: RefreshAhead{Ratio: 0.2},
		Lock:         Lock{TTL: 5 * time.Second, Wait: WaitBlock, Recheck: true, Release: ReleaseAlways},
		Lease:        Lease{Every: 10 * time.Second},
		Client:       Client{Timeout: 5 * time.Second, Attempts: 1, Backoff: 100 * time.Millisecond},
	}
	type plain Cache
	return unmarshal((*plain)(c))
}

// UnmarshalYAML fills in defaults for what the file leaves out.
func (w *Workload) UnmarshalYAML(unmarshal func(any) error) error {
	*w = Workload{Keys: 1, Arrivals: ArrivalsPoisson, Size: 10}
	type plain Workload
	return unmarshal((*plain)(w))
}

// UnmarshalYAML fills in defaults for what the file leaves out.
func (x *Expectation) UnmarshalYAML(unmarshal func(any) error) error {
	*x = Expectation{Severity: "info"}
	type plain Expectation
	return unmarshal((*plain)(x))
}

// UnmarshalYAML takes a list of detectors, or the word "pages".
func (f *Forbid) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Value == "pages" {
		f.Pages = true
		return nil
	}
	names, err := words(n, `forbid: want a list of detectors, or the word pages`)
	f.Detectors = names
	return err
}

// words decodes a list of texts.
func words(n *yaml.Node, want string) ([]string, error) {
	var list []string
	if n.Kind != yaml.SequenceNode || n.Decode(&list) != nil {
		return nil, &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, want)}}
	}
	return list, nil
}

// Protections is a set of protections; empty is none.
type Protections uint16

// What a cache may be protected by, alone or together.
const (
	ProtectSingleFlight Protections = 1 << iota // one recompute per instance and key; others wait for it
	ProtectXFetch                               // readers volunteer to recompute before expiry
	ProtectRefreshAhead                         // see [RefreshAhead]
	ProtectLock                                 // see [Lock]
	ProtectLease                                // see [Lease]
	ProtectSWR                                  // serve stale while revalidating in the background, once per instance at a time
)

// protectionNames are in the order of the constants.
var protectionNames = []string{
	signal.ProtectSingleFlight, signal.ProtectXFetch, signal.ProtectRefreshAhead, signal.ProtectLock, signal.ProtectLease, signal.ProtectStale,
}

// Has reports whether p has all of o.
func (p Protections) Has(o Protections) bool { return p&o == o }

// Names returns the names in p, in order. They are those applications use
// towards the exporter, too.
func (p Protections) Names() []string {
	var names []string
	for i, n := range protectionNames {
		if p.Has(1 << i) {
			names = append(names, n)
		}
	}
	return names
}

// UnmarshalYAML takes a name, or a list of them; "none" is the empty set.
func (p *Protections) UnmarshalYAML(n *yaml.Node) error {
	want := "want none, or one or a list of " + strings.Join(protectionNames, ", ")
	list := []string{n.Value}
	if n.Kind != yaml.ScalarNode {
		var err error
		if list, err = words(n, want); err != nil {
			return err
		}
	}
	*p = 0
	for _, name := range list {
		if name == "none" && len(list) == 1 {
			break
		}
		bit := Protections(0)
		for i, known := range protectionNames {
			if name == known {
				bit = 1 << i
			}
		}
		if bit == 0 {
			return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: protect: %q is not known: %s", n.Line, name, want)}}
		}
		*p |= bit
	}
	return nil
}
