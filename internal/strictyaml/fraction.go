package strictyaml

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// fractions finds fractions where t, the type n is decoded into, wants whole
// numbers: the decoder would cut them off without a word. A type that decodes
// itself sees to it itself.
func fractions(n *yaml.Node, t reflect.Type, path ...string) []error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var errs []error
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!float" && t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return []error{Field(fmt.Sprintf("%s is a fraction: want a whole number", n.Value), path...)}
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for i, item := range n.Content {
			errs = append(errs, fractions(item, t.Elem(), below(path, strconv.Itoa(i))...)...)
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Map:
		for i := 0; i+1 < len(n.Content); i += 2 {
			errs = append(errs, fractions(n.Content[i+1], t.Elem(), below(path, n.Content[i].Value)...)...)
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			for _, f := range reflect.VisibleFields(t) {
				if tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); tag == name {
					errs = append(errs, fractions(n.Content[i+1], f.Type, below(path, name)...)...)
				}
			}
		}
	}
	return errs
}

// below returns path with name appended, without touching path's memory.
func below(path []string, name string) []string { return append(path[:len(path):len(path)], name) }
