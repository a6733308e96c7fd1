package counter

import "testing"

// What clerks type and what barcode scanners write into the field is the same reference.
func TestReference(t *testing.T) {
	t.Parallel()
	const ref = "4821093377120456"
	for _, typed := range []string{
		ref, " 4821 0933 7712 0456\r\n", "4821-0933.7712\u00a00456", "4821\u202f0933\u202f7712\u202f0456",
		"]C1" + ref, "]Q3https://pay.example/p/" + ref, "HTTPS://PAY.EXAMPLE/P/" + ref, "https://pay.example/p/" + ref + "?lang=fr", "https://pay.example/p/" + ref + "/",
		"'_é&àç\"\"èè&éà'(-", // a scanner set to an American keyboard, on a French one
	} {
		if got := reference(typed); got != ref {
			t.Errorf("%q is read as %q", typed, got)
		}
	}
	for typed, want := range map[string]string{"": "", "]C1": "]C1", "/": "", "abc": "abc", "4821 0933": "48210933"} {
		if got := reference(typed); got != want {
			t.Errorf("%q is read as %q, want %q", typed, got, want)
		}
	}
}
