package signal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line, in bytes, that a [Reader] takes. A merged window
// with [MaxFleetIntervals] stays well under it.
const MaxLine = 4 << 20

// Record is one line of a recording: exactly one of its fields is set.
type Record struct {
	Window *Window `json:"window,omitempty"`
	Vitals *Vitals `json:"vitals,omitempty"`
}

// Writer writes records as JSON, one a line. It does not buffer, and is not safe
// for concurrent use.
type Writer struct{ enc *json.Encoder }

// NewWriter returns a Writer that writes to w, one call of w.Write a record.
func NewWriter(w io.Writer) *Writer { return &Writer{enc: json.NewEncoder(w)} }

// Write writes r. JSON holds text only: bytes of a [Key.Text] that are not valid
// UTF-8 are replaced.
func (w *Writer) Write(r Record) error {
	if err := r.validate(); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return w.enc.Encode(r)
}

// Reader reads what a [Writer] wrote. It checks the syntax of records, not their
// sense. It is not safe for concurrent use.
type Reader struct {
	r    *bufio.Reader
	line int
	buf  []byte
}

// NewReader returns a Reader that reads from r, ahead of what it returns.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 64<<10)} }

// LineError is what is wrong with one line.
type LineError struct {
	Line int // counted from 1
	Err  error
}

// Error returns the number of the line and what is wrong with it.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong, without the line.
func (e *LineError) Unwrap() error { return e.Err }

// Read returns the next record, or [io.EOF] after the last. Blank lines are
// skipped and unknown fields ignored. After a [*LineError] the next call goes on
// with the next line, so that one damaged line, such as the last of a recording
// whose writer was killed, costs no other. Any other error is final.
func (r *Reader) Read() (Record, error) {
	for {
		line, err := r.next()
		if err != nil {
			return Record{}, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var rec Record
		if err := json.Unmarshal(line, &rec); err != nil {
			return Record{}, &LineError{r.line, err}
		}
		if err := rec.validate(); err != nil {
			return Record{}, &LineError{r.line, err}
		}
		return rec, nil
	}
}

// next returns the next line, which is valid until the following call.
func (r *Reader) next() ([]byte, error) {
	r.buf = r.buf[:0]
	r.line++
	size := 0
	for {
		part, err := r.r.ReadSlice('\n')
		size += len(part)
		// What goes beyond the bound is read past, and not kept.
		if size <= MaxLine {
			r.buf = append(r.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read line %d: %w", r.line, err)
		case err != nil && size == 0:
			return nil, io.EOF
		case size > MaxLine:
			return nil, &LineError{r.line, fmt.Errorf("longer than %d bytes", MaxLine)}
		}
		return r.buf, nil
	}
}

func (r *Record) validate() error {
	if (r.Window == nil) == (r.Vitals == nil) {
		return errors.New(`want exactly one of "window" and "vitals"`)
	}
	return nil
}
