// Command gen writes the shipped alerting rules to the file that is its
// argument.
package main

import (
	"bytes"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/stampede-exporter/stampede-exporter/alerts"
)

const notice = "# Made from code by `make generate`: change the code, not this file.\n"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	b := bytes.NewBufferString(notice)
	e := yaml.NewEncoder(b)
	e.SetIndent(2)
	if err := e.Encode(alerts.Build(alerts.Options{})); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}
