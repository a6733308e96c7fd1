package registryfile

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"  // a form of logos
	_ "image/jpeg" // a form of logos
	"image/png"
	"strings"

	"golang.org/x/image/draw"
)

// Limits of an agency's logo.
const (
	maxLogoFile = 128 << 10 // bytes of the picture in the file
	maxLogoSide = 2_000     // pixels
	// maxLogo is the bytes of the picture that pages show. They count for the 8 kB of a
	// first view.
	maxLogo = 1536
)

// parseLogo returns the picture that pages show for the logo of a registry file, which is
// a picture in base64: a PNG of at most maxLogo bytes. Nothing else of the picture
// remains, so a page never shows bytes that somebody else has made. An SVG is refused: no
// library draws it as its maker sees it (DESIGN.md of internal/papers).
func parseLogo(text string) ([]byte, error) {
	text = strings.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r == '\r' || r == '\t' {
			return -1
		}
		return r
	}, text)
	if base64.StdEncoding.DecodedLen(len(text)) > maxLogoFile+2 {
		return nil, fmt.Errorf("must be a picture of at most %d KiB", maxLogoFile>>10)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("must be the bytes of a PNG, JPEG or GIF picture in base64, as `base64 logo.png` prints them")
	}
	if text := bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\ufeff"))); bytes.HasPrefix(text, []byte("<")) || bytes.HasPrefix(raw, []byte("\x1f\x8b")) {
		return nil, errors.New("is an SVG or another text, which can hold scripts and which programs draw differently: save the drawing as a PNG picture of 500 pixels, and give that")
	}
	size, kind, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("is not a PNG, JPEG or GIF picture")
	}
	if size.Width > maxLogoSide || size.Height > maxLogoSide || size.Width == 0 || size.Height == 0 {
		return nil, fmt.Errorf("has %d × %d pixels: at most %d × %d are allowed", size.Width, size.Height, maxLogoSide, maxLogoSide)
	}
	picture, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("is a damaged %s picture: save it again", strings.ToUpper(kind))
	}
	return shrink(picture)
}

// shrink returns the picture as a PNG of at most maxLogo bytes: the largest with the most
// shades. A page shows it 40 pixels high, and a good screen has two pixels for one.
func shrink(picture image.Image) ([]byte, error) {
	for _, height := range []int{80, 64, 48, 40, 32, 24} {
		small := scaled(picture, height)
		for _, bits := range []int{8, 5, 4, 3, 2} {
			if bits == 2 && height > 32 {
				continue // better fewer pixels than wrong colours
			}
			var b bytes.Buffer
			if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, shades(small, bits)); err != nil {
				return nil, fmt.Errorf("cannot be made smaller: %w", err)
			}
			if b.Len() <= maxLogo {
				return b.Bytes(), nil
			}
		}
	}
	return nil, fmt.Errorf("cannot be reduced to %d bytes: choose a simpler picture", maxLogo)
}

// scaled returns the picture in a box of the height and twice its width. It never enlarges
// a picture.
func scaled(picture image.Image, height int) *image.RGBA {
	from := picture.Bounds()
	ratio := min(1, float64(height)/float64(from.Dy()), float64(2*height)/float64(from.Dx()))
	side := func(pixels int) int { return max(1, int(float64(pixels)*ratio+0.5)) }
	out := image.NewRGBA(image.Rect(0, 0, side(from.Dx()), side(from.Dy())))
	draw.CatmullRom.Scale(out, out.Bounds(), picture, from, draw.Src, nil)
	return out
}

// shades returns the picture with so many bits for each colour. It has a palette if it has
// at most 256 colours.
func shades(picture *image.RGBA, bits int) image.Image {
	steps := 1<<bits - 1
	round := func(v uint8, steps int) uint8 {
		return uint8(((int(v)*steps + 127) / 255) * 255 / steps) //nolint:gosec // at most 255
	}
	area := picture.Bounds()
	full := image.NewNRGBA(area)
	index := map[color.NRGBA]bool{}
	var palette color.Palette
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			c := color.NRGBAModel.Convert(picture.At(x, y)).(color.NRGBA)
			c = color.NRGBA{R: round(c.R, steps), G: round(c.G, steps), B: round(c.B, steps), A: round(c.A, min(steps/2, 7))}
			if c.A == 0 {
				c = color.NRGBA{}
			}
			full.SetNRGBA(x, y, c)
			if !index[c] {
				index[c] = true
				palette = append(palette, c)
			}
		}
	}
	const most = 256
	if len(palette) > most {
		return full
	}
	few := image.NewPaletted(area, palette)
	draw.Draw(few, area, full, area.Min, draw.Src)
	return few
}
