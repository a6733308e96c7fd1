package staff

// Grid is a table of a page: the template "grid". The first cell of a row names it.
type Grid struct {
	Caption string
	Heads   []string
	Rows    [][]Cell
}

// Cell is a cell of a Grid: a text, perhaps a link, and perhaps a second line.
type Cell struct{ Text, URL, More, Class string }

// ClassSum is the class of a cell with an amount.
const ClassSum = "sum"

// Fact is a line of the template "facts". One without a value is not shown.
type Fact struct {
	Label, Value, URL string
	// Code sets the value as code, for ids and places.
	Code bool
}
