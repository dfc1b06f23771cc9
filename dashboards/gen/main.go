// Command gen writes the shipped dashboard to the file that is its argument.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/stampede-exporter/stampede-exporter/dashboards/build"
)

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
	d, err := build.Overview()
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
