// Command release makes a release of the commit that is checked out, and proves that it can be made again.
//
//	release --out dist            makes it
//	release --out dist --verify   makes it once more from a clone, with an empty build cache, and compares all files; and
//	                              runs the program of the image, alone in its root, as the image's user
//
// The files are those of docs/operating/install.md. They depend on the commit and on the Go release alone: the times in
// them are that of the commit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	out := flag.String("out", "dist", "folder of the files")
	verify := flag.Bool("verify", false, "compare the files with those of a second build")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *out, *verify)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "no release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, verify bool) error {
	if verify {
		return verified(ctx, out)
	}
	return made(ctx, ".", out)
}

// made makes the release of a tree in a folder, which it empties. further are variables of the compiler.
func made(ctx context.Context, tree, out string, further ...string) error {
	if changed, err := git(ctx, tree, "status", "--porcelain"); err != nil || changed != "" {
		return errors.Join(err, fmt.Errorf("the tree has changes that are in no commit: commit or remove them\n%s", changed))
	}
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil { //nolint:gosec // everybody reads a release
		return err
	}
	r, err := build(ctx, tree, out, further)
	if err != nil {
		return err
	}
	for _, write := range []func(context.Context) error{r.bom, r.archive, r.image, r.sums} {
		if err := write(ctx); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(os.Stdout, "made %s in %s\n", r.name, out)
	return err
}

// verified makes the release again from a clone and compares it, and runs the image's program.
func verified(ctx context.Context, out string) (err error) {
	work, err := os.MkdirTemp("", "quittance-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	clone, again := filepath.Join(work, "a folder of another name"), filepath.Join(work, "dist")
	if _, err := git(ctx, ".", "clone", "--quiet", ".", clone); err != nil {
		return err
	}
	if err := made(ctx, clone, again, "GOCACHE="+filepath.Join(work, "cache")); err != nil {
		return err
	}
	one, err := digests(out)
	if err != nil {
		return err
	}
	two, err := digests(again)
	if err != nil {
		return err
	}
	if one != two {
		return fmt.Errorf("the two builds differ:\n%s\nand\n%s", one, two)
	}
	if err := runImage(ctx, again, work); err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "verified: %d files have the same bytes in both builds, and the image's program runs\n", strings.Count(one, "\n"))
	return err
}

// digests returns the SHA-256 of all files of a folder by name, a line each.
func digests(folder string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(folder, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		sum, err := digest(at)
		fmt.Fprintf(&b, "%s  %s\n", sum, filepath.Base(at))
		return err
	})
	return b.String(), err
}

// git returns what git prints.
func git(ctx context.Context, tree string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // our own arguments
	cmd.Dir, cmd.Stderr = tree, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(text)), nil
}
