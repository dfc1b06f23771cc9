package alertmanager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	maxBatch    = 256                    // alerts in one request
	gather      = 100 * time.Millisecond // changes wait that long for others of the same tick
	firstRetry  = 500 * time.Millisecond
	maxResponse = 512 // bytes of an answer that are read for the log
)

// sender keeps one Alertmanager informed, on one goroutine.
type sender struct {
	n       *Notifier
	url     string
	name    string // url without a password
	wake    chan struct{}
	sent    uint64 // the version of the alerts that arrived
	failing bool
}

func newSender(n *Notifier, base string) *sender {
	u, err := url.Parse(base)
	if err != nil { // validate has parsed it before
		panic(err)
	}
	u = u.JoinPath("api", "v2", "alerts")
	return &sender{n: n, url: u.String(), name: u.Redacted(), wake: make(chan struct{}, 1)}
}

// wakeUp makes the sender send what changed. It does not block.
func (s *sender) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake already
	}
}

func (s *sender) run() {
	resend := time.NewTicker(s.n.opts.Resend)
	defer resend.Stop()
	for {
		since := s.sent
		select {
		case <-s.n.quit:
			_ = s.send(s.sent) // counted and logged; there is no later to try again
			return
		case <-s.wake:
			s.pause(gather)
		case <-resend.C:
			since = 0
		}
		s.deliver(since)
	}
}

// deliver sends until it arrives, is refused or the notifier closes, with
// growing pauses never longer than that between resendings. Each try sends the
// alerts as they are by then.
func (s *sender) deliver(since uint64) {
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval, retry.Multiplier = firstRetry, s.n.opts.Resend, 2
	for {
		err := s.send(since)
		if err == nil || errors.As(err, new(refusedError)) {
			return
		}
		if !s.pause(min(retry.NextBackOff(), s.n.opts.Resend)) {
			return
		}
	}
}

// pause waits, and reports whether to go on: not if the notifier is closing.
func (s *sender) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.n.quit:
		return false
	case <-t.C:
		return true
	}
}

// send sends the alerts that changed after the given version, in batches, and
// remembers what arrived.
func (s *sender) send(since uint64) error {
	alerts, version := s.n.outbox(since)
	var refused error
	for len(alerts) > 0 {
		batch := alerts[:min(len(alerts), maxBatch)]
		alerts = alerts[len(batch):]
		err := s.post(batch)
		s.account(err)
		if errors.As(err, new(refusedError)) {
			refused = err // the other batches may still be welcome
		} else if err != nil {
			return err
		}
	}
	s.sent = version
	return refused
}

// refusedError is an answer that says the same request will not be taken later
// either. All alerts are sent again in time; until then there is no use in it.
type refusedError struct{ status, body string }

func (e refusedError) Error() string { return fmt.Sprintf("refused: %s: %s", e.status, e.body) }

// post makes one request.
func (s *sender) post(batch []alert) error {
	body, err := json.Marshal(batch)
	if err != nil {
		return fmt.Errorf("encode alerts: %w", err)
	}
	ctx, cancel := context.WithTimeout(s.n.ctx, s.n.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.n.opts.Client.Do(req)
	if err != nil {
		return err // names the URL, without its password
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	switch {
	case resp.StatusCode/100 == 2:
		return nil // whatever became of the answer's body
	case err != nil:
		return fmt.Errorf("read answer %s: %w", resp.Status, err)
	case resp.StatusCode/100 == 4 && resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusRequestTimeout:
		return refusedError{resp.Status, printable(string(text), maxResponse)}
	}
	return fmt.Errorf("answer is %s: %s", resp.Status, printable(string(text), maxResponse))
}

// account counts a request, and logs the first failure of a row and its end.
func (s *sender) account(err error) {
	log := s.n.opts.Logger.With(slog.String("alertmanager", s.name))
	outcome := OutcomeOK
	switch {
	case err != nil && !s.failing:
		log.Error("Could not send alerts; trying again until it works", "err", err)
	case err == nil && s.failing:
		log.Info("Sending alerts works again")
	}
	if err != nil {
		outcome = OutcomeFailed
	}
	s.failing = err != nil
	s.n.opts.Sent(outcome)
}
