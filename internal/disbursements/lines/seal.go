package lines

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"quittance/disbursement"
	"quittance/disbursement/digest"
)

// Total is what a payout account pays of a batch.
type Total struct {
	Account string // code
	Count   int
	Sum     int64 // minor units
}

// Salted is a line with what makes its leaf.
type Salted struct {
	Content digest.Line
	Salt    [32]byte
	Leaf    digest.Hash
}

// Sealed are the lines of a batch, ready for disbursement.AddLines, and what disbursement.Seal says of them. A position in
// Lines is that in the batch.
type Sealed struct {
	Lines []Salted
	// Sum of all amounts and the Largest of them, in minor units.
	Sum, Largest int64
	Root         digest.Hash
	// Totals are by code of the payout account, without accounts that pay nothing.
	Totals []Total
}

// Errors of Seal and Chunks.
var (
	// ErrOrder says that lines are not in the order of the bytes of line_ref, or that one comes twice.
	ErrOrder = errors.New("the lines are not in the order of their line_ref")
	// ErrSealedSize says that an encrypted line is larger than disbursement.MaxBytesSealed.
	ErrSealedSize = errors.New("an encrypted line is too large")
)

// Seal gives each line a salt, 32 bytes of salts, which must be random, and computes leaves, root and totals. lines are
// File.Lines. Errors are those of salts, ErrOrder, and digest.ErrText, which Read has excluded.
func Seal(lines []Line, salts io.Reader) (*Sealed, error) {
	s := &Sealed{Lines: make([]Salted, len(lines))}
	var tree digest.Tree
	for i, l := range lines {
		if i > 0 && l.Content.LineRef <= lines[i-1].Content.LineRef {
			return nil, fmt.Errorf("sealing line %d: %w", i, ErrOrder)
		}
		x := &s.Lines[i]
		x.Content = l.Content
		if _, err := io.ReadFull(salts, x.Salt[:]); err != nil {
			return nil, fmt.Errorf("reading a salt: %w", err)
		}
		var err error
		if x.Leaf, err = digest.Leaf(x.Salt, x.Content); err != nil {
			return nil, fmt.Errorf("sealing line %d: %w", i, err)
		}
		tree = tree.Add(x.Leaf)
		s.Sum += x.Content.Amount
		s.Largest = max(s.Largest, x.Content.Amount)
		s.count(x.Content)
	}
	s.Root = tree.Root()
	return s, nil
}

func (s *Sealed) count(l digest.Line) {
	i, known := slices.BinarySearchFunc(s.Totals, l.PayoutAccount, func(t Total, code string) int {
		switch {
		case t.Account < code:
			return -1
		case t.Account > code:
			return 1
		}
		return 0
	})
	if !known {
		s.Totals = slices.Insert(s.Totals, i, Total{Account: l.PayoutAccount})
	}
	s.Totals[i].Count++
	s.Totals[i].Sum += l.Amount
}

// Chunk are lines of one disbursement.AddLines.
type Chunk struct {
	// Position of the first line in the batch, from 0.
	Position int
	Lines    []disbursement.NewLine
}

// Chunks returns the lines in chunks that one command may have: disbursement.MaxLinesAdded lines and MaxBytesAdded bytes.
// encrypt gets the position of a line and its Content, and returns what is stored. An error of it, digest.ErrText or
// ErrSealedSize ends the sequence.
func (s *Sealed) Chunks(encrypt func(position int, content []byte) ([]byte, error)) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		chunk, size := Chunk{}, 0
		for i, x := range s.Lines {
			line, err := x.encrypted(i, encrypt)
			if err != nil {
				yield(Chunk{}, err)
				return
			}
			n := len(line.Sealed) + len(line.Ref) + len(line.Corrects) + len(line.Account) + len(line.Leaf)
			if len(chunk.Lines) == disbursement.MaxLinesAdded || size+n > disbursement.MaxBytesAdded {
				if !yield(chunk, nil) {
					return
				}
				chunk, size = Chunk{Position: i}, 0
			}
			chunk.Lines, size = append(chunk.Lines, line), size+n
		}
		if len(chunk.Lines) > 0 {
			yield(chunk, nil)
		}
	}
}

func (x Salted) encrypted(position int, encrypt func(int, []byte) ([]byte, error)) (disbursement.NewLine, error) {
	content, err := Content(x.Salt, x.Content)
	if err != nil {
		return disbursement.NewLine{}, fmt.Errorf("writing line %d: %w", position, err)
	}
	sealed, err := encrypt(position, content)
	if err != nil {
		return disbursement.NewLine{}, fmt.Errorf("encrypting line %d: %w", position, err)
	}
	if len(sealed) > disbursement.MaxBytesSealed {
		return disbursement.NewLine{}, fmt.Errorf("encrypting line %d: %w", position, ErrSealedSize)
	}
	return disbursement.NewLine{
		Ref: x.Content.LineRef, Account: x.Content.PayoutAccount, Amount: x.Content.Amount, Leaf: x.Leaf, Sealed: sealed, Corrects: x.Content.Corrects,
	}, nil
}
