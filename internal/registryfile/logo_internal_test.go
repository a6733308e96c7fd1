package registryfile

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"
	"time"
)

// pngOf is a PNG in grey whose data inflate to that many zeros, with chunks before them.
func pngOf(t *testing.T, width, height uint32, bits byte, zeros int, before ...[]byte) []byte {
	t.Helper()
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	out := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(header, bits, 0, 0, 0, 0))...)
	for _, c := range before {
		out = append(out, c...)
	}
	out = append(out, chunk("IDAT", deflated(t, zeros))...)
	return append(out, chunk("IEND", nil)...)
}

func chunk(name string, data []byte) []byte {
	out := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), name+string(data)...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

func deflated(t *testing.T, zeros int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, zlib.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, zeros)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Real pictures of many pixels, and pictures whose data or texts inflate to a hundred megabytes,
// cost at most the memory of the largest picture that is allowed. The test is alone in its
// process while it measures.
func TestLogoBombs(t *testing.T) {
	const most = 64 << 20 // 2000 × 2000 pixels of 64 bits are 32 MB
	profile := append([]byte("x\x00\x00"), deflated(t, 100<<20)...)
	for _, c := range []struct {
		name, says string
		picture    []byte
	}{
		{"10,000 × 10,000 pixels", "has 10000 × 10000 pixels", pngOf(t, 10_000, 10_000, 1, 10_000*(1+10_000/8))},
		{"the largest picture", "", pngOf(t, 2000, 2000, 16, 2000*(1+2*2000))},
		{"data that inflate to 100 MB", "is a damaged PNG picture", pngOf(t, 64, 64, 8, 100<<20)},
		{"a text that inflates to 100 MB", "", pngOf(t, 64, 64, 8, 64*65, chunk("zTXt", profile))},
		{"a profile that inflates to 100 MB", "", pngOf(t, 64, 64, 8, 64*65, chunk("iCCP", profile))},
	} {
		text := base64.StdEncoding.EncodeToString(c.picture)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		logo, err := parseLogo(text)
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		used := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d bytes in the file, %d MiB, %s", c.name, len(c.picture), used>>20, took)
		if c.says == "" && (err != nil || len(logo) > maxLogo || bytes.Contains(logo, []byte("zTXt")) || bytes.Contains(logo, []byte("iCCP"))) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %d bytes, %v, want %q", c.name, len(logo), err, c.says)
		}
		if used > most {
			t.Errorf("%s: %d MiB", c.name, used>>20)
		}
	}
}
