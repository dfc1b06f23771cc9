package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/web"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// fake is a source that says what it is told to.
type fake struct {
	incidents []incident.Incident
	caches    []signal.CacheState
	limits    []engine.Limit
}

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func (f fake) Incidents() []incident.Incident { return f.incidents }
func (f fake) Caches() []signal.CacheState    { return f.caches }
func (f fake) Limits() []engine.Limit         { return f.limits }
func (f fake) Now() time.Time                 { return now }
func (f fake) Incident(id string) (incident.Incident, bool) {
	for _, i := range f.incidents {
		if i.ID == id {
			return i, true
		}
	}
	return incident.Incident{}, false
}

// dogpile is an incident as the first detector would find it.
func dogpile(id string, open bool) incident.Incident {
	onset := signal.At(now.Add(-95 * time.Second))
	f := detectors.Finding{
		Detector: "hot-key-expiry", Service: "feed-api", Cache: "feed", Key: signal.Key{ID: 0x9f3a, Group: "feed:*"},
		Severity: detectors.Page, Priority: 1, Onset: onset, Detected: onset.Add(180 * time.Millisecond),
		Summary: "121 recomputes of one key of feed:* ran at once on 20 instances, 15 times what the origin db can run.",
		Advice:  "Put a single-flight in front of the recompute, and check the cache again once inside.",
		Evidence: []detectors.Evidence{
			{Name: "peak", Value: 121, Unit: "{recompute}", Note: "budget 8"},
			{Name: "budget", Value: 8, Unit: "{recompute}", Note: "declared for origin db"},
			{Name: "duplicates", Value: 120, Unit: "{recompute}"},
			{Name: "wasted", Value: 48.013, Unit: "s"},
			{Name: "instances", Value: 20, Unit: "{instance}"},
			{Name: "ttl", Value: 5, Unit: "s", Note: "shortest lately stored"},
		},
	}
	i := incident.Incident{
		ID: id, Detector: f.Detector, Service: f.Service, Cache: f.Cache, Key: f.Key,
		Severity: f.Severity, Priority: f.Priority, Onset: onset, Opened: f.Detected, Updated: f.Detected, Episodes: 1,
		Finding: f, Worst: f,
		Changes: []incident.Change{{At: f.Detected, Kind: incident.Opened, Severity: detectors.Ticket}, {At: f.Detected.Add(time.Second), Kind: incident.SeverityChanged, Severity: detectors.Page, Priority: 1}},
	}
	if !open {
		i.Closed = onset.Add(90 * time.Second)
		i.Finding.Summary = "No key had 10 or more recomputes at once for 10m."
		i.Changes = append(i.Changes, incident.Change{At: i.Closed, Kind: incident.Closed, Severity: detectors.Page, Priority: 1})
	}
	return i
}

// flush is an incident whose class has changed, with what is part of it.
func flush(id string, open bool) incident.Incident {
	i := dogpile(id, open)
	i.Detector, i.Origin, i.Key = "mass-invalidation", "db", signal.Key{}
	i.Changes = append(i.Changes, incident.Change{
		At: i.Onset.Add(5 * time.Second), Kind: incident.ClassChanged, Severity: detectors.Page, Priority: 1,
		Detector: "mass-invalidation", Was: "hot-key-expiry",
	})
	part := func(detector string, severity detectors.Severity) incident.Child {
		return incident.Child{
			Detector: detector, Cache: "feed", Key: signal.Key{ID: 7, Group: "feed:*"}, Severity: severity, Onset: i.Onset,
			Summary: "Readers meet.", Evidence: []detectors.Evidence{{Name: "peak", Value: 121, Unit: "{recompute}"}},
		}
	}
	i.Children = []incident.Child{
		part("retry-storm", detectors.Page), part("hot-key-expiry", detectors.Ticket), part("hot-key-expiry", detectors.Ticket),
		part("overload", detectors.Ticket), part("budget-exceeded", detectors.Ticket), part("lock-convoy", detectors.Ticket),
	}
	i.Children[0].Priority = 2
	i.Children[1].Incident = "0th3r"
	i.Children[5].Cleared = i.Onset.Add(30 * time.Second)
	i.MoreChildren = 4
	return i
}

func TestTheLandingPageSaysWhatIsPartOfAnIncident(t *testing.T) {
	_, page := get(t, fake{incidents: []incident.Incident{flush("aaa", true)}, caches: caches()}, "/")
	if got, want := text(t, page), "With: retry-storm, Hot-key dogpile (2), overload, 5 more First:"; !strings.Contains(got, want) {
		t.Errorf("no %q in:\n%s", want, got)
	}
	_, page = get(t, fake{incidents: []incident.Incident{dogpile("aaa", true)}, caches: caches()}, "/")
	if strings.Contains(page, "With:") {
		t.Error("an incident by itself is said to be with others")
	}
}

func TestTheIncidentPageShowsWhatIsPartOfIt(t *testing.T) {
	_, page := get(t, fake{incidents: []incident.Incident{flush("aaa", true)}}, "/incidents/aaa")
	got := text(t, page)
	for _, want := range []string{
		"What is part of it", "11:58:25 holds page P2 retry-storm feed feed:* Readers meet. peak 121 recomputes",
		"11:58:25 holds ticket Hot-key dogpile feed feed:* Readers meet. peak 121 recomputes 0th3r",
		"11:58:25 11:58:55 ticket lock-convoy", "And 4 more that hold.", "Origin db",
		"11:58:30 Now mass-invalidation, a page P1 was Hot-key dogpile",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if !strings.Contains(page, `href="0th3r"`) {
		t.Error("has no link to the incident a child was in")
	}
	if _, page := get(t, fake{incidents: []incident.Incident{dogpile("aaa", true)}}, "/incidents/aaa"); strings.Contains(page, "What is part of it") {
		t.Error("has an empty table of what is part of it")
	}
}

func TestTheIncidentPageSaysWhereItCameFromAndWentTo(t *testing.T) {
	i := flush("aaa", false)
	i.PartOf, i.Continues = "b0b", "c0c"
	_, page := get(t, fake{incidents: []incident.Incident{i}}, "/incidents/aaa")
	got := text(t, page)
	for _, want := range []string{"It turned out to be part of incident b0b .", "It is what was left of incident c0c .", "11:58:25 went on page P2 retry-storm"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

func caches() []signal.CacheState {
	return []signal.CacheState{
		{Cache: "feed", Service: "feed-api", Origin: signal.Origin{Name: "db", Budget: 8}, Instances: 20, Silent: 1, Probes: 2, Hot: hotKeys(), Lookups: signal.Lookups{Hits: 291, Misses: 9}},
		{Cache: "profile", Service: "", Instances: 12},
	}
}

// hotKeys are more than are shown.
func hotKeys() []signal.HotKey {
	keys := []signal.HotKey{{ID: 0xabc, Group: "feed:*", Share: 0.213, Expiry: signal.At(now.Add(39 * time.Second))}}
	for range 6 {
		keys = append(keys, signal.HotKey{ID: 0xdef, Group: "<b>user</b>:*", Share: 0.01})
	}
	return keys
}

func get(t *testing.T, s web.Source, path string) (*http.Response, string) {
	t.Helper()
	h, err := web.Handler(web.Options{
		Source: s, Version: "1.2.3", GRPC: "127.0.0.1:4317", HTTP: "127.0.0.1:4318",
		Docs:    []detectors.Doc{{ID: "hot-key-expiry", Title: "Hot-key dogpile", Meaning: "Many readers rebuild one value.", Condition: "At least 20 at once.", Traps: "A cold start."}},
		Runbook: func(id string) string { return "https://example.org/runbooks/" + id + ".md" },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(body)
}

// text returns what a reader sees of a page, with white space collapsed.
func text(t *testing.T, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for n := range root.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "title" {
			words = append(words, strings.Fields(n.Data)...)
		}
	}
	return strings.Join(words, " ")
}

func TestTheLandingPageShowsWhatAnOperatorNeeds(t *testing.T) {
	_, page := get(t, fake{incidents: []incident.Incident{dogpile("aaa", true), dogpile("bbb", false)}, caches: caches()}, "/")
	got := text(t, page)
	at := 0
	for _, want := range []string{ // in this order
		"2 caches, 32 instances",
		"1 incident open",
		"page P1 Hot-key dogpile in feed , feed:*",
		"since 11:58:25, 95 s ago",
		"121 recomputes of one key of feed:* ran at once",
		"At its worst 121 at once, of the 8 the origin can run: 15×.",
		"duplicates 120 recomputes wasted 48 s",
		"First: Put a single-flight in front",
		"Who reports",
		"feed feed-api 20 1 2 300 97 % db (8 at once)",
		"profile several 12 0 0 0 no reads",
		"Most used keys",
		"0000000000000abc feed:* feed 21 % in 39 s",
		"0000000000000def <b>user</b>:* feed 1 % never, or not known",
		"Over",
		"11:58:25 90 s page P1 Hot-key dogpile feed feed:*",
	} {
		i := strings.Index(got[at:], want)
		if i < 0 {
			t.Fatalf("no %q after %q in:\n%s", want, got[:at], got)
		}
		at += i
	}
}

func TestALandingPageWithNothingToShowSaysWhatToDoNext(t *testing.T) {
	_, page := get(t, fake{}, "/")
	got := text(t, page)
	for _, want := range []string{"No incident is open", "Nothing reports to this exporter yet", "stampede-exporter demo", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317", "127.0.0.1:4318/v1/logs", "type: redis"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Who reports") || strings.Contains(got, "Over") {
		t.Errorf("has empty tables:\n%s", got)
	}
}

func TestALandingPageSaysWhereToSend(t *testing.T) {
	for name, c := range map[string]struct {
		listen, host string
		secure       bool
		want         string
	}{
		"on one address":                   {"127.0.0.1:4317", "example.org:9917", false, "=http://127.0.0.1:4317\n"},
		"everywhere":                       {"[::]:4317", "example.org:9917", false, "=http://example.org:4317\n"},
		"everywhere, by IPv6":              {"[::]:4317", "[2001:db8::1]:9917", false, "=http://[2001:db8::1]:4317\n"},
		"everywhere, on the standard port": {"0.0.0.0:4317", "example.org", true, "=https://example.org:4317\n"},
		"everywhere, asked by nobody":      {"0.0.0.0:4317", "", false, "=http://0.0.0.0:4317\n"},
	} {
		h, err := web.Handler(web.Options{Source: fake{}, GRPC: c.listen, HTTP: c.listen, Secure: c.secure})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := strings.ReplaceAll(w.Body.String(), "</code>", "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in:\n%s", name, c.want, got)
		}
	}
}

func TestTheLandingPageBoundsHowManyIncidentsItShows(t *testing.T) {
	var many []incident.Incident
	for range 150 {
		many = append(many, dogpile("aaa", true))
	}
	for range 50 {
		many = append(many, dogpile("bbb", false))
	}
	_, page := get(t, fake{incidents: many}, "/")
	if n := strings.Count(page, "<article"); n != 100 {
		t.Errorf("shows %d open incidents: want 100", n)
	}
	if n := strings.Count(page, "incidents/bbb"); n != 25 {
		t.Errorf("shows %d incidents that are over: want 25", n)
	}
	got := text(t, page)
	for _, want := range []string{"150 incidents open", "And 50 more"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestAReaderCanStopThePageFromLoadingAgain(t *testing.T) {
	const refresh = `<meta http-equiv="refresh" content="5">`
	_, page := get(t, fake{}, "/")
	if !strings.Contains(page, refresh) || !strings.Contains(page, `href="?refresh=off"`) {
		t.Error("does not load again, or offers no way to stop that")
	}
	_, page = get(t, fake{}, "/?refresh=off")
	if strings.Contains(page, refresh) || !strings.Contains(page, `href="?"`) {
		t.Error("loads again, or offers no way back")
	}
}

func TestTheIncidentPageTellsTheWholeStory(t *testing.T) {
	_, page := get(t, fake{incidents: []incident.Incident{dogpile("aaa", false)}}, "/incidents/aaa")
	got := text(t, page)
	for _, want := range []string{
		"Hot-key dogpile in feed", "page P1 over", "began 11:58:25, 95 s ago",
		"Incident aaa", "Detector hot-key-expiry", "Service feed-api", "Key group feed:*", "Key, hashed 0000000000009f3a",
		"ttl 5 s shortest lately stored",
		"11:58:25 Began", "Opened as a ticket found 180 ms after it began", "11:58:26 Now a page P1", "11:59:55 Over No key had 10 or more",
		"What it means Many readers rebuild one value.", "When it fires and clears. At least 20 at once.", "A cold start.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if !strings.Contains(page, `href="https://example.org/runbooks/hot-key-expiry.md"`) {
		t.Error("has no link to the runbook")
	}
}

func TestAnUnknownPageIsNotFound(t *testing.T) {
	for _, path := range []string{"/incidents/none", "/nowhere", "/incidents/"} {
		if r, page := get(t, fake{}, path); r.StatusCode != http.StatusNotFound || !strings.Contains(page, "No such page") {
			t.Errorf("%s: %s: want 404 and a page that says so", path, r.Status)
		}
	}
	if r, body := get(t, fake{}, "/api/v1/incidents/none"); r.StatusCode != http.StatusNotFound || body != `{"error":"no such incident"}`+"\n" {
		t.Errorf("API: %s %q", r.Status, body)
	}
}

func TestTheAPIServesIncidentsAsTheyAre(t *testing.T) {
	want := []incident.Incident{flush("aaa", true), dogpile("bbb", false)}
	r, body := get(t, fake{incidents: want}, "/api/v1/incidents")
	if got := r.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	var list struct{ Incidents []incident.Incident }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list.Incidents); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, body = get(t, fake{incidents: want}, "/api/v1/incidents/bbb")
	var one incident.Incident
	if err := json.Unmarshal([]byte(body), &one); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[1], one); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, body := get(t, fake{}, "/api/v1/incidents"); body != `{"incidents":[]}`+"\n" {
		t.Errorf("no incidents are %q", body)
	}
}

func TestEveryAnswerForbidsActiveContent(t *testing.T) {
	for _, path := range []string{"/", "/incidents/none", "/api/v1/incidents", "/style.css"} {
		r, page := get(t, fake{}, path)
		csp := r.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: Content-Security-Policy %q", path, csp)
		}
		if r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: may be sniffed", path)
		}
		if strings.Contains(page, "<script") || strings.Contains(page, " style=") {
			t.Errorf("%s: has what its own policy forbids", path)
		}
	}
}

// hostile are texts somebody may send as the name of a thing.
var hostile = map[string]string{
	"markup":              `</script><script>alert(1)</script><img src=x onerror=alert(1)>`,
	"an attribute's end":  `" autofocus onfocus="alert(1)`,
	"a script address":    `javascript:alert(1)`,
	"line breaks":         "a\r\nb\x00c",
	"reversed writing":    "a\u202egpj.exe\u2066\u200f",
	"no UTF-8":            "a\xff\xfe\xc3\x28",
	"one mebibyte":        strings.Repeat("k", 1<<20),
	"an unclosed comment": `<!--`,
	"template syntax":     `{{.Root}}`,
}

func TestHostileTextsStayTexts(t *testing.T) {
	for name, bad := range hostile {
		i := dogpile("aaa", true)
		for _, s := range []*string{&i.Detector, &i.Service, &i.Cache, &i.Key.Group, &i.Key.Text, &i.Finding.Summary, &i.Finding.Advice, &i.Finding.Evidence[0].Note, &i.Finding.Evidence[1].Unit, &i.Finding.Evidence[2].Name} {
			*s = bad
		}
		i.Origin, i.PartOf, i.Continues = bad, bad, bad
		i.Children = []incident.Child{{
			Detector: bad, Service: bad, Cache: bad, Key: signal.Key{Group: bad, Text: bad}, Origin: bad, Summary: bad, Incident: bad,
			Evidence: []detectors.Evidence{{Name: bad, Unit: bad, Note: bad}},
		}}
		i.Changes = append(i.Changes, incident.Change{Kind: incident.ClassChanged, Detector: bad, Was: bad, Reason: bad})
		closed := i
		closed.ID, closed.Closed, closed.Worst = "bbb", i.Onset+1, i.Finding
		s := fake{
			incidents: []incident.Incident{i, closed},
			caches:    []signal.CacheState{{Cache: bad, Service: bad, Origin: signal.Origin{Name: bad, Budget: 1}}},
			limits:    []engine.Limit{{Limit: detectors.Limit{Cache: bad, Reason: bad}}},
		}
		for _, path := range []string{"/", "/incidents/aaa", "/incidents/bbb"} {
			r, page := get(t, s, path)
			if r.StatusCode != http.StatusOK {
				t.Errorf("%s: %s: %s", name, path, r.Status)
			}
			if len(page) > 64<<10 {
				t.Errorf("%s: %s has %d bytes: want what is too long cut", name, path, len(page))
			}
			checkInert(t, name+" on "+path, page)
		}
	}
}

// checkInert fails if a page has elements or attributes that our templates have
// not, or characters that change how what follows is read.
func checkInert(t *testing.T, what, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		switch n.Data {
		case "script", "img", "iframe", "object":
			if n.Type == html.ElementNode {
				t.Errorf("%s: has an element %q", what, n.Data)
			}
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "autofocus" || strings.HasPrefix(a.Val, "javascript:") {
				t.Errorf("%s: %s has an attribute %s=%q", what, n.Data, a.Key, a.Val)
			}
		}
	}
	if strings.ContainsAny(page, "\x00\u202e\u2066\u200f\r") || !isUTF8(page) {
		t.Errorf("%s: holds characters that do not print", what)
	}
}

func isUTF8(s string) bool { return strings.ToValidUTF8(s, "") == s }

func TestNothingButASourceIsRequired(t *testing.T) {
	if _, err := web.Handler(web.Options{}); err == nil {
		t.Error("took no source")
	}
	if _, err := web.Handler(web.Options{Source: fake{}}); err != nil {
		t.Error(err)
	}
}

func TestTheLandingPageSaysWhatCannotBeTold(t *testing.T) {
	limits := []engine.Limit{
		{Detector: "hot-key-expiry", Limit: detectors.Limit{Cache: "feed", Reason: "No budget </script> is declared."}},
		{Detector: "hot-key-expiry", Limit: detectors.Limit{Cache: "users", Blind: true, Reason: "No instance has reported lately."}},
	}
	_, page := get(t, fake{caches: caches(), limits: limits}, "/")
	for _, want := range []string{"What cannot be told", "No budget &lt;/script&gt; is declared.", `<span class="warn">blind.</span>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if _, page := get(t, fake{caches: caches()}, "/"); strings.Contains(page, "What cannot be told") {
		t.Error("the page says that something cannot be told, and there is nothing")
	}
}
