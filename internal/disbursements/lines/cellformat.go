package lines

import "strings"

// builtIn are the formats of numbers that workbooks do not declare (ECMA-376, part 1, 18.8.30): those that show the number
// as it is, and those that show a date or a time. All others show another number.
var (
	builtInPlain = map[int]bool{1: true, 2: true, 3: true, 4: true, 37: true, 38: true, 39: true, 40: true, 41: true, 42: true, 43: true, 44: true}
	builtInDate  = map[int]bool{14: true, 15: true, 16: true, 17: true, 18: true, 19: true, 20: true, 21: true, 22: true, 45: true, 46: true, 47: true}
)

// kindOfFormat says what a format makes of a number: it shows it as it is, as a date, or as another one.
func kindOfFormat(id int, declared map[int]string) cellKind {
	code, ok := declared[id]
	switch {
	case !ok && (id == 0 || id == formatText):
		return cellGeneral
	case !ok && builtInPlain[id]:
		return cellNumber
	case !ok && (builtInDate[id] || id >= 27 && id <= 36 || id >= 50 && id <= 58): // dates of East Asian languages
		return cellDate
	case !ok:
		return cellShown
	}
	return kindOfCode(code)
}

// kindOfCode reads the code of a format, of which the first part is that of positive numbers.
func kindOfCode(code string) cellKind {
	if strings.EqualFold(code, "General") || strings.EqualFold(code, "Standard") || code == "@" {
		return cellGeneral
	}
	if strings.Contains(code, "[<") || strings.Contains(code, "[>") || strings.Contains(code, "[=") {
		return cellShown // parts that depend on the number
	}
	placeholders, scaled, runes := 0, false, []rune(code)
	for i := 0; i < len(runes); i++ {
		switch c := runes[i]; c {
		case ';':
			i = len(runes)
		case '0', '#', '?':
			placeholders++
			scaled = false
		case ',':
			scaled = placeholders > 0 // unless a digit follows, it divides by 1,000
		case '"', '[':
			end := i + 1
			for end < len(runes) && runes[end] != map[rune]rune{'"': '"', '[': ']'}[c] {
				end++
			}
			if kind := kindOfLiteral(c, string(runes[i+1:min(end, len(runes))])); kind != cellNumber {
				return kind
			}
			i = end
		case '\\', '_', '*':
			i++ // the next character is shown as it is, is a space or is repeated
			if i < len(runes) && c != '_' && strings.ContainsRune(digits+".,%", runes[i]) {
				return cellShown
			}
		case '.', ' ', '-', '+', '(', ')', '$', '€', '\u00a0', '\u202f':
		default:
			if strings.ContainsRune("dDmMyYhHsSjJaA", c) {
				return cellDate
			}
			return cellShown
		}
	}
	if placeholders == 0 || scaled {
		return cellShown
	}
	return cellNumber
}

// kindOfLiteral reads a quoted text, or what is in brackets: a duration, a currency with its language, or a colour. A
// text with digits would show another number.
func kindOfLiteral(open rune, text string) cellKind {
	shown := text
	if open == '[' {
		if strings.Trim(strings.ToLower(text), "hms") == "" {
			return cellDate
		}
		shown, _, _ = strings.Cut(text, "-")
		if !strings.HasPrefix(text, "$") {
			shown = "" // a colour, also by its number
		}
	}
	if strings.ContainsAny(shown, digits) {
		return cellShown
	}
	return cellNumber
}
