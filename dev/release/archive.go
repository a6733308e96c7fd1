package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// shipped are the folders and files of the tree that go into the archive, beside the program, as pathspecs of git: units,
// rights, rules, samples of proxies, and what whoever runs it reads. Pages link to each other, so all of them are there, but
// not their screens: half of the size, and no page needs one to be understood.
var shipped = []string{
	"deploy/systemd", "deploy/kafka", "deploy/postgres", "deploy/clickhouse", "deploy/monitoring", "deploy/proxy",
	"docs", ":(exclude)docs/screens", ":(exclude)docs/*.go", "CHANGELOG.md",
}

// archive writes the archive for machines with systemd.
func (r *release) archive(ctx context.Context) error {
	list, err := git(ctx, r.tree, append([]string{"ls-files", "--"}, shipped...)...)
	if err != nil {
		return err
	}
	f, err := os.Create(r.path("-linux-amd64.tar.gz"))
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	err = addFile(t, r.program, r.name+"/bin/quittance", 0o755, r.at)
	for name := range strings.Lines(list) {
		if err == nil {
			name = strings.TrimSpace(name)
			err = addFile(t, filepath.Join(r.tree, name), r.name+"/"+name, 0o644, r.at)
		}
	}
	return errors.Join(err, t.Close(), z.Close(), f.Close())
}

// addFile adds a file to an archive under a name, owned by root.
func addFile(t *tar.Writer, file, name string, mode int64, at time.Time) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		err = t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: mode, ModTime: at, Format: tar.FormatPAX})
	}
	if err == nil {
		_, err = io.Copy(t, f)
	}
	return errors.Join(err, f.Close())
}
