package acceptance_test

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/checkout/money"
	"quittance/checkout/page"
	"quittance/internal/testenv"
)

// screens is the folder of the pictures.
const screens = root + "/docs/screens"

// pictureWidths are those of a small phone and of a desk.
var pictureWidths = []int{320, 1280}

// picture is one of the folder's: state[.look]-language-width.png.
func picture(name string, width int) string { return fmt.Sprintf("%s-%d.png", name, width) }

// There is a picture of each page in each state, language and width, and no
// other. QUITTANCE_SCREENS=write makes them (`make screens`); how a page looks is
// for people to judge, so nothing compares them.
func TestScreens(t *testing.T) {
	t.Parallel()
	r, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	var pictured []view
	for _, v := range views(t, r) {
		if v.pictured {
			v.widths = slices.DeleteFunc(slices.Clone(pictureWidths), func(w int) bool { return !slices.Contains(v.widths, w) })
			pictured = append(pictured, v)
		}
	}
	if os.Getenv("QUITTANCE_SCREENS") == "write" {
		takePictures(t, r, pictured)
	}
	index, err := os.ReadFile(filepath.Join(screens, "README.md"))
	if err != nil {
		t.Fatalf("%v; `make screens` makes it", err)
	}
	if want := screensIndex(pictured); string(index) != want {
		t.Error("the index of docs/screens is not of these pages; `make screens` makes it")
	}
	want := map[string]bool{"README.md": true}
	for _, v := range pictured {
		for _, width := range v.widths {
			want[picture(v.name, width)] = true
		}
	}
	for _, state := range page.States {
		for _, lang := range money.Languages {
			for _, width := range pictureWidths {
				if name := picture(string(state)+"-"+string(lang), width); !want[name] {
					t.Errorf("nobody takes the picture %s", name)
				}
			}
		}
	}
	there, err := os.ReadDir(screens)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if !want[f.Name()] {
			t.Errorf("docs/screens has %s, which is no page's", f.Name())
		}
		delete(want, f.Name())
	}
	for name := range want {
		t.Errorf("docs/screens has no %s; `make screens` makes it", name)
	}
}

func takePictures(t *testing.T, r *page.Renderer, of []view) {
	t.Helper()
	shots := testenv.Dir(t)
	var pages []map[string]any
	for _, v := range of {
		pages = append(pages, map[string]any{"name": v.name, "widths": v.widths})
	}
	browse(t, 5*time.Minute, "axe.mjs", map[string]any{"base": serveViews(t, r, of), "pages": pages, "shots": shots}, func(line []byte) {
		if bytes.Contains(line, []byte(`"fault"`)) {
			t.Errorf("in the browser: %s", line)
		}
	})
	if err := os.RemoveAll(screens); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(screens, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, v := range of {
		for _, width := range v.widths {
			name := picture(v.name, width)
			if err := os.WriteFile(filepath.Join(screens, name), smaller(t, filepath.Join(shots, name)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(screens, "README.md"), []byte(screensIndex(of)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// smaller is a picture in the 64 colours that it has most of: a fifth of the
// bytes, and of pages like ours nobody sees it.
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

// screensIndex is the folder's README: each page as a phone shows it, and links
// to how a desk does.
func screensIndex(of []view) string {
	var b strings.Builder
	b.WriteString("# What citizens see\n\n" +
		"The hosted checkout page in each of its states (`checkout/page`), in French and English, at 320 px and at 1280 px. " +
		"`make screens` takes the pictures again; what follows a point is a variant of the state: `faulty` a form that was refused, `paid` an order that is paid already, " +
		"`none` no means of payment, `card` and `cash` another offer than mobile money, `compact` the page in an integrator's frame.\n\n" +
		"| | Français, 320 px | English, 320 px | 1280 px |\n|---|---|---|---|\n")
	for _, v := range of {
		name, isFrench := strings.CutSuffix(v.name, "-"+string(money.French))
		if !isFrench {
			continue
		}
		fmt.Fprintf(&b, "| `%s` |", name)
		for _, lang := range money.Languages {
			fmt.Fprintf(&b, " ![%s, %s](%s) |", name, lang, picture(name+"-"+string(lang), pictureWidths[0]))
		}
		for _, lang := range money.Languages {
			if slices.Contains(v.widths, pictureWidths[1]) {
				fmt.Fprintf(&b, " [%s](%s)", lang, picture(name+"-"+string(lang), pictureWidths[1]))
			}
		}
		b.WriteString(" |\n")
	}
	return b.String()
}
