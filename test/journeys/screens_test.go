package journeys_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/checkout/page"
	"quittance/money"
	"quittance/test/harness"
	"quittance/test/servers"
)

// screens is the folder of the pictures that documents show, album the folder of all pictures with
// their index, which is not in the repository.
const (
	screens = harness.Root + "/docs/screens"
	album   = harness.Root + "/.deps/screens"
)

// pictureWidths are the widths of a small phone and of a desktop.
var pictureWidths = []int{320, 1280}

// picture returns the file name of a view at a width.
func picture(name string, width int) string { return fmt.Sprintf("%s-%d.png", name, width) }

// pictureWidthsOf returns the widths of a view's pictures.
func pictureWidthsOf(v view) []int {
	if !v.pictured {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(pictureWidths), func(w int) bool { return !slices.Contains(v.widths, w) })
}

// There is a view for a picture of each page in each state, language and width, and docs/screens
// has those pictures that documents show, and no other file. QUITTANCE_SCREENS=write
// (`make screens`) takes all pictures, into .deps/screens, and those of docs/screens. The test does
// not compare their contents.
func TestScreens(t *testing.T) {
	t.Parallel()
	g := newGallery(t, (*gallery).batches)
	want := map[string]bool{}
	var names []string // of the views, each once
	for _, v := range slices.Concat(g.tours...) {
		for _, width := range pictureWidthsOf(v) {
			want[picture(v.name, width)] = true
			if !slices.Contains(names, v.name) {
				names = append(names, v.name)
			}
		}
	}
	shown := shownPictures(t)
	if os.Getenv("QUITTANCE_SCREENS") == "write" {
		g.takePictures(t, want, shown, screensIndex(names, want))
	}
	for _, state := range page.States {
		for _, lang := range money.Languages {
			for _, width := range pictureWidths {
				if name := picture(string(state)+"-"+string(lang), width); !want[name] {
					t.Errorf("no view has the picture %s", name)
				}
			}
		}
	}
	there, err := os.ReadDir(screens)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if !shown[f.Name()] {
			t.Errorf("docs/screens has %s, which no document shows", f.Name())
		}
		if !want[f.Name()] {
			t.Errorf("docs/screens has %s, which belongs to no page", f.Name())
		}
		delete(shown, f.Name())
	}
	for name := range shown {
		t.Errorf("docs/screens has no %s; `make screens` makes it", name)
	}
}

// shownPictures returns the names of the pictures of docs/screens that documents show.
func shownPictures(t *testing.T) map[string]bool {
	t.Helper()
	shown := map[string]bool{}
	read := func(path string) error {
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`screens/([\w.-]+\.png)`).FindAllSubmatch(text, -1) {
			shown[string(m[1])] = true
		}
		return err
	}
	err := filepath.WalkDir(harness.Root+"/docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		return read(path)
	})
	if err := errors.Join(err, read(harness.Root+"/README.md")); err != nil {
		t.Fatal(err)
	}
	return shown
}

// takePictures takes all pictures and writes them to the album, and those that documents show to
// docs/screens.
func (g *gallery) takePictures(t *testing.T, of, shown map[string]bool, index string) {
	t.Helper()
	shots := servers.Dir(t)
	task := g.task(pictureWidthsOf, ends)
	task["shots"] = shots
	harness.Browse(t, 10*time.Minute, "axe.mjs", task, func(line []byte) {
		if bytes.Contains(line, []byte(`"fault"`)) {
			t.Errorf("in the browser: %s", line)
		}
	})
	for _, dir := range []string{album, screens} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(dir, name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name := range of {
		small := smaller(t, filepath.Join(shots, name))
		write(album, name, small)
		if shown[name] {
			write(screens, name, small)
		}
	}
	write(album, "README.md", []byte(index))
}

// smaller returns a picture in its 64 most frequent colours. It has a fifth of the bytes
// and looks the same.
func smaller(t *testing.T, file string) []byte {
	t.Helper()
	const colours = 64
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	full, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	area := full.Bounds()
	count := map[color.RGBA]int{}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	var most color.Palette
	for c := range count {
		most = append(most, c)
	}
	slices.SortFunc(most, func(a, b color.Color) int {
		x, y := a.(color.RGBA), b.(color.RGBA)
		return cmp.Or(count[y]-count[x], cmp.Compare(x.R, y.R), cmp.Compare(x.G, y.G), cmp.Compare(x.B, y.B))
	})
	few := image.NewPaletted(area, most[:min(colours, len(most))])
	draw.Draw(few, area, full, area.Min, draw.Src)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, few); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// screensParts are the tables of the index, each with the prefix of its names.
var screensParts = []struct{ prefix, title, about string }{
	{"", "The hosted checkout page", "`checkout/page`, in each of its states. The word after a dot is a variant of the state: `faulty` a form that was refused, `paid` an order that is paid already, " +
		"`none` no means of payment, `card` and `cash` an offer other than mobile money, `compact` the page in an integrator's frame, `print` the page on paper, `large` with text of twice its size, `other` the number of another operator, `dead-end` a session without a cancel_url, `forced` the page in the colours that the reader's system forces."},
	{"counter", "The clerk's desk", "`ingress/counter`, where citizens pay in cash. The words after `counter` are the page and its variant."},
	{"portal", "The citizen portal", "`ingress/citizen`, where people see what they owe and pay it. The words after `portal` are the page and its variant."},
	{"receipts", "The page that checks receipts", "`ingress/verify` at `/q`, where anybody checks a receipt, also without network. The word after the dot is what it says."},
	{"shop", "The demo shop", "`dev/shop`, an integrator's site with the checkout in its page."},
	{"bank", "The simulated bank", "`dev/simulator`, to which developer mode sends citizens who pay by card."},
}

// screensIndex returns the README of the album: the pictures of a phone, and links to
// those of a desktop.
func screensIndex(names []string, taken map[string]bool) string {
	var b strings.Builder
	b.WriteString("# What citizens and clerks see\n\n" +
		"Every page in French and English, at widths of 320 px and 1280 px. `make screens` takes the pictures again, and documents show some of them (`docs/screens`).\n")
	for _, part := range screensParts {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| | Français, 320 px | English, 320 px | 1280 px |\n|---|---|---|---|\n", part.title, part.about)
		for _, full := range names {
			name, isFrench := strings.CutSuffix(full, "-"+string(money.French))
			if !isFrench || serviceOf(name) != part.prefix {
				continue
			}
			fmt.Fprintf(&b, "| `%s` |", name)
			for _, lang := range money.Languages {
				if narrow := picture(name+"-"+string(lang), pictureWidths[0]); taken[narrow] {
					fmt.Fprintf(&b, " ![%s, %s](%s)", name, lang, narrow)
				}
				b.WriteString(" |")
			}
			for _, lang := range money.Languages {
				if wide := picture(name+"-"+string(lang), pictureWidths[1]); taken[wide] {
					fmt.Fprintf(&b, " [%s](%s)", lang, wide)
				}
			}
			b.WriteString(" |\n")
		}
	}
	return b.String()
}
