// Command gen writes the documents made from code into the module whose root
// is its argument.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/stampede-exporter/stampede-exporter/internal/docgen"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen ROOT")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	docs, err := docgen.All(os.DirFS(root))
	if err != nil {
		return err
	}
	for name, text := range docs {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
