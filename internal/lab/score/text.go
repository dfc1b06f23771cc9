package score

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

const (
	// width is what every line of the text keeps to.
	width = 120
	// maxProblems is how many problems the text lists; JSON has all.
	maxProblems = 40
)

// WriteText writes s for people: tables of at most 120 columns.
func (s *Score) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d scenarios, %d runs, %.3g simulated days\n\n", s.Scenarios, s.Runs, s.Days)
	s.classTable(&b)
	s.rangeTable(&b)
	fmt.Fprintf(&b, "\npages: %d expected, %d found, %d false, %d repeated; precision %s, recall %s (95 %%: above %s)\n",
		s.Pages.Expected, s.Pages.Found, s.Pages.False, s.Pages.Repeated, number(s.Pages.Precision), number(s.Pages.Recall), number(s.Pages.RecallLower))
	if r := s.Restart; r != nil {
		fmt.Fprintf(&b, "restarts: %d; incidents: %d open, %d there to be found again, %d found, %d opened anew, %d paged twice\n",
			r.Runs, r.Open, r.Due, r.Found, r.Anew, r.DoublePages)
	}
	s.FalsePages.line(&b, "all runs")
	s.QuietFalsePages.line(&b, "quiet runs")
	s.matrix(&b)
	s.problems(&b)
	_, err := b.WriteTo(w)
	return err
}

// classTable writes a line for each class. A dash is what cannot be told.
func (s *Score) classTable(b *bytes.Buffer) {
	const row = "%-25s %5s %6s %4s %4s %4s %5s %5s %5s %5s %6s %6s %6s %6s %6s %6s\n"
	fmt.Fprintf(b, "%-25s %17s %9s %5s %5s %5s %12s %20s %13s\n", "", "episodes", "false", "", "", "", "recall", "seconds to detect", "to clear")
	fmt.Fprintf(b, row, "class", "real", "missed", "void", "page", "tick", "noise", "other", "prec", "seen", ">=95%", "p50", "p95", "max", "p50", "max")
	for _, c := range append(slices.Clone(s.Classes), s.Total) {
		delay, clear := [3]string{"-", "-", "-"}, [2]string{"-", "-"}
		if d := c.Delay; d != nil {
			delay = [3]string{seconds(d.P50), seconds(d.P95), seconds(d.Max)}
		}
		if o := c.Clear; o != nil {
			clear = [2]string{seconds(o.P50), seconds(o.Max)}
		}
		fmt.Fprintf(b, row, c.Detector, strconv.Itoa(c.Expected), strconv.Itoa(c.Missed), strconv.Itoa(c.Void),
			strconv.Itoa(c.FalsePages), strconv.Itoa(c.FalseTickets), strconv.Itoa(c.Noise), strconv.Itoa(c.Unasked),
			number(c.Precision), number(c.Recall), number(c.RecallLower),
			delay[0], delay[1], delay[2], clear[0], clear[1])
	}
}

// rangeTable writes what is secondary: how well the time a finding held fits the
// time the trouble was there.
func (s *Score) rangeTable(b *bytes.Buffer) {
	const row = "%-25s %10s %8s %9s %6s %12s\n"
	fmt.Fprintf(b, "\n%-25s %19s %16s\n", "", "of ranges", "cleared")
	fmt.Fprintf(b, row, "class", "precision", "recall", "early", "never", "flaps each")
	for _, c := range append(slices.Clone(s.Classes), s.Total) {
		if c.RangePrecision == nil && c.RangeRecall == nil && c.FlapsPerIncident == nil {
			continue
		}
		fmt.Fprintf(b, row, c.Detector, number(c.RangePrecision), number(c.RangeRecall),
			strconv.Itoa(c.ClearedEarly), strconv.Itoa(c.StillOpen), number(c.FlapsPerIncident))
	}
}

func (r *Rate) line(b *bytes.Buffer, of string) {
	if r.PerDay == nil {
		fmt.Fprintf(b, "false pages in %s: nothing was run\n", of)
		return
	}
	fmt.Fprintf(b, "false pages in %s: %d in %.3g simulated days, %.3g a day; below %.3g a day with 95 %% confidence\n",
		of, r.Events, r.Days, *r.PerDay, *r.Upper)
}

// matrix writes the confusion matrix: a row for each class that was expected, a
// column for each that was found. Columns that do not fit go below.
func (s *Score) matrix(b *bytes.Buffer) {
	rows, columns, cells := map[string]bool{}, map[string]bool{}, map[[2]string]int{}
	digits := 1
	for _, c := range s.Confusion {
		rows[c.Expected], columns[c.Found], cells[[2]string{c.Expected, c.Found}] = true, true, c.Count
		digits = max(digits, len(strconv.Itoa(c.Count)))
	}
	if len(cells) == 0 {
		return
	}
	letters := letter(rows, columns)
	digits++ // for a blank between
	for part := range slices.Chunk(classOrder(columns), (width-len("x early-refresh-ineffective"))/digits) {
		fmt.Fprintf(b, "\n%-27s", "expected, and found as")
		for _, column := range part {
			fmt.Fprintf(b, "%*s", digits, letters[column])
		}
		b.WriteByte('\n')
		for _, row := range classOrder(rows) {
			fmt.Fprintf(b, "%s %-25s", letters[row], row)
			for _, column := range part {
				n := "."
				if count := cells[[2]string{row, column}]; count > 0 {
					n = strconv.Itoa(count)
				}
				fmt.Fprintf(b, "%*s", digits, n)
			}
			b.WriteByte('\n')
		}
	}
	legend(b, letters, rows, columns)
}

// letter gives each class a letter, in order, and none a dash.
func letter(sets ...map[string]bool) map[string]string {
	all := map[string]bool{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	out := map[string]string{}
	for i, class := range classOrder(all) {
		out[class] = string(rune('a' + i))
		if class == None {
			out[class] = "-"
		}
	}
	return out
}

// legend names the columns that have no row to name them.
func legend(b *bytes.Buffer, letters map[string]string, rows, columns map[string]bool) {
	for _, column := range classOrder(columns) {
		if !rows[column] {
			fmt.Fprintf(b, "%s %s\n", letters[column], column)
		}
	}
}

// classOrder sorts classes, none last.
func classOrder(set map[string]bool) []string {
	return slices.SortedFunc(maps.Keys(set), func(a, b string) int {
		return cmp.Or(cmp.Compare(btoi(a == None), btoi(b == None)), cmp.Compare(a, b))
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// problems lists what went wrong, first the worst kinds.
func (s *Score) problems(b *bytes.Buffer) {
	kinds := []string{FalsePage, DoublePage, Missed, NotResumed, FalseTicket, WrongFigure, VoidEpisode}
	list := slices.Clone(s.Problems)
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind))
	})
	if len(list) > 0 {
		b.WriteByte('\n')
	}
	for i, p := range list {
		if i == maxProblems {
			fmt.Fprintf(b, "and %d more\n", len(list)-i)
			break
		}
		seed := strconv.FormatUint(p.Seed, 10)
		if p.Shift != "" {
			seed += " " + p.Shift
		}
		line := fmt.Sprintf("%-12s %s, seed %s: ", p.Kind, p.Scenario, seed)
		if p.Detector != "" {
			line += p.Detector + " on " + p.Cache + ": "
		}
		fmt.Fprintln(b, fit(line+p.Why))
	}
}

// fit cuts off what would make a line too long.
func fit(line string) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-3]) + "..."
}

func number(f *float64) string {
	if f == nil {
		return "-"
	}
	return strconv.FormatFloat(*f, 'f', 3, 64)
}

// seconds keeps to the columns of the table, whatever f is.
func seconds(f float64) string {
	switch {
	case f < 100:
		return strconv.FormatFloat(f, 'f', 2, 64)
	case f < 1e5:
		return strconv.FormatFloat(f, 'f', 0, 64)
	default:
		return strconv.FormatFloat(f, 'g', 2, 64)
	}
}
