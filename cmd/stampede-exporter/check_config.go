package main

import (
	"context"
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stampede-exporter/stampede-exporter/internal/config"
)

// checkConfigCommand returns the command that says whether a configuration file
// would be accepted. It opens nothing the file refers to.
func checkConfigCommand(app *kingpin.Application) command {
	clause := app.Command("check-config", "Check a configuration file, and exit with 1 if it is wrong.")
	file := clause.Arg("file", "The configuration file.").Required().String()
	return command{clause, func(_ context.Context, env environment) error {
		if _, err := config.Load(*file); err != nil {
			return err
		}
		_, err := fmt.Fprintf(env.stdout, "%s: ok\n", *file)
		return err
	}}
}
