package config

import (
	"fmt"
	"reflect"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// fractions finds fractions where t, the type n is decoded into, wants whole
// numbers: the decoder would cut them off without a word. Types of this package
// see to it themselves; those of others, such as the detectors', may not know of
// YAML.
func fractions(n *yaml.Node, t reflect.Type, path ...string) []error {
	switch {
	case n.Kind == yaml.AliasNode:
		return fractions(n.Alias, t, path...)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!float" && t.Kind() == reflect.Int:
		return []error{&fieldError{path, fmt.Sprintf("%s is a fraction: want a whole number", n.Value)}}
	case n.Kind != yaml.MappingNode || t.Kind() != reflect.Struct:
		return nil
	}
	var errs []error
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		for _, f := range reflect.VisibleFields(t) {
			if tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); tag == name {
				errs = append(errs, fractions(n.Content[i+1], f.Type, append(path[:len(path):len(path)], name)...)...)
			}
		}
	}
	return errs
}
