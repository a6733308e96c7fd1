package intake

import (
	"bytes"
	"context"
	"time"

	"github.com/google/uuid"
)

// The steps of an import.
const (
	StepPending   = string(stepPending)
	StepProduced  = string(stepProduced)
	StepCommitted = string(stepCommitted)
)

// ErrKilled is the error of an import that Kill has ended.
var ErrKilled = errKilled

// Kill ends imports as the death of the process does, after the steps for which at returns
// true.
func (s *Store) Kill(at func(step string) bool) {
	s.killed = func(x step) bool { return at(string(x)) }
}

// SetPatience sets how long the broker may take to answer.
func (s *Store) SetPatience(d time.Duration) { s.patience = d }

// Original returns a stored file.
func (s *Store) Original(ctx context.Context, id string) ([]byte, error) {
	var file bytes.Buffer
	err := readStored(ctx, s.cfg.Pool, s.cfg.Keys, uuid.MustParse(id), &file)
	return file.Bytes(), err
}
