package staff

// Says reports whether a refusal has words in both languages.
func Says(code string) bool { return french.Refusals[code] != "" && english.Refusals[code] != "" }
