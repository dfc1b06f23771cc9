// Package strictyaml decodes YAML files that people write by hand, and says of
// what is wrong in them where it is and what would be right.
//
// An unknown or repeated field, a value of the wrong type, a duration without a
// unit, a fraction where a whole number is wanted, a second document: each is a
// [Problem] with its line and field. All of them are found, not just the first.
package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"reflect"

	yaml "go.yaml.in/yaml/v3"
)

// Decode decodes text into into, a pointer to a struct that may hold defaults,
// then asks check what else is wrong. The error is an [*Error] or nil. An empty
// document leaves into as it is.
func Decode(text []byte, into any, check func() []error) error {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return newError(nil, err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return newError(&root, err)
	}
	var more yaml.Node
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return newError(nil, errors.New("a second document follows: want one"))
	}
	var errs []error
	if len(root.Content) > 0 {
		errs = fractions(root.Content[0], reflect.TypeOf(into))
	}
	if errs = append(errs, check()...); len(errs) > 0 {
		return newError(&root, errs...)
	}
	return nil
}
