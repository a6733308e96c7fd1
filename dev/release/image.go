package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1" // images without a container engine, by those who run a registry
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// user is the user and the group of the image's program. It owns data alone.
	user = 65532
	data = "var/lib/quittance"
)

// image writes an image that has the program and nothing else, as an archive of an OCI layout: no shell, no user, no
// files of a distribution. The program brings time zones and the authorities of the web with it.
func (r *release) image(context.Context) (err error) {
	layer, err := r.layer()
	if err != nil {
		return err
	}
	base := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	img, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = system, architecture, v1.Time{Time: r.at}
	config.History = []v1.History{{Created: v1.Time{Time: r.at}, CreatedBy: "dev/release"}}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%[1]d", user), Entrypoint: []string{"/quittance"}, WorkingDir: "/", Env: []string{"QUITTANCE_DATA=/" + data},
		Labels: map[string]string{"org.opencontainers.image.title": "quittance", "org.opencontainers.image.version": r.version},
	}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(r.out, "layout-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	at, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	if err := at.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.name})); err != nil {
		return err
	}
	return r.packed(folder)
}

// layer is the only layer of the image.
func (r *release) layer() (v1.Layer, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	err := addFile(t, r.program, "quittance", 0o755, r.at)
	for _, folder := range []struct {
		name string
		mode int64
		of   int
	}{{"tmp/", 0o1777, 0}, {"var/", 0o755, 0}, {"var/lib/", 0o755, 0}, {data + "/", 0o700, user}} {
		err = errors.Join(err, t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder.name, Mode: folder.mode, Uid: folder.of, Gid: folder.of, ModTime: r.at, Format: tar.FormatPAX}))
	}
	if err := errors.Join(err, t.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
}

// packed writes the archive of a layout, in the order of the names.
func (r *release) packed(folder string) error {
	f, err := os.Create(r.path("-oci.tar"))
	if err != nil {
		return err
	}
	t := tar.NewWriter(f)
	err = filepath.WalkDir(folder, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, at)
		if err != nil {
			return err
		}
		return addFile(t, at, filepath.ToSlash(name), 0o644, r.at)
	})
	return errors.Join(err, t.Close(), f.Close())
}

// runImage unpacks the image of a release and runs its program there as the image's user, with nothing of this machine
// but the kernel. It needs root.
func runImage(ctx context.Context, out, work string) error {
	if os.Geteuid() != 0 {
		return errors.New("the image's program runs in a root of its own, which only root can make: verify as root")
	}
	found, err := filepath.Glob(filepath.Join(out, "*-oci.tar"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d images, %w", len(found), err)
	}
	folder, root := filepath.Join(work, "layout"), filepath.Join(work, "root")
	if err := unpack(found[0], folder); err != nil {
		return err
	}
	img, err := imageIn(folder)
	if err != nil {
		return err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	tree := mutate.Extract(img)
	if err := errors.Join(unpackFrom(tree, root), tree.Close()); err != nil {
		return err
	}
	for _, args := range [][]string{{"version", "--json"}, {"acls", "ingress"}} {
		ending, cancel := context.WithTimeout(ctx, time.Minute)
		cmd := exec.CommandContext(ending, config.Config.Entrypoint[0], args...) //nolint:gosec // the program of the release
		cmd.Dir, cmd.Env, cmd.Stderr = "/", config.Config.Env, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
		text, err := cmd.Output()
		cancel()
		if err != nil || len(text) == 0 {
			return fmt.Errorf("the image's program, asked for %s: %q, %w", args[0], text, err)
		}
		if args[0] == "version" && !json.Valid(text) {
			return fmt.Errorf("the image's program says of its version %q", text)
		}
	}
	return nil
}

func imageIn(folder string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("the layout has not one image: %w", err)
	}
	return index.Image(manifest.Manifests[0].Digest)
}

func unpack(archive, folder string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	return errors.Join(unpackFrom(f, folder), f.Close())
}

// unpackFrom unpacks an archive of our own into a new folder, with owners and modes.
func unpackFrom(archive io.Reader, folder string) (err error) {
	if err := os.Mkdir(folder, 0o755); err != nil { //nolint:gosec // the root of the image
		return err
	}
	root, err := os.OpenRoot(folder) // nothing is written outside
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for t := tar.NewReader(archive); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Clean(h.Name)
		if h.Typeflag == tar.TypeDir {
			err = root.MkdirAll(name, 0o755)
		} else {
			err = unpackFile(root, name, t)
		}
		if err := errors.Join(err, root.Chmod(name, h.FileInfo().Mode()), root.Lchown(name, h.Uid, h.Gid)); err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, from io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
