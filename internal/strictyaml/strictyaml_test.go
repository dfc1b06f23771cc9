package strictyaml_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/strictyaml"
)

type file struct {
	Name  string          `yaml:"name"`
	Every time.Duration   `yaml:"every"`
	Parts map[string]part `yaml:"parts"`
	List  []part          `yaml:"list"`
}

type part struct {
	Count int     `yaml:"count"`
	Share float64 `yaml:"share"`
	On    bool    `yaml:"on"`
}

func TestDecodeFillsInWhatIsThereAndLeavesTheRest(t *testing.T) {
	got := file{Name: "default", Every: time.Second}
	text := "every: 5m\nparts: {a: {count: 3, share: 0.5, on: true}}\nlist: [{count: 1}]\n"
	if err := strictyaml.Decode([]byte(text), &got, func() []error { return nil }); err != nil {
		t.Fatal(err)
	}
	want := file{Name: "default", Every: 5 * time.Minute, Parts: map[string]part{"a": {3, 0.5, true}}, List: []part{{Count: 1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unlike the text (-want +got):\n%s", diff)
	}
	if err := strictyaml.Decode(nil, &got, func() []error { return nil }); err != nil || !cmp.Equal(want, got) {
		t.Errorf("an empty text changed it to %+v, %v", got, err)
	}
}

func TestDecodeSaysWhatIsWrongAndWhere(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an unknown field":                {"parts:\n  a:\n    cuont: 3\n", `f:3: parts.a.cuont: unknown field`},
		"a field of the wrong type":       {"name: x\nparts: {a: {count: many}}\n", `f:2: parts.a.count: "many" is not a whole number in range`},
		"a fraction in a list":            {"list:\n  - {count: 1}\n  - {count: 1.5}\n", `f:3: list.1.count: 1.5 is a fraction: want a whole number`},
		"a fraction behind an alias":      {"parts: {a: &x {count: 1}, b: *x}\nlist: [{count: 2.5}]\n", `f:2: list.0.count: 2.5 is a fraction: want a whole number`},
		"a duration without a unit":       {"every: 30\n", `f:1: every: "30" is not a duration: want a number with a unit, such as 500ms, 30s or 5m`},
		"a list where a group is wanted":  {"parts: [1]\n", `f:1: parts: a list is not a group of fields`},
		"a text where a number is wanted": {"parts: {a: {share: half}}\n", `f:1: parts.a.share: "half" is not a number`},
		"a text where a switch is wanted": {"parts: {a: {on: maybe}}\n", `f:1: parts.a.on: "maybe" is neither true nor false`},
		"a field that is there twice":     {"name: x\nname: y\n", `f:2: mapping key "name" already defined at line 1`},
		"no YAML":                         {"name: [\n", `f:1: did not find expected node content`},
		"a second document":               {"name: x\n---\nname: y\n", `f: a second document follows: want one`},
		"what the check finds":            {"name: x\nparts:\n  a: {count: 1}\n  b: {count: 2}\n", "f:4: parts.b.count: is even"},
	} {
		var into file
		err := strictyaml.Decode([]byte(c.text), &into, func() []error {
			if into.Parts["b"].Count == 2 {
				return []error{strictyaml.Field("is even", "parts", "b", "count")}
			}
			return nil
		})
		var wrong *strictyaml.Error
		if !errors.As(err, &wrong) {
			t.Errorf("%s: the error is %v", name, err)
			continue
		}
		wrong.File = "f"
		if got := wrong.Error(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("parts: {a: &x {count: 1}, b: *x}\n"))
	f.Add([]byte("list: [{count: 1.5}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var into file
		err := strictyaml.Decode(text, &into, func() []error { return nil })
		var wrong *strictyaml.Error
		if err != nil && (!errors.As(err, &wrong) || wrong.Error() == "") {
			t.Errorf("the error says nothing: %#v", err)
		}
	})
}
