package citizens

// Alphabet is alphabet.
const Alphabet = alphabet

// Typed reports whether a code is spelt as one.
func Typed(code string) bool { _, ok := typed(code); return ok }

// CheckedCode returns eight characters by their values, with their check.
func CheckedCode(values []byte) string {
	out := make([]byte, len(values))
	for i, v := range values {
		out[i] = alphabet[v]
	}
	sum := checkOf(out)
	return string(append(out, alphabet[sum>>5], alphabet[sum&31]))
}

// LockKey is lockKey of a name.
func LockKey(name string) int64 { return lockKey([]byte(name)) }
