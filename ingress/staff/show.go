package staff

import "strings"

// Grid is a table of a page: the template "grid". The first cell of a row names it.
type Grid struct {
	Caption string
	Heads   []string
	Rows    [][]Cell
}

// Cell is a cell of a Grid: a text, perhaps a link, and perhaps a second line.
type Cell struct{ Text, URL, More, Class string }

const (
	// ClassSum is the class of a cell with an amount.
	ClassSum = "sum"
	// ClassWhole is the class of a cell whose words are not broken beside wide columns.
	ClassWhole = "whole"
)

// Fact is a line of the template "facts". One without a value is not shown.
type Fact struct {
	Label, Value, URL string
	// Code sets the value as code, for ids and places.
	Code bool
}

// Press is a form that a person's passkey signs: the template "press". Its fields go to BeginURL, which answers with the
// options for the passkey; the fields and the answer go to FinishURL (Visit.ReadPress).
type Press struct {
	// ID is that of the form on the page.
	ID                  string
	BeginURL, FinishURL string
	Hidden              map[string]string
	Inputs              []Input
	Boxes               []Boxes
	Label, Class        string // of the button

	Lang, Host, Demo          string
	Failed, Without, NoScript string
}

// Input is a field of a Press.
type Input struct {
	Name, Label, Hint string
	// Mode is an inputmode; empty for text.
	Mode     string
	Max      int
	Required bool
	// Options make it a choice of one. Value is what it has at first.
	Options []Option
	Value   string
}

// Boxes are boxes to tick.
type Boxes struct {
	Name, Legend string
	Options      []Option
}

// Option is a box to tick, or one of a choice.
type Option struct{ Value, Label string }

// NewPress returns a form with the paths of its two steps and the words of its button.
func (v *Visit) NewPress(begin, finish, label string) *Press {
	p := &Press{ID: "press", BeginURL: v.URL(begin), FinishURL: v.URL(finish), Label: label, Lang: string(v.Lang), Host: v.Host(), Failed: v.w.PressFailed, Without: v.w.PressWithout, NoScript: v.w.PressNoScript}
	if v.isDemo() {
		p.Demo = demoAnswer
	}
	return p
}

// Choice is an option of a select (template "options"), or a box to tick.
type Choice struct {
	Value, Label string
	Chosen       bool
}

// Command returns a command line: a command and its flags, names and values in turn. A flag without a value is left
// out.
func Command(text string, flags ...string) string {
	for i := 0; i+1 < len(flags); i += 2 {
		if flags[i+1] != "" {
			text += " --" + flags[i] + " " + Argument(flags[i+1])
		}
	}
	return text
}

// Argument returns a value as an argument of a command.
func Argument(value string) string {
	if value != "" && !strings.ContainsAny(value, " \t\n\"'`$&|;<>()*?[]#~!\\{}") {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
