package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stampede-exporter/stampede-exporter/alerts"
	"github.com/stampede-exporter/stampede-exporter/dashboards"
)

// file is a file the project ships.
type file struct {
	name string
	text []byte
}

// dashboardsCommand returns the command that writes the Grafana dashboards.
func dashboardsCommand(app *kingpin.Application) command {
	clause := app.Command("dashboards", "Write the Grafana dashboards.")
	return shippedCommand(clause, file{"overview.json", dashboards.Overview})
}

// alertsCommand returns the command that writes the Prometheus rules.
func alertsCommand(app *kingpin.Application) command {
	clause := app.Command("alerts", "Write the Prometheus alerting rules.")
	return shippedCommand(clause, file{"stampede.yaml", alerts.YAML})
}

// shippedCommand returns a command that writes files into a folder and says
// where they are.
func shippedCommand(clause *kingpin.CmdClause, files ...file) command {
	folder := clause.Flag("output", "Folder to write to. It is made if it is not there.").Short('o').Default(".").String()
	return command{clause, func(_ context.Context, env environment) error {
		if err := os.MkdirAll(*folder, 0o755); err != nil {
			return fmt.Errorf("make folder %q: %w", *folder, err)
		}
		for _, f := range files {
			path := filepath.Join(*folder, f.name)
			if err := os.WriteFile(path, f.text, 0o644); err != nil {
				return fmt.Errorf("write %q: %w", path, err)
			}
			fmt.Fprintln(env.stdout, path)
		}
		return nil
	}}
}
