package registryfile_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"quittance/internal/form"
	"quittance/internal/registry"
	"quittance/test/registries"
)

// withAgency is a registry file whose only agency has these fields too.
func withAgency(fields string) string {
	return "agencies: [{id: " + registries.AgencyA + ", slug: impots, name: X, " + fields + "}]"
}

func logoField(picture []byte) string { return "logo: " + base64.StdEncoding.EncodeToString(picture) }

// noise is a picture that nothing compresses.
func noise(width, height int) image.Image {
	out, random := image.NewNRGBA(image.Rect(0, 0, width, height)), rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(out.Pix)
	return out
}

// emblem is a green disc on a transparent ground.
func emblem(width, height int) image.Image {
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			if dx, dy := 2*x-width, 2*y-height; dx*dx+dy*dy < height*height {
				out.SetNRGBA(x, y, color.NRGBA{R: 10, G: 92, B: 58, A: 255})
			}
		}
	}
	return out
}

func encoded(t *testing.T, kind string, picture image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	err := map[string]func() error{
		"png":  func() error { return png.Encode(&b, picture) },
		"jpeg": func() error { return jpeg.Encode(&b, picture, nil) },
		"gif":  func() error { return gif.Encode(&b, picture, nil) },
	}[kind]()
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Every logo becomes a PNG of at most 2 KiB in its proportions. The same file again changes
// nothing.
func TestLogo(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	for name, c := range map[string]struct {
		picture       []byte
		width, height int // at least, and in this proportion
	}{
		"emblem":        {encoded(t, "png", emblem(512, 512)), 64, 64},
		"wide":          {encoded(t, "png", emblem(1000, 250)), 96, 24},
		"small":         {encoded(t, "png", emblem(16, 16)), 16, 16},
		"photograph":    {encoded(t, "jpeg", noise(180, 180)), 24, 24},
		"wide noise":    {encoded(t, "png", noise(200, 100)), 48, 24},
		"gif":           {encoded(t, "gif", emblem(300, 300)), 64, 64},
		"one pixel":     {encoded(t, "png", noise(1, 1)), 1, 1},
		"a single line": {encoded(t, "png", noise(1500, 1)), 48, 1},
	} {
		text := withAgency(logoField(c.picture))
		if !h.Seed(t, text).Changed {
			t.Errorf("%s: the file changed nothing", name)
		}
		if h.Seed(t, text).Changed {
			t.Errorf("%s: the same file again is a change", name)
		}
		agency, _ := h.Open(t).Agency(registries.AgencyA)
		got, err := png.Decode(bytes.NewReader(agency.Logo))
		if err != nil || len(agency.Logo) > 1536 {
			t.Fatalf("%s: %d bytes, %v", name, len(agency.Logo), err)
		}
		size := got.Bounds().Size()
		if size.X < c.width || size.Y < c.height || c.height > 1 && (size.X*c.height-size.Y*c.width)*2 > c.width*2 || size.Y > 80 || size.X > 160 {
			t.Errorf("%s: %v in %d bytes, want at least %d × %d", name, size, len(agency.Logo), c.width, c.height)
		}
		t.Logf("%s: %v, %d bytes", name, size, len(agency.Logo))
	}
}

// A picture that is none, or that costs too much to read, is refused with the reason.
func TestLogoIsRefused(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	good := encoded(t, "png", emblem(64, 64))
	for name, c := range map[string]struct {
		picture []byte
		says    string
	}{
		"svg": {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), "is an SVG"},
		"svg with a head and a mark of its encoding": {[]byte("\ufeff<?xml version=\"1.0\"?><svg/>"), "save the drawing as a PNG picture"},
		"svg with an entity bomb":                    {[]byte(`<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><svg>&b;</svg>`), "is an SVG"},
		"svg that loads from another site":           {[]byte(`<svg xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="https://example.org/x.png"/></svg>`), "is an SVG"},
		"compressed svg":                             {[]byte("\x1f\x8b\x08\x00"), "is an SVG"},
		"svg in UTF-16":                              {[]byte("\xff\xfe<\x00s\x00v\x00g\x00"), "is not a PNG, JPEG or GIF picture"},
		"svg behind a PNG's first bytes":             {append([]byte("\x89PNG\r\n\x1a\n"), "<svg><script>alert(1)</script></svg>"...), "is not a PNG, JPEG or GIF picture"},
		"svg with a head":                            {[]byte("\n<?xml version=\"1.0\"?><svg/>"), "is an SVG"},
		"html":                                       {[]byte("<!DOCTYPE html>"), "is an SVG or another text"},
		"text":                                       {[]byte("a logo"), "is not a PNG, JPEG or GIF picture"},
		"webp":                                       {[]byte("RIFF\x10\x00\x00\x00WEBPVP8 "), "is not a PNG, JPEG or GIF picture"},
		"torn":                                       {good[:len(good)/2], "is a damaged PNG picture"},
		"10,000 pixels":                              {claiming(good, 10_000, 10_000), "has 10000 × 10000 pixels: at most 2000 × 2000"},
		"a bomb":                                     {bomb(good), "is a damaged PNG picture"},
		"too many pixels":                            {claiming(good, 50_000, 50_000), "has 50000 × 50000 pixels: at most 2000 × 2000"},
		"too high":                                   {claiming(good, 1, 2001), "has 1 × 2001 pixels"},
		"too large":                                  {append(good, make([]byte, 128<<10)...), "at most 128 KiB"},
	} {
		refused(t, h, name, logoField(c.picture), c.says)
	}
	refused(t, h, "the name of a file", "logo: impôts.png", "must be the bytes of a PNG, JPEG or GIF picture in base64")
}

func refused(t *testing.T, h registries.House, name, logo, says string) {
	t.Helper()
	_, err := h.TrySeed(t, withAgency(logo))
	var faults *form.FaultsError
	if !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Field != "agencies[0].logo" || !strings.Contains(faults.Faults[0].Message, says) {
		t.Errorf("%s: %v, %+v, want %q", name, err, faults, says)
	}
}

// claiming returns a PNG whose header claims another size.
func claiming(picture []byte, width, height uint32) []byte {
	const header, crc = 16, 29 // offsets of the size and of its check
	out := bytes.Clone(picture)
	binary.BigEndian.PutUint32(out[header:], width)
	binary.BigEndian.PutUint32(out[header+4:], height)
	binary.BigEndian.PutUint32(out[crc:], crc32.ChecksumIEEE(out[12:crc]))
	return out
}

// bomb is a PNG whose header claims four million pixels of 64 bits, and whose data are those of
// a small picture.
func bomb(picture []byte) []byte {
	out := claiming(picture, 2000, 2000)
	out[24] = 16 // bits of a channel
	binary.BigEndian.PutUint32(out[29:], crc32.ChecksumIEEE(out[12:29]))
	return out
}

// A contact replaces the previous one as a whole. An omitted contact, address or logo stays.
func TestContact(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	logo := logoField(encoded(t, "png", emblem(8, 8)))
	h.Seed(t, withAgency(logo+`, address: "Avenue de l’Indépendance, Brazzaville", contact: {phone: "+242 22 000 00 00", email: contact@impots.example, hours: "8 h à 15 h"}`))
	before, _ := h.Open(t).Agency(registries.AgencyA)
	want := registry.Contact{Phone: "+242 22 000 00 00", Email: "contact@impots.example", Hours: "8 h à 15 h"}
	if before.Contact != want || before.Address != "Avenue de l’Indépendance, Brazzaville" || len(before.Logo) == 0 {
		t.Errorf("agency = %+v", before)
	}
	h.Seed(t, withAgency("fees: []"))
	if after, _ := h.Open(t).Agency(registries.AgencyA); !reflect.DeepEqual(after, before) {
		t.Errorf("after a file without them: %+v", after)
	}
	h.Seed(t, withAgency("contact: {hours: 9 h à 12 h}"))
	if after, _ := h.Open(t).Agency(registries.AgencyA); fmt.Sprint(after.Contact) != "{  9 h à 12 h}" {
		t.Errorf("contact = %+v", after.Contact)
	}
}

// The block receipt replaces the previous one as a whole, and each of its texts is one line.
func TestReceiptTexts(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, withAgency(`receipt: {title: Quittance, mention: "Délivrée en application de l’article 412.", accountant: Le trésorier-payeur général}`))
	before, _ := h.Open(t).Agency(registries.AgencyA)
	if want := (registry.ReceiptTexts{Title: "Quittance", Mention: "Délivrée en application de l’article 412.", Accountant: "Le trésorier-payeur général"}); before.Receipt != want {
		t.Errorf("receipt = %+v", before.Receipt)
	}
	h.Seed(t, withAgency("fees: []"))
	if after, _ := h.Open(t).Agency(registries.AgencyA); after.Receipt != before.Receipt {
		t.Errorf("after a file without it: %+v", after.Receipt)
	}
	h.Seed(t, withAgency("receipt: {title: Reçu}"))
	if after, _ := h.Open(t).Agency(registries.AgencyA); after.Receipt != (registry.ReceiptTexts{Title: "Reçu"}) {
		t.Errorf("after another block: %+v", after.Receipt)
	}
	for field, text := range map[string]string{
		"title": strings.Repeat("W", 81), "mention": `one\nline`, "accountant": `turned \u202e`, "titre": "Reçu",
	} {
		_, err := h.TrySeed(t, withAgency(`receipt: {`+field+`: "`+text+`"}`))
		var faults *form.FaultsError
		if !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Field != "agencies[0].receipt."+field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
