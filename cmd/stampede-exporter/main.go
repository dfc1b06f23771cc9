// Command stampede-exporter detects cache stampedes. It receives what
// instrumented applications report over OTLP, watches cache servers from
// outside, and tells of what it finds on its pages, in its metrics and to
// Alertmanager.
//
// Run it with --help for its commands; docs/configuration.md describes its
// configuration file.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"
	"github.com/redis/go-redis/v9/logging"
)

const name = "stampede-exporter"

// command is one command of the program. Each is in a file of its own, where a
// function adds its flags to the application and returns it.
type command struct {
	clause *kingpin.CmdClause
	// run does the work until it is done or ctx is. Its error is for the
	// operator, and makes the program exit with 1.
	run func(ctx context.Context, env environment) error
}

// environment is what a command may write to.
type environment struct {
	stdout, stderr io.Writer
	log            *slog.Logger
}

// commands returns every command, in the order the help lists them.
func commands(app *kingpin.Application) []command {
	labClause := app.Command("lab", "Simulate fleets with known truth, and see what the detectors make of them.")
	return []command{
		serveCommand(app),
		demoCommand(app),
		labRunCommand(labClause),
		labScoreCommand(labClause),
		labVerifyCommand(labClause),
		checkConfigCommand(app),
		dashboardsCommand(app),
		alertsCommand(app),
	}
}

// setVersion names the version of a program built without the Makefile's flags:
// that of its module.
func setVersion() {
	if version.Version != "" {
		return
	}
	version.Version = "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		version.Version = strings.TrimPrefix(info.Main.Version, "v")
	}
}

func main() {
	setVersion()
	app := kingpin.New(name, "Detects cache stampedes: who recomputes what, how often, and at whose cost.")
	app.Version(version.Print(name))
	app.HelpFlag.Short('h')
	// The flags people look for are those of the default command.
	app.UsageTemplate(kingpin.LongHelpTemplate)
	logs := &promslog.Config{}
	promslogflag.AddFlags(app, logs)
	all := commands(app)

	chosen := kingpin.MustParse(app.Parse(os.Args[1:]))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The client of the probes writes to stderr on its own at each failed dial;
	// the runner of the probes says and counts the same.
	logging.Disable()
	env := environment{stdout: os.Stdout, stderr: os.Stderr, log: promslog.New(logs)}
	for _, c := range all {
		if c.clause.FullCommand() != chosen {
			continue
		}
		if err := c.run(ctx, env); err != nil {
			fmt.Fprintf(os.Stderr, "%s: error: %v\n", name, err)
			os.Exit(1)
		}
	}
}
