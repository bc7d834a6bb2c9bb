package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// steps tells on standard error what a long command is at: on a terminal in one line that is redrawn.
type steps struct {
	w        io.Writer
	terminal bool
	quiet    bool
}

func newSteps(cmd *cobra.Command, quiet bool) *steps {
	return &steps{cmd.ErrOrStderr(), isTerminal(cmd.ErrOrStderr()), quiet}
}

func (s *steps) step(format string, args ...any) {
	switch text := fmt.Sprintf(format, args...); {
	case s.quiet:
	case s.terminal:
		fmt.Fprintf(s.w, "\r%s\x1b[K", text)
	default:
		fmt.Fprintln(s.w, text)
	}
}

// errInterrupted is what a command ends with that keeps nothing of what it had begun.
var errInterrupted = failure{errors.New("interrupted: nothing is kept of it")}

// unlessOver is step for work that is to end with ctx.
func (s *steps) unlessOver(ctx context.Context) func(format string, args ...any) error {
	return func(format string, args ...any) error {
		if ctx.Err() != nil {
			return errInterrupted
		}
		s.step(format, args...)
		return nil
	}
}

// close takes the line off the terminal.
func (s *steps) close() {
	if s.terminal && !s.quiet {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
}
