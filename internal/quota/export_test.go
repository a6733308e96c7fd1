package quota

// Windows is how many keys the instance remembers.
func (r *Reads) Windows() (n int) {
	r.windows.Range(func(any, any) bool { n++; return true })
	return n
}
