package chdb

import (
	"strings"
)

// statement holds the parts of a query that the bridge needs. The engine parses the query
// itself.
type statement struct {
	// text is the statement to run; for an insert with data, the INSERT without its FORMAT
	// clause and data.
	text string
	// insertFormat is the format of an insert's data; empty for other statements.
	insertFormat string
	// data is the offset in the query at which that data begins.
	data int
	// format is the answer's format if the statement names one (FORMAT X).
	format string
	// selects is true for a statement whose result can be streamed.
	selects bool
}

var errMultiStatement = refuse(codeSyntax, "Syntax error (Multi-statements are not allowed)")

// parseStatement finds the beginning of an INSERT's data and the output format of a query.
// It refuses more than one statement, because the library would run them all.
func parseStatement(sql string) (statement, error) {
	l := lexer{src: sql}
	first := l.next()
	for first.is("(") {
		first = l.next()
	}
	if first.is("INSERT") {
		return parseInsert(sql, l)
	}
	st := statement{text: sql, selects: first.is("SELECT") || first.is("WITH")}
	depth := 0
	for prev, t := first, l.next(); t.kind != tokenEnd; prev, t = t, l.next() {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		case t.is(";"):
			if l.next().kind != tokenEnd {
				return statement{}, errMultiStatement
			}
			st.text = sql[:t.start]
			return st, nil
		case t.is("TOTALS"):
			st.selects = false // totals come once at the end
		case depth == 0 && t.is("FORMAT") && !prev.is("."):
			ahead := l
			name := ahead.next()
			if end := ahead.next(); name.kind == tokenWord && (end.kind == tokenEnd || end.is(";") || end.is("SETTINGS")) {
				st.format = name.text
			}
		}
	}
	return st, nil
}

func parseInsert(sql string, l lexer) (statement, error) {
	depth := 0
	prev := token{}
	for t := l.next(); t.kind != tokenEnd; prev, t = t, l.next() {
		if t.is("(") {
			depth++
		}
		if t.is(")") {
			depth--
		}
		// A table or a database may have the name of a keyword.
		if depth != 0 || prev.is(".") || prev.is("INTO") || prev.is("TABLE") {
			continue
		}
		switch {
		case t.is("SELECT"), t.is("WITH"), t.is("FROM"):
			rest, err := parseStatement(sql[t.start:])
			return statement{text: sql[:t.start] + rest.text}, err
		case t.is("VALUES"):
			return statement{text: sql[:t.start], insertFormat: "Values", data: t.end}, nil
		case t.is("FORMAT"):
			name := l.next()
			if name.kind != tokenWord {
				return statement{text: sql}, nil // the engine reports the error
			}
			return statement{text: sql[:t.start], insertFormat: name.text, data: skipLineEnd(sql, name.end)}, nil
		case t.is(";"):
			return statement{text: sql[:t.start]}, nil
		}
	}
	return statement{text: sql}, nil
}

// skipLineEnd skips the separator between FORMAT X and its data: the rest of the line if it
// is blank.
func skipLineEnd(s string, i int) int {
	j := i
	for j < len(s) && (s[j] == ' ' || s[j] == '\t' || s[j] == '\r') {
		j++
	}
	if j < len(s) && s[j] == '\n' {
		return j + 1
	}
	if j == len(s) {
		return j
	}
	return i + 1 // the data begins on the same line, after one separator
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenQuoted // a string or a quoted name
	tokenSign   // anything else, one byte
)

type token struct {
	kind       tokenKind
	text       string
	start, end int
}

// is compares a token with a sign or, ignoring case, with a word.
func (t token) is(s string) bool {
	return (t.kind == tokenWord || t.kind == tokenSign) && strings.EqualFold(t.text, s)
}

// lexer splits ClickHouse's SQL into words, strings, signs and comments. It is a value, so
// that a copy can look ahead.
type lexer struct {
	src string
	pos int
}

func (l *lexer) next() token {
	l.skip()
	start := l.pos
	if start >= len(l.src) {
		return token{start: start, end: start}
	}
	kind := tokenSign
	switch c := l.src[start]; {
	case c == '\'' || c == '"' || c == '`':
		kind = tokenQuoted
		l.quoted(c)
	case c == '$' && l.heredoc():
		kind = tokenQuoted
	case isWord(c):
		kind = tokenWord
		for l.pos < len(l.src) && isWord(l.src[l.pos]) {
			l.pos++
		}
	default:
		l.pos++
	}
	return token{kind: kind, text: l.src[start:l.pos], start: start, end: l.pos}
}

// skip skips blanks and comments.
func (l *lexer) skip() {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case strings.IndexByte(" \t\r\n\v\f\x00", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "# "), strings.HasPrefix(rest, "#!"):
			l.through("\n", 0)
		case strings.HasPrefix(rest, "/*"):
			l.through("*/", 2)
		default:
			return
		}
	}
}

// through moves behind the next mark, or to the end if there is none.
func (l *lexer) through(mark string, from int) {
	i := strings.Index(l.src[l.pos+from:], mark)
	if i < 0 {
		l.pos = len(l.src)
		return
	}
	l.pos += from + i + len(mark)
}

// quoted moves behind a string: a backslash escapes, and so does doubling.
func (l *lexer) quoted(quote byte) {
	for l.pos++; l.pos < len(l.src); l.pos++ {
		switch l.src[l.pos] {
		case '\\':
			l.pos++
		case quote:
			if l.pos+1 >= len(l.src) || l.src[l.pos+1] != quote {
				l.pos++
				return
			}
			l.pos++
		}
	}
	l.pos = len(l.src)
}

// heredoc moves behind $tag$ … $tag$ if one begins here.
func (l *lexer) heredoc() bool {
	i := l.pos + 1
	for i < len(l.src) && isWord(l.src[i]) {
		i++
	}
	if i >= len(l.src) || l.src[i] != '$' {
		return false
	}
	l.through(l.src[l.pos:i+1], i+1-l.pos)
	return true
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
