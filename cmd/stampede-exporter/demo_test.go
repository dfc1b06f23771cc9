package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/demo"
)

// TestTheDemoFindsWhatHappens runs the demo as a stranger would, shorter and
// faster, on the embedded Redis and on a real one, and reads its result.
func TestTheDemoFindsWhatHappens(t *testing.T) {
	tests := []struct {
		name string
		args []string
		page string
	}{
		{"without protection somebody is paged", []string{"--protect=none"}, "hot-key-expiry"},
		{"on a real Redis too", []string{"--protect=none", "--redis.addr=" + cachetest.Redis(t)}, "hot-key-expiry"},
		{"with single-flight in more processes than the origin can bear somebody is still paged", []string{"--protect=singleflight"}, "process-local-coalescing"},
		{"with single-flight in few enough nobody is", []string{"--protect=singleflight", "--instances=4"}, ""},
		{"with XFetch nobody is", []string{"--protect=xfetch"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(binary, append([]string{"demo", "--for=4s", "--ttl=1s", "--output=json", "--web.listen-address=127.0.0.1:0"}, tt.args...)...)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s%s", err, errs.String(), out.String())
			}
			var r demo.Result
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			page := ""
			for _, f := range r.Findings {
				if f.Severity == "page" && f.Key == "feed:*" {
					page += f.Detector
				}
			}
			if !r.OK || page != tt.page || r.Reads == 0 || r.Failed != 0 {
				t.Errorf("result %+v; want it right, with a page for %q", r, tt.page)
			}
		})
	}
}

func TestTheDemoEndsCleanlyOnInterrupt(t *testing.T) {
	cmd := exec.Command(binary, "demo", "--for=10m", "--web.listen-address=127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), "PAGE") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "The exporter found what happened, and nothing else.") {
		t.Errorf("%v:\n%s", err, said.String())
	}
}

func TestTheDemoRefusesWhatCannotBe(t *testing.T) {
	out, err := exec.Command(binary, "demo", "--instances=0", "--web.listen-address=127.0.0.1:0").CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("instances is 0: want 1 to 200")) {
		t.Errorf("%v: %s", err, out)
	}
}
